package parse

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds: text that may yet come to be a call is held up to maxHeld bytes, JSON nests up to maxDepth.
const (
	maxHeld  = 1 << 20
	maxDepth = 512
	maxName  = 1 << 10
)

// value takes one JSON value as it stands; give gets its text as it comes. It reports whether the value is whole: else it ended at a byte
// that cannot stand there, which is not taken, or with the output.
func (p *Parser) value(give func(string)) bool {
	var stack []byte
	from := p.at
	flush := func() {
		if p.at > from {
			give(p.buf[from:p.at])
			from = p.at
		}
	}
	next := func() bool { // a byte can be looked at
		if p.at < len(p.buf) {
			return true
		}
		flush()
		ok := p.peek(1)
		from = p.at
		return ok
	}
	defer flush()
	for next() {
		if p.held() > maxHeld {
			return false
		}
		switch c := p.buf[p.at]; {
		case c == '"':
			p.at++
			for esc := false; ; {
				if !next() || p.held() > maxHeld {
					return false
				}
				c := p.buf[p.at]
				p.at++
				if esc {
					esc = false
				} else if c == '\\' {
					esc = true
				} else if c == '"' {
					break
				}
			}
			if len(stack) == 0 {
				return true
			}
		case c == '{' || c == '[':
			if len(stack) == maxDepth {
				return false
			}
			stack = append(stack, c+2) // its closing bracket
			p.at++
		case c == '}' || c == ']':
			if len(stack) == 0 || stack[len(stack)-1] != c {
				return false
			}
			p.at++
			if stack = stack[:len(stack)-1]; len(stack) == 0 {
				return true
			}
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',' || c == ':':
			if len(stack) == 0 {
				return false
			}
			p.at++
		case word(c):
			for next() && word(p.buf[p.at]) {
				if p.held() > maxHeld {
					return false
				}
				p.at++
			}
			if len(stack) == 0 {
				return p.at < len(p.buf) || !p.cut
			}
		default:
			return false
		}
	}
	return false
}

func word(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == '_'
}

// str takes a JSON string; give gets what it says as it comes. It reports whether the string is whole.
func (p *Parser) str(give func(string)) bool {
	if p.byte() != '"' {
		return false
	}
	p.at++
	for {
		i := p.at
		for i < len(p.buf) && p.buf[i] != '"' && p.buf[i] != '\\' {
			i++
		}
		if i > p.at {
			give(p.buf[p.at:i])
			p.at = i
		}
		if p.held() > maxHeld {
			return false
		}
		switch p.byte() {
		case 0:
			if p.ended() {
				return false
			}
		case '"':
			p.at++
			return true
		case '\\':
			s, ok := p.escape()
			if !ok {
				return false
			}
			give(s)
		}
	}
}

// escape takes one escape of a JSON string, or two that make one rune.
func (p *Parser) escape() (string, bool) {
	if !p.peek(2) {
		return "", false
	}
	c := p.buf[p.at+1]
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		p.at += 2
		return "\"\\/\b\f\n\r\t"[i : i+1], true
	}
	if c != 'u' {
		return "", false
	}
	r, ok := p.unit()
	if !ok {
		return "", false
	}
	p.at += 6
	if utf16.IsSurrogate(r) {
		if p.peek(6) {
			if low, ok := p.unit(); ok {
				if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
					p.at += 6
					return string(both), true
				}
			}
		}
		r = utf8.RuneError
	}
	return string(r), true
}

// unit reads \uXXXX without taking it.
func (p *Parser) unit() (rune, bool) {
	if !p.peek(6) || p.buf[p.at] != '\\' || p.buf[p.at+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(p.buf[p.at+2 : p.at+6]) {
		d := strings.IndexByte("0123456789abcdef", c|0x20)
		if c < 'A' {
			d = strings.IndexByte("0123456789", c)
		}
		if d < 0 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// short takes a JSON string of at most maxName bytes.
func (p *Parser) short() (string, bool) {
	var b strings.Builder
	ok := p.str(func(s string) {
		if b.Len() <= maxName {
			b.WriteString(s)
		}
	})
	return b.String(), ok && b.Len() <= maxName
}

// arguments takes the value of the arguments of the open call: an object as it stands, a string's content, {} for null.
func (p *Parser) arguments() bool {
	switch p.byte() {
	case '"':
		any := false
		ok := p.str(func(s string) {
			any = true
			p.args(s)
		})
		if ok && !any {
			p.args("{}")
		}
		return ok
	case 'n':
		var b strings.Builder
		ok := p.value(func(s string) { b.WriteString(s) })
		if b.String() != "null" {
			p.args(b.String())
			return false
		}
		p.args("{}")
		return ok
	}
	return p.value(p.args)
}

// found is what an object told of its call so far.
type found struct {
	name, id, args string
	has            bool // args is set
	begun          bool // the call has begun
	whole          bool // ... and has ended: its arguments are complete
}

// callObject takes an object that holds a call: {"name": …, "arguments": …}, also within "function". strict refuses other keys than those of
// calls, so that an answer in JSON is given soon. It reports whether there is a call: if so, it has ended; broken says that what follows it in
// the block is no JSON.
func (p *Parser) callObject(strict bool) (call, broken bool) {
	var f found
	ok := p.members(&f, strict, 0)
	switch {
	case f.begun && !f.whole:
		return true, true
	case f.whole:
		if !ok {
			p.torn()
		}
		p.free()
		return true, false
	case !ok || f.name == "" || strict && !f.has:
		return false, false
	}
	p.begin(f.name, f.id)
	if !f.has || f.args == "null" {
		f.args = "{}"
	}
	p.args(f.args)
	p.done()
	return true, false
}

func (p *Parser) members(f *found, strict bool, depth int) bool {
	if p.byte() != '{' {
		return false
	}
	p.at++
	skip := func(string) {}
	for n := 0; ; n++ {
		p.space()
		if p.byte() == '}' {
			p.at++
			return true
		}
		if n > 0 {
			if p.byte() != ',' {
				return false
			}
			p.at++
			p.space()
		}
		key, ok := p.short()
		if !ok {
			return false
		}
		p.space()
		if p.byte() != ':' {
			return false
		}
		p.at++
		p.space()
		switch {
		case key == "name" && f.name == "":
			f.name, ok = p.short()
		case key == "function" && p.byte() == '{' && depth == 0:
			ok = p.members(f, strict, 1)
		case key == "function" && f.name == "" && p.byte() == '"':
			f.name, ok = p.short()
		case key == "id" && p.byte() == '"':
			f.id, ok = p.short()
		case (key == "arguments" || key == "parameters" || key == "args" && !strict) && !f.has && !f.begun:
			switch p.byte() {
			case '{', '"', 'n':
			default:
				if strict && !p.ended() {
					return false
				}
			}
			if f.name != "" {
				f.begun = true
				p.begin(f.name, f.id)
				if f.whole = p.arguments(); f.whole {
					p.done()
					p.mark(0)
				}
				ok = f.whole
			} else {
				f.has, ok = p.early(f)
			}
		case strict && key != "type" && key != "id" && key != "index":
			return false
		default:
			ok = p.value(skip)
		}
		if !ok {
			return false
		}
	}
}

// torn goes back to what follows a call and makes no sense: it is text, but where the output was cut in the midst of it.
func (p *Parser) torn() {
	if p.eof && p.cut {
		p.at = len(p.buf)
		p.free()
	}
	p.rewind()
}

// closing takes what ends a block: one of ends, with closing brackets too many before it, or such brackets at the end of the output.
func (p *Parser) closing(ends []string) {
	p.mark(0)
	for p.space(); p.byte() == '}' || p.byte() == ']'; p.space() {
		if p.at++; p.held() > maxName {
			break
		}
	}
	if p.accept(ends...) != "" || p.ended() {
		p.free()
	}
	p.rewind()
}

// early takes arguments that stand before their name.
func (p *Parser) early(f *found) (has, ok bool) {
	var b strings.Builder
	give := func(s string) { b.WriteString(s) }
	if p.byte() == '"' {
		ok = p.str(give)
	} else {
		ok = p.value(give)
	}
	f.args = b.String()
	return true, ok
}

// rest gives the open call what stands before the next of ends, as it is, and takes the end, which it returns. A call that the end of the
// output cut stays open, without what its format was waiting to understand.
func (p *Parser) rest(ends ...string) string {
	if p.cut {
		p.at = len(p.buf)
		return ""
	}
	end := p.scan(newMarks(ends), p.args)
	if end != "" { // else they are not whole, however the output ended
		p.done()
	}
	return end
}

// list takes [object, object, …], or one object. An empty list is fine in a block that has an end.
func (p *Parser) list(strict bool, ends ...string) bool {
	p.space()
	if p.byte() == '{' {
		call, broken := p.callObject(strict)
		if broken {
			p.broken(ends)
		}
		return call
	}
	if p.byte() != '[' {
		return false
	}
	p.at++
	any := false
	for {
		p.space()
		switch p.byte() {
		case ',':
			p.at++
			continue
		case ']':
			p.at++
			return any || len(ends) > 0
		case '{':
			call, broken := p.callObject(strict)
			if broken {
				p.broken(ends)
				return true
			}
			if !call {
				if any {
					p.reject()
				}
				return any
			}
			any = true
			p.mark(0)
			continue
		}
		return any
	}
}

// broken ends a call whose arguments are no JSON: the text up to an end of the block is theirs.
func (p *Parser) broken(ends []string) {
	p.rest(ends...)
}
