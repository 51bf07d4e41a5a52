package jinja

// Variables live in slots of a function's frame. A function is the template, a macro, the body of a call, a recursive loop or a block; the
// other blocks have scopes in it. Which slot a name means, and what it holds when its scope begins, follows Jinja: a name that a scope sets
// hides the outer one for the whole scope and starts with its value.

// fn is a function while it is compiled.
type fn struct {
	parent *fn
	slots  int
}

type ref struct {
	fn   *fn
	slot int
}

// start says what a slot holds when its scope begins.
type start struct {
	slot    int
	up      int // functions to go up for an outer variable
	outer   int // its slot, or -1
	context int // index of a variable of the context, or -1
}

type scope struct {
	fn     *fn
	parent *scope
	refs   map[string]ref
	loaded map[string]bool // names of the context that were read
	starts []start
}

func (c *compiler) open(parent *scope, f *fn) *scope {
	return &scope{fn: f, parent: parent, refs: map[string]ref{}, loaded: map[string]bool{}}
}

func (s *scope) find(name string) (ref, bool) {
	for ; s != nil; s = s.parent {
		if r, ok := s.refs[name]; ok {
			return r, true
		}
	}
	return ref{}, false
}

// param declares a name that is set when the scope begins.
func (s *scope) param(name string) int {
	r := ref{s.fn, s.fn.slots}
	s.fn.slots++
	s.refs[name] = r
	return r.slot
}

// up counts the functions from f to that of r.
func up(f *fn, r ref) int {
	n := 0
	for ; f != r.fn; f = f.parent {
		n++
	}
	return n
}

func (s *scope) load(name string) {
	if _, ok := s.find(name); !ok {
		s.loaded[name] = true
	}
}

// reads reports whether s or a scope around it reads a variable of the context.
func (s *scope) reads(name string) bool {
	for ; s != nil; s = s.parent {
		if s.loaded[name] {
			return true
		}
	}
	return false
}

// store declares a name that the scope sets. branch: in some branch of an if alone.
func (c *compiler) store(s *scope, name string, branch bool) {
	if _, ok := s.refs[name]; ok {
		return
	}
	st := start{slot: s.fn.slots, outer: -1, context: -1}
	if r, ok := s.find(name); ok {
		st.up, st.outer = up(s.fn, r), r.slot
	} else if branch || s.reads(name) {
		st.context = c.contextVar(name)
	}
	s.starts = append(s.starts, st)
	s.refs[name] = ref{s.fn, s.fn.slots}
	s.fn.slots++
}

// declare finds the names that body sets in scope s.
func (c *compiler) declare(s *scope, body []stmt, branch bool) {
	load := func(e expr) {
		walk(e, func(x expr) {
			if n, ok := x.(*exName); ok {
				s.load(n.name)
			}
		})
	}
	store := func(e expr) {
		walk(e, func(x expr) {
			switch n := x.(type) {
			case *exName:
				c.store(s, n.name, branch)
			case *exNS:
				s.load(n.name)
			}
		})
	}
	for _, x := range body {
		switch x := x.(type) {
		case *stIf: // branches share the scope
			for i, b := range x.bodies {
				if i < len(x.tests) {
					load(x.tests[i])
				}
				c.declare(s, b, true)
			}
		case *stFor:
			load(x.iter)
		case *stMacro:
			c.store(s, x.name, branch)
		case *stCall:
			if x.call != nil {
				load(x.call)
			}
		case *stFilter:
			load(x.filter)
		case *stWith:
			for _, v := range x.values {
				load(v)
			}
		case *stSetBlock:
			store(x.target)
		case *stBlock:
		default:
			parts(x, load, store, func([]stmt) {})
		}
	}
}

// uses finds which of names a body reads before it sets them.
func uses(body []stmt, names ...string) map[string]bool {
	left, found := map[string]bool{}, map[string]bool{}
	for _, n := range names {
		left[n] = true
	}
	visit := func(is bool) func(expr) {
		return func(e expr) {
			walk(e, func(x expr) {
				if n, ok := x.(*exName); ok && left[n.name] {
					if is {
						found[n.name] = true
					} else {
						delete(left, n.name)
					}
				}
			})
		}
	}
	var all func([]stmt)
	all = func(body []stmt) {
		for _, s := range body {
			parts(s, visit(true), visit(false), all)
		}
	}
	all(body)
	return found
}
