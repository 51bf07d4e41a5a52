package constrain

import (
	"errors"
	"fmt"
	"strings"
)

// spaces are what \s is in JSON Schema's regular expressions, ECMAScript's, and in those of readers in Python, which take some more for it.
const spaces = `\x{09}-\x{0d}\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`

// notSpaces are all others.
const notSpaces = `\x{00}-\x{08}\x{0e}-\x{1b}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}` +
	`\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`

// pattern is a regular expression that need not match from end to end, within a string of JSON.
func pattern(source string) (Node, error) {
	p, err := dialect(source)
	if err != nil {
		return nil, err
	}
	if p.either && (p.head || p.tail) { // ^a|b$ anchors each alternative by itself
		return nil, errors.New("alternatives that are anchored by themselves are not supported; write ^(?:a|b)$")
	}
	n, err := Regex(p.text)
	if err != nil {
		return nil, err
	}
	n = inString(n)
	s := Seq{n}
	if !p.head {
		s = Seq{Repeat{char, 0, -1}, n}
	}
	if !p.tail {
		s = append(s, Repeat{char, 0, -1})
	}
	return s, nil
}

// dialected is a pattern of ECMAScript's as Go writes it.
type dialected struct {
	text       string
	head, tail bool // it begins with ^, it ends with $
	either     bool // it is several alternatives that are in no group
}

// dialect brings a pattern of ECMAScript's to Go's form. What means something else in Go is refused; where readers differ, the narrower holds.
func dialect(source string) (d dialected, err error) {
	var b strings.Builder
	depth, class, negated := 0, false, false
	d.head = strings.HasPrefix(source, "^")
	for i := 0; i < len(source); i++ {
		c := source[i]
		rest := source[i+1:]
		switch {
		case c == '\\':
			if rest == "" {
				return d, errors.New("the pattern ends with a backslash")
			}
			i++
			switch e := rest[0]; {
			case e == 's' && negated:
				b.WriteString(spaces)
			case e == 'S' && class && !negated:
				b.WriteString(notSpaces)
			case e == 'S' && !class:
				b.WriteString("[" + notSpaces + "]")
			case strings.IndexByte("dDwWsSbBnrtfvxpP", e) >= 0:
				b.WriteString(source[i-1 : i+1])
			case e == 'u' && len(rest) >= 5 && strings.Trim(rest[1:5], "0123456789abcdefABCDEF") == "":
				b.WriteString(`\x{` + rest[1:5] + "}")
				i += 4
			case e >= 'a' && e <= 'z' || e >= 'A' && e <= 'Z' || e >= '0' && e <= '9':
				return d, fmt.Errorf(`\%c is not supported`, e)
			case e < 0x80:
				b.WriteString(source[i-1 : i+1])
			default:
				b.WriteByte(e) // of a rune that stands for itself
			}
		case class:
			if c == '[' && strings.HasPrefix(rest, ":") {
				return d, errors.New("a class that holds [: is not supported")
			}
			if class = c != ']'; !class {
				negated = false
			}
			b.WriteByte(c)
		case c == '[':
			class, negated = true, strings.HasPrefix(rest, "^")
			if strings.HasPrefix(rest, "]") || strings.HasPrefix(rest, "^]") {
				return d, errors.New("an empty class is not supported")
			}
			b.WriteByte(c)
		case c == '.':
			b.WriteString(`[^\n\r\x{2028}\x{2029}]`)
		default:
			switch {
			case c == '(' && strings.HasPrefix(rest, "?") && !strings.HasPrefix(rest, "?:") && !strings.HasPrefix(rest, "?<"):
				return d, fmt.Errorf("(%s is not supported", rest[:min(2, len(rest))])
			case c == '(':
				depth++
			case c == ')':
				depth--
			case c == '|' && depth == 0:
				d.either = true
			case c == '$':
				d.tail = rest == ""
			}
			b.WriteByte(c)
		}
	}
	d.text = b.String()
	return d, nil
}
