package constrain

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"
)

// Bounds of what a run may need.
const (
	maxConfigs = 4096     // ways in which one text can be read at once
	maxStack   = 2000     // rules inside each other; what nests deeper is not allowed
	maxWork    = 4 << 20  // places looked at for one mask: tenths of a second
	cacheBytes = 48 << 20 // of states and masks of one program
)

// machine makes a deterministic automaton of a grammar while it is used: a state is the set of all ways in which the text so far can be read,
// each a place in the grammar and the places to return to. States and their masks are kept, up to cacheBytes.
type machine struct {
	n *nfa
	t *Tokens

	mu     sync.Mutex
	states map[string]*dstate
	stacks map[pushed]*stack
	count  uint64 // of stacks ever made
	size   int    // bytes kept, about
	key    []byte
	work   []config
	seen   map[config]struct{}
	left   int // of maxWork
}

// dstate is a state. Its fields are the machine's to change.
type dstate struct {
	configs []config
	accept  bool // the text may end here
	filled  bool
	next    [256]*dstate
	mask    []uint64
}

// config is a place in the grammar, of which bytes follow, and where to return to.
type config struct {
	at int32
	on *stack
}

// stack is interned: equal ones are one.
type stack struct {
	back   int32
	parent *stack
	depth  int32
	id     uint64
}

type pushed struct {
	back   int32
	parent *stack
}

func newMachine(n *nfa, t *Tokens) *machine {
	m := &machine{n: n, t: t, seen: map[config]struct{}{}}
	m.flush()
	return m
}

// flush forgets all states; those that are in use stay valid.
func (m *machine) flush() {
	m.states, m.stacks, m.size = map[string]*dstate{}, map[pushed]*stack{}, 0
}

func (m *machine) start() *dstate {
	accept := false
	m.begin()
	m.close(m.n.starts[0], nil, &accept)
	return m.intern(accept)
}

func (m *machine) begin() {
	m.work = m.work[:0]
	clear(m.seen)
}

// close adds what can be reached from a place without a byte. Rules do not begin with themselves, so it ends.
func (m *machine) close(at int32, on *stack, accept *bool) {
	for {
		c := config{at, on}
		if _, ok := m.seen[c]; ok {
			return
		}
		if len(m.seen) > maxConfigs {
			fail("the grammar can be read in more than %d ways at once", maxConfigs)
		}
		m.seen[c] = struct{}{}
		m.spend(1)
		s := &m.n.states[at]
		if len(s.edges) > 0 {
			m.work = append(m.work, c)
		}
		if s.final {
			if on == nil {
				*accept = true
			} else {
				m.close(on.back, on.parent, accept)
			}
		}
		if s.call >= 0 {
			if m.n.states[s.back].tail {
				m.close(s.call, on, accept)
			} else if on == nil || on.depth < maxStack {
				m.close(s.call, m.push(s.back, on), accept)
			}
		}
		switch len(s.eps) {
		case 0:
			return
		case 1:
			at = s.eps[0]
			continue
		}
		for _, e := range s.eps[1:] {
			m.close(e, on, accept)
		}
		at = s.eps[0]
	}
}

// spend counts work, and gives up where it becomes too much.
func (m *machine) spend(n int) {
	if m.left -= n; m.left < 0 {
		fail("the grammar needs too much work for one token: it is too ambiguous")
	}
}

func (m *machine) push(back int32, parent *stack) *stack {
	k := pushed{back, parent}
	s := m.stacks[k]
	if s == nil {
		m.count++
		s = &stack{back: back, parent: parent, id: m.count}
		if parent != nil {
			s.depth = parent.depth + 1
		}
		m.stacks[k] = s
		m.size += 96
	}
	return s
}

// intern returns the state of m.work: nil if nothing can follow and the text may not end.
func (m *machine) intern(accept bool) *dstate {
	if len(m.work) == 0 && !accept {
		return nil
	}
	id := func(s *stack) uint64 {
		if s == nil {
			return 0
		}
		return s.id
	}
	slices.SortFunc(m.work, func(a, b config) int {
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		return cmp.Compare(id(a.on), id(b.on))
	})
	m.key = m.key[:0]
	if accept {
		m.key = append(m.key, 1)
	}
	for _, c := range m.work {
		m.key = binary.LittleEndian.AppendUint32(m.key, uint32(c.at))
		m.key = binary.LittleEndian.AppendUint64(m.key, id(c.on))
	}
	if d := m.states[string(m.key)]; d != nil {
		return d
	}
	d := &dstate{configs: slices.Clone(m.work), accept: accept}
	m.size += 2200 + 2*len(m.key) + 16*len(d.configs)
	m.states[string(m.key)] = d
	return d
}

// fill finds where each byte leads from d.
func (m *machine) fill(d *dstate) {
	if d.filled {
		return
	}
	var cut [257]bool // a class of bytes begins here
	cut[0] = true
	for _, c := range d.configs {
		for _, e := range m.n.states[c.at].edges {
			cut[e.from], cut[int(e.to)+1] = true, true
		}
	}
	for b := 0; b < 256; {
		e := b + 1
		for !cut[e] && e < 256 {
			e++
		}
		if to := m.step(d.configs, byte(b), false); to != nil {
			for i := b; i < e; i++ {
				d.next[i] = to
			}
		}
		b = e
	}
	d.filled = true
}

// step is the state behind a byte; special takes it along edges that a special token may spell alone.
func (m *machine) step(from []config, b byte, special bool) *dstate {
	accept := false
	m.begin()
	for _, c := range from {
		m.spend(1 + len(m.n.states[c.at].edges)/8)
		for _, e := range m.n.states[c.at].edges {
			if b >= e.from && b <= e.to && (e.special || !special) {
				m.close(e.next, c.on, &accept)
			}
		}
	}
	return m.intern(accept)
}

// spell is the state behind a special token, or nil.
func (m *machine) spell(d *dstate, text string) *dstate {
	for i := range len(text) {
		if d = m.step(d.configs, text[i], true); d == nil {
			return nil
		}
	}
	return d
}

// bits is the mask of d: not to be changed.
func (m *machine) bits(d *dstate) []uint64 {
	if d.mask != nil {
		return d.mask
	}
	m.fill(d)
	t := m.t
	mask := make([]uint64, t.words)
	var same bytes256 // bytes that lead back to d, as inside of a string
	n := 0
	for b, to := range d.next {
		if to == d {
			same.add(byte(b))
			n++
		}
	}
	loops := n >= 16
	if loops {
		copy(mask, t.inside(&same))
	}
	type frame struct {
		end int32
		at  *dstate
	}
	path := make([]frame, 1, 64)
	path[0] = frame{int32(len(t.nodes)), d}
	for i := int32(1); i < int32(len(t.nodes)); {
		for i >= path[len(path)-1].end {
			path = path[:len(path)-1]
		}
		at := path[len(path)-1].at
		node := &t.nodes[i]
		if loops && at == d && node.containing.inside(&same) {
			i = node.skip
			continue
		}
		if !at.filled {
			m.fill(at)
		}
		to := at.next[node.byte]
		if to == nil {
			i = node.skip
			continue
		}
		for _, id := range t.ids[node.from:node.to] {
			mask[id>>6] |= 1 << (id & 63)
		}
		if i++; node.skip > i {
			path = append(path, frame{node.skip, to})
		}
	}
	m.specials(d, mask)
	if d.accept {
		for _, id := range t.ends {
			if int(id) < t.size {
				mask[id>>6] |= 1 << (id & 63)
			}
		}
	}
	d.mask = mask
	m.size += 8 * len(mask)
	return mask
}

func (m *machine) specials(d *dstate, mask []uint64) {
	var first bytes256
	for _, c := range d.configs {
		for _, e := range m.n.states[c.at].edges {
			if e.special {
				for b := int(e.from); b <= int(e.to); b++ {
					first.add(byte(b))
				}
			}
		}
	}
	for _, s := range m.t.special {
		if first.has(s.text[0]) && m.spell(d, s.text) != nil {
			mask[s.id>>6] |= 1 << (s.id & 63)
		}
	}
}

// tidy forgets states where they have become too many. It is called where no state is being made.
func (m *machine) tidy() {
	if m.size > cacheBytes {
		m.flush()
	}
}
