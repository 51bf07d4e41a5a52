package jinja

import "math/big"

type testFunc = func(st *state, v Value, a args) bool

var tests map[string]testFunc

func init() {
	tests = map[string]testFunc{}
	test := func(name, spec string, f func(st *state, v Value, p []Value) bool) {
		ps := params(spec)
		tests[name] = func(st *state, v Value, a args) bool { return f(st, v, a.bind("test_"+name, ps)) }
	}
	is := func(name string, f func(v Value) bool) {
		test(name, "", func(_ *state, v Value, _ []Value) bool { return f(v) })
	}
	mod := func(st *state, v Value, n int) Value { return st.binary("%", v, n) }
	test("odd", "", func(st *state, v Value, _ []Value) bool { return st.equal(mod(st, v, 2), 1) })
	test("even", "", func(st *state, v Value, _ []Value) bool { return st.equal(mod(st, v, 2), 0) })
	test("divisibleby", "num", func(st *state, v Value, p []Value) bool { return st.equal(st.binary("%", v, p[0]), 0) })
	is("undefined", func(v Value) bool { _, ok := v.(*undefined); return ok })
	is("defined", func(v Value) bool { _, ok := v.(*undefined); return !ok })
	is("none", func(v Value) bool { return v == nil })
	is("boolean", func(v Value) bool { _, ok := v.(bool); return ok })
	is("true", func(v Value) bool { b, ok := v.(bool); return ok && b })
	is("false", func(v Value) bool { b, ok := v.(bool); return ok && !b })
	is("integer", func(v Value) bool {
		switch v.(type) {
		case int, *big.Int:
			return true
		}
		return false
	})
	is("float", func(v Value) bool { _, ok := v.(float64); return ok })
	is("number", func(v Value) bool { _, ok := number(v); return ok })
	is("string", func(v Value) bool { _, ok := text(v); return ok })
	is("mapping", func(v Value) bool { _, ok := v.(*Dict); return ok })
	is("iterable", iterable)
	is("callable", callable)
	is("escaped", func(v Value) bool { _, ok := v.(markup); return ok })
	is("sequence", func(v Value) bool {
		switch v := v.(type) {
		case string, markup, *List, *tuple, *Dict, rangeOf:
			return true
		case *undefined:
			return !v.security
		}
		return false
	})
	test("lower", "", func(st *state, v Value, _ []Value) bool {
		return cases(str(st, v), func(r rune) bool { return isUpperRune(r) })
	})
	test("upper", "", func(st *state, v Value, _ []Value) bool {
		return cases(str(st, v), func(r rune) bool { return isLowerRune(r) })
	})
	test("filter", "", func(st *state, v Value, _ []Value) bool { return filters[str(st, v)] != nil })
	test("test", "", func(st *state, v Value, _ []Value) bool { return tests[str(st, v)] != nil })
	test("sameas", "other", func(st *state, v Value, p []Value) bool {
		switch v.(type) {
		case nil, bool, int, string:
			return typeName(v) == typeName(p[0]) && st.equal(v, p[0])
		}
		return v == p[0]
	})
	for _, group := range [][]string{{"==", "eq", "equalto"}, {"!=", "ne"}, {">", "gt", "greaterthan"}, {">=", "ge"}, {"<", "lt", "lessthan"}, {"<=", "le"}} {
		for _, name := range group {
			test(name, "other", func(st *state, v Value, p []Value) bool { return st.compare(group[0], v, p[0]) })
		}
	}
	test("in", "seq", func(st *state, v Value, p []Value) bool { return st.contains(p[0], v) })
}
