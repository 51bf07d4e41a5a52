package constrain

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
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
			if b.times[n] == nil {
				if err := b.step(path, int(n)); err != nil {
					return nil, err
				}
				if b.times == nil {
					b.times = map[int64]Node{}
				}
				b.times[n] = multiples(b.g, n)
			}
			return b.times[n], nil
		}
	}
	if d.lo != nil || d.hi != nil { // bounds are some dozens of parts
		if err := b.step(path, 16); err != nil {
			return nil, err
		}
	}
	if whole {
		return d.integer(), nil
	}
	return d.number(), nil
}

const year = `([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])`

// formats are those that act; others are annotations, as the standard has it.
var formats = map[string]string{
	"date":      year + `-(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|` + year + `-(0[469]|11)-(0[1-9]|[12][0-9]|30)|` + year + `-02-(0[1-9]|1[0-9]|2[0-8])`,
	"time":      `([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])`,
	"uuid":      `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`,
	"email":     `[A-Za-z0-9_+-]{1,32}(\.[A-Za-z0-9_+-]{1,16}){0,2}@([a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?\.){1,4}[a-z]{2,16}`,
	"hostname":  `([a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?\.){0,4}[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?`,
	"ipv4":      `((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])`,
	"ipv6":      `([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}`,
	"duration":  `P([0-9]{1,6}W|[0-9]{1,6}D|[0-9]{1,4}Y([0-9]{1,4}M([0-9]{1,6}D)?)?|[0-9]{1,4}M([0-9]{1,6}D)?)|P([0-9]{1,6}D)?T([0-9]{1,6}H([0-9]{1,6}M([0-9]{1,6}S)?)?|[0-9]{1,6}M([0-9]{1,6}S)?|[0-9]{1,6}S)`,
	"uri":       `(https?|ftp)://([a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?\.){0,4}[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?(:[1-9][0-9]{1,3})?(/[A-Za-z0-9._~-]{0,60}){0,16}(\?[A-Za-z0-9._~=&-]{0,128})?(#[A-Za-z0-9._~-]{0,64})?`,
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
	if f := v.get("format"); f != nil && f.kind != '"' {
		return nil, at(path+"/format", "want a string")
	} else if f != nil && formats[f.text] != "" {
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
	p, ok := b.texts[source]
	if !ok {
		n, err := pattern(source)
		if err != nil {
			return nil, at(path+"/"+from, "%v", err)
		}
		p = text{b.g.Add("string", Seq{quote, n, quote}), nullable(n)}
		if b.texts == nil {
			b.texts = map[string]text{}
		}
		b.texts[source] = p
	}
	if bounded && (least > 1 || least == 1 && p.empty || v.get("maxLength") != nil) {
		return nil, at(path, "minLength and maxLength are not supported beside %s; say it in the pattern", from)
	}
	return p.rule, nil
}

// text is the strings of one pattern.
type text struct {
	rule  Ref
	empty bool // it may have no character
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
		if prefix.kind != '[' {
			return nil, at(path+"/"+name, "want an array of schemas")
		}
		for i, e := range prefix.vals {
			n, err := b.node(e, below(path, name, strconv.Itoa(i)))
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
		if r.kind != '[' {
			return nil, at(path+"/required", "want an array of names")
		}
		for _, e := range r.vals {
			if e.kind != '"' {
				return nil, at(path+"/required", "want an array of names, not %s", brief(e))
			}
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
	if least > 1 && extra != nil {
		return nil, at(path+"/minProperties", "above 1 it is not supported: a grammar does not remember which keys stand in an object already")
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
		n, err := b.node(sub, below(path, "properties", names[i]))
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
	if key != nil && key.kind != 't' && len(props.keysOf())+len(required) > 0 {
		return nil, at(path+"/propertyNames", "is not supported beside properties and required")
	}
	if pat != nil && pat.kind != '{' {
		return nil, at(path+"/patternProperties", "want an object")
	}
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
	keys, err := others(slices.Concat(props.keysOf(), required))
	if err != nil {
		return nil, at(path, "%v", err)
	}
	var name Node = Seq{quote, keys, quote}
	if key != nil && key.kind == 'f' {
		return nil, nil //nolint:nilnil // none
	}
	if key != nil && key.kind != 't' {
		if key = key.without(""); key.get("type") == nil && key.kind == '{' && key.get("enum") == nil && key.get("const") == nil {
			key.keys, key.vals = append(key.keys, "type"), append(key.vals, &jv{kind: '"', text: "string"})
		}
		if name, err = b.node(key, path+"/propertyNames"); err != nil {
			return nil, err
		}
	}
	return Seq{name, colon, n}, nil
}

// maxName bounds the names of properties beside which there may be others.
const maxName = 200

// others is the keys, between their quotation marks and without escapes, that are not among names.
func others(names []string) (Node, error) {
	if len(names) == 0 {
		return Repeat{char, 0, -1}, nil
	}
	runes := make([][]rune, len(names))
	for i, s := range names {
		if runes[i] = []rune(s); len(runes[i]) > maxName {
			return nil, fmt.Errorf("a property name has more than %d characters: that is not supported where others may stand beside it", maxName)
		}
	}
	return other(runes, 0), nil
}

// other is others behind the first at runes of names, which all begin alike.
func other(names [][]rune, at int) Node {
	here, next := false, map[rune][][]rune{}
	var order []rune
	for _, s := range names {
		if len(s) == at {
			here = true
			continue
		}
		r := s[at]
		if _, ok := next[r]; !ok {
			order = append(order, r)
		}
		next[r] = append(next[r], s)
	}
	var a Alt
	if !here {
		a = append(a, nil)
	}
	c := Class{Ranges: slices.Clone(plain.Ranges), Not: true}
	for _, r := range order {
		c.Ranges = append(c.Ranges, Range{r, r})
		if r >= ' ' && r != '"' && r != '\\' {
			a = append(a, Seq{Text(string(r)), other(next[r], at+1)})
		}
	}
	return append(a, Seq{c, Repeat{plain, 0, -1}})
}
