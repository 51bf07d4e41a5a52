package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is a set of kinds of runes, a bit each; a rune is of one kind.
type class uint8

const (
	upper    class = 1 << iota // \p{Lu} \p{Lt}
	lowerc                     // \p{Ll}
	caseless                   // \p{Lm} \p{Lo}
	mark                       // \p{M}
	number                     // \p{N}
	space                      // \s
	punct                      // \p{P} \p{S}
	other                      // what is left: control characters, code points without a meaning

	letter = upper | lowerc | caseless // \p{L}
)

// classes of the code points up to U+FFFF: the tables of package unicode are searched, which takes ten times as long.
var (
	classes     [1 << 16]class
	loadClasses = sync.OnceFunc(func() {
		for r := range classes {
			classes[r] = classOf(rune(r))
		}
	})
)

func classOf(r rune) class {
	switch {
	case within(newer, r):
		return other
	case r == 0x295: // until Unicode 16
		return lowerc
	case unicode.IsLower(r) && unicode.Is(unicode.Ll, r):
		return lowerc
	case unicode.In(r, unicode.Lu, unicode.Lt):
		return upper
	case unicode.IsLetter(r):
		return caseless
	case unicode.IsMark(r):
		return mark
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	case unicode.In(r, unicode.P, unicode.S):
		return punct
	}
	return other
}

// at is the class and length of the rune at the start of s; 0 bytes at the end.
func at(s string) (class, int) {
	if s == "" {
		return other, 0
	}
	if c := s[0]; c < utf8.RuneSelf {
		return classes[c], 1
	}
	r, n := utf8.DecodeRuneInString(s)
	if r < rune(len(classes)) {
		return classes[r], n
	}
	return classOf(r), n
}

func runeLen(s string) int {
	if s[0] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// runOf is the number of bytes at the start of s whose runes are of the classes c.
func runOf(s string, c class) int {
	i := 0
	for i < len(s) {
		k, n := at(s[i:])
		if k&c == 0 {
			break
		}
		i += n
	}
	return i
}
