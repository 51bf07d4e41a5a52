package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalizer changes text before it is cut.
type normalizer struct {
	apply      func(string) string
	stripsLeft bool // white space at the start goes away, and with it the start of the text
}

// normalize applies all of ns.
func normalize(ns []normalizer, s string) string {
	for i := range ns {
		s = ns[i].apply(s)
	}
	return s
}

// form brings text to a normal form; what is newer than the reference's tables stays as it is.
func form(f norm.Form) func(string) string {
	newer := func(r rune) bool { return within(newForm, r) || within(newMark, r) }
	return func(s string) string {
		if f.IsNormalString(s) {
			return s
		}
		i := strings.IndexFunc(s, newer)
		if i < 0 {
			return f.String(s)
		}
		var b strings.Builder
		for ; i >= 0; i = strings.IndexFunc(s, newer) {
			n := i + runeLen(s[i:])
			b.WriteString(f.String(s[:i]))
			b.WriteString(s[i:n])
			s = s[n:]
		}
		b.WriteString(f.String(s))
		return b.String()
	}
}

// lower is each rune's own lower case, without regard to its neighbours.
func lower(s string) string {
	i := 0
	for i < len(s) && s[i] < utf8.RuneSelf && (s[i] < 'A' || s[i] > 'Z') {
		i++
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(s[:i])
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteByte(s[i])
		case r == 0x130: // the only rune whose lower case is two
			b.WriteString("i\u0307")
		default:
			b.WriteRune(unicode.ToLower(r))
		}
		i += n
	}
	return b.String()
}

// filter drops the runes of which keep says no.
func filter(s string, keep func(rune) bool) string {
	for i, r := range s {
		if keep(r) {
			continue
		}
		var b strings.Builder
		b.WriteString(s[:i])
		for i < len(s) {
			r, n := utf8.DecodeRuneInString(s[i:])
			if keep(r) {
				b.WriteString(s[i : i+n])
			}
			i += n
		}
		return b.String()
	}
	return s
}

func stripAccents(s string) string {
	return filter(s, func(r rune) bool { return !isMark(r) })
}

func strip(left, right bool) func(string) string {
	return func(s string) string {
		if left {
			s = strings.TrimLeftFunc(s, isSpace)
		}
		if right {
			s = strings.TrimRightFunc(s, isSpace)
		}
		return s
	}
}

func prepend(p string) func(string) string {
	return func(s string) string {
		if s == "" {
			return s
		}
		return p + s
	}
}

func replace(p *pattern, content string) func(string) string {
	if p.rx == nil {
		return func(s string) string { return strings.ReplaceAll(s, p.text, content) }
	}
	return func(s string) string {
		var x rxState
		x.begin(len(s))
		var b strings.Builder
		at := 0
		for at < len(s) {
			from, to, ok := p.rx.find(&x, s, at)
			if !ok {
				break
			}
			b.WriteString(s[at:from])
			b.WriteString(content)
			at = to
		}
		if at == 0 {
			return s
		}
		b.WriteString(s[at:])
		return b.String()
	}
}

// bertOptions are those of BERT's normalizer.
type bertOptions struct{ clean, chinese, accents, lower bool }

func bertNormalize(o bertOptions) func(string) string {
	return func(s string) string {
		if o.clean {
			s = filter(s, func(r rune) bool { return r != 0 && r != 0xFFFD && !isControl(r) })
			s = strings.Map(func(r rune) rune {
				if isSpace(r) {
					return ' '
				}
				return r
			}, s)
		}
		if o.chinese {
			s = spaced(s)
		}
		if o.accents {
			s = filter(form(norm.NFD)(s), func(r rune) bool { return !isNonspacing(r) })
		}
		if o.lower {
			s = lower(s)
		}
		return s
	}
}

// isControl tells control and format characters and those of private use, but for what counts as white space here.
func isControl(r rune) bool {
	switch {
	case r == '\t' || r == '\n' || r == '\r':
		return false
	case r < utf8.RuneSelf:
		return r < ' ' || r == 0x7F
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co) && !within(newCf, r)
}

// spaced puts spaces around ideographs.
func spaced(s string) string {
	if strings.IndexFunc(s, isIdeograph) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isIdeograph(r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isIdeograph(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF || r >= 0x20000 && r <= 0x2A6DF || r >= 0x2A700 && r <= 0x2B73F ||
		r >= 0x2B740 && r <= 0x2B81F || r >= 0x2B920 && r <= 0x2CEAF || r >= 0xF900 && r <= 0xFAFF || r >= 0x2F800 && r <= 0x2FA1F
}

// nmt drops control characters and makes odd white space plain, as SentencePiece's nmt rules do.
func nmt(s string) string {
	s = filter(s, func(r rune) bool {
		return !(r >= 1 && r <= 8 || r == 0xB || r >= 0xE && r <= 0x1F || r == 0x7F || r == 0x8F || r == 0x9F)
	})
	return strings.Map(func(r rune) rune {
		switch r {
		case '\t', '\n', '\f', '\r', 0x1680, 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD:
			return ' '
		}
		if r >= 0x200B && r <= 0x200F {
			return ' '
		}
		return r
	}, s)
}

// squeeze makes one space of several and drops those at the ends, as SentencePiece does.
func squeeze(s string) string {
	s = strings.Trim(s, " ")
	for strings.Contains(s, "  ") {
		s = strings.ReplaceAll(s, "  ", " ")
	}
	return s
}
