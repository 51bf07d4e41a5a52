package detok

import "unicode/utf8"

// AppendValid appends src to dst with each maximal ill-formed subsequence as one U+FFFD (Unicode's recommended practice, and what Rust
// and browsers do; Go's own conversions give one a byte). An incomplete rune at the end of src is left out, and rest is its length (0 to
// 3), unless end says that nothing follows.
func AppendValid(dst, src []byte, end bool) (out []byte, rest int) {
	for len(src) > 0 {
		if c := src[0]; c < utf8.RuneSelf {
			dst = append(dst, c)
			src = src[1:]
			continue
		}
		r, n := utf8.DecodeRune(src)
		if r != utf8.RuneError || n > 1 {
			dst = append(dst, src[:n]...)
			src = src[n:]
			continue
		}
		n, open := subpart(src)
		if open && !end {
			return dst, n
		}
		dst = append(dst, "\uFFFD"...)
		src = src[n:]
	}
	return dst, 0
}

// subpart is the length of the maximal subpart at the start of s, which is no whole rune; open says that more bytes could complete it.
func subpart(s []byte) (n int, open bool) {
	lo, hi := byte(0x80), byte(0xBF)
	want := 0
	switch c := s[0]; {
	case c >= 0xC2 && c <= 0xDF:
		want = 2
	case c >= 0xE0 && c <= 0xEF:
		want = 3
		if c == 0xE0 {
			lo = 0xA0
		} else if c == 0xED {
			hi = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		want = 4
		if c == 0xF0 {
			lo = 0x90
		} else if c == 0xF4 {
			hi = 0x8F
		}
	default:
		return 1, false
	}
	for n = 1; n < want; n++ {
		if n == len(s) {
			return n, true
		}
		if s[n] < lo || s[n] > hi {
			return n, false
		}
		lo, hi = 0x80, 0xBF
	}
	return n, false
}
