package jinja

// loop is the variable loop of a for.
type loop struct {
	iterable Value
	next     puller
	index    int // from 0
	depth    int // from 0
	length   int // -1: not known yet
	after    Value
	hasAfter bool
	current  Value
	before   Value
	last     []Value // arguments of changed
	body     *loopBody
	frame    *frame // around it
}

func (l *loop) advance(st *state) (Value, bool) {
	v, ok := l.after, true
	if l.hasAfter {
		l.hasAfter, l.after = false, nil
	} else {
		v, ok = l.next(st)
	}
	if ok {
		l.index++
		l.before, l.current = l.current, v
	}
	return v, ok
}

func (l *loop) peek(st *state) (Value, bool) {
	if !l.hasAfter {
		v, ok := l.next(st)
		if !ok {
			l.next = pull(nil)
			return nil, false
		}
		l.after, l.hasAfter = v, true
	}
	return l.after, true
}

func (l *loop) size(st *state) int {
	if l.length >= 0 {
		return l.length
	}
	if n, ok := st.length(l.iterable); ok {
		l.length = n
		return n
	}
	rest := st.list(&iter{"generator", l.next})
	l.next = pull(rest)
	l.length = len(rest) + l.index + 1
	if l.hasAfter {
		l.length++
	}
	return l.length
}

func (l *loop) attribute(st *state, name string) (Value, bool) {
	switch name {
	case "index":
		return l.index + 1, true
	case "index0":
		return l.index, true
	case "first":
		return l.index == 0, true
	case "last":
		_, more := l.peek(st)
		return !more, true
	case "length":
		return l.size(st), true
	case "revindex":
		return l.size(st) - l.index, true
	case "revindex0":
		return l.size(st) - l.index - 1, true
	case "depth":
		return l.depth + 1, true
	case "depth0":
		return l.depth, true
	case "previtem":
		if l.index == 0 {
			return &undefined{hint: "there is no previous item"}, true
		}
		return l.before, true
	case "nextitem":
		if v, ok := l.peek(st); ok {
			return v, true
		}
		return &undefined{hint: "there is no next item"}, true
	}
	if m := loopMethods[name]; m != nil {
		return &method{l, name, m}, true
	}
	return nil, false
}

// loopBody is a compiled for.
type loopBody struct {
	assign    func(*state, *frame, Value)
	test      func(*state, *frame) Value // nil: none
	testBegin func(*state, *frame)
	testSet   func(*state, *frame, Value)
	begin     func(*state, *frame)
	body      func(*state, *frame) ctrl
	other     func(*state, *frame) ctrl // nil: none
	loopSlot  int                       // -1: the body does not read loop
	slots     int                       // of a recursive loop's own frame; 0: it runs in the outer one
}

// recurse is loop(x) in a recursive loop.
func (l *loop) recurse(st *state, a args) Value {
	if l.body.slots == 0 {
		typeError("The loop must have the 'recursive' marker to be called recursively.")
	}
	if len(a.pos) != 1 || len(a.names) > 0 {
		typeError("loop() takes one iterable")
	}
	line := st.line
	s := st.recursive(l.body, l.frame, a.pos[0], l.depth+1)
	st.line = line
	return s
}

// recursive runs a recursive loop and gives its text.
func (st *state) recursive(b *loopBody, outer *frame, items Value, depth int) string {
	st.enter()
	f := newFrame(b.slots, outer)
	s := st.capture(func() { b.run(st, f, outer, items, depth) })
	st.calls--
	return s
}

func (st *state) enter() {
	st.step(1)
	if st.calls++; st.calls > maxCalls {
		limit("the template calls itself more than %d deep", maxCalls)
	}
}

// run runs the loop over items in f; outer is the frame that a recursive loop was made in.
func (b *loopBody) run(st *state, f, outer *frame, items Value, depth int) ctrl {
	next := st.iterate(items)
	source := items
	if b.test != nil {
		in := next
		next = func(st *state) (Value, bool) {
			for {
				v, ok := in(st)
				if !ok {
					return nil, false
				}
				st.step(1)
				b.testBegin(st, f)
				b.testSet(st, f, v)
				if truth(b.test(st, f)) {
					return v, true
				}
			}
		}
		source = &iter{"generator", next}
	}
	var l *loop
	if b.loopSlot >= 0 {
		l = &loop{iterable: source, next: next, index: -1, depth: depth, length: -1, body: b, frame: outer}
		next = l.advance
	}
	none := true
	for {
		v, ok := next(st)
		if !ok {
			break
		}
		st.step(1)
		if l != nil {
			f.vars[b.loopSlot] = l
		}
		b.assign(st, f, v)
		b.begin(st, f)
		c := b.body(st, f)
		if c == ctrlBreak {
			break
		}
		if c == 0 {
			none = false // as in Jinja, a turn that continue ends does not count
		}
	}
	if none && b.other != nil {
		return b.other(st, f)
	}
	return 0
}

// ctrl is how statements end.
type ctrl uint8

const (
	ctrlBreak ctrl = iota + 1
	ctrlContinue
)
