package tokenizer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The regular expressions of pre-tokenizers, as Oniguruma reads them: Unicode classes, lazy and possessive quantifiers, lookahead. What a
// scanner written by hand does not cover runs here; see rx.go for how its time is bounded.

// Limits of one expression.
const (
	rxMaxInsts = 4096
	rxMaxDepth = 64
)

type rxNode struct {
	kind     rxKind
	set      *rxSet    // rxClass
	subs     []*rxNode // rxAlt, rxCat; one for rxLoop, rxLook
	min, max int       // rxLoop; max < 0: no bound
	lazy     bool
	held     bool // possessive
	neg      bool // rxLook
}

type rxKind uint8

const (
	rxClass rxKind = iota
	rxCat
	rxAlt
	rxLoop
	rxLook
	rxLineEnd
)

// least is the fewest runes that n takes; bounded says whether there is a most.
func (n *rxNode) least() (least int, bounded bool) {
	bounded = true
	switch n.kind {
	case rxClass:
		return 1, true
	case rxCat:
		for _, s := range n.subs {
			l, b := s.least()
			least, bounded = least+l, bounded && b
		}
	case rxAlt:
		least = 1 << 20
		for _, s := range n.subs {
			l, b := s.least()
			least, bounded = min(least, l), bounded && b
		}
	case rxLoop:
		l, b := n.subs[0].least()
		return l * n.min, b && n.max >= 0
	}
	return least, bounded
}

// rxSet is a set of runes.
type rxSet struct {
	ascii [utf8.RuneSelf]bool
	in    func(rune) bool
}

func newSet(in func(rune) bool) *rxSet {
	s := &rxSet{in: in}
	for r := range s.ascii {
		s.ascii[r] = in(rune(r))
	}
	return s
}

// at is the length of the rune at the start of s if it is in the set, else 0.
func (t *rxSet) at(s string) int {
	if s == "" {
		return 0
	}
	if c := s[0]; c < utf8.RuneSelf {
		if t.ascii[c] {
			return 1
		}
		return 0
	}
	r, n := utf8.DecodeRuneInString(s)
	if t.in(r) {
		return n
	}
	return 0
}

type rxParser struct {
	src   string
	at    int
	fold  bool
	depth int
}

func rxParse(src string) (n *rxNode, err error) {
	if !utf8.ValidString(src) {
		return nil, fmt.Errorf("regular expression %q is not valid UTF-8", src)
	}
	p := &rxParser{src: src}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(rxError)
			if !ok {
				panic(r)
			}
			n, err = nil, fmt.Errorf("regular expression %q: at byte %d: %s", src, p.at, string(e))
		}
	}()
	n = p.alt()
	if p.at < len(src) {
		p.fail("a parenthesis closes what was not opened")
	}
	return n, nil
}

type rxError string

func (p *rxParser) fail(format string, args ...any) { panic(rxError(fmt.Sprintf(format, args...))) }

func (p *rxParser) more() bool { return p.at < len(p.src) }

func (p *rxParser) take(s string) bool {
	if strings.HasPrefix(p.src[p.at:], s) {
		p.at += len(s)
		return true
	}
	return false
}

func (p *rxParser) rune() rune {
	if !p.more() {
		p.fail("it ends too early")
	}
	r, n := utf8.DecodeRuneInString(p.src[p.at:])
	p.at += n
	return r
}

func (p *rxParser) alt() *rxNode {
	if p.depth++; p.depth > rxMaxDepth {
		p.fail("groups are nested more than %d deep", rxMaxDepth)
	}
	defer func() { p.depth-- }()
	fold := p.fold
	n := &rxNode{kind: rxAlt}
	for {
		n.subs = append(n.subs, p.cat())
		if !p.take("|") {
			break
		}
	}
	p.fold = fold
	if len(n.subs) == 1 {
		return n.subs[0]
	}
	return n
}

func (p *rxParser) cat() *rxNode {
	n := &rxNode{kind: rxCat}
	for p.more() && p.src[p.at] != '|' && p.src[p.at] != ')' {
		if a := p.atom(); a != nil {
			n.subs = append(n.subs, p.loops(a))
		}
	}
	return n
}

func (p *rxParser) loops(a *rxNode) *rxNode {
	for p.more() {
		lo, hi := 0, -1
		switch {
		case p.take("*"):
		case p.take("+"):
			lo = 1
		case p.take("?"):
			hi = 1
		case p.src[p.at] == '{':
			end := strings.IndexByte(p.src[p.at:], '}')
			if end < 0 {
				p.fail("a brace is not closed")
			}
			a, b, comma := strings.Cut(p.src[p.at+1:p.at+end], ",")
			var err, err2 error
			if a != "" || !comma {
				lo, err = strconv.Atoi(a)
			}
			if hi = lo; comma {
				if hi = -1; b != "" {
					hi, err2 = strconv.Atoi(b)
				}
			}
			if err != nil || err2 != nil || lo < 0 || hi < -1 || hi >= 0 && hi < lo || max(lo, hi) > 1000 {
				p.fail("{%s} is no count of up to 1000", p.src[p.at+1:p.at+end])
			}
			p.at += end + 1
		default:
			return a
		}
		n := &rxNode{kind: rxLoop, subs: []*rxNode{a}, min: lo, max: hi}
		if p.take("?") {
			n.lazy = true
		} else if p.take("+") {
			if n.held = true; a.kind != rxClass {
				p.fail("a possessive quantifier of more than a class is not supported")
			}
		}
		if a.kind == rxLook || a.kind == rxLineEnd {
			p.fail("a quantifier of what takes no text is not supported")
		}
		if least, _ := a.least(); least == 0 && hi != 0 {
			p.fail("a quantifier of what may be empty is not supported")
		}
		a = n
	}
	return a
}

func (p *rxParser) atom() *rxNode {
	switch {
	case p.take("(?:"):
		return p.group()
	case p.take("(?="), p.take("(?!"):
		n := &rxNode{kind: rxLook, neg: p.src[p.at-1] == '!'}
		n.subs = []*rxNode{p.group()}
		if _, bounded := n.subs[0].least(); !bounded {
			p.fail("lookahead without a bound is not supported")
		}
		return n
	case p.take("(?i:"):
		fold := p.fold
		p.fold = true
		n := p.group()
		p.fold = fold
		return n
	case p.take("(?i)"):
		p.fold = true
		return nil
	case p.take("(?"):
		p.fail("a group of the kind (?%s is not supported: only (?:, (?i:, (?= and (?!", p.src[p.at:min(p.at+2, len(p.src))])
	case p.take("("):
		return p.group()
	case p.take("["):
		return &rxNode{kind: rxClass, set: newSet(p.class())}
	case p.take("."):
		return &rxNode{kind: rxClass, set: newSet(func(r rune) bool { return r != '\n' })}
	case p.take("$"):
		return &rxNode{kind: rxLineEnd}
	case p.take("^"):
		p.fail("^ is not supported")
	case strings.ContainsRune("*+?{", rune(p.src[p.at])):
		p.fail("%q has nothing to repeat", p.src[p.at])
	case p.take(`\`):
		in, r := p.escape()
		if in == nil {
			in = p.one(r)
		}
		return &rxNode{kind: rxClass, set: newSet(in)}
	}
	return &rxNode{kind: rxClass, set: newSet(p.one(p.rune()))}
}

func (p *rxParser) group() *rxNode {
	n := p.alt()
	if !p.take(")") {
		p.fail("a parenthesis is not closed")
	}
	return n
}

// one is the set of a rune, with those that fold to it.
func (p *rxParser) one(r rune) func(rune) bool {
	set := []rune{r}
	if p.fold {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			set = append(set, f)
		}
	}
	return func(r rune) bool { return slices.Contains(set, r) }
}

// escape reads what follows a backslash: a class, or one rune.
func (p *rxParser) escape() (func(rune) bool, rune) {
	switch c := p.rune(); c {
	case 's', 'S':
		return not(isSpace, c == 'S'), 0
	case 'd', 'D':
		return not(unicode.IsDigit, c == 'D'), 0
	case 'w', 'W':
		return not(isWord, c == 'W'), 0
	case 'p', 'P':
		return not(p.property(), c == 'P'), 0
	case 'n':
		return nil, '\n'
	case 'r':
		return nil, '\r'
	case 't':
		return nil, '\t'
	case 'f':
		return nil, '\f'
	case 'v':
		return nil, '\v'
	case 'x':
		if p.take("{") {
			end := strings.IndexByte(p.src[p.at:], '}')
			if end < 0 {
				p.fail("a brace is not closed")
			}
			r := p.hex(end)
			p.at++
			return nil, r
		}
		return nil, p.hex(2)
	case 'u':
		return nil, p.hex(4)
	default:
		if c < utf8.RuneSelf && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
			p.fail(`\%c is not supported`, c)
		}
		return nil, c
	}
}

func (p *rxParser) hex(n int) rune {
	if n > len(p.src)-p.at {
		p.fail("it ends too early")
	}
	v, err := strconv.ParseUint(p.src[p.at:p.at+n], 16, 21)
	if err != nil || v > unicode.MaxRune {
		p.fail("no code point in hexadecimal digits")
	}
	p.at += n
	return rune(v)
}

// property is \p{X}, with X a category or a script.
func (p *rxParser) property() func(rune) bool {
	name := ""
	if p.take("{") {
		end := strings.IndexByte(p.src[p.at:], '}')
		if end < 0 {
			p.fail("a brace is not closed")
		}
		name = p.src[p.at : p.at+end]
		p.at += end + 1
	} else {
		name = string(p.rune())
	}
	neg := strings.HasPrefix(name, "^")
	name = strings.TrimPrefix(name, "^")
	switch name {
	case "L", "Letter":
		return not(isLetter, neg)
	case "N", "Number":
		return not(isNumber, neg)
	case "Alphabetic":
		return not(isAlphabetic, neg)
	}
	t := unicode.Categories[name]
	if t == nil {
		t = unicode.Scripts[name]
	}
	if t == nil {
		p.fail(`\p{%s} is no known category or script`, name)
	}
	return not(func(r rune) bool { return unicode.Is(t, r) && !within(newer, r) }, neg)
}

func not(in func(rune) bool, neg bool) func(rune) bool {
	if !neg {
		return in
	}
	return func(r rune) bool { return !in(r) }
}

// class reads [...] behind its bracket: runes, ranges, classes and nested classes, and the intersection &&.
func (p *rxParser) class() func(rune) bool {
	if p.depth++; p.depth > rxMaxDepth {
		p.fail("classes are nested more than %d deep", rxMaxDepth)
	}
	defer func() { p.depth-- }()
	neg := p.take("^")
	var all, any []func(rune) bool
	first := true
	for ; ; first = false {
		if !first && p.take("]") {
			break
		}
		if p.take("&&") {
			all, any = append(all, union(any)), nil
			continue
		}
		if p.take("[") {
			if strings.HasPrefix(p.src[p.at:], ":") {
				p.fail("classes as [:alpha:] are not supported")
			}
			any = append(any, p.class())
			continue
		}
		lo := p.rune()
		if lo == '\\' {
			var in func(rune) bool
			if in, lo = p.escape(); in != nil {
				any = append(any, in)
				continue
			}
		}
		if rest := p.src[p.at:]; len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			p.at++
			hi := p.rune()
			if hi == '\\' {
				var in func(rune) bool
				if in, hi = p.escape(); in != nil {
					p.fail("a range ends with a class")
				}
			}
			if hi < lo {
				p.fail("the range %c-%c is empty", lo, hi)
			}
			if p.fold {
				any = append(any, folded(lo, hi))
			} else {
				any = append(any, func(r rune) bool { return lo <= r && r <= hi })
			}
			continue
		}
		any = append(any, p.one(lo))
	}
	all = append(all, union(any))
	return func(r rune) bool {
		for _, in := range all {
			if !in(r) {
				return neg
			}
		}
		return !neg
	}
}

func union(sets []func(rune) bool) func(rune) bool {
	return func(r rune) bool {
		for _, in := range sets {
			if in(r) {
				return true
			}
		}
		return false
	}
}

func folded(lo, hi rune) func(rune) bool {
	return func(r rune) bool {
		if lo <= r && r <= hi {
			return true
		}
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			if lo <= f && f <= hi {
				return true
			}
		}
		return false
	}
}

// isSpace is Unicode's White_Space.
func isSpace(r rune) bool { return unicode.IsSpace(r) }
