package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// dumper writes JSON as Python's json.dumps.
type dumper struct {
	st         *state
	b          []byte
	ascii      bool
	indent     string
	lines      bool // with indent
	comma, col string
	sort       bool
	depth      int
}

func (st *state) tojson(v Value, p []Value) Value {
	d := dumper{st: st, ascii: truth(or(p[0], false)), comma: ", ", col: ": ", sort: truth(or(p[3], false))}
	if in := or(p[1], nil); in != nil {
		d.lines, d.comma = true, ","
		if s, ok := text(in); ok {
			d.indent = s
		} else if n := integer(in, "tojson: indent"); n > 0 {
			st.share(n, 1)
			d.indent = strings.Repeat(" ", n)
		}
	}
	if seps := or(p[2], nil); seps != nil {
		items := st.unpack(seps, 2)
		d.comma, d.col = stringOf(items[0], "tojson: separators"), stringOf(items[1], "tojson: separators")
	}
	d.value(v)
	return string(d.b)
}

func (d *dumper) add(s string) {
	d.st.alloc(len(s))
	d.b = append(d.b, s...)
}

func (d *dumper) line() {
	if d.lines {
		d.add("\n")
		for range d.depth {
			d.add(d.indent)
		}
	}
}

func jsonNumber(n Value) string {
	f, ok := n.(float64)
	switch {
	case !ok:
		return repr(nil, n)
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f != f:
		return "NaN"
	}
	return floatText(f)
}

func (d *dumper) value(v Value) {
	d.st.work(32)
	if n, ok := number(v); ok {
		if b, ok := v.(bool); ok {
			d.add(strconv.FormatBool(b))
		} else {
			d.add(jsonNumber(n))
		}
		return
	}
	if s, ok := text(v); ok {
		d.text(s)
		return
	}
	switch v := v.(type) {
	case nil:
		d.add("null")
	case *List:
		d.list(v.Items)
	case *tuple:
		d.list(v.items)
	case *Dict:
		d.dict(v)
	default:
		typeError("Object of type %s is not JSON serializable", typeName(v))
	}
}

func (d *dumper) deeper() {
	if d.depth++; d.depth > maxValueDepth {
		limit("a value nested more than %d deep", maxValueDepth)
	}
}

func (d *dumper) list(items []Value) {
	if len(items) == 0 {
		d.add("[]")
		return
	}
	d.add("[")
	d.deeper()
	for i, x := range items {
		if i > 0 {
			d.add(d.comma)
		}
		d.line()
		d.value(x)
	}
	d.depth--
	d.line()
	d.add("]")
}

func (d *dumper) dict(v *Dict) {
	if len(v.keys) == 0 {
		d.add("{}")
		return
	}
	order := make([]int, len(v.keys))
	for i := range order {
		order[i] = i
	}
	if d.sort {
		slices.SortStableFunc(order, func(a, b int) int { c, _ := d.st.order("<", v.keys[a], v.keys[b]); return c })
	}
	d.add("{")
	d.deeper()
	for n, i := range order {
		if n > 0 {
			d.add(d.comma)
		}
		d.line()
		k := v.keys[i]
		if s, ok := text(k); ok {
			d.text(s)
		} else if b, ok := k.(bool); ok {
			d.text(strconv.FormatBool(b))
		} else if num, ok := number(k); ok {
			d.text(jsonNumber(num))
		} else if k == nil {
			d.text("null")
		} else {
			typeError("keys must be str, int, float, bool or None, not %s", typeName(k))
		}
		d.add(d.col)
		d.value(v.vals[i])
	}
	d.depth--
	d.line()
	d.add("}")
}

func (d *dumper) text(s string) {
	d.st.alloc(len(s) + 2)
	d.b = append(d.b, '"')
	from := 0
	for i, r := range s {
		var e string
		switch {
		case r == '"':
			e = `\"`
		case r == '\\':
			e = `\\`
		case r >= ' ' && r < 0x7f, r >= 0x7f && (!d.ascii || d.st.isMark(r)):
			continue
		case r == '\n':
			e = `\n`
		case r == '\r':
			e = `\r`
		case r == '\t':
			e = `\t`
		case r == '\f':
			e = `\f`
		case r == '\b':
			e = `\b`
		case r < 0x10000:
			e = fmt.Sprintf(`\u%04x`, r)
		default:
			e = fmt.Sprintf(`\u%04x\u%04x`, 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF)
		}
		d.st.alloc(len(e))
		d.b = append(append(d.b, s[from:i]...), e...)
		from = i + utf8.RuneLen(r)
	}
	d.b = append(append(d.b, s[from:]...), '"')
}

// MaxJSONDepth is how deep values that ParseJSON reads may nest.
const MaxJSONDepth = 100

// ParseJSON reads one JSON value as Python's json.loads: objects keep the order of their keys, integers their digits. text, where it is not
// nil, is applied to every string, keys too.
func ParseJSON(raw []byte, text func(string) string) (v Value, err error) {
	j := json.NewDecoder(bytes.NewReader(raw))
	j.UseNumber()
	if v, err = parseJSON(j, 0, text); err != nil {
		return nil, err
	}
	if _, err := j.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

func parseJSON(j *json.Decoder, depth int, text func(string) string) (Value, error) {
	if depth > MaxJSONDepth {
		return nil, fmt.Errorf("nested more than %d deep", MaxJSONDepth)
	}
	tok, err := j.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	switch t := tok.(type) {
	case json.Delim:
		if t == '[' {
			out := &List{}
			for j.More() {
				v, err := parseJSON(j, depth+1, text)
				if err != nil {
					return nil, err
				}
				out.Items = append(out.Items, v)
			}
			_, err := j.Token()
			return out, err
		}
		out := NewDict(4)
		for j.More() {
			k, err := parseJSON(j, depth+1, text)
			if err != nil {
				return nil, err
			}
			v, err := parseJSON(j, depth+1, text)
			if err != nil {
				return nil, err
			}
			out.put(k, v)
		}
		_, err := j.Token()
		return out, err
	case string:
		if text != nil {
			if g := text(t); g != t {
				return g, nil
			}
		}
		return tok, nil // as it is: it is in an interface already
	case json.Number:
		return jsonValue(string(t))
	}
	return tok, nil // nil, bool
}

func jsonValue(s string) (Value, error) {
	if strings.ContainsAny(s, ".eE") {
		f, _ := strconv.ParseFloat(s, 64) // too large is infinity, as in Python
		return f, nil
	}
	if i, err := strconv.Atoi(s); err == nil {
		return i, nil
	}
	if len(s) > maxDigits {
		return nil, fmt.Errorf("an integer of more than %d digits", maxDigits)
	}
	b, _ := new(big.Int).SetString(s, 10)
	return normal(b), nil
}
