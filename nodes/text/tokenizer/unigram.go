package tokenizer

import (
	"math"
	"slices"
)

// unigram is SentencePiece's unigram model: of all ways to cut a word into pieces the one with the greatest sum of scores.
type unigram struct {
	pieces   flatTrie
	scores   []float64
	unk      int64      // -1: none; what no piece covers is dropped
	low      float64    // score of an unknown rune
	bytes    [256]int64 // -1: none
	fallback bool
}

const unknownPenalty = 10

// bestNode is the best way to cut the text up to a position.
type bestNode struct {
	score float64
	from  int32 // -1: no way
	id    int32
}

func newUnigram(tokens []string, scores []float64, unk int64, use func(int) bool) *unigram {
	m := &unigram{scores: scores, unk: unk, low: math.Inf(1)}
	type entry struct {
		s  string
		id int32
	}
	var list []entry
	for i, s := range tokens {
		if use(i) {
			m.low = min(m.low, scores[i])
			if s != "" {
				list = append(list, entry{s, int32(i)})
			}
		}
	}
	m.low -= unknownPenalty
	slices.SortStableFunc(list, func(a, b entry) int {
		switch {
		case a.s < b.s:
			return -1
		case a.s > b.s:
			return 1
		}
		return 0
	})
	keys, ids := make([]string, 0, len(list)), make([]int32, 0, len(list))
	for i, e := range list {
		if i+1 < len(list) && list[i+1].s == e.s { // the last of equals counts
			continue
		}
		keys, ids = append(keys, e.s), append(ids, e.id)
	}
	m.pieces = newFlatTrie(keys, ids)
	for b := range m.bytes {
		m.bytes[b] = -1
		if id := m.pieces.get(byteToken(byte(b))); id >= 0 {
			m.bytes[b] = int64(id)
		}
	}
	return m
}

// byteToken is the spelling of a byte token: <0x0A>.
func byteToken(b byte) string {
	const hex = "0123456789ABCDEF"
	return string([]byte{'<', '0', 'x', hex[b>>4], hex[b&15], '>'})
}

func (m *unigram) word(e *encoder, dst []uint32, w string) []uint32 {
	if cap(e.best) < len(w)+1 {
		e.best = make([]bestNode, len(w)+1)
	}
	best := e.best[:len(w)+1]
	for i := range best {
		best[i] = bestNode{from: -1}
	}
	for at := 0; at < len(w); {
		n := runeLen(w[at:])
		here, single := best[at].score, false
		node := int32(0)
		for i := at; i < len(w); i++ {
			if node = m.pieces.step(node, w[i]); node < 0 {
				break
			}
			id := m.pieces.ids[node]
			if id < 0 {
				continue
			}
			single = single || i+1-at == n
			if b := &best[i+1]; b.from < 0 || here+m.scores[id] > b.score {
				*b = bestNode{here + m.scores[id], int32(at), id}
			}
		}
		if !single {
			if b := &best[at+n]; b.from < 0 || here+m.low > b.score {
				*b = bestNode{here + m.low, int32(at), int32(m.unk)}
			}
		}
		at += n
	}
	begin := len(dst)
	for end := len(w); end > 0; {
		b := best[end]
		from := int(b.from)
		if int64(b.id) == m.unk { // neighbours are one
			for from > 0 && int64(best[from].id) == m.unk {
				from = int(best[from].from)
			}
			dst = m.unknown(dst, w[from:end])
		} else {
			dst = append(dst, uint32(b.id))
		}
		end = from
	}
	slices.Reverse(dst[begin:])
	if cap(e.best) > 1<<16 {
		e.best = nil
	}
	return dst
}

// unknown appends the tokens of a text that no piece covers, the last first.
func (m *unigram) unknown(dst []uint32, s string) []uint32 {
	if id := m.pieces.get(s); id >= 0 {
		return append(dst, uint32(id))
	}
	if m.fallback {
		n := len(dst)
		for i := len(s) - 1; i >= 0 && m.bytes[s[i]] >= 0; i-- {
			dst = append(dst, uint32(m.bytes[s[i]]))
		}
		if len(dst)-n == len(s) {
			return dst
		}
		dst = dst[:n]
	}
	if m.unk >= 0 {
		dst = append(dst, uint32(m.unk))
	}
	return dst
}

// flatTrie is a trie in three arrays: the children of a node stand side by side, in the order of their bytes.
type flatTrie struct {
	label []byte
	first []int32 // a node's children are first[i] to first[i+1]
	ids   []int32 // -1: no string ends here
}

// newFlatTrie takes strings that are sorted, without repetition and not empty.
func newFlatTrie(keys []string, ids []int32) flatTrie {
	t := flatTrie{label: []byte{0}, ids: []int32{-1}}
	type group struct{ lo, hi, depth int }
	level := []group{{0, len(keys), 0}} // of nodes in the order of their numbers
	for len(level) > 0 {
		var next []group
		for _, g := range level {
			t.first = append(t.first, int32(len(t.label)))
			lo := g.lo
			if lo < g.hi && len(keys[lo]) == g.depth {
				lo++
			}
			for lo < g.hi {
				c, hi := keys[lo][g.depth], lo+1
				for hi < g.hi && keys[hi][g.depth] == c {
					hi++
				}
				id := int32(-1)
				if len(keys[lo]) == g.depth+1 {
					id = ids[lo]
				}
				t.label, t.ids = append(t.label, c), append(t.ids, id)
				next = append(next, group{lo, hi, g.depth + 1})
				lo = hi
			}
		}
		level = next
	}
	t.first = append(t.first, int32(len(t.label)))
	return t
}

// step is the child of a node by a byte, or -1.
func (t *flatTrie) step(node int32, c byte) int32 {
	lo, hi := t.first[node], t.first[node+1]
	for hi-lo > 8 {
		if mid := int32(uint32(lo+hi) >> 1); t.label[mid] <= c {
			lo = mid
		} else {
			hi = mid
		}
	}
	for ; lo < hi; lo++ {
		if t.label[lo] == c {
			return lo
		}
	}
	return -1
}

func (t *flatTrie) get(s string) int32 {
	node := int32(0)
	for i := 0; i < len(s) && node >= 0; i++ {
		node = t.step(node, s[i])
	}
	if node < 0 {
		return -1
	}
	return t.ids[node]
}
