package jinja

import (
	"fmt"
	"math/big"
	"strconv"
	"unicode/utf8"
)

// Value is nil, bool, int, *big.Int (beyond int), float64, string, *List or *Dict, or a value that only templates make. Values that were
// given to Render must not change while it runs.
type Value = any

// List is a list.
type List struct{ Items []Value }

// NewList makes a list of items, which it keeps.
func NewList(items ...Value) *List { return &List{items} }

type (
	tuple struct {
		items []Value
		group bool // of groupby: has the attributes grouper and list
	}

	markup string // text that escapes what is added to it

	rangeOf struct{ from, to, by int }

	slice struct{ from, to, by Value } // where a subscript is no single slice

	// view is dict.keys(), .values() or .items().
	view struct {
		d    *Dict
		kind string // "dict_keys", "dict_values", "dict_items"
	}

	// iter gives values once.
	iter struct {
		kind string // "generator", "list_reverseiterator", …
		next func(*state) (Value, bool)
	}

	undefined struct {
		hint     string
		obj      Value // noObj where the name is a variable's
		name     Value
		security bool // using it is a SecurityError
	}

	namespace struct{ d *Dict }

	cycler struct {
		items []Value
		pos   int
	}

	joiner struct {
		sep  string
		used bool
	}

	// method is a method that was not called yet.
	method struct {
		recv Value
		name string
		call func(*state, Value, args) Value
	}

	// function is a global one.
	function struct {
		name string
		call func(*state, args) Value
	}

	missingT struct{}
)

var (
	missing Value = &missingT{} // a variable that is not set
	noObj   Value = &missingT{}
)

// typeName is Python's name of v's type.
func typeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int, *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case markup:
		return "Markup"
	case *List:
		return "list"
	case *tuple:
		if v.group {
			return "_GroupTuple"
		}
		return "tuple"
	case *Dict:
		return "dict"
	case rangeOf:
		return "range"
	case *slice:
		return "slice"
	case *view:
		return v.kind
	case *iter:
		return v.kind
	case *undefined:
		return "Undefined"
	case *namespace:
		return "Namespace"
	case *cycler:
		return "Cycler"
	case *joiner:
		return "Joiner"
	case *loop:
		return "LoopContext"
	case *macro:
		return "Macro"
	case *method:
		return "builtin_function_or_method"
	case *function:
		return "function"
	}
	return "object"
}

// objectName is how Jinja names an object in a message.
func objectName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case *namespace, *cycler, *joiner:
		return "jinja2.utils." + typeName(v) + " object"
	case *loop, *macro:
		return "jinja2.runtime." + typeName(v) + " object"
	case markup:
		return "markupsafe.Markup object"
	case *undefined:
		return "jinja2.runtime.Undefined object"
	}
	return typeName(v) + " object"
}

func (u *undefined) message() string {
	switch {
	case u.hint != "":
		return u.hint
	case u.obj == noObj:
		return repr(nil, u.name) + " is undefined"
	}
	if s, ok := u.name.(string); ok {
		return repr(nil, objectName(u.obj)) + " has no attribute " + repr(nil, s)
	}
	return objectName(u.obj) + " has no element " + repr(nil, u.name)
}

// raise is what any use of u but printing, testing and iterating does.
func (u *undefined) raise() {
	if u.security {
		fail("SecurityError", "%s", u.message())
	}
	fail("UndefinedError", "%s", u.message())
}

func truth(v Value) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case markup:
		return v != ""
	case *List:
		return len(v.Items) > 0
	case *tuple:
		return len(v.items) > 0
	case *Dict:
		return len(v.keys) > 0
	case rangeOf:
		return v.len() > 0
	case *view:
		return len(v.d.keys) > 0
	case *undefined:
		return false
	}
	return true
}

func (r rangeOf) len() int {
	switch {
	case r.by > 0 && r.from < r.to:
		return int((uint64(r.to)-uint64(r.from)-1)/uint64(r.by)) + 1
	case r.by < 0 && r.from > r.to:
		return int((uint64(r.from)-uint64(r.to)-1)/(-uint64(r.by))) + 1
	}
	return 0
}

// length is len(v); ok is false where it has none.
func (st *state) length(v Value) (n int, ok bool) {
	switch v := v.(type) {
	case string:
		st.work(len(v))
		return utf8.RuneCountInString(st.plain(v)), true
	case markup:
		return st.length(string(v))
	case *List:
		return len(v.Items), true
	case *tuple:
		return len(v.items), true
	case *Dict:
		return len(v.keys), true
	case rangeOf:
		return v.len(), true
	case *view:
		return len(v.d.keys), true
	case *loop:
		return v.size(st), true
	case *undefined:
		return 0, true
	}
	return 0, false
}

// Dict is a dict: it keeps the order of its keys. Use NewDict.
type Dict struct {
	keys, vals []Value
	index      map[any]int // by hash; nil while there are few
}

const fewKeys = 8

// NewDict makes an empty dict with room for n keys.
func NewDict(n int) *Dict { return &Dict{keys: make([]Value, 0, n), vals: make([]Value, 0, n)} }

// Len is the number of keys.
func (d *Dict) Len() int { return len(d.keys) }

// Keys are the keys in their order. It is not to be changed.
func (d *Dict) Keys() []Value { return d.keys }

// At gives the i-th key and value.
func (d *Dict) At(i int) (key, v Value) { return d.keys[i], d.vals[i] }

// Get is the value of a key.
func (d *Dict) Get(key string) (Value, bool) {
	if i := d.findString(key); i >= 0 {
		return d.vals[i], true
	}
	return nil, false
}

// Set sets the value of a key; a new one comes last.
func (d *Dict) Set(key string, v Value) { d.put(key, v) }

func (d *Dict) findString(key string) int {
	if d.index != nil {
		if i, ok := d.index[key]; ok {
			return i
		}
		return -1
	}
	for i, k := range d.keys {
		if s, ok := k.(string); ok && s == key {
			return i
		} else if m, ok := k.(markup); ok && string(m) == key {
			return i
		}
	}
	return -1
}

func (d *Dict) find(key Value) int {
	if s, ok := key.(string); ok {
		return d.findString(s)
	}
	h := hash(key)
	if d.index != nil {
		if i, ok := d.index[h]; ok {
			return i
		}
		return -1
	}
	for i, k := range d.keys {
		if hash(k) == h {
			return i
		}
	}
	return -1
}

func (d *Dict) put(key, v Value) {
	if i := d.find(key); i >= 0 {
		d.vals[i] = v
		return
	}
	d.keys = append(d.keys, key)
	d.vals = append(d.vals, v)
	switch n := len(d.keys); {
	case d.index != nil:
		d.index[hash(key)] = n - 1
	case n > fewKeys:
		d.index = make(map[any]int, 2*n)
		for i, k := range d.keys {
			d.index[hash(k)] = i
		}
	}
}

type (
	hashNone  struct{}
	hashUndef struct{}
	hashBig   string
	hashTuple string
)

// hash gives equal values for equal keys; what Python cannot hash is a TypeError.
func hash(v Value) any {
	switch v := v.(type) {
	case nil:
		return hashNone{}
	case bool:
		if v {
			return 1
		}
		return 0
	case markup:
		return string(v)
	case float64:
		if i := int(v); v >= -1<<62 && v <= 1<<62 && float64(i) == v {
			return i
		}
		return v
	case *big.Int:
		return hashBig(v.String())
	case *tuple:
		b := []byte(nil)
		for _, x := range v.items {
			h := hash(x)
			b = append(b, typeOf(h)...)
			s := fmt.Sprint(h)
			b = strconv.AppendInt(append(b, ' '), int64(len(s)), 10)
			b = append(append(b, ' '), s...)
		}
		return hashTuple(b)
	case *undefined:
		return hashUndef{}
	case *List, *Dict, *slice:
		typeError("unhashable type: '%s'", typeName(v))
	}
	return v
}
