package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// isSpace is Python's str.isspace of one character.
func isSpace(r rune) bool {
	switch {
	case r <= ' ':
		return r == ' ' || r >= '\t' && r <= '\r' || r >= 0x1c && r <= 0x1f
	case r < 0x80:
		return false
	}
	return r == 0x85 || unicode.Is(unicode.Zs, r) || r == 0x2028 || r == 0x2029
}

func isLineEnd(r rune) bool {
	return r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
}

// lines are the places of the lines of s, without their ends or with them.
func lines(s string, keep bool) [][2]int {
	var out [][2]int
	from := 0
	for i, r := range s {
		if i < from || !isLineEnd(r) {
			continue
		}
		end := i + utf8.RuneLen(r)
		if r == '\r' && strings.HasPrefix(s[end:], "\n") {
			end++
		}
		if keep {
			out = append(out, [2]int{from, end})
		} else {
			out = append(out, [2]int{from, i})
		}
		from = end
	}
	if from < len(s) {
		out = append(out, [2]int{from, len(s)})
	}
	return out
}

// trimmed is s stripped at the left, the right or both ends; chars "" is white space where none is true.
func (st *state) trimmed(s, chars string, none bool, left, right bool) string {
	st.work(len(s))
	drop := isSpace
	if !none {
		set := st.plain(chars)
		st.work(len(s) * min(1+len(set)/16, 64))
		drop = func(r rune) bool { return strings.ContainsRune(set, r) }
	}
	hold := st.hold
	if hold != "" { // it stays where it is
		st.hold = ""
		defer func() { st.hold = hold }()
	}
	return st.cuts(s, func(p string) [][2]int {
		a, b := 0, len(p)
		if left {
			a = len(p) - len(strings.TrimLeftFunc(p, drop))
		}
		if right {
			b = len(strings.TrimRightFunc(p[a:], drop)) + a
		}
		return [][2]int{{a, b}}
	})[0]
}

// splitSpace splits at white space, at most n times where n >= 0, from the left or the right.
func splitSpace(p string, n int, right bool) [][2]int {
	var out [][2]int
	if right {
		b := len(p)
		for {
			b = len(strings.TrimRightFunc(p[:b], isSpace))
			if b == 0 {
				break
			}
			a := strings.LastIndexFunc(p[:b], isSpace)
			if a >= 0 {
				_, w := utf8.DecodeRuneInString(p[a:])
				a += w
			} else {
				a = 0
			}
			if n == 0 {
				a = 0
			}
			out = append(out, [2]int{a, b})
			if n == 0 {
				break
			}
			n--
			b = a
		}
		for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
			out[i], out[j] = out[j], out[i]
		}
		return out
	}
	a := 0
	for {
		a = len(p) - len(strings.TrimLeftFunc(p[a:], isSpace))
		if a == len(p) {
			return out
		}
		b := len(p)
		if i := strings.IndexFunc(p[a:], isSpace); i >= 0 && n != 0 {
			b = a + i
		}
		out = append(out, [2]int{a, b})
		n--
		a = b
	}
}

// splitBy splits at sep, at most n times where n >= 0, from the left or the right.
func splitBy(p, sep string, n int, right bool) [][2]int {
	var cuts []int
	if right {
		for b := len(p); n != 0; n-- {
			i := strings.LastIndex(p[:b], sep)
			if i < 0 {
				break
			}
			cuts = append(cuts, i)
			b = i
		}
		for i, j := 0, len(cuts)-1; i < j; i, j = i+1, j-1 {
			cuts[i], cuts[j] = cuts[j], cuts[i]
		}
	} else {
		for a := 0; n != 0; n-- {
			i := strings.Index(p[a:], sep)
			if i < 0 {
				break
			}
			cuts = append(cuts, a+i)
			a += i + len(sep)
		}
	}
	out := make([][2]int, 0, len(cuts)+1)
	a := 0
	for _, c := range cuts {
		out = append(out, [2]int{a, c})
		a = c + len(sep)
	}
	return append(out, [2]int{a, len(p)})
}

// split is str.split and rsplit; none: at white space.
func (st *state) split(s, sep string, none bool, n int, right bool) []string {
	st.work(len(s))
	sep = st.plain(sep)
	if sep == "" && !none {
		valueError("empty separator")
	}
	return st.cuts(s, func(p string) [][2]int {
		var c [][2]int
		if none {
			c = splitSpace(p, n, right)
		} else {
			st.alloc(16 * (1 + strings.Count(p, sep)))
			c = splitBy(p, sep, n, right)
		}
		st.alloc(2 * valueSize * len(c))
		return c
	})
}

// replace is str.replace; count < 0 is all.
func (st *state) replace(s, old, with string, count int) string {
	st.work(len(s))
	old = st.plain(old)
	p := st.plain(s)
	n := strings.Count(p, old)
	if old == "" {
		n = utf8.RuneCountInString(p) + 1
	}
	if count >= 0 {
		n = min(n, count)
	}
	if n == 0 {
		return s
	}
	if len(with) > 0 {
		st.share(n, len(with))
	}
	st.alloc(len(s))
	if len(p) == len(s) {
		return strings.Replace(s, old, with, n)
	}
	if old == "" {
		return strings.Replace(s, old, with, n) // marks count as characters: nothing does that
	}
	st.share(n, 16)
	return strings.Join(st.cuts(s, func(p string) [][2]int { return splitBy(p, old, n, false) }), with)
}

// upper and lower are Python's, with special casing.
func upper(s string) string { return mapCase(s, unicode.ToUpper, upperMore) }

func mapCase(s string, one func(rune) rune, more map[rune]string) string {
	ascii := true
	for i := 0; i < len(s) && ascii; i++ {
		ascii = s[i] < utf8.RuneSelf
	}
	if ascii {
		return strings.Map(one, s)
	}
	b := make([]byte, 0, len(s)+8)
	for _, r := range s {
		if m, ok := more[r]; ok && r >= 0x80 {
			b = append(b, m...)
		} else {
			b = utf8.AppendRune(b, one(r))
		}
	}
	return string(b)
}

func lower(s string) string {
	if strings.ContainsRune(s, 'Σ') {
		return lowerSigma(s)
	}
	return mapCase(s, unicode.ToLower, lowerMore)
}

// lowerSigma lowers a text with a capital sigma, which is another letter at the end of a word.
func lowerSigma(s string) string {
	rs := []rune(s)
	var b strings.Builder
	for i, r := range rs {
		if r != 'Σ' {
			b.WriteString(mapCase(string(r), unicode.ToLower, lowerMore))
			continue
		}
		j := i - 1
		for j >= 0 && caseIgnorable(rs[j]) {
			j--
		}
		k := i + 1
		for k < len(rs) && caseIgnorable(rs[k]) {
			k++
		}
		if j >= 0 && cased(rs[j]) && !(k < len(rs) && cased(rs[k])) {
			b.WriteRune('ς')
		} else {
			b.WriteRune('σ')
		}
	}
	return b.String()
}

func caseIgnorable(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) || strings.ContainsRune("'.:\u00b7\u2024\u2018\u2019\ufe52\uff07\uff0e\uff1a\u0375", r)
}

func isLowerRune(r rune) bool { return unicode.IsLower(r) || unicode.Is(unicode.Other_Lowercase, r) }
func isUpperRune(r rune) bool { return unicode.IsUpper(r) || unicode.Is(unicode.Other_Uppercase, r) }
func cased(r rune) bool       { return isLowerRune(r) || isUpperRune(r) || unicode.IsTitle(r) }

func titleRune(r rune) string {
	if m, ok := titleMore[r]; ok {
		return m
	}
	return string(unicode.ToTitle(r))
}

// titled is str.title.
func titled(s string) string {
	var b strings.Builder
	in := false
	for _, r := range s {
		if in {
			b.WriteString(lower(string(r)))
		} else {
			b.WriteString(titleRune(r))
		}
		in = cased(r)
	}
	return b.String()
}

func capitalized(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return titleRune(r) + lower(s[n:])
}

func isDigit(r rune) bool {
	return unicode.Is(unicode.Nd, r) || unicode.Is(otherDigits, r)
}

func isNumeric(r rune) bool {
	return isDigit(r) || unicode.In(r, unicode.No, unicode.Nl) || unicode.Is(numericLetters, r)
}

func isAlnum(r rune) bool { return unicode.IsLetter(r) || isNumeric(r) }

// every is true where s is not empty and f holds for all of it.
func every(s string, f func(rune) bool) bool {
	for _, r := range s {
		if !f(r) {
			return false
		}
	}
	return s != ""
}

// cases is true where s has a cased character and none that is bad.
func cases(s string, bad func(rune) bool) bool {
	any := false
	for _, r := range s {
		if bad(r) {
			return false
		}
		any = any || cased(r)
	}
	return any
}

func isTitled(s string) bool {
	in, any := false, false
	for _, r := range s {
		switch {
		case isUpperRune(r) || unicode.IsTitle(r):
			if in {
				return false
			}
			in, any = true, true
		case isLowerRune(r):
			if !in {
				return false
			}
			any = true
		default:
			in = false
		}
	}
	return any
}

func isIdentifier(s string) bool {
	for i, r := range s {
		start := r == '_' || unicode.In(r, unicode.L, unicode.Nl, unicode.Other_ID_Start)
		if !start && (i == 0 || !unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue)) {
			return false
		}
	}
	return s != ""
}
