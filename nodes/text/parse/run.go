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
	// special: the marks are tokens that no text has. They are dropped even where they come to be no call.
	special bool
	// whole, if set, reads all of the output by itself, reasoning too.
	whole   func(p *Parser)
	id      func(call int, name string) string // nil: "call_" and 24 characters
	textID  func(id string) bool               // whether an id that the model wrote is taken; nil: none is
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
		p.put(Content, r.open[0])
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
			p.loose = false
			if !t.block(p, w) {
				p.reject()
			}
			p.free()
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
		case p.loose && slices.Contains(t.stray, w):
			p.loose = false
			p.emit(Content, w)
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
	for {
		p.mark(0)
		p.space()
		if strings.IndexByte(t.first, p.byte()) < 0 || !t.bare(p) {
			break
		}
	}
	p.rewind()
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
		if !t.rbegan {
			text = strings.TrimLeft(text, blanks)
		}
		text, t.rgap = ends(t.rgap + text)
		t.rbegan = t.rbegan || text != ""
		return text
	}
	if !t.began && t.section {
		text, t.gap = strings.TrimLeft(text, blanks), ""
	}
	if text, t.gap = ends(t.gap + text); text != "" {
		t.began, t.crossed = true, false
	}
	return text
}

// maxGap is how many blanks are held back at most: of more, as many times as many are text.
const maxGap = 1 << 8

// ends cuts the blanks off that text ends with.
func ends(text string) (body, gap string) {
	n := len(strings.TrimRight(text, blanks))
	n += (len(text) - n) / maxGap * maxGap
	return text[:n], text[n:]
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
		p.put(Reasoning, t.rgap)
	}
	t.rgap = ""
	if t.gap != "" && !t.crossed {
		p.put(Content, t.gap)
	}
	t.gap = ""
}
