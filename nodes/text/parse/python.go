package parse

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// python is [f(a=1), g()] in Python's notation, or an object as JSON, which models that were trained on it write, too.
func (p *Parser) python() bool {
	p.space()
	if p.byte() == '{' {
		return p.lines(true)
	}
	if p.byte() != '[' {
		return false
	}
	p.at++
	for any := false; ; any = true {
		p.space()
		if any {
			switch p.byte() {
			case ',':
				p.at++
				p.space()
			case ']':
				p.at++
				return true
			default:
				return true
			}
		}
		if !p.invocation() {
			if any {
				p.reject()
			}
			return any
		}
		p.mark(0)
	}
}

// statements is one invocation a line.
func (p *Parser) statements(end string) bool {
	for any := false; ; any = true {
		p.space()
		if p.accept(end) != "" {
			return any
		}
		if !p.invocation() {
			if any {
				p.reject()
			}
			return any
		}
		p.mark(0)
	}
}

// invocation is f(a=1, b='x'). It becomes a call at its first argument's equals sign or its closing bracket.
func (p *Parser) invocation() bool {
	name, ok := p.pyName()
	if !ok {
		return false
	}
	p.space()
	if p.byte() != '(' {
		return false
	}
	p.at++
	p.space()
	for n := 0; ; n++ {
		if p.byte() == ')' {
			p.at++
			if n == 0 {
				p.begin(name, "")
				p.args("{")
			}
			p.args("}")
			p.done()
			return true
		}
		key, ok := p.pyName()
		if ok {
			p.space()
			ok = p.byte() == '='
		}
		switch {
		case !ok && n == 0:
			return false
		case !ok:
			p.rest("\n")
			return true
		}
		p.at++
		if n == 0 {
			p.begin(name, "")
			p.args("{")
		} else {
			p.args(", ")
		}
		p.args(quoted(key) + ": ")
		p.space()
		if !p.pyValue(p.args, 0) {
			p.rest("\n")
			return true
		}
		p.space()
		if p.byte() == ',' {
			p.at++
			p.space()
		} else if p.byte() != ')' {
			p.rest("\n")
			return true
		}
	}
}

// pyName takes an identifier, with dots and hyphens, which names of tools have.
func (p *Parser) pyName() (string, bool) {
	n := 0
	for p.peek(n+1) && n <= maxName {
		c := p.buf[p.at+n]
		if !word(c) && c < 0x80 || c == '+' {
			break
		}
		n++
	}
	s := p.buf[p.at : p.at+n]
	p.at += n
	return s, n > 0 && n <= maxName && (s[0] < '0' || s[0] > '9')
}

// pyValue takes a Python literal; give gets it as JSON as it comes. It reports whether it is whole.
func (p *Parser) pyValue(give func(string), depth int) bool {
	if depth > maxDepth {
		return false
	}
	c := p.byte()
	switch {
	case c == '\'' || c == '"':
		return p.pyString(give)
	case c == '[' || c == '(' || c == '{':
		return p.pyItems(give, c, depth)
	case !word(c):
		return false
	}
	n := 0
	for p.peek(n+1) && word(p.buf[p.at+n]) && n < maxName {
		n++
	}
	if p.eof && p.at+n == len(p.buf) && p.cut {
		return false
	}
	w := p.buf[p.at : p.at+n]
	switch w {
	case "True", "true":
		w = "true"
	case "False", "false":
		w = "false"
	case "None", "null":
		w = "null"
	default:
		if w = pyNumber(w); !number(w) {
			return false
		}
		w = strings.TrimPrefix(w, "+")
	}
	p.at += n
	give(w)
	return true
}

func (p *Parser) pyItems(give func(string), open byte, depth int) bool {
	end := map[byte]byte{'[': ']', '(': ')', '{': '}'}[open]
	if open == '{' {
		give("{")
	} else {
		give("[")
	}
	p.at++
	for n := 0; ; n++ {
		p.space()
		if n > 0 && p.byte() == ',' {
			p.at++
			p.space()
		} else if n > 0 && p.byte() != end {
			return false
		}
		if p.byte() == end {
			p.at++
			if open == '{' {
				give("}")
			} else {
				give("]")
			}
			return true
		}
		if n > 0 {
			give(", ")
		}
		if open == '{' {
			var key strings.Builder
			if !p.pyValue(func(s string) {
				if key.Len() <= maxName {
					key.WriteString(s)
				}
			}, depth+1) || key.Len() > maxName {
				return false
			}
			if k := key.String(); k[0] != '"' { // JSON has strings for keys
				give(quoted(k))
			} else {
				give(k)
			}
			p.space()
			if p.byte() != ':' {
				return false
			}
			p.at++
			give(": ")
			p.space()
		}
		if !p.pyValue(give, depth+1) {
			return false
		}
	}
}

// pyString takes a quoted string, real line ends in it, too.
func (p *Parser) pyString(give func(string)) bool {
	q := p.byte()
	p.at++
	give(`"`)
	for {
		i := p.at
		for i < len(p.buf) && p.buf[i] != q && p.buf[i] != '\\' {
			i++
		}
		if i > p.at {
			give(escaped(p.buf[p.at:i]))
			p.at = i
		}
		switch {
		case !p.peek(1):
			return false
		case p.buf[p.at] == q:
			p.at++
			p.space()
			if c := p.byte(); c == '\'' || c == '"' { // Python joins strings that stand side by side
				q = c
				p.at++
				continue
			}
			give(`"`)
			return true
		case p.buf[p.at] == '\\':
			if !p.peek(2) {
				return false
			}
			s, ok := p.pyEscape()
			if !ok {
				return false
			}
			give(escaped(s))
		}
	}
}

// pyEscape takes a backslash and what it stands for. false is the end of the output.
func (p *Parser) pyEscape() (string, bool) {
	c := p.buf[p.at+1]
	switch digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]; {
	case c == '\'':
		p.at += 2
		return "'", true
	case c == '\n': // a line that goes on
		p.at += 2
		return "", true
	case c == 'u' && !p.peek(6), !p.peek(2 + digits):
		return "", false
	case c == 'x' || c == 'U':
		if r, err := strconv.ParseUint(p.buf[p.at+2:p.at+2+digits], 16, 32); err == nil && r <= utf8.MaxRune {
			p.at += 2 + digits
			return string(rune(r)), true
		}
	case c != '/':
		if s, ok := p.escape(); ok {
			return s, true
		}
	}
	p.at++ // Python keeps the backslash of what is no escape
	return `\`, true
}

// escaped is s as it stands in a JSON string.
func escaped(s string) string {
	plain := true
	for i := range len(s) {
		if s[i] < ' ' || s[i] == '"' || s[i] == '\\' {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		default:
			if c < ' ' {
				b.WriteString(`\u00`)
				b.WriteByte("0123456789abcdef"[c>>4])
				b.WriteByte("0123456789abcdef"[c&15])
			} else {
				b.WriteByte(c)
			}
		}
	}
	return b.String()
}

// pyNumber is a number of Python's as JSON has it: .5 is 0.5, 5. is 5.0, 1_000 is 1000. What is none stays as it is.
func pyNumber(s string) string {
	sign := s[:len(s)-len(strings.TrimLeft(s, "+-"))]
	rest := s[len(sign):]
	for i := 1; i+1 < len(rest); i++ {
		if rest[i] == '_' && isDigit(rest[i-1]) && isDigit(rest[i+1]) {
			rest = rest[:i] + rest[i+1:]
		}
	}
	if len(rest) > 1 && rest[0] == '.' && isDigit(rest[1]) {
		rest = "0" + rest
	}
	if i := strings.IndexByte(rest, '.'); i > 0 && isDigit(rest[i-1]) && (i+1 == len(rest) || rest[i+1]|0x20 == 'e') {
		rest = rest[:i+1] + "0" + rest[i+1:]
	}
	return sign + rest
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// number reports whether s is a JSON number, but for a plus sign before it.
func number(s string) bool {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "+"), "-")
	digits := func() bool {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n > 0
	}
	if len(s) > 1 && s[0] == '0' && s[1] >= '0' && s[1] <= '9' || !digits() {
		return false
	}
	if strings.HasPrefix(s, ".") {
		if s = s[1:]; !digits() {
			return false
		}
	}
	if s != "" && s[0]|0x20 == 'e' {
		if s = s[1:]; s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if !digits() {
			return false
		}
	}
	return s == ""
}

// functionGemma is call:name{key:<escape>text<escape>,n:1} behind its mark.
func functionGemma(p *Parser, _ string) bool { return p.gemma("<escape>", "<end_function_call>") }

// gemma is call:name{key:"text",n:1,list:[…],object:{…}} with quote for the quotation mark, up to end.
func (p *Parser) gemma(quote, end string) bool {
	p.space()
	if p.accept("call:") == "" {
		return false
	}
	name, ok := p.pyName()
	if !ok {
		return false
	}
	p.space()
	if p.byte() != '{' {
		return false
	}
	p.begin(name, "")
	if !p.gemmaValue(newMarks(list(quote)), 0) {
		p.rest(end)
		return true
	}
	p.done()
	p.mark(0)
	p.space()
	if p.accept(end) == "" {
		p.rewind()
	}
	return true
}

func (p *Parser) gemmaValue(quote *marks, depth int) bool {
	if depth > maxDepth {
		return false
	}
	if p.accept(quote.words[0]) != "" {
		p.args(`"`)
		if p.scan(quote, func(s string) { p.args(escaped(s)) }) == "" {
			return false
		}
		p.args(`"`)
		return true
	}
	open := p.byte()
	if open != '{' && open != '[' {
		return p.pyValue(p.args, depth)
	}
	p.at++
	p.args(string(open))
	for n := 0; ; n++ {
		p.space()
		if n > 0 && p.byte() == ',' {
			p.at++
			p.space()
		} else if n > 0 && p.byte() != open+2 {
			return false
		}
		if p.byte() == open+2 {
			p.at++
			p.args(string(open + 2))
			return true
		}
		if n > 0 {
			p.args(", ")
		}
		if open == '{' {
			if !p.gemmaKey(quote) {
				return false
			}
		}
		if !p.gemmaValue(quote, depth+1) {
			return false
		}
	}
}

// gemmaKey takes key:, in quotation marks or without.
func (p *Parser) gemmaKey(quote *marks) bool {
	var b strings.Builder
	end := list(":")
	if p.accept(quote.words[0]) != "" {
		end = quote.words
	} else if c := p.byte(); c == '"' {
		s, ok := p.short()
		b.WriteString(s)
		if !ok || p.byte() != ':' {
			return false
		}
	}
	if p.scan(newMarks(end), func(s string) {
		if b.Len() <= maxName {
			b.WriteString(s)
		}
	}) == "" || b.Len() > maxName {
		return false
	}
	if end[0] != ":" {
		if p.space(); p.byte() != ':' {
			return false
		}
		p.at++
	}
	p.args(quoted(b.String()) + ": ")
	p.space()
	return true
}
