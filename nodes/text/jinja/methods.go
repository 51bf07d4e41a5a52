package jinja

import (
	"math"
	"math/big"
)

type methodFunc = func(st *state, recv Value, a args) Value

// dictNames are the attributes of dicts that hide keys.
var dictNames = words("get keys values items copy fromkeys clear pop popitem setdefault update")

func findMethod(v Value, name string) methodFunc {
	switch v.(type) {
	case string:
		return stringMethods[name]
	case markup:
		if m := stringMethods[name]; m != nil {
			return func(st *state, recv Value, a args) Value { return markupMethod(st, m, name, recv, a) }
		}
	case *Dict:
		return dictMethods[name]
	case *List, *tuple:
		if _, ok := v.(*tuple); ok && name == "copy" {
			return nil
		}
		return listMethods[name]
	case rangeOf:
		if name == "index" || name == "count" {
			return listMethods[name]
		}
	case int, bool, *big.Int:
		return intMethods[name]
	case float64:
		return floatMethods[name]
	case *cycler:
		return cyclerMethods[name]
	case *loop:
		return loopMethods[name]
	}
	return nil
}

// known wraps a method with its parameters.
func known(name, spec string, f func(st *state, recv Value, p []Value) Value) methodFunc {
	ps := params(spec)
	return func(st *state, recv Value, a args) Value { return f(st, recv, a.bind(name, ps)) }
}

var dictMethods, listMethods, intMethods, floatMethods, cyclerMethods, loopMethods map[string]methodFunc

func init() {
	viewOf := func(kind string) methodFunc {
		return known(kind[5:], "", func(_ *state, d Value, _ []Value) Value { return &view{d.(*Dict), kind} })
	}
	dictMethods = map[string]methodFunc{
		"keys": viewOf("dict_keys"), "values": viewOf("dict_values"), "items": viewOf("dict_items"),
		"get": known("get", "key default? /", func(_ *state, d Value, p []Value) Value {
			if i := d.(*Dict).find(p[0]); i >= 0 {
				return d.(*Dict).vals[i]
			}
			return or(p[1], nil)
		}),
		"copy": known("copy", "", func(st *state, d Value, _ []Value) Value { return d }), // nothing changes dicts
		"fromkeys": known("fromkeys", "iterable value? /", func(st *state, _ Value, p []Value) Value {
			d := NewDict(0)
			for _, k := range st.list(p[0]) {
				st.alloc(4 * valueSize)
				d.put(k, or(p[1], nil))
			}
			return d
		}),
	}
	listMethods = map[string]methodFunc{
		"copy": known("copy", "", func(_ *state, v Value, _ []Value) Value { return v }),
		"count": known("count", "value /", func(st *state, v Value, p []Value) Value {
			n := 0
			for _, x := range st.list(v) {
				st.step(1)
				if st.equal(x, p[0]) {
					n++
				}
			}
			return n
		}),
		"index": known("index", "value start? stop? /", func(st *state, v Value, p []Value) Value {
			items := st.list(v)
			a, b, _ := bounds(or(p[1], nil), or(p[2], nil), nil, len(items))
			for i := a; i < b; i++ {
				st.step(1)
				if st.equal(items[i], p[0]) {
					return i
				}
			}
			if _, ok := v.(*tuple); ok {
				valueError("tuple.index(x): x not in tuple")
			}
			valueError("%s is not in %s", repr(st, p[0]), typeName(v))
			return nil
		}),
	}
	self := func(name string) methodFunc {
		return known(name, "", func(_ *state, v Value, _ []Value) Value { n, _ := number(v); return n })
	}
	intMethods = map[string]methodFunc{
		"conjugate": self("conjugate"),
		"bit_length": known("bit_length", "", func(_ *state, v Value, _ []Value) Value {
			n, _ := number(v)
			return toBig(n).BitLen()
		}),
	}
	floatMethods = map[string]methodFunc{
		"conjugate": self("conjugate"),
		"is_integer": known("is_integer", "", func(_ *state, v Value, _ []Value) Value {
			f := v.(float64)
			return f == math.Trunc(f) && !math.IsInf(f, 0)
		}),
	}
	cyclerMethods = map[string]methodFunc{
		"next": known("next", "", func(_ *state, v Value, _ []Value) Value {
			c := v.(*cycler)
			x := c.items[c.pos]
			c.pos = (c.pos + 1) % len(c.items)
			return x
		}),
		"reset": known("reset", "", func(_ *state, v Value, _ []Value) Value { v.(*cycler).pos = 0; return nil }),
	}
	loopMethods = map[string]methodFunc{
		"cycle": func(st *state, v Value, a args) Value {
			if len(a.pos) == 0 {
				typeError("no items for cycling given")
			}
			return a.pos[v.(*loop).index%len(a.pos)]
		},
		"changed": func(st *state, v Value, a args) Value {
			l := v.(*loop)
			if l.last != nil && st.equalAll(l.last, a.pos) {
				return false
			}
			l.last = append(make([]Value, 0, 1), a.pos...)
			return true
		},
	}
}
