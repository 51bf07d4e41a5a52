package jinja

import "unicode/utf8"

// puller gives the values of an iterable one by one.
type puller func(*state) (Value, bool)

func pull(items []Value) puller {
	i := 0
	return func(*state) (Value, bool) {
		if i == len(items) {
			return nil, false
		}
		i++
		return items[i-1], true
	}
}

func iterable(v Value) bool {
	switch v.(type) {
	case string, markup, *List, *tuple, *Dict, rangeOf, *view, *iter, *loop, *undefined:
		return true
	}
	return false
}

// iterate is iter(v). Generators are used up by it.
func (st *state) iterate(v Value) puller {
	switch v := v.(type) {
	case *List:
		return pull(v.Items)
	case *tuple:
		return pull(v.items)
	case *Dict:
		return pull(v.keys)
	case *view:
		i := 0
		return func(st *state) (Value, bool) {
			if i == len(v.d.keys) {
				return nil, false
			}
			i++
			switch v.kind {
			case "dict_keys":
				return v.d.keys[i-1], true
			case "dict_values":
				return v.d.vals[i-1], true
			}
			st.alloc(4 * valueSize)
			return &tuple{items: []Value{v.d.keys[i-1], v.d.vals[i-1]}}, true
		}
	case rangeOf:
		i, n := 0, v.len()
		return func(*state) (Value, bool) {
			if i == n {
				return nil, false
			}
			i++
			return v.from + (i-1)*v.by, true
		}
	case string:
		return st.runes(v)
	case markup:
		return st.runes(string(v))
	case *iter:
		return v.next
	case *loop:
		return func(st *state) (Value, bool) {
			x, ok := v.advance(st)
			return &tuple{items: []Value{x, v}}, ok
		}
	case *undefined:
		if v.security {
			v.raise()
		}
		return pull(nil)
	}
	typeError("'%s' object is not iterable", typeName(v))
	return nil
}

// runes gives the characters of s; a mark stays with the one before it.
func (st *state) runes(s string) puller {
	return func(st *state) (Value, bool) {
		if s == "" {
			return nil, false
		}
		_, n := utf8.DecodeRuneInString(s)
		for n < len(s) {
			r, m := utf8.DecodeRuneInString(s[n:])
			if !st.isMark(r) {
				break
			}
			n += m
		}
		c := s[:n]
		s = s[n:]
		st.work(valueSize)
		return c, true
	}
}

// list is list(v); the result may be v's own items and is not to be changed.
func (st *state) list(v Value) []Value {
	switch v := v.(type) {
	case *List:
		return v.Items
	case *tuple:
		return v.items
	case *Dict:
		return v.keys
	}
	var out []Value
	for next := st.iterate(v); ; {
		x, ok := next(st)
		if !ok {
			return out
		}
		st.step(1)
		st.alloc(2 * valueSize)
		out = append(out, x)
	}
}

// generator makes a generator of next, which is made when the first value is asked for.
func generator(make func(*state) puller) *iter {
	var next puller
	return &iter{"generator", func(st *state) (Value, bool) {
		if next == nil {
			next = make(st)
		}
		return next(st)
	}}
}

// unpack gives exactly n values of v.
func (st *state) unpack(v Value, n int) []Value {
	if !iterable(v) {
		typeError("cannot unpack non-iterable %s object", typeName(v))
	}
	var items []Value
	switch v := v.(type) {
	case *tuple:
		items = v.items
	case *List:
		items = v.Items
	default:
		for next := st.iterate(v); len(items) <= n; {
			x, ok := next(st)
			if !ok {
				break
			}
			items = append(items, x)
		}
	}
	switch {
	case len(items) < n:
		valueError("not enough values to unpack (expected %d, got %d)", n, len(items))
	case len(items) > n:
		valueError("too many values to unpack (expected %d)", n)
	}
	return items
}
