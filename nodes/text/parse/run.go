package parse

import (
	"slices"
	"strings"
)

// toolFormat is how models write calls.
type toolFormat struct {
	begins []string // marks that begin a block of calls
	// block reads a block behind its mark. false: it came to be no call, and is content from its mark on.
	block func(p *Parser, begin string) bool
	// first are the bytes that may begin a call without a mark, where content begins; bare reads it as block does.
	first string
	bare  func(p *Parser) bool
	// stray are marks that have no meaning outside of a block: they are dropped.
	stray []string
	// whole, if set, reads all of the output by itself, reasoning too.
	whole   func(p *Parser)
	id      func(call int, name string) string // nil: "call_" and 24 characters
	markers []string                           // further marks, for Markers
	tag     func(t *tagging) (any, bool)       // nil: structural tags cannot say it
}

// run reads an output.
func (p *Parser) run() {
	switch {
	case p.tools != nil && p.tools.whole != nil:
		p.tools.whole(p)
		return
	case p.think != nil && p.think.whole != nil:
		p.think.whole(p)
		return
	}
	t, r := p.tools, p.think
	if t == nil {
		t = &toolFormat{}
	}
	if r == nil {
		r = &reasonFormat{}
	}
	inside := newMarks(r.open, r.close, t.begins)
	outside := newMarks(r.open, r.close, r.stray, t.begins, t.stray)
	if r.keep && p.thinking { // the prompt holds the mark that opens, but for models that write it nevertheless
		p.thinking = false
		p.trim.put(p, Content, r.open[0])
		p.accept(r.open[0])
	}
	for {
		k, m := Content, outside
		if p.thinking {
			k, m = Reasoning, inside
		} else if t.bare != nil && !p.trim.began {
			p.try(t)
		}
		w := p.text(k, m)
		switch {
		case w == "":
			return
		case slices.Contains(t.begins, w):
			p.mark(len(w))
			if !t.block(p, w) {
				p.reject()
			}
			p.keep = -1
		case r.keep:
			p.emit(Content, w)
		case slices.Contains(r.open, w):
			if r.first && p.trim.began {
				p.emit(Content, w)
				continue
			}
			p.thinking = true
		case slices.Contains(r.close, w):
			switch { // one that nothing opened is dropped, but where it is a sentence as any other
			case p.thinking || !p.trim.began:
				p.leave()
			case r.first:
				p.emit(Content, w)
			}
		default: // it has no meaning here
			p.trim.section, p.trim.crossed = true, true
		}
	}
}

// leave ends reasoning.
func (p *Parser) leave() {
	p.thinking = false
	p.trim.leave()
}

// try reads calls that have no mark, where content begins.
func (p *Parser) try(t *toolFormat) {
	p.keep = p.at
	for {
		p.space()
		if b := p.byte(); b == 0 || !strings.ContainsRune(t.first, rune(b)) || !t.bare(p) {
			break
		}
		p.keep = p.at
	}
	p.at, p.keep = p.keep, -1
}

const blanks = " \t\r\n"

// trim keeps blanks around sections out of content and reasoning: those that begin or end reasoning are dropped, and those around a call or
// around reasoning are content only where content stands on both sides.
type trim struct {
	gap     string // blanks that content ends with so far
	rgap    string // likewise reasoning
	section bool   // a call or reasoning came
	crossed bool   // ... behind the last content
	began   bool   // content was given
	rbegan  bool   // this section of reasoning was
}

func (t *trim) add(p *Parser, k Kind, text string) string {
	if p.tools == nil && p.think == nil {
		return text
	}
	if k == Reasoning {
		t.section, t.crossed = true, true
		if text = t.rgap + text; !t.rbegan {
			text = strings.TrimLeft(text, blanks)
		}
		body := strings.TrimRight(text, blanks)
		t.rgap = text[len(body):]
		t.rbegan = t.rbegan || body != ""
		return body
	}
	text = t.gap + text
	body := strings.TrimRight(text, blanks)
	if t.gap = text[len(body):]; body == "" {
		return ""
	}
	if !t.began && t.section {
		body = strings.TrimLeft(body, blanks)
	}
	t.began, t.crossed = true, false
	return body
}

// call says that a call begins.
func (t *trim) call(p *Parser) {
	if p.thinking {
		p.leave()
	}
	t.section, t.crossed = true, true
}

func (t *trim) leave() {
	t.rgap, t.rbegan = "", false
	t.section, t.crossed = true, true
}

// end gives the blanks that content ends with, or reasoning that did not end.
func (t *trim) end(p *Parser) {
	if t.rgap != "" && t.rbegan && p.thinking {
		t.put(p, Reasoning, t.rgap)
	}
	t.rgap = ""
	if t.gap != "" && !t.crossed {
		t.put(p, Content, t.gap)
	}
	t.gap = ""
}

// put gives text as it stands.
func (t *trim) put(p *Parser, k Kind, text string) {
	if n := len(p.events); n > 0 && p.events[n-1].Kind == k {
		p.events[n-1].Text += text
		return
	}
	p.events = append(p.events, Event{Kind: k, Text: text})
}
