package constrain

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// jv is a JSON value with its keys in order.
type jv struct {
	kind byte // '{' '[' '"' '0' 't' 'f' 'n'
	text string
	keys []string
	vals []*jv // of keys, or elements

	at      map[string]int // of many keys; nil: not made yet
	indexed int            // how many it was made of
	same    string         // what equal values have in common; "": not made yet
}

// get is the value of a key, or nil.
func (v *jv) get(key string) *jv {
	if i := v.index(key); i >= 0 {
		return v.vals[i]
	}
	return nil
}

// index is where a key stands, or -1.
func (v *jv) index(key string) int {
	if v == nil || v.kind != '{' {
		return -1
	}
	if len(v.keys) < 16 {
		return slices.Index(v.keys, key)
	}
	if v.at == nil || v.indexed != len(v.keys) { // keys may have come since
		v.at, v.indexed = make(map[string]int, len(v.keys)), len(v.keys)
		for i, k := range v.keys {
			v.at[k] = i
		}
	}
	if i, ok := v.at[key]; ok {
		return i
	}
	return -1
}

// maxJSONDepth bounds the nesting of schemas and tags.
const maxJSONDepth = 200

func parseJSON(b []byte) (*jv, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	v, err := readJSON(d, 0)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("not JSON at byte %d: %w", d.InputOffset(), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("not JSON at byte %d: more follows", d.InputOffset())
	}
	return v, nil
}

func readJSON(d *json.Decoder, depth int) (*jv, error) {
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("nests deeper than %d", maxJSONDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case string:
		return &jv{kind: '"', text: t}, nil
	case json.Number:
		return &jv{kind: '0', text: t.String()}, nil
	case bool:
		if t {
			return &jv{kind: 't', text: "true"}, nil
		}
		return &jv{kind: 'f', text: "false"}, nil
	case nil:
		return &jv{kind: 'n', text: "null"}, nil
	case json.Delim:
		v := &jv{kind: byte(t)}
		has := map[string]bool{}
		for d.More() {
			if t == '{' {
				k, err := d.Token()
				if err != nil {
					return nil, err
				}
				s, ok := k.(string)
				if !ok {
					return nil, fmt.Errorf("want a key")
				}
				if has[s] {
					return nil, fmt.Errorf("the key %q stands twice in one object", s[:min(len(s), 40)])
				}
				has[s] = true
				v.keys = append(v.keys, s)
			}
			e, err := readJSON(d, depth+1)
			if err != nil {
				return nil, err
			}
			v.vals = append(v.vals, e)
		}
		_, err := d.Token()
		return v, err
	}
	return nil, fmt.Errorf("unexpected %v", t)
}

// equal compares values as JSON Schema does: keys have no order, and 1.0 is 1.
func (v *jv) equal(w *jv) bool { return v.kind == w.kind && v.key() == w.key() }

// key is the same text for equal values, and for no others.
func (v *jv) key() string {
	if v.same != "" {
		return v.same
	}
	switch v.kind {
	case '"':
		v.same = `"` + strconv.Itoa(len(v.text)) + ":" + v.text
	case '0':
		v.same = number(v.text)
	case '[', '{':
		parts := make([]string, len(v.vals))
		for i, e := range v.vals {
			if parts[i] = e.key(); v.kind == '{' {
				parts[i] = strconv.Itoa(len(v.keys[i])) + ":" + v.keys[i] + parts[i]
			}
		}
		if v.kind == '{' {
			slices.Sort(parts)
		}
		v.same = string(v.kind) + strings.Join(parts, ",") + string(v.kind+2)
	default:
		v.same = string(v.kind)
	}
	if len(v.same) > 100 { // values nest, and each would hold what is in it
		sum := sha256.Sum256([]byte(v.same))
		v.same = "#" + string(sum[:])
	}
	return v.same
}

// number is one text for all that a number may be written as: digits that end in none of 0, and an exponent.
func number(text string) string {
	mantissa, power, _ := strings.Cut(strings.ToLower(text), "e")
	sign := ""
	if rest, ok := strings.CutPrefix(mantissa, "-"); ok {
		sign, mantissa = "-", rest
	}
	exp := 0
	if power != "" {
		var err error
		if exp, err = strconv.Atoi(power); err != nil {
			return text
		}
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+frac, "0")
	exp -= len(frac)
	cut := strings.TrimRight(digits, "0")
	if cut == "" {
		return "0"
	}
	return sign + cut + "e" + strconv.Itoa(exp+len(digits)-len(cut))
}

// Pieces of JSON. Blanks are optional and bounded, so that no output is blanks without end.
var (
	blank  = Optional(Alt{Text(" "), Seq{Text("\n"), Repeat{Class{Ranges: []Range{{' ', ' '}, {'\t', '\t'}}}, 0, 40}}})
	comma  = Seq{Text(","), blank}
	colon  = Seq{Text(":"), Optional(Text(" "))}
	digit  = Class{Ranges: []Range{{'0', '9'}}}
	hex    = Class{Ranges: []Range{{'0', '9'}, {'a', 'f'}, {'A', 'F'}}}
	quote  = Text(`"`)
	escape = Seq{Text(`\`), Alt{
		Class{Ranges: []Range{{'"', '"'}, {'\\', '\\'}, {'/', '/'}, {'b', 'b'}, {'f', 'f'}, {'n', 'n'}, {'r', 'r'}, {'t', 't'}}},
		Seq{Text("u"), Alt{
			Seq{Class{Ranges: []Range{{'0', '9'}, {'a', 'c'}, {'A', 'C'}, {'e', 'f'}, {'E', 'F'}}}, hex, hex, hex},
			Seq{Class{Ranges: []Range{{'d', 'd'}, {'D', 'D'}}}, Class{Ranges: []Range{{'0', '7'}}}, hex, hex},
			Seq{
				Class{Ranges: []Range{{'d', 'd'}, {'D', 'D'}}}, Class{Ranges: []Range{{'8', '9'}, {'a', 'b'}, {'A', 'B'}}}, hex, hex, Text(`\u`),
				Class{Ranges: []Range{{'d', 'd'}, {'D', 'D'}}}, Class{Ranges: []Range{{'c', 'f'}, {'C', 'F'}}}, hex, hex,
			},
		}},
	}}
	plain  = Class{Ranges: []Range{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}, Not: true}
	char   = Alt{plain, escape}
	minus  = Optional(Text("-"))
	whole  = Alt{Text("0"), Seq{Class{Ranges: []Range{{'1', '9'}}}, Repeat{digit, 0, 17}}}
	anyInt = Seq{minus, whole}
	frac   = Seq{Text("."), Repeat{digit, 1, 17}}
	anyNum = Seq{minus, whole, Optional(frac), Optional(Seq{Class{Ranges: []Range{{'e', 'e'}, {'E', 'E'}}}, Optional(Class{Ranges: []Range{{'+', '+'}, {'-', '-'}}}), Repeat{digit, 1, 2}})}
)

// literal is v, with the blanks that JSON may have.
func literal(v *jv) Node {
	switch v.kind {
	case '"':
		return Text(jsonString(v.text))
	case '{', '[':
		s := Seq{Text(string(v.kind)), blank}
		for i, e := range v.vals {
			if i > 0 {
				s = append(s, comma)
			}
			if v.kind == '{' {
				s = append(s, Text(jsonString(v.keys[i])), colon)
			}
			s = append(s, literal(e))
		}
		return append(s, blank, Text(string(v.kind+2)))
	}
	return Text(v.text)
}

func jsonString(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}

// inString is n, which says what a string holds, as it stands between the quotation marks of JSON.
func inString(n Node) Node {
	switch n := n.(type) {
	case Text:
		var s Seq
		for _, r := range string(n) {
			s = append(s, inString(Class{Ranges: []Range{{r, r}}}))
		}
		return s
	case Class:
		var c Class
		var a Alt
		for _, r := range normal(n) {
			for _, x := range []rune{'"', '\\', '/', '\b', '\f', '\n', '\r', '\t'} {
				if x >= r.From && x <= r.To {
					a = append(a, Seq{Text(`\`), Text(map[rune]string{'\b': "b", '\f': "f", '\n': "n", '\r': "r", '\t': "t"}[x] + strings.Trim(string(x), "\b\f\n\r\t"))})
				}
			}
			for x := max(r.From, 0); x <= min(r.To, 0x1F); x++ {
				a = append(a, Text(fmt.Sprintf(`\u%04x`, x)))
			}
			for _, p := range []Range{{0x20, '!'}, {'#', '['}, {']', 0x10FFFF}} {
				if from, to := max(r.From, p.From), min(r.To, p.To); from <= to {
					c.Ranges = append(c.Ranges, Range{from, to})
				}
			}
		}
		if len(c.Ranges) > 0 {
			a = append(a, c)
		}
		if len(a) == 1 {
			return a[0]
		}
		return a
	case Seq:
		out := make(Seq, len(n))
		for i, x := range n {
			out[i] = inString(x)
		}
		return out
	case Alt:
		out := make(Alt, len(n))
		for i, x := range n {
			out[i] = inString(x)
		}
		return out
	case Repeat:
		n.Node = inString(n.Node)
		return n
	}
	return n
}
