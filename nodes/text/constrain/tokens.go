package constrain

import (
	"math"
	"slices"
	"strings"
	"sync"
)

// Vocabulary gives the text of tokens. Implementations are safe for concurrent use.
type Vocabulary interface {
	Size() int                // ids are below it
	Piece(id uint32) string   // exact bytes; need not be whole runes
	IsSpecial(id uint32) bool // such a token is no text
}

// Tokens is a vocabulary made ready for masks: a trie of its texts. It is built once a model and safe for concurrent use.
type Tokens struct {
	v       Vocabulary
	size    int
	words   int // of a mask
	longest int // bytes of a token
	nodes   []trie
	ids     []uint32 // in the order of the trie: those of a node and all below it are together
	special []special
	ends    []uint32

	mu     sync.Mutex
	within map[bytes256][]uint64 // tokens of which all bytes are in a set
}

// trie is a node; its children follow it, in depth-first order.
type trie struct {
	byte       byte
	skip       int32 // the node behind all below this one
	from, to   int32 // ids of this very node
	below      int32 // end of the ids of all below it, from its own from
	containing bytes256
}

type special struct {
	id   uint32
	text string
}

// bytes256 is a set of bytes.
type bytes256 [4]uint64

func (s *bytes256) add(b byte)      { s[b>>6] |= 1 << (b & 63) }
func (s *bytes256) has(b byte) bool { return s[b>>6]&(1<<(b&63)) != 0 }
func (s *bytes256) inside(o *bytes256) bool { // all of s are in o
	return s[0]&^o[0] == 0 && s[1]&^o[1] == 0 && s[2]&^o[2] == 0 && s[3]&^o[3] == 0
}

// NewTokens prepares a vocabulary. ends are the tokens that end an output. Memory is about 60 bytes a token.
func NewTokens(v Vocabulary, ends []uint32) *Tokens {
	t := &Tokens{v: v, size: v.Size(), words: (v.Size() + 63) / 64, ends: slices.Clone(ends), within: map[bytes256][]uint64{}}
	type entry struct {
		text string
		id   uint32
	}
	var all []entry
	for i := range v.Size() {
		id := uint32(i)
		s := v.Piece(id)
		t.longest = max(t.longest, len(s))
		switch {
		case s == "" || slices.Contains(ends, id):
		case v.IsSpecial(id):
			t.special = append(t.special, special{id, s})
		default:
			all = append(all, entry{s, id})
		}
	}
	slices.SortFunc(all, func(a, b entry) int {
		if c := strings.Compare(a.text, b.text); c != 0 {
			return c
		}
		return int(int64(a.id) - int64(b.id))
	})
	t.nodes = append(t.nodes, trie{})
	var path []int32 // nodes of the last text
	last := ""
	closeTo := func(n int) {
		for len(path) > n {
			i := path[len(path)-1]
			t.nodes[i].skip, t.nodes[i].below = int32(len(t.nodes)), int32(len(t.ids))
			path = path[:len(path)-1]
		}
	}
	for _, e := range all {
		n := 0
		for n < len(last) && n < len(e.text) && last[n] == e.text[n] {
			n++
		}
		closeTo(n)
		for ; n < len(e.text); n++ {
			at := int32(len(t.ids))
			t.nodes = append(t.nodes, trie{byte: e.text[n], from: at, to: at})
			path = append(path, int32(len(t.nodes)-1))
		}
		t.ids = append(t.ids, e.id)
		t.nodes[path[len(path)-1]].to = int32(len(t.ids))
		last = e.text
	}
	closeTo(0)
	t.nodes[0].skip, t.nodes[0].below = int32(len(t.nodes)), int32(len(t.ids))
	for i := len(t.nodes) - 1; i > 0; i-- { // what stands below, and the node's own byte
		n := &t.nodes[i]
		n.containing.add(n.byte)
		for c := int32(i) + 1; c < n.skip; c = t.nodes[c].skip {
			for k := range n.containing {
				n.containing[k] |= t.nodes[c].containing[k]
			}
		}
	}
	if len(t.nodes) > math.MaxInt32 {
		panic("constrain: the vocabulary is too large")
	}
	return t
}

// maxWithin bounds the sets that are remembered.
const maxWithin = 64

// inside is a mask of the tokens that hold bytes of set alone: not to be changed.
func (t *Tokens) inside(set *bytes256) []uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m, ok := t.within[*set]; ok {
		return m
	}
	m := make([]uint64, t.words)
	for i := int32(1); i < int32(len(t.nodes)); {
		n := &t.nodes[i]
		switch {
		case n.containing.inside(set):
			for _, id := range t.ids[n.from:n.below] {
				m[id>>6] |= 1 << (id & 63)
			}
			i = n.skip
		case !set.has(n.byte):
			i = n.skip
		default:
			for _, id := range t.ids[n.from:n.to] {
				m[id>>6] |= 1 << (id & 63)
			}
			i++
		}
	}
	if len(t.within) >= maxWithin {
		clear(t.within)
	}
	t.within[*set] = m
	return m
}
