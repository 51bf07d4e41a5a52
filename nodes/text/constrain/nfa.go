package constrain

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// Bounds of what a grammar may need.
const (
	maxStates = 400_000 // of the automaton
	maxRepeat = 65_536  // copies by one repetition
	maxNested = 512     // expressions inside each other
)

// state is one of a non-deterministic automaton over bytes with calls: on a byte it goes along edges, and without one along eps or into call,
// from where it comes back to back.
type state struct {
	edges []edge
	eps   []int32
	call  int32 // first state of a rule; -1
	back  int32
	begin int32 // a loop that begins here; -1
	end   int32 // a loop of which a turn ends here; -1
	final bool  // of its rule
	good  bool  // the end of its rule can be reached
	tail  bool  // only eps from here lead to the end of the rule: a call here needs no return
}

type edge struct {
	from, to byte
	special  bool // a special token may spell it
	next     int32
}

// loop is a repetition that is counted while it runs.
type loop struct {
	body, back int32
	min, max   int32 // max < 0: without end
}

// nfa is a compiled grammar.
type nfa struct {
	states []state
	loops  []loop
	starts []int32 // by rule
	depth  int
}

type limitError string

func (e limitError) Error() string { return string(e) }

func fail(format string, args ...any) { panic(limitError(fmt.Sprintf(format, args...))) }

// build makes the automaton, or says why it cannot be.
func build(g *Grammar) (n *nfa, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(limitError)
			if !ok {
				panic(r)
			}
			n, err = nil, e
		}
	}()
	n = &nfa{starts: make([]int32, len(g.Rules))}
	for i := range g.Rules {
		n.starts[i] = n.add()
	}
	for i, r := range g.Rules {
		end := n.add()
		n.states[end].final = true
		n.put(r.Body, n.starts[i], end)
	}
	n.tails()
	for i, good := range n.ends(true) { // others lead nowhere, and are never entered
		n.states[i].good = good
	}
	if r := n.leftRecursive(g); r >= 0 {
		fail("rule %q begins with itself (left recursion): write it as a repetition", g.Rules[r].Name)
	}
	return n, nil
}

func (n *nfa) add() int32 {
	if len(n.states) >= maxStates {
		fail("too large: more than %d states", maxStates)
	}
	n.states = append(n.states, state{call: -1, begin: -1, end: -1})
	return int32(len(n.states) - 1)
}

func (n *nfa) eps(a, b int32) { n.states[a].eps = append(n.states[a].eps, b) }

func (n *nfa) edge(a int32, from, to byte, special bool, b int32) {
	n.states[a].edges = append(n.states[a].edges, edge{from, to, special, b})
}

// put builds e between two states.
func (n *nfa) put(e Node, a, b int32) {
	if n.depth++; n.depth > maxNested {
		fail("expressions nest deeper than %d", maxNested)
	}
	defer func() { n.depth-- }()
	switch e := e.(type) {
	case nil:
		n.eps(a, b)
	case Dead:
	case Text:
		n.text(string(e), false, a, b)
	case Mark:
		n.text(string(e), true, a, b)
	case Class:
		n.class(e, a, b)
	case Seq:
		for i, x := range e {
			next := b
			if i < len(e)-1 {
				next = n.add()
			}
			n.put(x, a, next)
			a = next
		}
		if len(e) == 0 {
			n.eps(a, b)
		}
	case Alt:
		var words []string
		for _, x := range e {
			if t, ok := x.(Text); ok && t != "" {
				words = append(words, string(t))
			}
		}
		if len(words) < 8 {
			words = nil
		}
		n.words(words, a, b)
		for _, x := range e { // a state of its own, so that loops of one do not reach into another
			if t, ok := x.(Text); ok && t != "" && words != nil {
				continue
			}
			s := n.add()
			n.eps(a, s)
			n.put(x, s, b)
		}
	case Repeat:
		n.repeat(e, a, b)
	case Ref:
		s := n.add()
		n.eps(a, s)
		n.states[s].call, n.states[s].back = n.starts[e], b
	case Free:
		n.free(e, a, b)
	default:
		fail("unknown expression %T", e)
	}
}

func (n *nfa) text(s string, special bool, a, b int32) {
	for i := range len(s) {
		next := b
		if i < len(s)-1 {
			next = n.add()
		}
		n.edge(a, s[i], s[i], special, next)
		a = next
	}
	if s == "" {
		n.eps(a, b)
	}
}

// words builds one of many texts: what several begin with is there once.
func (n *nfa) words(words []string, a, b int32) {
	if len(words) == 0 {
		return
	}
	slices.Sort(words)
	words = slices.Compact(words)
	root := n.add()
	n.eps(a, root)
	path := []int32{root} // states behind each byte of the last word
	last := ""
	for _, w := range words {
		k := 0
		for k < len(last) && k < len(w) && last[k] == w[k] {
			k++
		}
		path = path[:k+1]
		for ; k < len(w); k++ {
			next := n.add()
			n.edge(path[k], w[k], w[k], false, next)
			path = append(path, next)
		}
		n.eps(path[len(w)], b)
		last = w
	}
}

func (n *nfa) repeat(r Repeat, a, b int32) {
	if r.Min > maxRepeat || r.Max > maxRepeat {
		fail("a repetition asks for more than %d copies", maxRepeat)
	}
	if r.Max >= 0 && r.Max < r.Min {
		return // nothing
	}
	if (r.Min > maxCopies || r.Max-r.Min > maxCopies) && !nullable(r.Node) {
		body, end := n.add(), n.add()
		n.loops = append(n.loops, loop{body, b, int32(r.Min), int32(r.Max)})
		i := int32(len(n.loops) - 1)
		start := n.add()
		n.eps(a, start)
		n.states[start].begin, n.states[end].end = i, i
		n.put(r.Node, body, end)
		return
	}
	for range r.Min {
		next := n.add()
		n.put(r.Node, a, next)
		a = next
	}
	if r.Max < 0 {
		loop, out := n.add(), n.add()
		n.eps(a, loop)
		n.put(r.Node, loop, out)
		n.eps(out, loop)
		n.eps(loop, b)
		return
	}
	for range r.Max - r.Min {
		n.eps(a, b)
		next := n.add()
		n.put(r.Node, a, next)
		a = next
	}
	n.eps(a, b)
}

// maxCopies is how often a repetition is written out; what repeats more is counted.
const maxCopies = 16

// nullable reports whether n may be the empty string.
func nullable(n Node) bool {
	switch n := n.(type) {
	case nil, Ref: // of a rule it is not known
		return true
	case Text:
		return n == ""
	case Mark:
		return n == ""
	case Seq:
		for _, x := range n {
			if !nullable(x) {
				return false
			}
		}
		return true
	case Alt:
		for _, x := range n {
			if nullable(x) {
				return true
			}
		}
		return false
	case Repeat:
		return n.Min == 0 || nullable(n.Node)
	case Free:
		return n.MayEnd
	}
	return false
}

// class builds the UTF-8 of one rune.
func (n *nfa) class(c Class, a, b int32) {
	for _, r := range normal(c) {
		n.runes(r.From, r.To, a, b)
	}
}

// normal is the ranges of c, sorted, disjoint, without surrogates.
func normal(c Class) []Range {
	rs := sorted(c.Ranges)
	if c.Not {
		var out []Range
		at := rune(0)
		for _, r := range rs {
			if r.From > at {
				out = append(out, Range{at, r.From - 1})
			}
			at = max(at, r.To+1)
		}
		if at <= utf8.MaxRune {
			out = append(out, Range{at, utf8.MaxRune})
		}
		rs = out
	}
	var out []Range
	for _, r := range rs { // surrogates have no UTF-8
		if r.From < 0xD800 {
			out = append(out, Range{r.From, min(r.To, 0xD7FF)})
		}
		if r.To > 0xDFFF {
			out = append(out, Range{max(r.From, 0xE000), r.To})
		}
	}
	return out
}

// runes builds a range of runes: split where the length of UTF-8 changes, then byte by byte.
func (n *nfa) runes(from, to rune, a, b int32) {
	for _, last := range []rune{0x7F, 0x7FF, 0xFFFF, utf8.MaxRune} {
		if from > to {
			return
		}
		if from <= last {
			hi := min(to, last)
			var x, y [4]byte
			k := utf8.EncodeRune(x[:], from)
			utf8.EncodeRune(y[:], hi)
			n.bytes(x[:k], y[:k], a, b)
			from = hi + 1
		}
	}
}

// bytes builds all sequences between lo and hi, of which bytes behind the first are 80 to BF.
func (n *nfa) bytes(lo, hi []byte, a, b int32) {
	if len(lo) == 1 {
		n.edge(a, lo[0], hi[0], false, b)
		return
	}
	if lo[0] == hi[0] {
		s := n.add()
		n.edge(a, lo[0], lo[0], false, s)
		n.bytes(lo[1:], hi[1:], s, b)
		return
	}
	least, most := []byte{0x80, 0x80, 0x80}[:len(lo)-1], []byte{0xBF, 0xBF, 0xBF}[:len(lo)-1]
	first, last := lo[0], hi[0]
	if string(lo[1:]) != string(least) {
		s := n.add()
		n.edge(a, first, first, false, s)
		n.bytes(lo[1:], most, s, b)
		first++
	}
	if string(hi[1:]) != string(most) {
		s := n.add()
		n.edge(a, last, last, false, s)
		n.bytes(least, hi[1:], s, b)
		last--
	}
	if first <= last {
		s := n.add()
		n.edge(a, first, last, false, s)
		n.bytes(least, most, s, b)
	}
}

// free builds text up to a stop: the automaton of Aho and Corasick.
func (n *nfa) free(f Free, a, b int32) {
	type node struct {
		next [256]int32
		back int32
		stop int
		id   int32
	}
	t := []node{{stop: -1}}
	for i, s := range f.Stops {
		if s == "" {
			fail("an empty text cannot end a free part")
		}
		at := int32(0)
		for _, c := range []byte(s) {
			if t[at].next[c] == 0 {
				if len(t) > 1<<14 {
					fail("the texts that end a free part are too long together")
				}
				t = append(t, node{stop: -1})
				t[at].next[c] = int32(len(t) - 1)
			}
			at = t[at].next[c]
		}
		if t[at].stop < 0 {
			t[at].stop = i
		}
	}
	queue := []int32{}
	for _, v := range t[0].next {
		if v != 0 {
			queue = append(queue, v)
		}
	}
	for i := 0; i < len(queue); i++ {
		u := queue[i]
		if t[u].stop < 0 {
			t[u].stop = t[t[u].back].stop
		}
		for c := range 256 {
			if v := t[u].next[c]; v != 0 {
				t[v].back = t[t[u].back].next[c]
				queue = append(queue, v)
			} else {
				t[u].next[c] = t[t[u].back].next[c]
			}
		}
	}
	for i := range t {
		t[i].id = n.add()
	}
	n.eps(a, t[0].id)
	for i := range t {
		s := t[i].id
		if t[i].stop >= 0 {
			n.put(f.Then[t[i].stop], s, b)
			continue
		}
		if f.MayEnd {
			n.eps(s, b)
		}
		for c := 0; c < 256; {
			to := t[i].next[c]
			e := c
			for e < 255 && t[i].next[e+1] == to {
				e++
			}
			n.edge(s, byte(c), byte(e), true, t[to].id)
			c = e + 1
		}
	}
}

// tails finds the states from where a rule can only end.
func (n *nfa) tails() {
	for {
		again := false
		for i := len(n.states) - 1; i >= 0; i-- { // ends stand behind
			s := &n.states[i]
			if s.tail || len(s.edges) > 0 || s.call >= 0 || s.begin >= 0 || s.end >= 0 {
				continue
			}
			if ok := s.final || len(s.eps) == 1 && n.states[s.eps[0]].tail; ok {
				s.tail, again = true, true
			}
		}
		if !again {
			return
		}
	}
}

// ends finds the states from which the end of their rule can be reached: with bytes, or without any.
func (n *nfa) ends(bytes bool) []bool {
	before := make([][]int32, len(n.states)) // states that may be good because of one
	good := make([]bool, len(n.states))
	var queue []int32
	for i := range n.states {
		s := &n.states[i]
		wait := func(t int32) { before[t] = append(before[t], int32(i)) }
		for _, e := range s.eps {
			wait(e)
		}
		for _, e := range s.edges {
			if bytes {
				wait(e.next)
			}
		}
		if s.call >= 0 {
			wait(s.call)
			wait(s.back)
		}
		if s.begin >= 0 {
			wait(n.loops[s.begin].body)
			wait(n.loops[s.begin].back)
		}
		if s.end >= 0 {
			wait(n.loops[s.end].back)
		}
		if s.final {
			good[i] = true
			queue = append(queue, int32(i))
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, i := range before[queue[0]] {
			if !good[i] && n.leads(&n.states[i], good, bytes) {
				good[i] = true
				queue = append(queue, i)
			}
		}
	}
	return good
}

// leads reports whether one of the ways on from s is good.
func (n *nfa) leads(s *state, good []bool, bytes bool) bool {
	if s.call >= 0 && good[s.call] && good[s.back] || s.end >= 0 && good[n.loops[s.end].back] {
		return true
	}
	if s.begin >= 0 {
		l := n.loops[s.begin]
		if good[l.body] && l.max != 0 || l.min == 0 && good[l.back] {
			return true
		}
	}
	return slices.ContainsFunc(s.eps, func(e int32) bool { return good[e] }) ||
		bytes && slices.ContainsFunc(s.edges, func(e edge) bool { return good[e.next] })
}

// leftRecursive returns a rule that can call itself without taking a byte, or -1.
func (n *nfa) leftRecursive(g *Grammar) int {
	rule := map[int32]int{}
	for i, s := range n.starts {
		rule[s] = i
	}
	null := n.ends(false)
	first := func(r int) (calls []int) { // rules reached before a byte
		seen := map[int32]bool{}
		for stack := []int32{n.starts[r]}; len(stack) > 0; {
			s := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if seen[s] {
				continue
			}
			seen[s] = true
			st := &n.states[s]
			stack = append(stack, st.eps...)
			if st.begin >= 0 {
				l := n.loops[st.begin]
				if stack = append(stack, l.body); l.min == 0 {
					stack = append(stack, l.back)
				}
			}
			if st.end >= 0 {
				l := n.loops[st.end]
				stack = append(stack, l.body, l.back)
			}
			if st.call >= 0 {
				if calls = append(calls, rule[st.call]); null[st.call] {
					stack = append(stack, st.back)
				}
			}
		}
		return calls
	}
	color := make([]byte, len(g.Rules))
	var visit func(r int) int
	visit = func(r int) int {
		color[r] = 1
		for _, c := range first(r) {
			if color[c] == 1 {
				return c
			}
			if color[c] == 0 {
				if x := visit(c); x >= 0 {
					return x
				}
			}
		}
		color[r] = 2
		return -1
	}
	for r := range color {
		if color[r] == 0 {
			if x := visit(r); x >= 0 {
				return x
			}
		}
	}
	return -1
}
