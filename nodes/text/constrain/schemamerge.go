package constrain

import (
	"slices"
	"strconv"
)

// without is v without a keyword and without what says nothing.
func (v *jv) without(key string) *jv {
	out := &jv{kind: '{'}
	for i, k := range v.keys {
		if k != key && !slices.Contains(silent, k) {
			out.keys, out.vals = append(out.keys, k), append(out.vals, v.vals[i])
		}
	}
	return out
}

// all merges the schemas of allOf and what stands beside it.
func (b *schemaReader) all(v, list *jv, path string, depth int) (*jv, error) {
	if list.kind != '[' {
		return nil, at(path+"/allOf", "want an array")
	}
	out := v.without("allOf")
	for i, e := range list.vals {
		var err error
		if out, err = b.merge(out, e, below(path, "allOf", strconv.Itoa(i)), depth); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// merge is a schema that allows what both allow.
func (b *schemaReader) merge(x, y *jv, path string, depth int) (*jv, error) {
	if depth > 32 {
		return nil, at(path, "references and allOf that are merged nest too deep, or in a circle")
	}
	if err := b.step(path, 1); err != nil {
		return nil, err
	}
	for _, p := range []*jv{x, y} {
		if p.kind == 'f' {
			return p, nil
		}
	}
	if x.kind == 't' {
		return y, nil
	}
	if y.kind == 't' {
		return x, nil
	}
	if x.kind != '{' || y.kind != '{' {
		return nil, at(path, "want a schema")
	}
	for _, p := range []**jv{&x, &y} {
		for (*p).get("$ref") != nil {
			target, _, err := b.resolve((*p).get("$ref"), path)
			if err != nil {
				return nil, err
			}
			if *p, err = b.merge(target, (*p).without("$ref"), path, depth+1); err != nil {
				return nil, err
			}
			if depth++; depth > 32 {
				return nil, at(path, "references that are merged go in a circle")
			}
		}
		if a := (*p).get("allOf"); a != nil {
			m, err := b.all(*p, a, path, depth+1)
			if err != nil {
				return nil, err
			}
			*p = m
		}
	}
	if x.kind != '{' || y.kind != '{' { // what a reference named is true or false
		return b.merge(x, y, path, depth+1)
	}
	for _, side := range [][2]*jv{{x, y}, {y, x}} { // keywords that look at others of their own schema alone
		for _, k := range []string{"unevaluatedProperties", "unevaluatedItems"} {
			if side[0].get(k) != nil && len(side[1].without("").keys) > 0 {
				return nil, at(path, "%s cannot be merged with what stands beside it, in allOf, anyOf or behind $ref; use additionalProperties or items", k)
			}
		}
		if side[0].get("items") != nil && side[1].get("prefixItems") != nil && side[0].get("prefixItems") == nil {
			return nil, at(path, "items on one side and prefixItems on the other cannot be merged")
		}
	}
	out := x.without("")
	null := func(v *jv) bool { return v.get("nullable") != nil || len(v.without("").keys) == 0 } // it speaks of null, or of nothing
	if !null(y) {
		out = out.without("nullable")
	}
	for i, k := range y.keys {
		w := y.vals[i]
		if slices.Contains(silent, k) || k == "nullable" && !null(x) {
			continue
		}
		at0 := slices.Index(out.keys, k)
		if at0 < 0 {
			out.keys, out.vals = append(out.keys, k), append(out.vals, w)
			continue
		}
		m, err := b.both(k, out.vals[at0], w, path, depth)
		if err != nil {
			return nil, err
		}
		out.vals[at0] = m
	}
	// What one side has no property for must be allowed by the other side's additionalProperties.
	for _, side := range [][2]*jv{{x, y}, {y, x}} {
		add := side[0].get("additionalProperties")
		if add == nil || add.kind == 't' {
			continue
		}
		for _, k := range side[1].get("properties").keysOf() {
			if side[0].get("properties").get(k) == nil {
				return nil, at(path, "allOf with additionalProperties on one side and the property %q on the other cannot be merged", k)
			}
		}
	}
	return out, nil
}

func (v *jv) keysOf() []string {
	if v == nil {
		return nil
	}
	return v.keys
}

// both merges two values of one keyword.
func (b *schemaReader) both(k string, x, y *jv, path string, depth int) (*jv, error) {
	if x.equal(y) {
		return x, nil
	}
	switch k {
	case "properties":
		if x.kind != '{' || y.kind != '{' {
			return nil, at(below(path, k), "want an object")
		}
		if err := b.step(path, len(x.keys)/64); err != nil {
			return nil, err
		}
		out := &jv{kind: '{', keys: slices.Clone(x.keys), vals: slices.Clone(x.vals)}
		for i, name := range y.keys {
			j := x.index(name)
			if j < 0 {
				out.keys, out.vals = append(out.keys, name), append(out.vals, y.vals[i])
				continue
			}
			m, err := b.merge(x.vals[j], y.vals[i], below(path, k, name), depth+1)
			if err != nil {
				return nil, err
			}
			out.vals[j] = m
		}
		return out, nil
	case "items", "additionalProperties":
		return b.merge(x, y, below(path, k), depth+1)
	case "required":
		if x.kind != '[' || y.kind != '[' {
			return nil, at(below(path, k), "want an array")
		}
		if err := b.step(path, len(x.vals)/64); err != nil {
			return nil, err
		}
		return &jv{kind: '[', vals: slices.Concat(x.vals, y.vals)}, nil
	case "enum":
		out := &jv{kind: '['}
		in := keySet(y.vals)
		for _, e := range x.vals {
			if in[e.key()] {
				out.vals = append(out.vals, e)
			}
		}
		return out, nil
	case "type":
		list := func(v *jv) []*jv {
			if v.kind == '[' {
				return v.vals
			}
			return []*jv{v}
		}
		out := &jv{kind: '['}
		for _, e := range list(x) {
			for _, f := range list(y) {
				switch {
				case e.equal(f) || e.text == "integer" && f.text == "number":
					out.vals = append(out.vals, e)
				case e.text == "number" && f.text == "integer":
					out.vals = append(out.vals, f)
				}
			}
		}
		if len(out.vals) == 0 {
			return nil, at(path, "no type satisfies both sides of allOf")
		}
		return out, nil
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties":
		m, e1 := wholeNumber(x, path+"/"+k)
		n, e2 := wholeNumber(y, path+"/"+k)
		if e1 != nil || e2 != nil {
			return nil, at(path, "two values of %q cannot be merged", k)
		}
		if (m > n) == (k[:3] == "min" || k == "exclusiveMinimum") {
			return x, nil
		}
		return y, nil
	}
	return nil, at(path, "two values of %q cannot be merged", k)
}

func keySet(list []*jv) map[string]bool {
	out := make(map[string]bool, len(list))
	for _, e := range list {
		out[e.key()] = true
	}
	return out
}

// anyOf is one of several schemas, each with what stands beside them.
func (b *schemaReader) anyOf(v, list *jv, key, path string) (Node, error) {
	path = below(path, key)
	if list.kind != '[' || len(list.vals) == 0 {
		return nil, at(path, "want an array of schemas")
	}
	rest := v.without(key)
	var a Alt
	for i, e := range list.vals {
		p := below(path, strconv.Itoa(i))
		if len(rest.keys) > 0 {
			m, err := b.merge(e, rest, p, 0)
			if err != nil {
				return nil, err
			}
			e = m
		}
		n, err := b.node(e, p)
		if err != nil {
			return nil, err
		}
		a = append(a, n)
	}
	if key == "oneOf" {
		if err := b.apart(list.vals, path); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// apart refuses schemas of which two may hold at once.
func (b *schemaReader) apart(list []*jv, path string) error {
	both := func(i, j int) error {
		return at(path, "the schemas %d and %d may both hold, which oneOf forbids and a grammar cannot tell; use anyOf, or give each a const of its own", i, j)
	}
	of := map[string]int{} // the schema that has a value
	values := make([]bool, len(list))
	for i, e := range list {
		all := b.constants(e)
		values[i] = all != nil
		for k := range keySet(all) {
			if j, ok := of[k]; ok {
				return both(j, i)
			}
			of[k] = i
		}
	}
	for i := range list {
		for j := range i {
			if values[i] && values[j] {
				continue
			}
			if err := b.step(path, 1); err != nil {
				return err
			}
			if !b.disjoint(list[j], list[i], 0) {
				return both(j, i)
			}
		}
	}
	return nil
}

// followed is what a schema that is nothing but a reference names.
func (b *schemaReader) followed(v *jv) *jv {
	for n := 0; v.get("$ref") != nil && n < 32; n++ {
		t, _, err := b.resolve(v.get("$ref"), "")
		if err != nil {
			break
		}
		v = t
	}
	return v
}

// constants are the only values that a schema takes; nil where it says no such thing.
func (b *schemaReader) constants(v *jv) (out []*jv) {
	v = b.followed(v)
	if e := v.get("enum"); e != nil {
		out = e.vals
	}
	if c := v.get("const"); c != nil {
		out = []*jv{c}
	}
	if n := v.get("nullable"); out != nil && n != nil && n.kind == 't' {
		out = append(slices.Clip(out), &jv{kind: 'n', text: "null"})
	}
	return out
}

// disjoint reports whether nothing satisfies both, as far as their types and constants tell.
func (b *schemaReader) disjoint(x, y *jv, depth int) bool {
	if depth > 8 {
		return false
	}
	x, y = b.followed(x), b.followed(y)
	if m, n := b.constants(x), b.constants(y); m != nil && n != nil {
		in := keySet(n)
		return !slices.ContainsFunc(m, func(e *jv) bool { return in[e.key()] })
	}
	types := func(v *jv) []string {
		var out []string
		for _, e := range b.constants(v) {
			out = append(out, e.typeName())
		}
		if out == nil && v.get("type") != nil {
			out, _ = typesOf(v, "")
		}
		return out
	}
	m, n := types(x), types(y)
	if m != nil && n != nil && !slices.ContainsFunc(m, func(t string) bool {
		return slices.Contains(n, t) || t == "integer" && slices.Contains(n, "number") || t == "number" && slices.Contains(n, "integer")
	}) {
		return true
	}
	if !slices.Equal(m, []string{"object"}) || !slices.Equal(n, []string{"object"}) {
		return false
	}
	for _, k := range x.get("properties").keysOf() {
		need := func(v *jv) bool {
			r := v.get("required")
			return r != nil && slices.ContainsFunc(r.vals, func(e *jv) bool { return e.text == k })
		}
		p, q := x.get("properties").get(k), y.get("properties").get(k)
		if q != nil && need(x) && need(y) && b.disjoint(p, q, depth+1) {
			return true
		}
	}
	return false
}
