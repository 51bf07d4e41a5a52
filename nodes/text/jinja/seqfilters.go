package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// getter reads an attribute path, as "a.b.0"; def replaces what is undefined where it is not nil.
func (st *state) getter(attr, def Value) func(Value) Value {
	var path []Value
	if s, ok := text(attr); ok {
		for part := range strings.SplitSeq(s, ".") {
			if n, err := strconv.Atoi(part); err == nil && part[0] != '-' && part[0] != '+' {
				path = append(path, n)
			} else {
				path = append(path, part)
			}
		}
	} else if attr != nil {
		path = []Value{attr}
	}
	return func(v Value) Value {
		for _, p := range path {
			st.step(1)
			v = st.getitem(v, p)
			if _, ok := v.(*undefined); ok && def != nil {
				v = def
			}
		}
		return v
	}
}

// lowered makes strings of a key lower case, where case does not count.
func (st *state) lowered(v Value, sensitive bool) Value {
	if s, ok := text(v); ok && !sensitive {
		st.alloc(len(s))
		return lower(s)
	}
	return v
}

// sorted sorts stably by keys.
func (st *state) sorted(items []Value, reverse bool, key func(Value) Value) []Value {
	type keyed struct{ key, v Value }
	all := make([]keyed, len(items))
	st.alloc(4 * valueSize * len(items))
	for i, v := range items {
		all[i] = keyed{key(v), v}
	}
	order := func(a, b keyed) int {
		st.step(1)
		c, _ := st.order("<", a.key, b.key)
		return c
	}
	if reverse {
		slices.Reverse(all)
	}
	slices.SortStableFunc(all, order)
	if reverse {
		slices.Reverse(all)
	}
	out := make([]Value, len(items))
	for i, k := range all {
		out[i] = k.v
	}
	return out
}

func seqFilters() {
	filter("sort", "reverse? case_sensitive? attribute?", func(st *state, v Value, p []Value) Value {
		sensitive := truth(or(p[1], false))
		var get []func(Value) Value
		if s, ok := text(or(p[2], nil)); ok {
			for part := range strings.SplitSeq(s, ",") {
				get = append(get, st.getter(part, nil))
			}
		} else {
			get = append(get, st.getter(or(p[2], nil), nil))
		}
		return &List{st.sorted(st.list(v), truth(or(p[0], false)), func(x Value) Value {
			keys := make([]Value, len(get))
			for i, g := range get {
				keys[i] = st.lowered(g(x), sensitive)
			}
			return &List{keys}
		})}
	})
	filter("dictsort", "case_sensitive? by? reverse?", func(st *state, v Value, p []Value) Value {
		use(v)
		by := map[string]int{"key": 0, "value": 1}
		at, ok := by[str(st, or(p[1], "key"))]
		if !ok {
			fail("FilterArgumentError", `You can only sort by either "key" or "value"`)
		}
		d, ok := v.(*Dict)
		if !ok {
			fail("AttributeError", "'%s' object has no attribute 'items'", typeName(v))
		}
		return &List{st.sorted(st.pairs(d), truth(or(p[2], false)), func(x Value) Value {
			return st.lowered(x.(*tuple).items[at], truth(or(p[0], false)))
		})}
	})
	filter("groupby", "attribute default? case_sensitive?", func(st *state, v Value, p []Value) Value {
		sensitive := truth(or(p[2], false))
		get := st.getter(p[0], or(p[1], nil))
		key := func(x Value) Value { return st.lowered(get(x), sensitive) }
		out := &List{}
		var last Value
		for i, x := range st.sorted(st.list(v), false, key) {
			k := key(x)
			if i == 0 || !st.equal(k, last) {
				last = k
				st.alloc(8 * valueSize)
				out.Items = append(out.Items, &tuple{items: []Value{get(x), &List{}}, group: true})
			}
			g := out.Items[len(out.Items)-1].(*tuple).items[1].(*List)
			st.alloc(valueSize)
			g.Items = append(g.Items, x)
		}
		return out
	})
	filter("unique", "case_sensitive? attribute?", func(st *state, v Value, p []Value) Value {
		sensitive := truth(or(p[0], false))
		return generator(func(st *state) puller {
			get := st.getter(or(p[1], nil), nil)
			next, seen := st.iterate(v), NewDict(0)
			return func(st *state) (Value, bool) {
				for {
					x, ok := next(st)
					if !ok {
						return nil, false
					}
					st.step(1)
					k := st.lowered(get(x), sensitive)
					if seen.find(k) < 0 {
						st.alloc(4 * valueSize)
						seen.put(k, true)
						return x, true
					}
				}
			}
		})
	})
	for name, sign := range map[string]int{"min": -1, "max": 1} {
		filter(name, "case_sensitive? attribute?", func(st *state, v Value, p []Value) Value {
			sensitive := truth(or(p[0], false))
			get := st.getter(or(p[1], nil), nil)
			next := st.iterate(v)
			best, ok := next(st)
			if !ok {
				return &undefined{hint: "No aggregated item, sequence was empty."}
			}
			op := map[int]string{-1: "<", 1: ">"}[sign]
			key := st.lowered(get(best), sensitive)
			for {
				x, ok := next(st)
				if !ok {
					return best
				}
				st.step(1)
				if k := st.lowered(get(x), sensitive); st.compare(op, k, key) {
					best, key = x, k
				}
			}
		})
	}
	filter("sum", "attribute? start?", func(st *state, v Value, p []Value) Value {
		sum := or(p[1], 0)
		if _, ok := text(sum); ok {
			typeError("sum() can't sum strings [use ''.join(seq) instead]")
		}
		get := st.getter(or(p[0], nil), nil)
		for next := st.iterate(v); ; {
			x, ok := next(st)
			if !ok {
				return sum
			}
			st.step(1)
			sum = st.binary("+", sum, get(x))
		}
	})
	filter("join", "d? attribute?", func(st *state, v Value, p []Value) Value {
		sep := str(st, or(p[0], ""))
		get := st.getter(or(p[1], nil), nil)
		var texts []string
		for next := st.iterate(v); ; {
			x, ok := next(st)
			if !ok {
				return strings.Join(texts, sep)
			}
			s := str(st, get(x))
			st.step(1)
			st.alloc(len(s) + len(sep) + valueSize)
			texts = append(texts, s)
		}
	})
}

func listFilters() {
	filter("length", "", func(st *state, v Value, _ []Value) Value {
		n, ok := st.length(v)
		if !ok {
			typeError("object of type '%s' has no len()", typeName(v))
		}
		return n
	})
	filter("list", "", func(st *state, v Value, _ []Value) Value {
		if l, ok := v.(*List); ok {
			return &List{l.Items} // another one: sameas tells
		}
		return &List{st.list(v)}
	})
	filter("items", "", func(st *state, v Value, _ []Value) Value {
		return generator(func(st *state) puller {
			switch v := v.(type) {
			case *undefined:
				return pull(nil)
			case *Dict:
				return st.iterate(&view{v, "dict_items"})
			}
			typeError("Can only get item pairs from a mapping.")
			return nil
		})
	})
	filter("first", "", func(st *state, v Value, _ []Value) Value {
		if x, ok := st.iterate(v)(st); ok {
			return x
		}
		return &undefined{hint: "No first item, sequence was empty."}
	})
	filter("last", "", func(st *state, v Value, _ []Value) Value {
		if x, ok := st.reversed(v)(st); ok {
			return x
		}
		return &undefined{hint: "No last item, sequence was empty."}
	})
	filter("reverse", "", func(st *state, v Value, _ []Value) Value {
		if s, ok := text(v); ok {
			return keepMarkup(v, st.substring(s, nil, nil, -1))
		}
		kind := typeName(v) + "_reverseiterator"
		if _, ok := v.(*iter); ok {
			items := slices.Clone(st.list(v))
			slices.Reverse(items)
			return &List{items}
		}
		if !iterable(v) {
			fail("FilterArgumentError", "argument must be iterable")
		}
		return &iter{kind, st.reversed(v)}
	})
	filter("batch", "linecount fill_with?", func(st *state, v Value, p []Value) Value {
		n := integer(p[0], "batch")
		return generator(func(st *state) puller {
			next, done := st.iterate(v), false
			var held []Value
			return func(st *state) (Value, bool) {
				for !done {
					x, ok := next(st)
					if !ok {
						done = true
						break
					}
					st.step(1)
					st.alloc(valueSize)
					if len(held) == n {
						out := &List{held}
						held = []Value{x}
						return out, true
					}
					held = append(held, x)
				}
				if len(held) == 0 {
					return nil, false
				}
				out := held
				held = nil
				if fill := or(p[1], nil); fill != nil && len(out) < n {
					st.share(n-len(out), valueSize)
					for len(out) < n {
						out = append(out, fill)
					}
				}
				return &List{out}, true
			}
		})
	})
	filter("slice", "slices fill_with?", func(st *state, v Value, p []Value) Value {
		n := integer(p[0], "slice")
		return generator(func(st *state) puller {
			items := st.list(v)
			if n == 0 {
				fail("ZeroDivisionError", "integer division or modulo by zero")
			}
			i, offset := 0, 0
			return func(st *state) (Value, bool) {
				if i >= n {
					return nil, false
				}
				st.step(1)
				each, extra := len(items)/n, len(items)%n
				start := offset + i*each
				if i < extra {
					offset++
				}
				part := slices.Clone(items[start : offset+(i+1)*each])
				if fill := or(p[1], nil); fill != nil && i >= extra {
					part = append(part, fill)
				}
				st.alloc(valueSize * (1 + len(part)))
				i++
				return &List{part}, true
			}
		})
	})
	selecting()
}

func (st *state) reversed(v Value) puller {
	switch v.(type) {
	case string, markup, *List, *tuple, *Dict, rangeOf, *view, *undefined:
		items := slices.Clone(st.list(v))
		st.alloc(valueSize * len(items))
		slices.Reverse(items)
		return pull(items)
	}
	typeError("'%s' object is not reversible", typeName(v))
	return nil
}

func selecting() {
	filters["map"] = func(st *state, v Value, a args) Value {
		return generator(func(st *state) puller {
			if !truth(v) {
				return pull(nil)
			}
			f := st.mapper(a)
			next := st.iterate(v)
			return func(st *state) (Value, bool) {
				x, ok := next(st)
				if !ok {
					return nil, false
				}
				st.step(1)
				return f(x), true
			}
		})
	}
	for name, how := range map[string][2]bool{"select": {true, false}, "reject": {false, false}, "selectattr": {true, true}, "rejectattr": {false, true}} {
		filters[name] = func(st *state, v Value, a args) Value {
			return generator(func(st *state) puller {
				if !truth(v) {
					return pull(nil)
				}
				f := st.chooser(a, how[1])
				next := st.iterate(v)
				return func(st *state) (Value, bool) {
					for {
						x, ok := next(st)
						if !ok {
							return nil, false
						}
						st.step(1)
						if f(x) == how[0] {
							return x, true
						}
					}
				}
			})
		}
	}
}

// mapper is what map applies.
func (st *state) mapper(a args) func(Value) Value {
	if i := slices.Index(a.names, "attribute"); i >= 0 && len(a.pos) == 0 {
		var def Value
		for k, n := range a.names {
			switch n {
			case "attribute":
			case "default":
				def = a.vals[k]
			default:
				fail("FilterArgumentError", "Unexpected keyword argument %s", quote(n))
			}
		}
		return st.getter(a.vals[i], def)
	}
	if len(a.pos) == 0 {
		fail("FilterArgumentError", "map requires a filter argument")
	}
	name := str(st, a.pos[0])
	f := filters[name]
	rest := args{pos: a.pos[1:], names: a.names, vals: a.vals}
	return func(x Value) Value {
		if f == nil {
			fail("TemplateRuntimeError", "No filter named %s.", quote(name))
		}
		return f(st, x, rest)
	}
}

// chooser is what select and its kin ask of an item.
func (st *state) chooser(a args, attr bool) func(Value) bool {
	get := func(v Value) Value { return v }
	pos := a.pos
	if attr {
		if len(pos) == 0 {
			fail("FilterArgumentError", "Missing parameter for attribute name")
		}
		get = st.getter(pos[0], nil)
		pos = pos[1:]
	}
	if len(pos) == 0 {
		return func(x Value) bool { return truth(get(x)) }
	}
	name := str(st, pos[0])
	t := tests[name]
	rest := args{pos: pos[1:], names: a.names, vals: a.vals}
	return func(x Value) bool {
		if t == nil {
			fail("TemplateRuntimeError", "No test named %s.", quote(name))
		}
		return t(st, get(x), rest)
	}
}
