package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// trie finds the longest of a set of strings at the start of a text.
type trie struct {
	starts [256]bool
	first  byte       // the only byte that strings start with,
	single bool       // where there is only one
	nodes  []trieNode // nodes[0] is the root
}

type trieNode struct {
	id   int64 // -1: no string ends here
	kids []trieEdge
}

type trieEdge struct {
	b  byte
	to int32
}

func (t *trie) add(s string, id uint32) {
	if s == "" {
		return
	}
	if len(t.nodes) == 0 {
		t.nodes = []trieNode{{id: -1}}
		t.first, t.single = s[0], true
	}
	t.single = t.single && t.first == s[0]
	t.starts[s[0]] = true
	at := int32(0)
	for i := 0; i < len(s); i++ {
		to := t.nodes[at].step(s[i])
		if to < 0 {
			to = int32(len(t.nodes))
			t.nodes = append(t.nodes, trieNode{id: -1})
			t.nodes[at].kids = append(t.nodes[at].kids, trieEdge{s[i], to})
		}
		at = to
	}
	if t.nodes[at].id < 0 {
		t.nodes[at].id = int64(id)
	}
}

func (n *trieNode) step(b byte) int32 {
	for _, k := range n.kids {
		if k.b == b {
			return k.to
		}
	}
	return -1
}

// longest is the longest string of the set that s begins with; n is 0 where there is none.
func (t *trie) longest(s string) (id uint32, n int) {
	if len(t.nodes) == 0 {
		return 0, 0
	}
	at := int32(0)
	for i := 0; i < len(s); i++ {
		if at = t.nodes[at].step(s[i]); at < 0 {
			break
		}
		if t.nodes[at].id >= 0 {
			id, n = uint32(t.nodes[at].id), i+1
		}
	}
	return id, n
}

// open reports whether s is a proper prefix of a string of the set.
func (t *trie) open(s string) bool {
	if len(t.nodes) == 0 {
		return false
	}
	at := int32(0)
	for i := 0; i < len(s); i++ {
		if at = t.nodes[at].step(s[i]); at < 0 {
			return false
		}
	}
	return len(t.nodes[at].kids) > 0
}

// Guard returns s with mark put into every spelling of a control token, and after an end of s that begins one, so that Encode with
// Options.Special and the same Mark takes s as plain text wherever it stands between other text. s must not hold mark. Text that spells
// no control token is returned as it is: templates that look into messages see them unchanged.
func (t *Tokenizer) Guard(s string, mark rune) string {
	if len(t.special.nodes) == 0 {
		return s
	}
	var b strings.Builder
	from := 0
	for i := 0; i < len(s); i++ {
		if !t.special.starts[s[i]] {
			continue
		}
		if _, n := t.special.longest(s[i:]); n > 0 {
			_, w := utf8.DecodeRuneInString(s[i:])
			if w >= n { // a token of one rune: nothing can stand inside of it
				continue
			}
			b.WriteString(s[from : i+w])
			b.WriteRune(mark)
			from = i + w
			continue
		}
		if t.special.open(s[i:]) {
			_, w := utf8.DecodeRuneInString(s[i:])
			b.WriteString(s[from : i+w])
			b.WriteRune(mark)
			from = i + w
		}
	}
	if from == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}
