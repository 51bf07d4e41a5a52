package tokenizer

import (
	"hash/maphash"
	"strings"
	"unicode/utf8"
)

// spm is SentencePiece's BPE: neighbours are merged whose text is a token, the best score first. Runes without a token become byte tokens.
type spm struct {
	tokens  map[string]scored // normal tokens, with "▁" for a space
	bytes   [256]int64        // -1: none
	unk     int64             // -1: none
	prefix  bool              // a space goes before the text and after special tokens
	borders *borders          // nil: there are none
	seed    maphash.Seed
}

type scored struct {
	id    uint32
	score float32
}

type spmScratch struct {
	symbols []symbol
	heap    []pair
}

// symbol is text[at:at+n]; n == 0: merged into an earlier one.
type symbol struct {
	at, n      int32
	prev, next int32
}

// pair may be merged while its symbols together are still n bytes long.
type pair struct {
	score float32
	at, n int32 // left symbol's index, bytes of both
}

func (p pair) before(q pair) bool { return p.score > q.score || p.score == q.score && p.at < q.at }

const spmSpace = "▁"

func (m *spm) encode(e *encoder, dst []uint32, s string, first, _ bool) []uint32 {
	s = strings.ReplaceAll(s, " ", spmSpace)
	if m.prefix && first {
		s = spmSpace + s
	}
	if m.borders != nil {
		for s != "" {
			n := m.borders.first(s)
			if n > maxPiece {
				break
			}
			dst = m.word(e, dst, s[:n])
			s = s[n:]
		}
	}
	// A piece of text is worked on at a time: offsets are 32 bits, and memory stays bounded by the piece.
	for len(s) > maxPiece {
		n := maxPiece
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		if i := strings.LastIndex(s[:n], spmSpace); i > 0 {
			n = i
		}
		if n == 0 {
			n = maxPiece
		}
		dst = m.piece(&e.spm, dst, s[:n])
		s = s[n:]
	}
	return m.piece(&e.spm, dst, s)
}

const maxPiece = 1 << 20

// word is piece with a memory of short ones.
func (m *spm) word(e *encoder, dst []uint32, w string) []uint32 {
	if len(w) > cacheWord {
		return m.piece(&e.spm, dst, w)
	}
	if e.cache == nil {
		e.cache = make([]cached, cacheSlots)
	}
	slot := &e.cache[maphash.String(m.seed, w)%cacheSlots]
	if slot.word != w {
		slot.ids = m.piece(&e.spm, slot.ids[:0], w)
		slot.word = strings.Clone(w)
	}
	return append(dst, slot.ids...)
}

func (m *spm) piece(e *spmScratch, dst []uint32, s string) []uint32 {
	sym, h := e.symbols[:0], e.heap[:0]
	for i := 0; i < len(s); {
		n := runeLen(s[i:])
		k := int32(len(sym))
		sym = append(sym, symbol{at: int32(i), n: int32(n), prev: k - 1, next: k + 1})
		i += n
	}
	if len(sym) == 0 {
		return dst
	}
	sym[len(sym)-1].next = -1
	add := func(i int32) {
		if i < 0 || sym[i].next < 0 {
			return
		}
		n := sym[i].n + sym[sym[i].next].n
		if t, ok := m.tokens[s[sym[i].at:sym[i].at+n]]; ok {
			h = push(h, pair{t.score, i, n})
		}
	}
	for i := range sym {
		add(int32(i))
	}
	for len(h) > 0 {
		var p pair
		p, h = pop(h)
		l := &sym[p.at]
		if l.n == 0 || l.next < 0 || l.n+sym[l.next].n != p.n {
			continue
		}
		r := &sym[l.next]
		l.n, r.n = p.n, 0
		if l.next = r.next; l.next >= 0 {
			sym[l.next].prev = p.at
		}
		add(l.prev)
		add(p.at)
	}
	for i := int32(0); i >= 0; i = sym[i].next {
		text := s[sym[i].at : sym[i].at+sym[i].n]
		if t, ok := m.tokens[text]; ok {
			dst = append(dst, t.id)
			continue
		}
		for j := 0; j < len(text); j++ {
			if id := m.bytes[text[j]]; id >= 0 {
				dst = append(dst, uint32(id))
			} else if m.unk >= 0 { // one for the whole rune
				dst = append(dst, uint32(m.unk))
				break
			}
		}
	}
	e.symbols, e.heap = sym, h
	if cap(sym) > 1<<16 {
		*e = spmScratch{}
	}
	return dst
}
