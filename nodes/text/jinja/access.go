package jinja

import (
	"math/big"
	"strings"
	"unicode/utf8"
)

// What changes lists and dicts in place is unsafe in Jinja's immutable sandbox.
var (
	unsafeOfDict = words("clear pop popitem setdefault update")
	unsafeOfList = words("append clear pop reverse insert sort extend remove")
	ofObject     = words("__class__ __doc__ __init__ __new__ __repr__ __str__ __hash__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __dir__ __format__ " +
		"__getattribute__ __setattr__ __delattr__ __reduce__ __reduce_ex__ __sizeof__ __subclasshook__ __init_subclass__")
	ofContainer = words("__len__ __iter__ __contains__ __getitem__")
)

func words(s string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		m[w] = true
	}
	return m
}

// attribute is what Python's getattr finds; ok is false for an AttributeError.
func (st *state) attribute(v Value, name string) (Value, bool) {
	if u, ok := v.(*undefined); ok {
		if strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") && !ofObject[name] {
			return nil, false
		}
		if !ofObject[name] {
			u.raise()
		}
	}
	unsafe := false
	switch v.(type) {
	case *Dict:
		unsafe = unsafeOfDict[name] || ofContainer[name]
	case *List, *tuple:
		_, list := v.(*List)
		unsafe = unsafeOfList[name] && list || ofContainer[name]
	case string, markup:
		unsafe = ofContainer[name]
	}
	if unsafe || ofObject[name] {
		return &undefined{hint: "access to attribute '" + name + "' of '" + typeName(v) + "' object is unsafe.", security: true}, true
	}
	switch v := v.(type) {
	case *namespace:
		return v.d.Get(name)
	case *loop:
		return v.attribute(st, name)
	case *tuple:
		if v.group && (name == "grouper" || name == "list") {
			return v.items[map[string]int{"grouper": 0, "list": 1}[name]], true
		}
	case *macro:
		return v.attribute(name)
	case *cycler:
		switch name {
		case "current":
			return v.items[v.pos], true
		case "pos":
			return v.pos, true
		case "items":
			return &tuple{items: v.items}, true
		}
	case *joiner:
		switch name {
		case "sep":
			return v.sep, true
		case "used":
			return v.used, true
		}
	case rangeOf:
		switch name {
		case "start":
			return v.from, true
		case "stop":
			return v.to, true
		case "step":
			return v.by, true
		}
	case bool, int, *big.Int, float64:
		n, _ := number(v)
		_, float := n.(float64)
		switch {
		case name == "real":
			return n, true
		case name == "imag" && float:
			return 0.0, true
		case name == "imag":
			return 0, true
		case name == "numerator" && !float:
			return n, true
		case name == "denominator" && !float:
			return 1, true
		}
	}
	if m := findMethod(v, name); m != nil {
		return &method{v, name, m}, true
	}
	return nil, false
}

// getattr is v.name: an attribute, else an item.
func (st *state) getattr(v Value, name string) Value {
	if d, ok := v.(*Dict); ok && !dictNames[name] && name[0] != '_' {
		if i := d.findString(name); i >= 0 {
			return d.vals[i]
		}
		return &undefined{obj: v, name: name}
	}
	if x, ok := st.attribute(v, name); ok {
		return x
	}
	if x, ok := st.item(v, name); ok {
		return x
	}
	return &undefined{obj: v, name: name}
}

// getitem is v[key]: an item, else an attribute.
func (st *state) getitem(v, key Value) Value {
	if x, ok := st.item(v, key); ok {
		return x
	}
	if s, ok := text(key); ok {
		if x, ok := st.attribute(v, s); ok {
			return x
		}
	}
	return &undefined{obj: v, name: key}
}

// item is v[key] in Python; ok is false for a LookupError or a TypeError.
func (st *state) item(v, key Value) (Value, bool) {
	if u, ok := v.(*undefined); ok {
		u.raise()
	}
	if d, ok := v.(*Dict); ok {
		switch key.(type) {
		case *List, *Dict:
			return nil, false
		}
		if i := d.find(key); i >= 0 {
			return d.vals[i], true
		}
		return nil, false
	}
	if s, ok := key.(*slice); ok {
		switch v.(type) {
		case string, markup, *List, *tuple, rangeOf:
			return st.sliced(v, s.from, s.to, s.by), true
		}
		return nil, false
	}
	n, _ := number(key)
	i, ok := n.(int)
	if !ok {
		return nil, false
	}
	at := func(size int) bool {
		if i < 0 {
			i += size
		}
		return i >= 0 && i < size
	}
	switch v := v.(type) {
	case *List:
		if at(len(v.Items)) {
			return v.Items[i], true
		}
	case *tuple:
		if at(len(v.items)) {
			return v.items[i], true
		}
	case rangeOf:
		if at(v.len()) {
			return v.from + i*v.by, true
		}
	case string, markup:
		s, _ := text(v)
		_, safe := v.(markup)
		size, _ := st.length(v)
		if at(size) {
			c := st.cuts(s, func(p string) [][2]int {
				from := runeOffset(p, i)
				_, n := utf8.DecodeRuneInString(p[from:])
				return [][2]int{{from, from + n}}
			})[0]
			if safe {
				return markup(c), true
			}
			return c, true
		}
	}
	return nil, false
}

// runeOffset is where the n-th character of s begins.
func runeOffset(s string, n int) int {
	if n <= 0 {
		return 0
	}
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// bounds brings a slice to [from, to) or, with a negative step, (to, from], within size; nil stands for a bound that is not given.
func bounds(from, to, by Value, size int) (a, b, step int) {
	index := func(v Value) int {
		switch n, _ := number(v); n := n.(type) {
		case int:
			return n
		case *big.Int:
			if n.Sign() < 0 {
				return -1 << 62
			}
			return 1 << 62
		}
		typeError("slice indices must be integers or None or have an __index__ method")
		return 0
	}
	step = 1
	if by != nil {
		if step = index(by); step == 0 {
			valueError("slice step cannot be zero")
		}
	}
	low, high := 0, size
	if step < 0 {
		low, high = -1, size-1
	}
	clip := func(v Value, def int) int {
		if v == nil {
			return def
		}
		i := index(v)
		if i < 0 {
			i += size
		}
		return max(low, min(high, i))
	}
	if step > 0 {
		return clip(from, 0), clip(to, size), step
	}
	return clip(from, size-1), clip(to, -1), step
}

// sliced is v[from:to:by].
func (st *state) sliced(v, from, to, by Value) Value {
	use(v)
	pick := func(items []Value) []Value {
		a, b, step := bounds(from, to, by, len(items))
		if step == 1 {
			return items[a:max(a, b)]
		}
		var out []Value
		st.alloc(valueSize * len(items))
		for i := a; step > 0 && i < b || step < 0 && i > b; i += step {
			out = append(out, items[i])
			if step > len(items) || -step > len(items) {
				break
			}
		}
		return out
	}
	switch v := v.(type) {
	case string:
		return st.substring(v, from, to, by)
	case markup:
		return markup(st.substring(string(v), from, to, by))
	case *List:
		return &List{pick(v.Items)}
	case *tuple:
		return &tuple{items: pick(v.items)}
	case rangeOf:
		a, b, step := bounds(from, to, by, v.len())
		return rangeOf{v.from + a*v.by, v.from + b*v.by, v.by * step}
	case *Dict:
		typeError("unhashable type: 'slice'")
	}
	typeError("'%s' object is not subscriptable", typeName(v))
	return nil
}

func (st *state) substring(s string, from, to, by Value) string {
	st.work(len(s))
	size, _ := st.length(s)
	a, b, step := bounds(from, to, by, size)
	if step == 1 {
		if a >= b {
			return ""
		}
		return st.cuts(s, func(p string) [][2]int {
			i := runeOffset(p, a)
			return [][2]int{{i, i + runeOffset(p[i:], b-a)}}
		})[0]
	}
	st.alloc(2*valueSize*size + len(s))
	var chars []string
	for next := st.runes(s); ; {
		c, ok := next(st)
		if !ok {
			break
		}
		chars = append(chars, c.(string))
	}
	var out strings.Builder
	for i := a; step > 0 && i < b || step < 0 && i > b; i += step {
		out.WriteString(chars[i])
		if step > size || -step > size {
			break
		}
	}
	return out.String()
}

// call calls what is callable.
func (st *state) call(fn Value, a args) Value {
	switch fn := fn.(type) {
	case *macro:
		return st.callMacro(fn, a)
	case *method:
		st.step(1)
		return fn.call(st, fn.recv, a)
	case *function:
		st.step(1)
		return fn.call(st, a)
	case *loop:
		return fn.recurse(st, a)
	case *joiner:
		a.bind("__call__", nil)
		if !fn.used {
			fn.used = true
			return ""
		}
		return fn.sep
	case *undefined:
		fn.raise()
	}
	typeError("'%s' object is not callable", typeName(fn))
	return nil
}

func callable(v Value) bool {
	switch v.(type) {
	case *macro, *method, *function, *loop, *joiner, *undefined:
		return true
	}
	return false
}
