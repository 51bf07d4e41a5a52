package tokenizer

import (
	"hash/maphash"
	"iter"
	"strings"
	"unicode/utf8"
)

// bpe is BPE over bytes or, with chars, over runes: pairs of symbols are merged in the order of their rank.
type bpe struct {
	bytes   [256]int64 // token of a byte, -1: none
	unk     int64      // for symbols without a token; -1: they are dropped
	chars   *chars     // nil: bytes are symbols
	merges  mergeTable
	words   map[string]uint32 // whole words that need no merging; nil where the model merges always
	hashKey maphash.Seed
	borders *borders // within words; nil: there are none
}

// borders are the places in a text that no merge crosses: before a run of spmSpace, but behind the runes of sticks. What stands on their sides can
// be encoded by itself: a text that is one word to its model becomes many short ones, of which most come again. Nil: there are none.
type borders struct{ sticks map[rune]bool }

// bordersOf finds where the tokens of a vocabulary hold spmSpace behind another rune: few do.
func bordersOf(tokens iter.Seq[string]) *borders {
	b, found := &borders{sticks: map[rune]bool{}}, false
	for s := range tokens {
		found = found || s == spmSpace
		for i := 1; i < len(s); i++ {
			if strings.HasPrefix(s[i:], spmSpace) && !strings.HasSuffix(s[:i], spmSpace) {
				r, _ := utf8.DecodeLastRuneInString(s[:i])
				b.sticks[r] = true
			}
		}
	}
	if !found || b.sticks[utf8.RuneError] || len(b.sticks) > 16 {
		return nil
	}
	return b
}

// first is the length of the part of w that ends before its first border.
func (b *borders) first(w string) int {
	at := 0
	for strings.HasPrefix(w[at:], spmSpace) {
		at += len(spmSpace)
	}
	for {
		i := strings.Index(w[at:], spmSpace)
		if i < 0 {
			return len(w)
		}
		if at += i; len(b.sticks) == 0 {
			return at
		}
		if r, _ := utf8.DecodeLastRuneInString(w[:at]); !b.sticks[r] && r != utf8.RuneError {
			return at
		}
		for strings.HasPrefix(w[at:], spmSpace) {
			at += len(spmSpace)
		}
	}
}

// chars says how runes become symbols.
type chars struct {
	vocab          map[string]uint32
	prefix, suffix string // put before each rune but a word's first, behind its last
	fallback       bool   // a rune without a token becomes those of its bytes, where they all are
	fuse           bool   // neighbours without a token become one unknown token
}

// encoder is the scratch of one Encode: buffers and a cache of words.
type encoder struct {
	ids   []uint32
	heap  []candidate
	links []link
	spm   spmScratch
	cache []cached
	rx    rxState
	spans [][]span // of each step of pre-tokenization
	best  []bestNode
}

type cached struct {
	word string
	ids  []uint32
}

const (
	cacheSlots = 1 << 13
	cacheWord  = 32 // longest word in bytes that is cached
	shortWord  = 64 // symbols: up to here a scan for the best pair beats a heap
)

// word appends the tokens of one pre-token.
func (m *bpe) word(e *encoder, dst []uint32, w string) []uint32 {
	if m.borders == nil {
		return m.part(e, dst, w)
	}
	for w != "" {
		n := m.borders.first(w)
		dst = m.part(e, dst, w[:n])
		w = w[n:]
	}
	return dst
}

func (m *bpe) part(e *encoder, dst []uint32, w string) []uint32 {
	if len(w) == 1 && m.chars == nil && m.bytes[w[0]] >= 0 {
		return append(dst, uint32(m.bytes[w[0]]))
	}
	if m.words != nil {
		if id, ok := m.words[w]; ok {
			return append(dst, id)
		}
	}
	var slot *cached
	if len(w) <= cacheWord {
		if e.cache == nil {
			e.cache = make([]cached, cacheSlots)
		}
		slot = &e.cache[maphash.String(m.hashKey, w)%cacheSlots]
		if slot.word == w {
			return append(dst, slot.ids...)
		}
	}
	ids := m.symbols(e.ids[:0], w)
	if len(ids) > shortWord {
		e.ids = ids
		return m.mergeLong(e, dst, ids)
	}
	ids = m.mergeShort(ids)
	e.ids = ids
	if slot != nil {
		slot.word = strings.Clone(w)
		slot.ids = append(slot.ids[:0], ids...)
	}
	return append(dst, ids...)
}

// symbols appends what a word is made of before any merge.
func (m *bpe) symbols(ids []uint32, w string) []uint32 {
	if m.chars == nil {
		for i := 0; i < len(w); i++ {
			if id := m.bytes[w[i]]; id >= 0 {
				ids = append(ids, uint32(id))
			} else if m.unk >= 0 {
				ids = append(ids, uint32(m.unk))
			}
		}
		return ids
	}
	c := m.chars
	unknown := false // one is to be written before the next symbol
	flush := func() {
		if unknown {
			ids = append(ids, uint32(m.unk))
		}
		unknown = false
	}
	for i := 0; i < len(w); {
		n := runeLen(w[i:])
		s := w[i : i+n]
		if i > 0 && c.prefix != "" {
			s = c.prefix + s
		}
		if i += n; i == len(w) && c.suffix != "" {
			s += c.suffix
		}
		if id, ok := c.vocab[s]; ok {
			flush()
			ids = append(ids, id)
			continue
		}
		if c.fallback {
			if more, ok := m.byteTokens(ids, s); ok {
				ids = more
				continue
			}
		}
		if m.unk >= 0 {
			if !c.fuse {
				flush()
			}
			unknown = true
		}
	}
	flush()
	return ids
}

func (m *bpe) byteTokens(ids []uint32, s string) ([]uint32, bool) {
	n := len(ids)
	for i := 0; i < len(s); i++ {
		id := m.bytes[s[i]]
		if id < 0 {
			return ids[:n], false
		}
		ids = append(ids, uint32(id))
	}
	return ids, true
}

// mergeShort merges in place: the lowest rank first, the leftmost of equals.
func (m *bpe) mergeShort(ids []uint32) []uint32 {
	var ranks [shortWord]uint64
	for i := 0; i+1 < len(ids); i++ {
		ranks[i] = m.merges.rank(ids[i], ids[i+1])
	}
	for len(ids) > 1 {
		at, best := -1, noMerge
		for i, r := range ranks[:len(ids)-1] {
			if r < best { // a rank has one pair, so equal ranks are equal values
				best, at = r, i
			}
		}
		if at < 0 {
			break
		}
		ids[at] = uint32(best)
		copy(ids[at+1:], ids[at+2:])
		copy(ranks[at+1:len(ids)-1], ranks[at+2:len(ids)])
		ids = ids[:len(ids)-1]
		if at > 0 {
			ranks[at-1] = m.merges.rank(ids[at-1], ids[at])
		}
		if at < len(ids)-1 {
			ranks[at] = m.merges.rank(ids[at], ids[at+1])
		}
	}
	return ids
}

// link is one symbol of a doubly linked list; next < 0 is the end, dead symbols were merged into an earlier one.
type link struct {
	prev, next int32
	dead       bool
}

// candidate is a pair that may be merged, valid while its symbols are those of the list.
type candidate struct {
	rank uint64
	at   int32
	a, b uint32
}

func (c candidate) before(d candidate) bool {
	return c.rank>>32 < d.rank>>32 || c.rank>>32 == d.rank>>32 && c.at < d.at
}

// mergeLong does what mergeShort does in O(n log n).
func (m *bpe) mergeLong(e *encoder, dst []uint32, ids []uint32) []uint32 {
	links, h := e.links[:0], e.heap[:0]
	for i := range ids {
		links = append(links, link{prev: int32(i) - 1, next: int32(i) + 1})
	}
	links[len(links)-1].next = -1
	add := func(i int32) {
		if i < 0 || links[i].next < 0 {
			return
		}
		a, b := ids[i], ids[links[i].next]
		if r := m.merges.rank(a, b); r != noMerge {
			h = push(h, candidate{r, i, a, b})
		}
	}
	for i := range ids {
		add(int32(i))
	}
	for len(h) > 0 {
		var c candidate
		c, h = pop(h)
		l := &links[c.at]
		if l.dead || l.next < 0 || ids[c.at] != c.a || ids[l.next] != c.b {
			continue
		}
		q := l.next
		links[q].dead = true
		ids[c.at] = uint32(c.rank)
		l.next = links[q].next
		if l.next >= 0 {
			links[l.next].prev = c.at
		}
		add(l.prev)
		add(c.at)
	}
	for i := int32(0); i >= 0; i = links[i].next {
		dst = append(dst, ids[i])
	}
	e.links, e.heap = links, h
	e.trim()
	return dst
}

// trim lets go of buffers that one very long word made.
func (e *encoder) trim() {
	const keep = 1 << 16
	if cap(e.links) > keep {
		e.links, e.heap, e.ids = nil, nil, nil
	}
}

type ordered[T any] interface{ before(T) bool }

func push[T ordered[T]](h []T, x T) []T {
	h = append(h, x)
	for i := len(h) - 1; i > 0; {
		p := (i - 1) / 2
		if !h[i].before(h[p]) {
			break
		}
		h[i], h[p] = h[p], h[i]
		i = p
	}
	return h
}

func pop[T ordered[T]](h []T) (T, []T) {
	top := h[0]
	h[0] = h[len(h)-1]
	h = h[:len(h)-1]
	for i := 0; ; {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1].before(h[c]) {
			c++
		}
		if !h[c].before(h[i]) {
			break
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
	return top, h
}

// mergeTable maps a pair of tokens to its rank and result, open addressing in a power of two.
type mergeTable struct {
	slots []mergeSlot
	shift uint
}

type mergeSlot struct{ pair, rank uint64 }

const noMerge = ^uint64(0)

// newMergeTable makes room for n merges.
func newMergeTable(n int) mergeTable {
	bits := uint(4)
	for 1<<bits < 2*n {
		bits++
	}
	t := mergeTable{slots: make([]mergeSlot, 1<<bits), shift: 64 - bits}
	for i := range t.slots {
		t.slots[i].rank = noMerge
	}
	return t
}

// slot is where pair stands, or the free slot where it would.
func (t *mergeTable) slot(pair uint64) *mergeSlot {
	for i := (pair * 0x9E3779B97F4A7C15) >> t.shift; ; i = (i + 1) & uint64(len(t.slots)-1) {
		if s := &t.slots[i]; s.rank == noMerge || s.pair == pair {
			return s
		}
	}
}

// add keeps the first rank of a pair.
func (t *mergeTable) add(a, b uint32, rank int, id uint32) {
	if s := t.slot(uint64(a)<<32 | uint64(b)); s.rank == noMerge {
		*s = mergeSlot{uint64(a)<<32 | uint64(b), uint64(rank)<<32 | uint64(id)}
	}
}

// rank is rank<<32 | resulting token, or noMerge.
func (t *mergeTable) rank(a, b uint32) uint64 { return t.slot(uint64(a)<<32 | uint64(b)).rank }
