package constrain

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func wholeNumber(v *jv, path string) (int64, error) {
	if v.kind == '0' {
		if n, err := strconv.ParseInt(v.text, 10, 64); err == nil {
			return n, nil
		}
		if f, err := strconv.ParseFloat(v.text, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1e15 {
			return int64(f), nil
		}
	}
	return 0, at(path, "want a whole number, not %s", brief(v))
}

// span reads a pair of keywords that bound a number of things; max is -1 where there is none.
func span(v *jv, lo, hi, path string) (least, most int, err error) {
	most = -1
	for _, k := range []struct {
		name string
		to   *int
	}{{lo, &least}, {hi, &most}} {
		if e := v.get(k.name); e != nil {
			n, err := wholeNumber(e, path+"/"+k.name)
			if err == nil && (n < 0 || n > maxRepeat) {
				err = at(path+"/"+k.name, "want a number from 0 to %d, not %d", maxRepeat, n)
			}
			if err != nil {
				return 0, 0, err
			}
			*k.to = int(n)
		}
	}
	return least, most, nil
}

func (b *schemaReader) num(v *jv, whole bool, path string) (Node, error) {
	var d bounds
	for _, k := range []struct {
		name string
		low  bool
		open bool
	}{{"minimum", true, false}, {"exclusiveMinimum", true, true}, {"maximum", false, false}, {"exclusiveMaximum", false, true}} {
		e := v.get(k.name)
		if e == nil {
			continue
		}
		open := k.open
		if e.kind == 't' || e.kind == 'f' { // draft 4: a flag of minimum
			return nil, at(path+"/"+k.name, "want a number (drafts before 6 are not supported)")
		}
		n, err := wholeNumber(e, path+"/"+k.name)
		if err != nil {
			f, ferr := strconv.ParseFloat(e.text, 64)
			if e.kind != '0' || !whole || ferr != nil || math.Abs(f) > 1e15 {
				return nil, fmt.Errorf("%w; decimal bounds are not supported", err)
			}
			open = false // of whole numbers, 1.5 is as good a bound as 2
			if n = int64(math.Floor(f)); k.low {
				n = int64(math.Ceil(f))
			}
		}
		to, flag := &d.lo, &d.openLo
		if !k.low {
			to, flag = &d.hi, &d.openHi
		}
		if *to != nil && (k.low && **to > n || !k.low && **to < n || **to == n && *flag) {
			continue // the other of the two is narrower
		}
		*to, *flag = &n, open
	}
	if m := v.get("multipleOf"); m != nil {
		n, err := wholeNumber(m, path+"/multipleOf")
		switch {
		case err != nil || n < 1 || n > 1000:
			return nil, at(path+"/multipleOf", "want a whole number from 1 to 1000, not %s", brief(m))
		case n == 1 && whole:
		case d.lo != nil || d.hi != nil:
			return nil, at(path+"/multipleOf", "is not supported beside bounds")
		default:
			return multiples(b.g, n), nil
		}
	}
	if whole {
		return d.integer(), nil
	}
	return d.number(), nil
}

// formats are those that act; others are annotations, as the standard has it.
var formats = map[string]string{
	"date":      `[0-9]{4}-(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|[0-9]{4}-(0[469]|11)-(0[1-9]|[12][0-9]|30)|[0-9]{4}-02-(0[1-9]|1[0-9]|2[0-8])`,
	"time":      `([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])`,
	"uuid":      `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`,
	"email":     `[A-Za-z0-9_+-]{1,32}(\.[A-Za-z0-9_+-]{1,16}){0,2}@([a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?\.){1,4}[a-z]{2,16}`,
	"hostname":  `([a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?\.){0,4}[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?`,
	"ipv4":      `((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])`,
	"ipv6":      `([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}`,
	"duration":  `P([0-9]{1,6}W|[0-9]{1,6}D|[0-9]{1,4}Y([0-9]{1,4}M([0-9]{1,6}D)?)?|[0-9]{1,4}M([0-9]{1,6}D)?)|P([0-9]{1,6}D)?T([0-9]{1,6}H([0-9]{1,6}M([0-9]{1,6}S)?)?|[0-9]{1,6}M([0-9]{1,6}S)?|[0-9]{1,6}S)`,
	"uri":       `(https?|ftp)://([a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?\.){0,4}[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?(:[1-9][0-9]{1,3})?(/[A-Za-z0-9._~-]{0,64}){0,16}(\?[A-Za-z0-9._~=&-]{0,128})?(#[A-Za-z0-9._~-]{0,64})?`,
	"date-time": "",
}

func init() { formats["date-time"] = "(" + formats["date"] + ")T(" + formats["time"] + ")" }

func (b *schemaReader) str(v *jv, path string) (Node, error) {
	least, most, err := span(v, "minLength", "maxLength", path)
	if err != nil {
		return nil, err
	}
	bounded := v.get("minLength") != nil || v.get("maxLength") != nil
	source, from := "", ""
	if f := v.get("format"); f != nil && formats[f.text] != "" {
		source, from = "^(?:"+formats[f.text]+")$", "format"
	}
	if p := v.get("pattern"); p != nil {
		if source != "" {
			return nil, at(path+"/pattern", "is not supported beside format")
		}
		source, from = p.text, "pattern"
		if p.kind != '"' {
			return nil, at(path+"/pattern", "want a string")
		}
	}
	if from == "" {
		if !bounded {
			return b.anyString(), nil
		}
		return Seq{quote, Repeat{char, least, most}, quote}, nil
	}
	if bounded && (least > 1 || v.get("maxLength") != nil) {
		return nil, at(path, "minLength and maxLength are not supported beside %s; say it in the pattern", from)
	}
	n, err := pattern(source)
	if err != nil {
		return nil, at(path+"/"+from, "%v", err)
	}
	return Seq{quote, n, quote}, nil
}

// pattern is a regular expression that need not match from end to end, within a string of JSON.
func pattern(source string) (Node, error) {
	head, tail := strings.HasPrefix(source, "^"), strings.HasSuffix(source, "$") && !strings.HasSuffix(source, `\$`)
	if strings.Contains(source, "|") && (head || tail) { // ^a|b$ anchors each alternative by itself, unless it is all in one group
		if inner, ok := strings.CutPrefix(source, "^("); !ok || !tail || !oneGroup(inner[:max(0, len(inner)-1)]) {
			return nil, errors.New("alternatives that are anchored by themselves are not supported; write ^(?:a|b)$")
		}
	}
	n, err := Regex(source)
	if err != nil {
		return nil, err
	}
	n = inString(n)
	s := Seq{n}
	if !head {
		s = Seq{Repeat{char, 0, -1}, n}
	}
	if !tail {
		s = append(s, Repeat{char, 0, -1})
	}
	return s, nil
}

// oneGroup reports whether s, of which the opening bracket is taken, is one group to its end.
func oneGroup(s string) bool {
	depth, class := 1, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return i == len(s)-1
			}
		}
	}
	return false
}

func (b *schemaReader) array(v *jv, path string) (Node, error) {
	least, most, err := span(v, "minItems", "maxItems", path)
	if err != nil {
		return nil, err
	}
	if u := v.get("uniqueItems"); u != nil && u.kind != 'f' {
		return nil, at(path+"/uniqueItems", "is not supported: a grammar does not remember items")
	}
	var first []Node
	prefix, items, more := v.get("prefixItems"), v.get("items"), v.get("additionalItems")
	name := "prefixItems"
	if items != nil && items.kind == '[' { // until draft 2019-09
		prefix, items, name = items, more, "items"
	} else if more != nil && items == nil {
		items = more
	}
	if prefix != nil {
		for i, e := range prefix.vals {
			n, err := b.node(e, fmt.Sprintf("%s/%s/%d", path, name, i))
			if err != nil {
				return nil, err
			}
			first = append(first, n)
		}
	}
	if items == nil {
		items = v.get("unevaluatedItems")
	}
	var rest Node
	switch {
	case items != nil && items.kind != 'f':
		if rest, err = b.node(items, path+"/items"); err != nil {
			return nil, err
		}
		rest = b.g.Add("items", rest) // it stands in several places
	case items == nil && prefix == nil:
		rest = b.anyValue()
	}
	if most < 0 && rest == nil {
		most = len(first)
	}
	if rest == nil {
		most = min(most, len(first))
	}
	if most >= 0 && least > most {
		return Dead{}, nil
	}
	// Items of a place of their own, each optional behind the least; then the others.
	var tail Node
	if rest != nil {
		more := Seq{comma, rest}
		lo, hi := max(0, least-max(1, len(first))), -1
		if most >= 0 {
			hi = max(0, most-max(1, len(first)))
		}
		tail = Repeat{more, lo, hi}
		if len(first) == 0 {
			if most == 0 {
				tail = nil
			} else if tail = (Seq{rest, tail}); least == 0 {
				tail = Optional(tail)
			}
		} else if most >= 0 && most <= len(first) {
			tail = nil
		}
	}
	for i := len(first) - 1; i >= 0; i-- {
		if most >= 0 && i >= most {
			continue
		}
		s := Seq{first[i]}
		if i > 0 {
			s = Seq{comma, first[i]}
		}
		if tail = append(s, tail); i >= least {
			tail = Optional(tail)
		}
	}
	return Seq{Text("["), blank, tail, blank, Text("]")}, nil
}

func (b *schemaReader) object(v *jv, path string) (Node, error) {
	props, required := v.get("properties"), map[string]bool{}
	if props != nil && props.kind != '{' {
		return nil, at(path+"/properties", "want an object")
	}
	var order []string
	if r := v.get("required"); r != nil {
		for _, e := range r.vals {
			if !required[e.text] && props.get(e.text) == nil {
				order = append(order, e.text)
			}
			required[e.text] = true
		}
	}
	least, most, err := span(v, "minProperties", "maxProperties", path)
	if err != nil {
		return nil, err
	}
	extra, err := b.extra(v, props, order, path)
	if err != nil {
		return nil, err
	}
	names := slices.Concat(props.keysOf(), order)
	if len(names) > 0 && (most >= 0 && most < len(names) || most >= 0 && extra != nil || least > len(required)) {
		return nil, at(path, "minProperties and maxProperties are not supported beside properties")
	}
	// fresh is what may follow while nothing stands in the object, later what may follow a member.
	var fresh, later Node
	if extra != nil {
		extra = b.g.Add("member", extra) // it stands in several places
		lo, hi := 0, -1
		if len(names) == 0 {
			if lo = max(0, least-1); most >= 0 {
				hi = most - 1
			}
		}
		later = Repeat{Seq{comma, extra}, lo, hi}
		if fresh = (Seq{extra, later}); least == 0 || len(names) > 0 {
			fresh = Optional(fresh)
		}
		if most == 0 {
			fresh = nil
		}
	} else if least > len(names) {
		return Dead{}, nil
	}
	for i := len(names) - 1; i >= 0; i-- {
		sub := props.get(names[i])
		if sub == nil { // required, but not declared
			if sub = v.get("additionalProperties"); sub == nil {
				sub = &jv{kind: 't'}
			}
		}
		n, err := b.node(sub, path+"/properties/"+strings.ReplaceAll(strings.ReplaceAll(names[i], "~", "~0"), "/", "~1"))
		if err != nil {
			return nil, err
		}
		member := b.g.Add("member", Seq{Text(jsonString(names[i])), colon, n})
		after := b.g.Add("members", later)
		f, l := Seq{member, after}, Seq{comma, member, after}
		if required[names[i]] {
			fresh, later = f, l
		} else {
			fresh, later = Alt{f, b.g.Add("members", fresh)}, Alt{l, after}
		}
	}
	return Seq{Text("{"), blank, fresh, blank, Text("}")}, nil
}

// extra is a member beside those that are declared; nil if there can be none.
func (b *schemaReader) extra(v, props *jv, required []string, path string) (Node, error) {
	add, pat := v.get("additionalProperties"), v.get("patternProperties")
	if add == nil {
		add = v.get("unevaluatedProperties")
	}
	key := v.get("propertyNames")
	if pat != nil && len(pat.keys) > 0 {
		p := path + "/patternProperties"
		if len(pat.keys) > 1 || key != nil || add != nil && add.kind != 'f' {
			return nil, at(p, "only one pattern is supported, without propertyNames and with additionalProperties: false")
		}
		re, err := regexp.Compile(pat.keys[0])
		if err != nil {
			return nil, at(p, "%v", err)
		}
		for _, k := range slices.Concat(props.keysOf(), required) {
			if re.MatchString(k) {
				return nil, at(p, "the pattern %q matches the property %q, too: that is not supported", pat.keys[0], k)
			}
		}
		name, err := pattern(pat.keys[0])
		if err != nil {
			return nil, at(p, "%v", err)
		}
		n, err := b.node(pat.vals[0], p)
		return Seq{quote, name, quote, colon, n}, err
	}
	switch {
	case add != nil && add.kind == 'f', add == nil && (len(props.keysOf()) > 0 || len(required) > 0):
		return nil, nil //nolint:nilnil // none
	case add == nil:
		add = &jv{kind: 't'}
	}
	n, err := b.node(add, path+"/additionalProperties")
	if err != nil {
		return nil, err
	}
	var name Node = Seq{quote, other(slices.Concat(props.keysOf(), required)), quote}
	if key != nil && key.kind == 'f' {
		return nil, nil //nolint:nilnil // none
	}
	if key != nil && key.kind != 't' {
		if len(props.keysOf()) > 0 {
			return nil, at(path+"/propertyNames", "is not supported beside properties")
		}
		if key = key.without(""); key.get("type") == nil && key.kind == '{' && key.get("enum") == nil && key.get("const") == nil {
			key.keys, key.vals = append(key.keys, "type"), append(key.vals, &jv{kind: '"', text: "string"})
		}
		if name, err = b.node(key, path+"/propertyNames"); err != nil {
			return nil, err
		}
	}
	return Seq{name, colon, n}, nil
}

// other is the keys, between their quotation marks and without escapes, that are not among names.
func other(names []string) Node {
	if len(names) == 0 {
		return Repeat{char, 0, -1}
	}
	here, next := false, map[rune][]string{}
	var order []rune
	for _, s := range names {
		if s == "" {
			here = true
			continue
		}
		r := []rune(s)
		if _, ok := next[r[0]]; !ok {
			order = append(order, r[0])
		}
		next[r[0]] = append(next[r[0]], string(r[1:]))
	}
	var a Alt
	if !here {
		a = append(a, nil)
	}
	c := Class{Ranges: slices.Clone(plain.Ranges), Not: true}
	for _, r := range order {
		c.Ranges = append(c.Ranges, Range{r, r})
		if r >= ' ' && r != '"' && r != '\\' {
			a = append(a, Seq{Text(string(r)), other(next[r])})
		}
	}
	return append(a, Seq{c, Repeat{plain, 0, -1}})
}
