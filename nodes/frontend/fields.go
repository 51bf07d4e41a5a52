package frontend

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/flow"
)

// maxDepth bounds the nesting of a body: templates recurse over it.
const maxDepth = 64

// fields reads a JSON object strictly: it is valid UTF-8 without repeated names, every field is asked for by its name and type, and what
// nobody asked for is refused. The first error stays in err; reading goes on and gives zero values.
type fields struct {
	raw   map[string]jsontext.Value
	names []string // of raw, in the body's order
	asked []string
	err   *flow.Error
}

func newFields(body []byte) *fields {
	f := &fields{raw: map[string]jsontext.Value{}}
	if len(bytes.TrimSpace(body)) == 0 {
		f.err = bad("", "the body is empty; it must be a JSON object")
		return f
	}
	if deep(body) {
		f.err = bad("", "the body is nested deeper than %d levels", maxDepth)
		return f
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(body))
	if k := d.PeekKind(); k != '{' {
		if _, err := d.ReadToken(); err != nil {
			f.syntax(err)
			return f
		}
		f.err = bad("", "the body must be a JSON object")
		return f
	}
	if _, err := d.ReadToken(); err != nil {
		f.syntax(err)
		return f
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			f.syntax(err)
			return f
		}
		key := name.String()
		v, err := d.ReadValue()
		if err != nil {
			f.syntax(err)
			return f
		}
		f.names = append(f.names, key)
		end := d.InputOffset()
		f.raw[key] = jsontext.Value(body[end-int64(len(v)) : end : end])
	}
	if _, err := d.ReadToken(); err != nil {
		f.syntax(err)
		return f
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		f.err = bad("", "the body goes on after its JSON object, at byte %d", d.InputOffset())
	}
	return f
}

// deep reports whether brackets nest too deep; it need not be exact about broken JSON.
func deep(b []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

func (f *fields) syntax(err error) {
	var s *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		at := ""
		if errors.As(err, &s) {
			at = strings.ReplaceAll(strings.TrimPrefix(string(s.JSONPointer), "/"), "/", ".")
		}
		f.err = bad(at, "the body has the field %q twice", clip(at))
	case errors.As(err, &s):
		if errors.Is(err, io.ErrUnexpectedEOF) {
			f.err = bad("", "the body is not valid JSON: it ends too early, at byte %d", s.ByteOffset)
			return
		}
		f.err = bad("", "the body is not valid JSON: %v at byte %d", s.Err, s.ByteOffset)
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		f.err = bad("", "the body is not valid JSON: it ends too early")
	default:
		f.err = bad("", "the body is not valid JSON")
	}
}

// fail keeps the first error.
func (f *fields) fail(e *flow.Error) {
	if f.err == nil {
		f.err = e
	}
}

// get returns a field's value; ok is false where it is absent or null.
func (f *fields) get(name string) (jsontext.Value, bool) {
	f.asked = append(f.asked, name)
	v, ok := f.raw[name]
	return v, ok && v.Kind() != 'n'
}

// has reports whether a field is set, without asking for it.
func (f *fields) has(name string) bool {
	v, ok := f.raw[name]
	return ok && v.Kind() != 'n'
}

func (f *fields) str(name string) string {
	v, ok := f.get(name)
	if !ok {
		return ""
	}
	s, ok := text(v)
	if !ok {
		f.fail(bad(name, "%s must be a string, not %s", name, what(v)))
	}
	return s
}

func (f *fields) boolean(name string) bool {
	v, ok := f.get(name)
	if ok && v.Kind() != 't' && v.Kind() != 'f' {
		f.fail(bad(name, "%s must be true or false, not %s", name, what(v)))
	}
	return ok && v.Kind() == 't'
}

// number reads a number in [lo, hi]; def is what an absent field gives.
func (f *fields) number(name string, lo, hi, def float64) float32 {
	v, ok := f.get(name)
	if !ok {
		return float32(def)
	}
	x, err := strconv.ParseFloat(string(v), 64)
	switch {
	case v.Kind() != '0':
		f.fail(bad(name, "%s must be a number, not %s", name, what(v)))
	case err != nil || x < lo || x > hi:
		f.fail(bad(name, "%s must be between %v and %v, it is %s", name, lo, hi, clip(string(v))))
	}
	return float32(x)
}

// integer reads a whole number in [lo, hi]; 100.0 and 1e2 are whole.
func (f *fields) integer(name string, lo, hi, def int64) int64 {
	v, ok := f.get(name)
	if !ok {
		return def
	}
	n, ok := whole(v)
	switch {
	case v.Kind() != '0':
		f.fail(bad(name, "%s must be a whole number, not %s", name, what(v)))
	case !ok:
		f.fail(bad(name, "%s must be a whole number of at most 19 digits, it is %s", name, clip(string(v))))
	case n < lo && hi == math.MaxInt64:
		f.fail(bad(name, "%s must be at least %d, it is %d", name, lo, n))
	case n < lo || n > hi:
		f.fail(bad(name, "%s must be between %d and %d, it is %d", name, lo, hi, n))
	}
	return n
}

// object reads an object as it is.
func (f *fields) object(name string) json.RawMessage {
	v, ok := f.get(name)
	if !ok {
		return nil
	}
	if v.Kind() != '{' {
		f.fail(bad(name, "%s must be an object, not %s", name, what(v)))
	}
	return v
}

// list reads an array's elements.
func (f *fields) list(name string) ([]jsontext.Value, bool) {
	v, ok := f.get(name)
	if !ok {
		return nil, false
	}
	l, ok := elements(v)
	if !ok {
		f.fail(bad(name, "%s must be an array, not %s", name, what(v)))
	}
	return l, ok
}

// strict refuses what nobody asked for.
func (f *fields) strict(unsupported map[string]string) {
	for _, n := range f.names {
		if slices.Contains(f.asked, n) {
			continue
		}
		if why, ok := unsupported[n]; ok {
			if f.raw[n].Kind() == 'n' {
				continue
			}
			f.fail(&flow.Error{Class: flow.InvalidRequest, Reason: "request.unsupported", Param: n, Msg: n + ": " + why})
			continue
		}
		msg := "unknown field \"" + clip(n) + "\""
		if s := diag.Suggest(n, f.asked); s != "" {
			msg += "; " + s
		}
		f.fail(&flow.Error{Class: flow.InvalidRequest, Reason: "request.unknown_field", Param: clip(n), Msg: msg})
	}
}

func text(v jsontext.Value) (string, bool) {
	if v.Kind() != '"' {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, v)
	return string(b), err == nil
}

func whole(v jsontext.Value) (int64, bool) {
	if v.Kind() != '0' {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n, true
	}
	x, err := strconv.ParseFloat(string(v), 64)
	if err != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return 0, false
	}
	return int64(x), true
}

// elements splits an array that is known to be valid.
func elements(v jsontext.Value) ([]jsontext.Value, bool) {
	if v.Kind() != '[' {
		return nil, false
	}
	var raw []jsontext.Value
	d := jsontext.NewDecoder(bytes.NewBuffer(v))
	if _, err := d.ReadToken(); err != nil {
		return nil, false
	}
	for d.PeekKind() != ']' {
		e, err := d.ReadValue()
		if err != nil {
			return nil, false
		}
		end := d.InputOffset()
		raw = append(raw, v[end-int64(len(e)):end:end])
	}
	return raw, true
}

// what names a value's type, for messages.
func what(v jsontext.Value) string {
	switch v.Kind() {
	case '"':
		return "a string"
	case '0':
		return "the number " + clip(string(v))
	case 't', 'f':
		return string(v)
	case '[':
		return "an array"
	case '{':
		return "an object"
	}
	return "null"
}
