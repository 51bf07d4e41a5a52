package parse

import "strings"

// kimi3 is <|open|>tools<|sep|> and then calls <|open|>call tool="name" index="1"<|sep|>, each with arguments
// <|open|>argument key="k" type="string"<|sep|>value<|close|>argument<|sep|>, of which those that are no strings are JSON.
func kimi3(p *Parser, _ string) bool {
	const open, sep = "<|open|>", "<|sep|>"
	next := newMarks(list(open+"argument ", "<|close|>call<|sep|>", "<|close|>tools<|sep|>"))
	ends := newMarks(list("<|close|>argument<|sep|>"))
	for any := false; ; any = true {
		p.space()
		if p.accept(open+"call ") == "" {
			if any {
				p.rewind()
				p.closing(list("<|close|>tools<|sep|>"))
			}
			return any
		}
		head, ok := p.until(sep)
		name := attribute(head, "tool")
		if !ok || name == "" {
			if any {
				p.torn()
			}
			return any
		}
		m := p.start(name, true, false)
		for {
			w := p.scan(next, func(string) {})
			if w == open+"argument " {
				head, ok := p.until(sep)
				if !ok {
					return true
				}
				var s *shape
				if attribute(head, "type") == "string" {
					s = &shape{[]string{"string"}}
				}
				if m.value(attribute(head, "key"), s, ends) == "" {
					return true
				}
				continue
			}
			if w != "" || !p.cut {
				m.finish()
			}
			if w != "<|close|>call<|sep|>" {
				return true
			}
			break
		}
		p.mark(0)
	}
}

// apertus is <|tools_prefix|>[{"name": {…}}, …]<|tools_suffix|>.
func apertus(p *Parser, _ string) bool {
	const end = "<|tools_suffix|>"
	if p.space(); p.byte() != '[' {
		return false
	}
	p.at++
	for any := false; ; any = true {
		p.space()
		if p.byte() == ',' && any {
			p.at++
			p.space()
		}
		if p.byte() != '{' {
			if any {
				p.rewind()
				p.closing(list(end))
			}
			return any
		}
		p.at++
		p.space()
		name, ok := p.short()
		if p.space(); !ok || name == "" || p.byte() != ':' {
			if any {
				p.torn()
			}
			return any
		}
		p.at++
		p.space()
		if p.ended() {
			return any
		}
		p.begin(name, "")
		if !p.arguments() {
			p.rest(end)
			return true
		}
		p.done()
		if p.space(); p.byte() == '}' {
			p.at++
		}
		p.mark(0)
	}
}

// plainName reports whether s may be the name of a function where nothing marks its end.
func plainName(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:/", r) || r >= 0x80)
	}) < 0
}
