package jinja

import (
	"cmp"
	"math"
	"math/big"
	"strings"
)

// compareNumbers is the order of two numbers; ok is false for NaN.
func compareNumbers(a, b Value) (int, bool) {
	x, xok := a.(int)
	y, yok := b.(int)
	if xok && yok {
		return cmp.Compare(x, y), true
	}
	f, fok := a.(float64)
	g, gok := b.(float64)
	if !fok && !gok {
		return toBig(a).Cmp(toBig(b)), true
	}
	if fok && gok {
		return cmp.Compare(f, g), f == f && g == g
	}
	if gok {
		c, ok := compareNumbers(b, a)
		return -c, ok
	}
	switch {
	case f != f:
		return 0, false
	case math.IsInf(f, 0):
		return int(math.Copysign(1, f)), true
	}
	return new(big.Float).SetFloat64(f).Cmp(new(big.Float).SetInt(toBig(b))), true
}

// equal is a == b.
func (st *state) equal(a, b Value) bool {
	if x, ok := text(a); ok {
		y, ok := text(b)
		if !ok {
			return false
		}
		if x == y {
			return true
		}
		st.work(min(len(x), len(y)))
		return st.plain(x) == st.plain(y)
	}
	if x, ok := number(a); ok {
		if y, ok := number(b); ok {
			c, ok := compareNumbers(x, y)
			return ok && c == 0
		}
		return false
	}
	switch x := a.(type) {
	case nil:
		return b == nil
	case *undefined:
		_, ok := b.(*undefined)
		return ok
	case *List:
		y, ok := b.(*List)
		return ok && (x == y || st.equalAll(x.Items, y.Items))
	case *tuple:
		y, ok := b.(*tuple)
		return ok && (x == y || st.equalAll(x.items, y.items))
	case rangeOf:
		y, ok := b.(rangeOf)
		return ok && x.len() == y.len() && (x.len() == 0 || x.from == y.from && (x.len() == 1 || x.by == y.by))
	case *Dict:
		y, ok := b.(*Dict)
		if !ok || len(x.keys) != len(y.keys) {
			return false
		}
		if x == y {
			return true
		}
		for i, k := range x.keys {
			st.step(1)
			j := y.find(k)
			if j < 0 || !st.equal(x.vals[i], y.vals[j]) {
				return false
			}
		}
		return true
	case *view:
		y, ok := b.(*view)
		if !ok || x.kind == "dict_values" || x.kind != y.kind || len(x.d.keys) != len(y.d.keys) {
			return x == b
		}
		for i, k := range x.d.keys {
			j := y.d.find(k)
			if j < 0 || x.kind == "dict_items" && !st.equal(x.d.vals[i], y.d.vals[j]) {
				return false
			}
		}
		return true
	case *slice:
		return false
	}
	return a == b
}

func (st *state) equalAll(a, b []Value) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		st.step(1)
		if !st.equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// compare is a op b, for all operators of comparison.
func (st *state) compare(op string, a, b Value) bool {
	switch op {
	case "==":
		return st.equal(a, b)
	case "!=":
		return !st.equal(a, b)
	case "in":
		return st.contains(b, a)
	case "not in":
		return !st.contains(b, a)
	}
	c, ok := st.order(op, a, b)
	if !ok {
		return false
	}
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// order is the order of a and b; ok is false for NaN, which is in none.
func (st *state) order(op string, a, b Value) (int, bool) {
	if x, ok := text(a); ok {
		if y, ok := text(b); ok {
			st.work(min(len(x), len(y)))
			return strings.Compare(st.plain(x), st.plain(y)), true
		}
	}
	if x, ok := number(a); ok {
		if y, ok := number(b); ok {
			return compareNumbers(x, y)
		}
	}
	if x, ok := a.(*List); ok {
		if y, ok := b.(*List); ok {
			return st.orderAll(op, x.Items, y.Items)
		}
	}
	if x, ok := a.(*tuple); ok {
		if y, ok := b.(*tuple); ok {
			return st.orderAll(op, x.items, y.items)
		}
	}
	for _, v := range []Value{a, b} {
		if u, ok := v.(*undefined); ok {
			u.raise()
		}
	}
	typeError("'%s' not supported between instances of '%s' and '%s'", op, typeName(a), typeName(b))
	return 0, false
}

func (st *state) orderAll(op string, a, b []Value) (int, bool) {
	for i := range min(len(a), len(b)) {
		st.step(1)
		if !st.equal(a[i], b[i]) {
			return st.order(op, a[i], b[i])
		}
	}
	return cmp.Compare(len(a), len(b)), true
}

// contains is v in where.
func (st *state) contains(where, v Value) bool {
	switch w := where.(type) {
	case string, markup:
		s, ok := text(v)
		if !ok {
			if u, ok := v.(*undefined); ok && u.security {
				u.raise()
			}
			typeError("'in <string>' requires string as left operand, not %s", typeName(v))
		}
		hay, _ := text(w)
		st.work(len(hay) + len(s))
		return strings.Contains(st.plain(hay), st.plain(s))
	case *Dict:
		return w.find(v) >= 0
	case *List:
		return st.among(w.Items, v)
	case *tuple:
		return st.among(w.items, v)
	case *view:
		switch w.kind {
		case "dict_keys":
			return w.d.find(v) >= 0
		case "dict_values":
			return st.among(w.d.vals, v)
		}
		t, ok := v.(*tuple)
		if !ok || len(t.items) != 2 {
			return false
		}
		i := w.d.find(t.items[0])
		return i >= 0 && st.equal(w.d.vals[i], t.items[1])
	case rangeOf:
		n, ok := number(v)
		if !ok {
			return false
		}
		if f, ok := n.(float64); ok {
			i := int(f)
			if float64(i) != f {
				return false
			}
			n = i
		}
		i, ok := n.(int)
		if !ok || w.len() == 0 {
			return false
		}
		last := w.from + (w.len()-1)*w.by
		return i >= min(w.from, last) && i <= max(w.from, last) && (i-w.from)%w.by == 0
	case *undefined:
		return false
	case *iter, *loop:
		for it := st.iterate(where); ; {
			x, ok := it(st)
			if !ok {
				return false
			}
			if st.equal(x, v) {
				return true
			}
		}
	}
	typeError("argument of type '%s' is not iterable", typeName(where))
	return false
}

func (st *state) among(items []Value, v Value) bool {
	st.step(len(items) / 8)
	for _, x := range items {
		if st.equal(x, v) {
			return true
		}
	}
	return false
}
