package parse

import "strings"

var harmonyMarks = list("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>")

// harmony reads all of an output: messages of <|start|>role<|channel|>channel to=recipient<|constrain|>type<|message|>body<|end|>, of which the
// first lacks what the prompt has. The analysis is reasoning, a recipient functions.x makes a call, all else is content. Headers that make no
// sense are tolerated: their body is content.
func (p *Parser) harmony() {
	ends := newMarks(list("<|end|>", "<|return|>", "<|call|>", "<|start|>", "<|channel|>"))
	header := p.continued()
	for {
		if header == "" && p.byte() != eof && p.buf[p.at] != '<' { // a body without a header
			if p.accept("assistant") != "" || p.peekWord("analysis", "commentary", "final") {
				// a header whose first mark is in the prompt
			} else if w := p.text(Content, ends); w == "" {
				return
			} else if w == "<|channel|>" || w == "<|start|>" {
				header = w
			}
		}
		h, ok := p.header(header)
		if !ok {
			return
		}
		header = ""
		k := Content
		to := recipient(h)
		switch {
		case strings.HasPrefix(to, "functions.") && len(to) > len("functions.") && p.o.Tools != "":
			p.begin(strings.TrimPrefix(to, "functions."), "")
			p.space()
			switch w := ""; {
			case p.accept("<|call|>", "<|end|>", "<|return|>") != "":
				p.args("{}")
				p.done()
			default:
				w = p.scan(ends, p.args)
				p.done()
				if w == "" {
					return
				}
				if w == "<|channel|>" || w == "<|start|>" {
					header = w
				}
			}
			continue
		case channel(h) == "analysis":
			k = Reasoning
		}
		p.thinking = k == Reasoning
		w := p.text(k, ends)
		if p.thinking {
			p.leave()
		}
		if w == "" {
			return
		}
		if w == "<|channel|>" || w == "<|start|>" {
			header = w
		}
	}
}

// continued says which header the prompt holds whole.
func (p *Parser) continued() string { return "" }

func (p *Parser) peekWord(words ...string) bool {
	p.mark(0)
	w := p.accept(words...)
	p.rewind()
	return w != ""
}

// header takes what stands before a body, of which begin was taken already.
func (p *Parser) header(begin string) (string, bool) {
	var b strings.Builder
	b.WriteString(begin)
	m := newMarks(list("<|message|>", "<|start|>", "<|channel|>", "<|constrain|>", "<|end|>", "<|return|>", "<|call|>"))
	for {
		w := p.scan(m, func(s string) {
			if b.Len() < maxName {
				b.WriteString(s)
			}
		})
		switch w {
		case "":
			return "", false
		case "<|message|>":
			return b.String(), true
		case "<|start|>", "<|end|>", "<|return|>", "<|call|>":
			b.Reset()
		}
		b.WriteString(w)
	}
}

// recipient is what follows to= in a header.
func recipient(h string) string {
	_, s, ok := strings.Cut(h, "to=")
	if !ok {
		return ""
	}
	if i := strings.IndexAny(s, " <\n\t"); i >= 0 {
		s = s[:i]
	}
	return s
}

// channel is the last channel of a header.
func channel(h string) string {
	i := strings.LastIndex(h, "<|channel|>")
	if i >= 0 {
		h = h[i+len("<|channel|>"):]
	}
	if j := strings.IndexAny(h, " <\n\t"); j >= 0 {
		h = h[:j]
	}
	return strings.TrimSpace(h)
}
