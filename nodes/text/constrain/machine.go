package constrain

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"sync"
)

// Bounds of what a run may need.
const (
	maxConfigs = 1 << 15  // places that one text can have reached at once
	maxStack   = 2000     // rules inside each other; what nests deeper is not allowed
	maxWork    = 1 << 20  // places looked at for one mask: less than a tenth of a second
	stateWork  = 256      // what a state counts for, so that one mask makes at most about 10 MiB of them
	cacheBytes = 16 << 20 // of states and masks of one program
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
	age    int // how often all was forgotten
	bottom *stack
	ended  bool // the rule above bottom did
	locals map[string]*local
}

// local is what one rule says of tokens, wherever it is called.
type local struct {
	mask []uint64 // tokens that stay within the rule
	last []uint64 // tokens that end with the rule
	ends []int32  // nodes of the trie with which the rule ends and behind which more tokens stand
}

// dstate is a state. Its fields are the machine's to change.
type dstate struct {
	configs []config
	accept  bool    // the text may end here
	coarse  bool    // counts are no more exact than the length of a token asks for
	rough   *dstate // the coarse state of one that is not
	ends    bool    // the rule above bottom may end here
	age     int     // the machine's, when it was made
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
	pushed
	depth  int32
	id     uint64
	coarse *stack // nil: not known
}

// pushed is a place to return to, or the turns of a loop that were made.
type pushed struct {
	back   int32 // or -1 - loop
	count  int32
	parent *stack
}

func newMachine(n *nfa, t *Tokens) *machine {
	m := &machine{n: n, t: t, seen: map[config]struct{}{}, bottom: &stack{id: math.MaxUint64}}
	m.bottom.coarse = m.bottom
	m.flush()
	return m
}

// flush forgets all states. Those that are in use know no other any more, so that they hold nothing; adopt brings them in again.
func (m *machine) flush() {
	for _, d := range m.states {
		d.rough, d.filled, d.mask, d.next = nil, false, nil, [256]*dstate{}
	}
	m.age++
	m.states, m.stacks, m.locals, m.size = map[string]*dstate{}, map[pushed]*stack{}, map[string]*local{}, 0
}

// adopt is the state for one that may have been forgotten.
func (m *machine) adopt(d *dstate) *dstate {
	if d.age == m.age {
		return d
	}
	known := map[*stack]*stack{nil: nil, m.bottom: m.bottom}
	var again func(s *stack) *stack
	again = func(s *stack) *stack {
		to, ok := known[s]
		if !ok {
			to = m.push(pushed{s.back, s.count, again(s.parent)})
			known[s] = to
		}
		return to
	}
	m.begin()
	m.ended = d.ends
	for _, c := range d.configs {
		m.work = append(m.work, config{c.at, again(c.on)})
	}
	return m.intern(d.accept, d.coarse)
}

func (m *machine) start() *dstate {
	accept := false
	m.begin()
	m.close(m.n.starts[0], nil, &accept)
	return m.intern(accept, false)
}

// warm makes the masks of rules that are asked for so.
func (m *machine) warm(g *Grammar) {
	for i, r := range g.Rules {
		if !r.Warm {
			continue
		}
		accept := false
		m.begin()
		m.close(m.n.starts[i], m.bottom, &accept)
		first := m.intern(accept, len(m.n.loops) > 0)
		m.fill(first)
		seen := map[*dstate]bool{}
		for _, d := range first.next {
			if d != nil && !seen[d] && len(d.configs) > 0 && !d.ends {
				seen[d] = true
				m.local(d)
			}
		}
	}
}

func (m *machine) begin() {
	m.work, m.ended = m.work[:0], false
	clear(m.seen)
}

// close adds what can be reached from a place without a byte. Rules do not begin with themselves, so it ends.
func (m *machine) close(at int32, on *stack, accept *bool) {
	for {
		if !m.n.states[at].good {
			return
		}
		c := config{at, on}
		if _, ok := m.seen[c]; ok {
			return
		}
		if len(m.seen) > maxConfigs {
			fail("the grammar can be read in too many ways at once: more than %d places", maxConfigs)
		}
		m.seen[c] = struct{}{}
		m.spend(1)
		s := &m.n.states[at]
		if len(s.edges) > 0 {
			m.work = append(m.work, c)
		}
		if s.final {
			switch on {
			case nil:
				*accept = true
			case m.bottom:
				m.ended = true
			default:
				m.close(on.back, on.parent, accept)
			}
		}
		if s.call >= 0 {
			if m.n.states[s.back].tail {
				m.close(s.call, on, accept)
			} else {
				m.enter(s.call, pushed{s.back, 0, on}, accept)
			}
		}
		if s.begin >= 0 {
			l := &m.n.loops[s.begin]
			if l.max != 0 {
				m.enter(l.body, pushed{-1 - s.begin, 0, on}, accept)
			}
			if l.min == 0 {
				m.close(l.back, on, accept)
			}
		}
		if s.end >= 0 {
			l := &m.n.loops[s.end]
			n := on.count + 1
			if l.max < 0 && n > l.min {
				n = l.min
			}
			if l.max < 0 || n < l.max {
				m.enter(l.body, pushed{-1 - s.end, n, on.parent}, accept)
			}
			if n >= l.min {
				m.close(l.back, on.parent, accept)
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

// enter goes to a place with p to return to; what nests too deep is not allowed.
func (m *machine) enter(at int32, p pushed, accept *bool) {
	if p.parent == nil || p.parent.depth < maxStack {
		m.close(at, m.push(p), accept)
	}
}

func (m *machine) push(k pushed) *stack {
	s := m.stacks[k]
	if s == nil {
		m.count++
		s = &stack{pushed: k, id: m.count}
		if k.parent != nil {
			s.depth = k.parent.depth + 1
		}
		m.stacks[k] = s
		m.size += 112
	}
	return s
}

// rough is s with counts that no token can tell apart made one: a loop that is far from its least and from its most turns.
func (m *machine) rough(s *stack) *stack {
	if s == nil || s.coarse != nil {
		if s != nil {
			return s.coarse
		}
		return nil
	}
	k := pushed{s.back, s.count, m.rough(s.parent)}
	if s.back < 0 {
		l, far := &m.n.loops[-1-s.back], int32(m.t.longest+1)
		switch {
		case k.count <= l.min-far:
			k.count = 0
		case k.count >= l.min && l.max >= 0 && k.count <= l.max-far:
			k.count = l.min
		}
	}
	c := s
	if k != s.pushed {
		c = m.push(k)
		c.coarse = c
	}
	s.coarse = c
	return c
}

// intern returns the state of m.work: nil if nothing can follow and the text may not end.
func (m *machine) intern(accept, coarse bool) *dstate {
	if len(m.work) == 0 && !accept && !m.ended {
		return nil
	}
	if coarse {
		for i := range m.work {
			m.work[i].on = m.rough(m.work[i].on)
		}
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
	if coarse {
		m.work = slices.Compact(m.work)
	}
	m.key = m.key[:0]
	if accept {
		m.key = append(m.key, 1)
	}
	if coarse {
		m.key = append(m.key, 2, 2)
	}
	if m.ended {
		m.key = append(m.key, 3, 3, 3)
	}
	for _, c := range m.work {
		m.key = binary.LittleEndian.AppendUint32(m.key, uint32(c.at))
		m.key = binary.LittleEndian.AppendUint64(m.key, id(c.on))
	}
	if d := m.states[string(m.key)]; d != nil {
		return d
	}
	m.spend(stateWork)
	d := &dstate{configs: slices.Clone(m.work), accept: accept, coarse: coarse, ends: m.ended, age: m.age}
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
		if to := m.step(d, byte(b), false); to != nil {
			for i := b; i < e; i++ {
				d.next[i] = to
			}
		}
		b = e
	}
	d.filled = true
}

// step is the state behind a byte; special takes it along edges that a special token may spell alone.
func (m *machine) step(from *dstate, b byte, special bool) *dstate {
	accept := false
	m.begin()
	for _, c := range from.configs {
		m.spend(1 + len(m.n.states[c.at].edges)/8)
		for _, e := range m.n.states[c.at].edges {
			if b >= e.from && b <= e.to && (e.special || !special) {
				m.close(e.next, c.on, &accept)
			}
		}
	}
	return m.intern(accept, from.coarse)
}

// spell is the state behind a special token, or nil.
func (m *machine) spell(d *dstate, text string) *dstate {
	for i := range len(text) {
		if d = m.step(d, text[i], true); d == nil {
			return nil
		}
	}
	return d
}

// bits is the mask of d: not to be changed.
func (m *machine) bits(d *dstate) []uint64 {
	if len(m.n.loops) > 0 && !d.coarse {
		if d.rough == nil {
			m.begin()
			m.work = append(m.work, d.configs...)
			d.rough = m.intern(d.accept, true)
		}
		d = d.rough
	}
	if d.mask != nil {
		return d.mask
	}
	mask := make([]uint64, m.t.words)
	if on := d.frame(); on != nil {
		l := m.local(d)
		copy(mask, l.mask)
		accept := false
		m.begin()
		m.close(on.back, on.parent, &accept)
		if to := m.intern(accept, d.coarse); to != nil {
			for i, w := range l.last {
				mask[i] |= w
			}
			for _, i := range l.ends {
				m.walk(to, i+1, m.t.nodes[i].skip, mask, nil)
			}
		}
	} else {
		m.walk(d, 1, int32(len(m.t.nodes)), mask, nil)
	}
	m.specials(d, mask)
	if d.accept {
		for _, id := range m.t.ends {
			if int(id) < m.t.size {
				mask[id>>6] |= 1 << (id & 63)
			}
		}
	}
	d.mask = mask
	m.size += 8 * len(mask)
	return mask
}

// frame is the one call within which all of d is, or nil.
func (d *dstate) frame() *stack {
	if len(d.configs) == 0 || d.accept {
		return nil
	}
	on := d.configs[0].on
	for _, c := range d.configs {
		if c.on != on {
			return nil
		}
	}
	if on == nil || on.back < 0 {
		return nil
	}
	return on
}

// local finds what the rule that all of d is in says of tokens.
func (m *machine) local(d *dstate) *local {
	m.begin()
	for _, c := range d.configs {
		m.work = append(m.work, config{c.at, m.bottom})
	}
	at := m.intern(false, d.coarse)
	key := string(m.key)
	l := m.locals[key]
	if l == nil {
		l = &local{mask: make([]uint64, m.t.words), last: make([]uint64, m.t.words)}
		m.walk(at, 1, int32(len(m.t.nodes)), l.mask, l)
		m.locals[key] = l
		m.size += 16*len(l.mask) + 4*len(l.ends)
	}
	return l
}

// walk adds to mask the tokens of the nodes from to end that d allows; l gets those with which the rule above bottom ends.
func (m *machine) walk(d *dstate, from, end int32, mask []uint64, l *local) {
	t, all := m.t, from == 1
	m.fill(d)
	for from < end && d.next[t.nodes[from].byte] == nil { // most often there is no more
		from = t.nodes[from].skip
	}
	if from == end {
		return
	}
	var same bytes256 // bytes that lead back to d, as inside of a string
	loops := false
	if all {
		n := 0
		for b, to := range d.next {
			if to == d {
				same.add(byte(b))
				n++
			}
		}
		if loops = n >= 16 && !d.ends; loops {
			for i, w := range t.inside(&same) {
				mask[i] |= w
			}
		}
	}
	type frame struct {
		end int32
		at  *dstate
		in  bool // d was never left
	}
	var room [64]frame
	path := append(room[:0], frame{end, d, true})
	for i := from; i < end; {
		for i >= path[len(path)-1].end {
			path = path[:len(path)-1]
		}
		at, in := path[len(path)-1].at, path[len(path)-1].in
		node := &t.nodes[i]
		if loops && at == d && node.containing.inside(&same) {
			if !in { // t.inside does not know those that left d and came back
				for _, id := range t.ids[node.from:node.below] {
					mask[id>>6] |= 1 << (id & 63)
				}
			}
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
		if to.ends {
			for _, id := range t.ids[node.from:node.to] {
				l.last[id>>6] |= 1 << (id & 63)
			}
			if node.skip > i+1 {
				l.ends = append(l.ends, i)
			}
		}
		if len(to.configs) > 0 || to.accept {
			for _, id := range t.ids[node.from:node.to] {
				mask[id>>6] |= 1 << (id & 63)
			}
		}
		if i++; node.skip > i {
			path = append(path, frame{node.skip, to, in && to == d})
		}
	}
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

// tidy forgets states where they have become too many. It is called where no state is in the making.
func (m *machine) tidy() {
	if m.size > cacheBytes {
		m.flush()
	}
}
