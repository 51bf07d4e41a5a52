package jinja

import "strings"

// args are the arguments of a call. Functions keep neither slice.
type args struct {
	pos   []Value
	names []string // of keywords
	vals  []Value
}

// param is a parameter of a built-in function.
type param struct {
	name     string
	optional bool
	pos      bool // never by name
}

// params reads "a b? /": a question mark for what may be left out; a slash behind those that have no name for callers.
func params(spec string) []param {
	var out []param
	for f := range strings.FieldsSeq(spec) {
		if f == "/" {
			for i := range out {
				out[i].pos = true
			}
			continue
		}
		name, opt := strings.CutSuffix(f, "?")
		out = append(out, param{name: name, optional: opt})
	}
	return out
}

// bind gives one value a parameter, missing where it was left out. fn is for messages.
func (a args) bind(fn string, ps []param) []Value {
	if len(a.pos) > len(ps) {
		typeError("%s() takes %d positional arguments but %d were given", fn, len(ps), len(a.pos))
	}
	out := make([]Value, len(ps))
	copy(out, a.pos)
	for i := len(a.pos); i < len(ps); i++ {
		out[i] = missing
	}
next:
	for k, n := range a.names {
		for i, p := range ps {
			if p.name == n && !p.pos {
				if out[i] != missing {
					typeError("%s() got multiple values for argument '%s'", fn, n)
				}
				out[i] = a.vals[k]
				continue next
			}
		}
		typeError("%s() got an unexpected keyword argument '%s'", fn, n)
	}
	for i, p := range ps {
		if out[i] == missing && !p.optional {
			typeError("%s() missing 1 required positional argument: '%s'", fn, p.name)
		}
	}
	return out
}

// use raises where v is undefined.
func use(v Value) {
	if u, ok := v.(*undefined); ok {
		u.raise()
	}
}

// integer is v as an index; bools count.
func integer(v Value, what string) int {
	switch n, _ := number(v); n := n.(type) {
	case int:
		return n
	case nil, float64:
		typeError("%s: '%s' object cannot be interpreted as an integer", what, typeName(v))
	}
	fail("OverflowError", "%s: Python int too large to convert to C ssize_t", what)
	return 0
}

// intOr is v as an index, or def where it was left out.
func intOr(v Value, def int, what string) int {
	if v == missing {
		return def
	}
	return integer(v, what)
}

// stringOf is v, which must be a string.
func stringOf(v Value, what string) string {
	s, ok := text(v)
	if !ok {
		typeError("%s: must be str, not %s", what, typeName(v))
	}
	return s
}

func or(v, def Value) Value {
	if v == missing {
		return def
	}
	return v
}
