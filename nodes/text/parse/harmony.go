package parse

import "strings"

var (
	harmonyMarks = list("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>")
	// harmonyEnds end a body. A header that begins without its end being written does so, too.
	harmonyEnds    = newMarks(list("<|end|>", "<|return|>", "<|call|>", "<|start|>", "<|channel|>"))
	harmonyHeaders = newMarks(harmonyMarks)
)

// harmony reads all of an output: messages of <|start|>role<|channel|>channel to=recipient<|constrain|>type<|message|>body<|end|>, of which the
// first lacks what the prompt has. The analysis is reasoning, a recipient functions.x makes a call, all else is content. Headers that make no
// sense are tolerated: their body is content.
func (p *Parser) harmony() {
	begin, inBody := begun(p.o.Tail)
	for begin != eot {
		head := begin
		if !inBody {
			if p.ended() && begin == "" {
				return
			}
			if (begin == "" || strings.HasSuffix(begin, "assistant")) && !p.follows(harmonyMarks...) &&
				!p.follows("assistant", "to=", " to=", "analysis<|", "analysis to=", "commentary<|", "commentary to=", "final<|") {
				head = "" // a body without a header
			} else if head, inBody = p.header(begin); !inBody {
				begin = ""
				continue
			}
		}
		begin, inBody = p.body(head), false
	}
}

// eot is what body returns at the end of the output.
const eot = "\xff"

// begun is what the prompt has of the header of the message that the output goes on with, and whether it has all of it.
func begun(tail string) (header string, whole bool) {
	i := strings.LastIndex(tail, "<|start|>assistant")
	if i < 0 || strings.Contains(tail[i:], "<|end|>") {
		return "", false
	}
	header, _, whole = strings.Cut(tail[i:], "<|message|>")
	return header, whole
}

// body takes what a message says, and returns the begin of the next one's header.
func (p *Parser) body(head string) (begin string) {
	end := ""
	if name := p.callee(head); name != "" {
		p.begin(name, "")
		p.space()
		empty := true
		end = p.scan(harmonyEnds, func(s string) {
			empty = false
			p.args(s)
		})
		// The model stops at <|call|>, of which engines do not always give the text.
		if end != "" || !p.cut {
			if empty {
				p.args("{}")
			}
			p.done()
		}
	} else if k := Content; channel(head) == "analysis" {
		k, p.thinking = Reasoning, true
		end = p.text(k, harmonyEnds)
		if end != "" {
			p.leave()
		}
	} else {
		end = p.text(k, harmonyEnds)
		p.trim.section = true
	}
	switch end {
	case "":
		return eot
	case "<|start|>", "<|channel|>":
		return end
	}
	return ""
}

// follows reports whether one of words comes next.
func (p *Parser) follows(words ...string) bool {
	p.mark(0)
	w := p.accept(words...)
	p.rewind()
	return w != ""
}

// header takes what stands before a body. One that ends without a body is text, but for the words that headers have.
func (p *Parser) header(begin string) (head string, ok bool) {
	var b strings.Builder
	b.WriteString(begin)
	for {
		w := p.scan(harmonyHeaders, func(s string) {
			for len(s) > 0 {
				if n := min(len(s), maxName-b.Len()); n > 0 {
					b.WriteString(s[:n])
					s = s[n:]
					continue
				}
				p.emit(Content, s) // no header is as long
				s = ""
			}
		})
		switch w {
		case "<|message|>":
			return b.String(), true
		case "", "<|end|>", "<|return|>", "<|call|>":
			if w != "" || !p.cut {
				p.emit(Content, words(b.String()))
			}
			return "", false
		case "<|start|>":
			if b.Len() > 0 {
				p.emit(Content, words(b.String()))
			}
			b.Reset()
		}
		if b.Len() > maxName {
			b.Reset()
		}
		b.WriteString(w)
	}
}

// words is what a header has behind its last mark, but for a role, channel and recipient.
func words(head string) string {
	if i := strings.LastIndex(head, "|>"); i >= 0 {
		head = head[i+len("|>"):]
	}
	for _, w := range list("assistant", "analysis", "commentary", "final") {
		if rest, ok := strings.CutPrefix(head, w); ok {
			head = rest
			break
		}
	}
	if s := strings.TrimLeft(head, blanks); strings.HasPrefix(s, "to=") {
		_, head, _ = strings.Cut(s, " ")
	}
	if s := strings.TrimSpace(head); s == "" || s == "json" {
		return ""
	}
	return head
}

// callee is the function that a header addresses; "" for none.
func (p *Parser) callee(head string) string {
	to := addressed(head)
	if to == "" || p.o.Tools == "" {
		return ""
	}
	if name, ok := strings.CutPrefix(to, "functions."); ok || p.known(name) {
		return name
	}
	return ""
}

// channel is the last channel of a header.
func channel(head string) string {
	if i := strings.LastIndex(head, "<|channel|>"); i >= 0 {
		head = head[i+len("<|channel|>"):]
	}
	if i := strings.IndexAny(head, " <\n\t"); i >= 0 {
		head = head[:i]
	}
	return head
}
