package parse

import "strings"

const museStart = "<|start|>assistant"

var (
	museMarks   = list("<|start|>", "<|message|>", "<|eom|>", "<|eot|>")
	museHeaders = newMarks(museMarks)
	museBodies  = newMarks(list("<|start|>", "<|eom|>", "<|eot|>"))
	museCalls   = newMarks(museBodies.words, list("<atem:function_calls>"))
	museBlock   = invoke{prefix: "atem:", end: "</atem:function_calls>"}
)

// muse reads all of an output: messages <|start|>assistant to=recipient<|message|>body<|eom|>, of which the first lacks what the prompt has.
// The recipient "self" gets thoughts and "user" the answer; bodies for others hold calls. A body without a header is the answer.
func (p *Parser) muse() {
	header, to := p.o.Tail, ""
	if i := strings.LastIndex(header, museStart); i >= 0 {
		header = header[i+len(museStart):]
	}
	if head, _, whole := strings.Cut(header, "<|message|>"); whole { // a message that is continued
		to = addressed(head)
	} else if p.follows(" to=", "to=", "<|message|>", "<|start|>") {
		var ok bool
		if to, ok = p.museHeader(); !ok {
			return
		}
	}
	for {
		k, marks := Content, museCalls
		if p.tools == nil {
			marks = museBodies
		}
		if p.thinking = to == "self"; p.thinking {
			k = Reasoning
		}
		w := p.text(k, marks)
		switch w {
		case "":
			return
		case "<atem:function_calls>":
			p.mark(len(w))
			if !museBlock.block(p, w) {
				p.reject()
			}
			if p.free(); p.calls > 0 && !p.thinking {
				to = "" // thoughts end with a call
			}
			continue
		}
		if p.thinking {
			p.leave()
		}
		p.trim.section, p.trim.crossed = true, true
		if w == "<|start|>" || p.follows("<|start|>") {
			var ok bool
			if to, ok = p.museHeader(); !ok {
				return
			}
		} else {
			to = ""
		}
	}
}

// museHeader takes what stands before a body and returns its recipient; false: the output ended. What is no header is text.
func (p *Parser) museHeader() (to string, ok bool) {
	var b strings.Builder
	for {
		w := p.scan(museHeaders, func(s string) {
			n := min(len(s), maxName-b.Len())
			if b.WriteString(s[:n]); n < len(s) {
				p.emit(Content, s[n:])
			}
		})
		if w == "<|message|>" {
			return addressed(b.String()), true
		}
		if w != "" || !p.cut {
			p.emit(Content, words(b.String()))
		}
		if w == "" {
			return "", false
		}
		b.Reset()
	}
}

// addressed is the recipient that a header names; "" for none.
func addressed(head string) string {
	_, to, _ := strings.Cut(head, "to=")
	if i := strings.IndexAny(to, " <\n\t"); i >= 0 {
		to = to[:i]
	}
	return to
}
