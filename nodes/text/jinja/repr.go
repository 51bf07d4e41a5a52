package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// floatText is repr(f).
func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case f != f:
		return "nan"
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	i := strings.IndexByte(s, 'e')
	exp, _ := strconv.Atoi(s[i+1:])
	if exp < -4 || exp >= 16 {
		return s
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// str is str(v). What shows an address of memory in Python is refused: no two renders would agree.
func str(st *state, v Value) string {
	switch v := v.(type) {
	case string:
		return v
	case markup:
		return string(v)
	case *undefined:
		return ""
	}
	return repr(st, v)
}

// repr is repr(v). st may be nil.
func repr(st *state, v Value) string {
	switch v := v.(type) {
	case string:
		return quoteMarked(st, v)
	case int:
		return strconv.Itoa(v)
	}
	r := representer{st: st}
	r.value(v)
	return r.b.String()
}

func quote(s string) string { return quoteMarked(nil, s) }

type representer struct {
	st    *state
	b     strings.Builder
	depth int
}

func (r *representer) add(s string) {
	r.st.alloc(len(s))
	r.b.WriteString(s)
}

func (r *representer) value(v Value) {
	if r.depth++; r.depth > maxValueDepth {
		limit("a value nested more than %d deep", maxValueDepth)
	}
	r.st.work(64)
	switch v := v.(type) {
	case nil:
		r.add("None")
	case bool:
		r.add(map[bool]string{true: "True", false: "False"}[v])
	case int:
		r.add(strconv.Itoa(v))
	case *big.Int:
		s := v.String()
		if len(s) > maxDigits {
			valueError("Exceeds the limit (%d digits) for integer string conversion; use sys.set_int_max_str_digits() to increase the limit", maxDigits)
		}
		r.add(s)
	case float64:
		r.add(floatText(v))
	case string:
		r.add(quoteMarked(r.st, v))
	case markup:
		r.add("Markup(" + quoteMarked(r.st, string(v)) + ")")
	case *List:
		r.items("[", v.Items, "]")
	case *tuple:
		end := ")"
		if len(v.items) == 1 {
			end = ",)"
		}
		r.items("(", v.items, end)
	case *Dict:
		r.dict(v)
	case rangeOf:
		s := fmt.Sprintf("range(%d, %d)", v.from, v.to)
		if v.by != 1 {
			s = fmt.Sprintf("range(%d, %d, %d)", v.from, v.to, v.by)
		}
		r.add(s)
	case *view:
		items := v.d.keys
		switch v.kind {
		case "dict_values":
			items = v.d.vals
		case "dict_items":
			items = r.st.pairs(v.d)
		}
		r.add(v.kind)
		r.items("([", items, "])")
	case *undefined:
		r.add("Undefined")
	case *namespace:
		r.add("<Namespace ")
		r.dict(v.d)
		r.add(">")
	case *macro:
		if v.def.name == "" {
			r.add("<Macro anonymous>")
		} else {
			r.add("<Macro " + quote(v.def.name) + ">")
		}
	case *loop:
		r.add(fmt.Sprintf("<LoopContext %d/%d>", v.index+1, v.size(r.st)))
	case *slice:
		r.add("slice(")
		r.value(v.from)
		r.add(", ")
		r.value(v.to)
		r.add(", ")
		r.value(v.by)
		r.add(")")
	case hashNone, hashUndef, hashBig, hashTuple:
		r.add(fmt.Sprintf("%T%v", v, v))
	default:
		typeError("a %s is printed, which would show an address of memory: it must be called or made a list", typeName(v))
	}
	r.depth--
}

const maxValueDepth = 200

func (r *representer) items(open string, items []Value, end string) {
	r.add(open)
	for i, x := range items {
		if i > 0 {
			r.add(", ")
		}
		r.value(x)
	}
	r.add(end)
}

func (r *representer) dict(d *Dict) {
	r.add("{")
	for i, k := range d.keys {
		if i > 0 {
			r.add(", ")
		}
		r.value(k)
		r.add(": ")
		r.value(d.vals[i])
	}
	r.add("}")
}

// pairs are the items of a dict as tuples.
func (st *state) pairs(d *Dict) []Value {
	st.alloc(4 * valueSize * len(d.keys))
	out := make([]Value, len(d.keys))
	for i, k := range d.keys {
		out[i] = &tuple{items: []Value{k, d.vals[i]}}
	}
	return out
}

// runeEscape is a rune beyond ASCII in Python's escapes, without the backslash's own escape.
func runeEscape(r rune) string {
	switch {
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// quoteMarked is repr of a string; marks stay what they are.
func quoteMarked(st *state, s string) string {
	q := byte('\'')
	if strings.IndexByte(s, '\'') >= 0 && strings.IndexByte(s, '"') < 0 {
		q = '"'
	}
	b := make([]byte, 0, len(s)+2)
	b = append(b, q)
	for _, r := range s {
		switch {
		case r == rune(q) || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < ' ' || r == 0x7f:
			b = append(b, runeEscape(r)...)
		case r < utf8.RuneSelf || unicode.IsPrint(r) || st.isMark(r):
			b = utf8.AppendRune(b, r)
		default:
			b = append(b, runeEscape(r)...)
		}
	}
	return string(append(b, q))
}

func (st *state) isMark(r rune) bool {
	return st != nil && r >= 0xFDD0 && (st.mark == string(r) || st.hold == string(r))
}
