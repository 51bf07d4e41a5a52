package constrain

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// GBNF reads a grammar in the notation of llama.cpp, which is xgrammar's EBNF, too: rules name ::= alternatives, of which "root" is the start;
// "text", [class], [^class], ., (group), name, each with *, +, ?, {n}, {n,} or {n,m}; comments begin with #. Texts and classes know the escapes \n
// \r \t \\ \" \[ \] \- \xHH \uHHHH \UHHHHHHHH. Errors give line and column.
func GBNF(g *Grammar, source string) (Node, error) {
	r := &gbnf{g: g, s: source, rules: map[string]Ref{}, defined: map[string]bool{}}
	if err := r.read(); err != nil {
		line := 1 + strings.Count(source[:r.at], "\n")
		column := 1 + utf8.RuneCountInString(source[strings.LastIndexByte(source[:r.at], '\n')+1:r.at])
		return nil, fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	for _, name := range r.order {
		if !r.defined[name] {
			return nil, fmt.Errorf("rule %q is used but not defined", name)
		}
	}
	if !r.defined["root"] {
		return nil, fmt.Errorf(`there is no rule "root", which is the start`)
	}
	return r.rules["root"], nil
}

type gbnf struct {
	g       *Grammar
	s       string
	at      int
	depth   int
	rules   map[string]Ref
	defined map[string]bool
	order   []string
}

func (r *gbnf) rule(name string) Ref {
	if _, ok := r.rules[name]; !ok {
		r.rules[name] = r.g.Add(name, Dead{})
		r.order = append(r.order, name)
	}
	return r.rules[name]
}

// space skips blanks and comments; over lines, where lines is set.
func (r *gbnf) space(lines bool) {
	for r.at < len(r.s) {
		switch c := r.s[r.at]; {
		case c == '#':
			for r.at < len(r.s) && r.s[r.at] != '\n' {
				r.at++
			}
		case c == ' ' || c == '\t' || lines && (c == '\n' || c == '\r'):
			r.at++
		default:
			return
		}
	}
}

func (r *gbnf) read() error {
	for {
		r.space(true)
		if r.at == len(r.s) {
			return nil
		}
		at := r.at
		name := r.name()
		if name == "" {
			return fmt.Errorf("want the name of a rule")
		}
		r.space(false)
		if !strings.HasPrefix(r.s[r.at:], "::=") {
			return fmt.Errorf("want ::= behind %q", name)
		}
		r.at += 3
		if r.defined[name] {
			r.at = at
			return fmt.Errorf("rule %q is defined twice", name)
		}
		ref := r.rule(name)
		r.defined[name] = true
		r.space(true)
		body, err := r.alternatives(false)
		if err != nil {
			return err
		}
		r.g.Rules[ref].Body = body
		r.space(false)
		if r.at < len(r.s) && r.s[r.at] != '\n' && r.s[r.at] != '\r' {
			return fmt.Errorf("unexpected %q", r.s[r.at:r.at+1])
		}
	}
}

func (r *gbnf) name() string {
	from := r.at
	for r.at < len(r.s) && (word(r.s[r.at])) {
		r.at++
	}
	return r.s[from:r.at]
}

func word(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

func (r *gbnf) alternatives(nested bool) (Node, error) {
	if r.depth++; r.depth > maxNested {
		return nil, fmt.Errorf("groups nest deeper than %d", maxNested)
	}
	defer func() { r.depth-- }()
	var a Alt
	for {
		s, err := r.sequence(nested)
		if err != nil {
			return nil, err
		}
		a = append(a, s)
		r.space(nested)
		if r.next("\n") { // an alternative may stand on the next line
			at := r.at
			r.space(true)
			if !r.next("|") {
				r.at = at
			}
		}
		if !r.next("|") {
			break
		}
		r.at++
		r.space(true)
	}
	if len(a) == 1 {
		return a[0], nil
	}
	return a, nil
}

func (r *gbnf) next(s string) bool { return strings.HasPrefix(r.s[r.at:], s) }

func (r *gbnf) sequence(nested bool) (Node, error) {
	var s Seq
	for {
		r.space(nested)
		if r.at == len(r.s) {
			return s, nil
		}
		var n Node
		var err error
		switch c := r.s[r.at]; {
		case c == '"':
			n, err = r.text()
		case c == '[':
			n, err = r.class()
		case c == '.':
			r.at++
			n = Class{Not: true}
		case c == '(':
			r.at++
			r.space(true)
			if n, err = r.alternatives(true); err == nil {
				if r.space(true); !r.next(")") {
					return nil, fmt.Errorf("want )")
				}
				r.at++
			}
		case word(c):
			n = r.rule(r.name())
		default:
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		if n, err = r.repeat(n); err != nil {
			return nil, err
		}
		s = append(s, n)
	}
}

func (r *gbnf) repeat(n Node) (Node, error) {
	for r.at < len(r.s) {
		switch r.s[r.at] {
		case '*':
			n = Repeat{n, 0, -1}
		case '+':
			n = Repeat{n, 1, -1}
		case '?':
			n = Repeat{n, 0, 1}
		case '{':
			end := strings.IndexByte(r.s[r.at:], '}')
			if end < 0 {
				return nil, fmt.Errorf("want }")
			}
			lo, hi, two := strings.Cut(r.s[r.at+1:r.at+end], ",")
			x := Repeat{Node: n}
			var err error
			if x.Min, err = strconv.Atoi(strings.TrimSpace(lo)); err != nil || x.Min < 0 {
				return nil, fmt.Errorf("want a number of repetitions, not %q", lo)
			}
			if x.Max = x.Min; two {
				if x.Max = -1; strings.TrimSpace(hi) != "" {
					if x.Max, err = strconv.Atoi(strings.TrimSpace(hi)); err != nil || x.Max < x.Min {
						return nil, fmt.Errorf("want a number of repetitions from %d, not %q", x.Min, hi)
					}
				}
			}
			n = x
			r.at += end
		default:
			return n, nil
		}
		r.at++
	}
	return n, nil
}

func (r *gbnf) text() (Node, error) {
	var b strings.Builder
	for r.at++; r.at < len(r.s) && r.s[r.at] != '\n'; {
		if r.s[r.at] == '"' {
			r.at++
			return Text(b.String()), nil
		}
		c, err := r.rune()
		if err != nil {
			return nil, err
		}
		b.WriteRune(c)
	}
	return nil, fmt.Errorf(`the text does not end: want "`)
}

func (r *gbnf) class() (Node, error) {
	c := Class{}
	if r.at++; r.next("^") {
		c.Not = true
		r.at++
	}
	for r.at < len(r.s) {
		if r.s[r.at] == ']' {
			r.at++
			return c, nil
		}
		from, err := r.rune()
		if err != nil {
			return nil, err
		}
		to := from
		if r.next("-") && !r.next("-]") {
			r.at++
			if to, err = r.rune(); err != nil {
				return nil, err
			}
			if to < from {
				return nil, fmt.Errorf("the range %q-%q is empty", from, to)
			}
		}
		c.Ranges = append(c.Ranges, Range{from, to})
	}
	return nil, fmt.Errorf("the class does not end: want ]")
}

func (r *gbnf) rune() (rune, error) {
	c, n := utf8.DecodeRuneInString(r.s[r.at:])
	if n == 0 {
		return 0, fmt.Errorf("unexpected end")
	}
	if c == utf8.RuneError && n == 1 {
		return 0, fmt.Errorf("invalid UTF-8")
	}
	r.at += n
	if c != '\\' {
		return c, nil
	}
	if r.at == len(r.s) {
		return 0, fmt.Errorf("unexpected end")
	}
	e := r.s[r.at]
	r.at++
	switch e {
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case '\\', '"', '\'', '[', ']', '-', '^', '/':
		return rune(e), nil
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[e]
	if digits == 0 {
		return 0, fmt.Errorf(`unknown escape \%c`, e)
	}
	if r.at+digits > len(r.s) {
		return 0, fmt.Errorf("unexpected end")
	}
	v, err := strconv.ParseUint(r.s[r.at:r.at+digits], 16, 32)
	if err != nil || v > utf8.MaxRune || v >= 0xD800 && v < 0xE000 {
		return 0, fmt.Errorf(`\%c%s is no code point`, e, r.s[r.at:r.at+digits])
	}
	r.at += digits
	return rune(v), nil
}
