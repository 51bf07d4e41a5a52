package tokenizer

import "unicode/utf8"

// The scanners cut text into pre-tokens: what the published regular expressions of the models do, written out by hand, some fifty times as
// fast. Each takes a text that is not empty and returns the bytes of its first pre-token.

// digits cuts every number off by itself.
func digits(s string) int {
	if c, n := at(s); c == number {
		return n
	}
	return runOf(s, ^number)
}

// digits3 is \p{N}{1,3}, isolated.
func digits3(s string) int {
	if n := numbers(s, 3); n > 0 {
		return n
	}
	return runOf(s, ^number)
}

// numbers is the length of up to most numbers at the start of s.
func numbers(s string, most int) int {
	i := 0
	for range most {
		c, n := at(s[i:])
		if n == 0 || c != number {
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

// blank is what `\s*[\r\n]+|\s+(?!\S)|\s+` takes of s, which starts with white space.
func blank(s string) int {
	n := runOf(s, space)
	for i := n - 1; i >= 0; i-- { // \s*[\r\n]+ ends with the run's last newline
		if s[i] == '\r' || s[i] == '\n' {
			return i + 1
		}
	}
	return spaces(s, n)
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
	switch {
	case c == space:
		return spaces(s, runOf(s, space))
	case c&letter != 0:
		c = letter
	case c != number:
		c = ^(letter | number | space)
	}
	i += n
	return i + runOf(s[i:], c)
}

// scanLlama3, with numbers of up to three or one digit (Qwen 2) and words of letters, or of letters and marks (Qwen 3.5):
// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func scanLlama3(most int, word class) func(string) int {
	rest := ^(word | number | space)
	return func(s string) int {
		if s[0] == '\'' {
			if n := contraction(s, true); n > 0 {
				return n
			}
		}
		c, n := at(s)
		switch {
		case c&word != 0:
			return n + runOf(s[n:], word)
		case c == number:
			return numbers(s, most)
		}
		k, m := at(s[n:])
		if m > 0 && k&word != 0 && s[0] != '\r' && s[0] != '\n' {
			return n + m + runOf(s[n+m:], word)
		}
		if c&rest != 0 || s[0] == ' ' && m > 0 && k&rest != 0 {
			n += runOf(s[n:], rest)
			return n + newlines(s[n:], false)
		}
		return blank(s)
	}
}

// scanO200k, of GPT-4o and, with numbers of one digit and no contractions, of Mistral's tekken:
// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|
// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|
// \p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
func scanO200k(most int, contract bool) func(string) int {
	const first, both = upper | caseless | mark, caseless | mark
	const rest = mark | punct | other
	// low is where a word from i on ends that has a lower half, 0: none; up where its upper half ends.
	word := func(s string, i int) (low, up int) {
		for up = i; up < len(s); {
			k, m := at(s[up:])
			if k&first == 0 {
				if k == lowerc {
					return up + runOf(s[up:], lowerc|both), up
				}
				break
			}
			if up += m; k&both != 0 {
				low = up
			}
		}
		return low, up
	}
	return func(s string) int {
		c, n := at(s)
		if c == number {
			return numbers(s, most)
		}
		end, up, up0 := 0, 0, 0
		prefix := c&letter == 0 && s[0] != '\r' && s[0] != '\n'
		if prefix {
			end, up = word(s, n)
		}
		if end == 0 && c&(letter|mark) != 0 {
			end, up0 = word(s, 0)
		}
		switch {
		case end > 0:
		case prefix && up > n:
			end = up
		default:
			end = up0
		}
		if end > 0 {
			if contract && end < len(s) && s[end] == '\'' {
				end += contraction(s[end:], true)
			}
			return end
		}
		k, m := at(s[n:])
		if c&rest != 0 || s[0] == ' ' && m > 0 && k&rest != 0 {
			n += runOf(s[n:], rest)
			return n + newlines(s[n:], true)
		}
		return blank(s)
	}
}

// newlines is the length of the newlines (and slashes) at the start of s.
func newlines(s string, slash bool) int {
	i := 0
	for i < len(s) && (s[i] == '\r' || s[i] == '\n' || slash && s[i] == '/') {
		i++
	}
	return i
}

// cjk is [一-龥぀-ゟ゠-ヿ]+, isolated.
func cjk(s string) int {
	in := func(s string) int {
		if s[0] < 0xE3 || s[0] > 0xE9 {
			return 0
		}
		r, n := utf8.DecodeRuneInString(s)
		if r >= 0x4E00 && r <= 0x9FA5 || r >= 0x3040 && r <= 0x30FF {
			return n
		}
		return 0
	}
	n := in(s)
	want := n > 0
	if n == 0 {
		n = runeLen(s)
	}
	for n < len(s) {
		k := in(s[n:])
		if (k > 0) != want {
			break
		}
		n += max(k, runeLen(s[n:]))
	}
	return n
}

// scanDeepSeek is the last expression of DeepSeek V3, isolated:
// [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func scanDeepSeek(s string) int {
	if n := matchDeepSeek(s); n > 0 {
		return n
	}
	n := runeLen(s)
	for n < len(s) && matchDeepSeek(s[n:]) == 0 {
		n += runeLen(s[n:])
	}
	return n
}

func matchDeepSeek(s string) int {
	const word = letter | mark
	c, n := at(s)
	k, m := at(s[n:])
	if c == punct && s[0] < utf8.RuneSelf {
		for m = n; m < len(s) && (s[m]|0x20) >= 'a' && (s[m]|0x20) <= 'z'; m++ {
		}
		if m > n {
			return m
		}
	}
	switch {
	case c&(letter|punct) == 0 && s[0] != '\r' && s[0] != '\n' && m > 0 && k&word != 0:
		return n + runOf(s[n:], word)
	case c&word != 0:
		return runOf(s, word)
	case c == punct || s[0] == ' ' && m > 0 && k == punct:
		n += runOf(s[n:], punct)
		return n + newlines(s[n:], false)
	case c == space:
		return blank(s)
	}
	return 0
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
