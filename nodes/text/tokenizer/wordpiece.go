package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// wordPiece cuts a word into the longest pieces from the left; a word that cannot be cut so is one unknown token.
type wordPiece struct {
	first, rest map[string]uint32 // pieces at the start of a word, and behind it without their prefix
	longest     int               // bytes
	unk         uint32
	maxRunes    int // longer words are unknown
}

func newWordPiece(first map[string]uint32, prefix string, unk uint32, maxRunes int) *wordPiece {
	m := &wordPiece{first: first, rest: map[string]uint32{}, unk: unk, maxRunes: maxRunes}
	for s, id := range first {
		m.longest = max(m.longest, len(s))
		if r, ok := strings.CutPrefix(s, prefix); ok && r != "" {
			m.rest[r] = id
		}
	}
	return m
}

func (m *wordPiece) word(_ *encoder, dst []uint32, w string) []uint32 {
	if len(w) > m.maxRunes && utf8.RuneCountInString(w) > m.maxRunes {
		return append(dst, m.unk)
	}
	begin, set := len(dst), m.first
	for at := 0; at < len(w); {
		end := min(len(w), at+m.longest)
		for end > at && end < len(w) && !utf8.RuneStart(w[end]) {
			end--
		}
		for ; end > at; end -= lastLen(w[at:end]) {
			if id, ok := set[w[at:end]]; ok {
				dst = append(dst, id)
				break
			}
		}
		if end == at {
			return append(dst[:begin], m.unk)
		}
		at, set = end, m.rest
	}
	return dst
}

func lastLen(s string) int {
	_, n := utf8.DecodeLastRuneInString(s)
	return n
}

// wordLevel knows whole words only.
type wordLevel struct {
	words map[string]uint32
	unk   uint32
}

func (m *wordLevel) word(_ *encoder, dst []uint32, w string) []uint32 {
	if id, ok := m.words[w]; ok {
		return append(dst, id)
	}
	return append(dst, m.unk)
}
