package tokenizer

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// charsmap is SentencePiece's compiled normalization rules: a double array that maps what stands at the start of a text to an offset in a
// blob of strings that each end with a zero byte.
type charsmap struct {
	units []uint32
	text  string
	plain bool // printable ASCII stays as it is
}

func newCharsmap(b []byte) (*charsmap, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("a map of characters has %d bytes: at least 4", len(b))
	}
	n := binary.LittleEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) || n%4 != 0 || n == 0 {
		return nil, fmt.Errorf("a map of characters says %d bytes of trie and has %d", n, len(b)-4)
	}
	m := &charsmap{units: make([]uint32, n/4), text: string(b[4+n:])}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(b[4+4*i:])
	}
	m.plain = true
	for c := rune(' '); c < 0x7F; c++ {
		_, changed := m.find(string(c))
		m.plain = m.plain && !changed
	}
	return m, nil
}

// find is what the shortest prefix of s in the map becomes.
func (m *charsmap) find(s string) (string, bool) {
	offset := func(u uint32) uint32 { return u >> 10 << (u & (1 << 9) >> 6) }
	at := offset(m.units[0])
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == 0 {
			return "", false
		}
		if at ^= uint32(c); uint64(at) >= uint64(len(m.units)) {
			return "", false
		}
		u := m.units[at]
		if u&(1<<31|0xFF) != uint32(c) {
			return "", false
		}
		at ^= offset(u)
		if u>>8&1 == 0 {
			continue
		}
		if uint64(at) >= uint64(len(m.units)) {
			return "", false
		}
		v := m.units[at] &^ (1 << 31)
		if uint64(v) > uint64(len(m.text)) {
			return "", false
		}
		to, _, ok := strings.Cut(m.text[v:], "\x00")
		if !ok {
			return "", false
		}
		return to, true
	}
	return "", false
}

// apply replaces each grapheme of fewer than six bytes that begins with an entry of the map, and else each such rune: rules that look odd,
// but are those by which the models were made.
func (m *charsmap) apply(s string) string {
	if m.plain && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7F }) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	it := graphemes.FromString(s)
	for it.Next() {
		g := it.Value()
		if len(g) < 6 {
			if to, ok := m.find(g); ok {
				b.WriteString(to)
				continue
			}
		}
		for g != "" {
			_, n := utf8.DecodeRuneInString(g)
			if to, ok := m.find(g[:n]); ok {
				b.WriteString(to)
			} else {
				b.WriteString(g[:n])
			}
			g = g[n:]
		}
	}
	return b.String()
}
