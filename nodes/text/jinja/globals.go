package jinja

import "math"

var globals map[string]Value

func global(name string, f func(*state, args) Value) { globals[name] = &function{name, f} }

func init() {
	globals = map[string]Value{}
	global("range", func(st *state, a args) Value {
		p := a.bind("range", params("start stop? step? /"))
		r := rangeOf{0, integer(p[0], "range"), 1}
		if p[1] != missing {
			r = rangeOf{r.to, integer(p[1], "range"), intOr(p[2], 1, "range")}
		}
		if r.by == 0 {
			valueError("range() arg 3 must not be zero")
		}
		if n := r.len(); n > maxRange || n < 0 {
			limit("Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
		}
		if r.by == math.MinInt {
			r.by++
		}
		return r
	})
	global("dict", func(st *state, a args) Value {
		d := st.dictOf(a)
		return d
	})
	global("namespace", func(st *state, a args) Value { return &namespace{st.dictOf(a)} })
	global("cycler", func(st *state, a args) Value {
		if len(a.pos) == 0 {
			fail("RuntimeError", "at least one item has to be provided")
		}
		return &cycler{items: append([]Value(nil), a.pos...)}
	})
	global("joiner", func(st *state, a args) Value {
		p := a.bind("joiner", params("sep?"))
		return &joiner{sep: stringOf(or(p[0], ", "), "joiner")}
	})
	global("raise_exception", func(st *state, a args) Value {
		p := a.bind("raise_exception", params("message"))
		fail(TypeRaised, "%s", str(st, p[0]))
		return nil
	})
	global("strftime_now", func(st *state, a args) Value {
		p := a.bind("strftime_now", params("format"))
		s := Strftime(st.now(), stringOf(p[0], "strftime() argument 1"))
		st.alloc(len(s))
		return s
	})
	global("lipsum", func(*state, args) Value {
		typeError("lipsum is not supported: a prompt depends on its request alone")
		return nil
	})
}

// dictOf is dict(*args, **kwargs).
func (st *state) dictOf(a args) *Dict {
	d := NewDict(len(a.names))
	if len(a.pos) > 1 {
		typeError("dict expected at most 1 argument, got %d", len(a.pos))
	}
	if len(a.pos) == 1 {
		if src, ok := a.pos[0].(*Dict); ok {
			st.alloc(4 * valueSize * len(src.keys))
			for i, k := range src.keys {
				d.put(k, src.vals[i])
			}
		} else {
			for next := st.iterate(a.pos[0]); ; {
				x, ok := next(st)
				if !ok {
					break
				}
				st.step(1)
				st.alloc(4 * valueSize)
				if !iterable(x) {
					typeError("cannot convert dictionary update sequence element #%d to a sequence", len(d.keys))
				}
				kv := st.list(x)
				if len(kv) != 2 {
					valueError("dictionary update sequence element #%d has length %d; 2 is required", len(d.keys), len(kv))
				}
				d.put(kv[0], kv[1])
			}
		}
	}
	st.alloc(4 * valueSize * len(a.names))
	for i, n := range a.names {
		d.put(n, a.vals[i])
	}
	return d
}
