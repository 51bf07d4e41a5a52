package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// scanner cuts text into pre-tokens: what the published regular expressions of the models do, written out by hand, since Go's regexp has
// no lookahead and is some fifty times slower.
type scanner struct {
	next   func(string) int // bytes of the first pre-token of a text that is not empty
	digits bool             // every number is a pre-token of its own before next is asked
}

// scanners by the value of tokenizer.ggml.pre.
var scanners = map[string]scanner{
	"gpt-2":            {next: scanGPT2},
	"smollm":           {next: scanGPT2, digits: true},
	"llama-bpe":        {next: func(s string) int { return scanLlama3(s, 3) }},
	"llama3":           {next: func(s string) int { return scanLlama3(s, 3) }},
	"llama-v3":         {next: func(s string) int { return scanLlama3(s, 3) }},
	"qwen2":            {next: func(s string) int { return scanLlama3(s, 1) }},
	"deepseek-r1-qwen": {next: func(s string) int { return scanLlama3(s, 1) }},
}

type class uint8

const (
	other  class = iota
	letter       // \p{L}
	number       // \p{N}
	space        // \s
)

var ascii = func() (t [utf8.RuneSelf]class) {
	for r := range t {
		t[r] = classOf(rune(r))
	}
	return t
}()

func classOf(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return other
}

// at is the class and length of the rune at the start of s; 0 bytes at the end.
func at(s string) (class, int) {
	if s == "" {
		return other, 0
	}
	if c := s[0]; c < utf8.RuneSelf {
		return ascii[c], 1
	}
	r, n := utf8.DecodeRuneInString(s)
	return classOf(r), n
}

func runeLen(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// firstNumber is the offset of the first number in s, or len(s).
func firstNumber(s string) (int, string) {
	for i := 0; i < len(s); {
		c, n := at(s[i:])
		if c == number {
			return i, s[i:]
		}
		i += n
	}
	return len(s), ""
}

// runOf is the number of bytes at the start of s whose runes are of class c.
func runOf(s string, c class) int {
	i := 0
	for i < len(s) {
		k, n := at(s[i:])
		if k != c {
			break
		}
		i += n
	}
	return i
}

// spaces is what `\s+(?!\S)|\s+` takes of s, which starts with n bytes of white space: all of a run at the end of the text, else all but
// its last rune, which belongs to the word behind.
func spaces(s string, n int) int {
	if n == len(s) {
		return n
	}
	_, last := utf8.DecodeLastRuneInString(s[:n])
	if last == n {
		return n
	}
	return n - last
}

// scanGPT2: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func scanGPT2(s string) int {
	if s[0] == '\'' {
		if n := contraction(s, false); n > 0 {
			return n
		}
	}
	i := 0
	c, n := at(s)
	if s[0] == ' ' {
		if k, m := at(s[1:]); m > 0 && k != space {
			i, c, n = 1, k, m
		}
	}
	if c == space {
		return spaces(s, runOf(s, space))
	}
	i += n
	return i + runOf(s[i:], c)
}

// scanLlama3, with numbers of up to three or one digit (Qwen 2):
// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func scanLlama3(s string, digits int) int {
	if s[0] == '\'' {
		if n := contraction(s, true); n > 0 {
			return n
		}
	}
	c, n := at(s)
	switch c {
	case letter:
		return n + runOf(s[n:], letter)
	case number:
		for k := 1; k < digits; k++ {
			d, m := at(s[n:])
			if m == 0 || d != number {
				break
			}
			n += m
		}
		return n
	}
	k, m := at(s[n:])
	if m > 0 && k == letter && s[0] != '\r' && s[0] != '\n' {
		return n + m + runOf(s[n+m:], letter)
	}
	if c == other || s[0] == ' ' && m > 0 && k == other {
		n += runOf(s[n:], other)
		return n + newlines(s[n:])
	}
	n = runOf(s, space)
	for i := n - 1; i >= 0; i-- { // \s*[\r\n]+ ends with the run's last newline
		if s[i] == '\r' || s[i] == '\n' {
			return i + 1
		}
	}
	return spaces(s, n)
}

func newlines(s string) int {
	i := 0
	for i < len(s) && (s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i
}

// contraction is the length of 's, 't, 're, 've, 'm, 'll or 'd at the start of s, which is an apostrophe; 0 where none is.
func contraction(s string, fold bool) int {
	lower := func(i int) byte {
		if i >= len(s) {
			return 0
		}
		if fold && s[i] >= 'A' && s[i] <= 'Z' {
			return s[i] + 'a' - 'A'
		}
		return s[i]
	}
	switch b := lower(2); lower(1) {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if b == 'e' {
			return 3
		}
	case 'l':
		if b == 'l' {
			return 3
		}
	case 0xC5: // U+017F, the long s, folds to s
		if fold && b == 0xBF {
			return 3
		}
	}
	return 0
}
