package constrain

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Schema reads a JSON Schema (drafts 7 to 2020-12) of the whole output. A keyword acts, says nothing about values (title, description, …), or is
// refused by its place and name: an output is never allowed that the schema forbids. Where it can be narrower it says so: properties come in the
// order of the schema, and an object with properties has no others unless additionalProperties asks for them.
func Schema(g *Grammar, source []byte) (Node, error) {
	v, err := parseJSON(source)
	if err != nil {
		return nil, err
	}
	return schema(g, v)
}

func schema(g *Grammar, v *jv) (Node, error) {
	b := &schemaReader{g: g, root: v, refs: map[string]Ref{}}
	n, err := b.node(v, "#")
	if err != nil {
		return nil, err
	}
	return n, nil
}

type schemaReader struct {
	g     *Grammar
	root  *jv
	refs  map[string]Ref // by pointer
	any   Node
	times map[int64]Node  // multiples
	texts map[string]text // by pattern
	depth int
	steps int // schemas read and merged
	ids   int // 0: not looked for, 1: only the root has one, 2: others do
}

// maxSchemas bounds the work for one schema: references that are merged can make it exponential.
const maxSchemas = 50_000

func (b *schemaReader) step(path string, n int) error {
	if b.steps += n; b.steps > maxSchemas {
		return at(path, "the schema is too large: more than %d parts, with references that stand beside other keywords written out", maxSchemas)
	}
	return nil
}

// below is the place of a part. It is for messages only: names in it are clipped, so that places cost little.
func below(path string, parts ...string) string {
	for _, p := range parts {
		if len(p) > 60 {
			p = strings.ToValidUTF8(p[:60], "") + "…"
		}
		if len(path) < 4000 {
			path += "/" + strings.ReplaceAll(strings.ReplaceAll(p, "~", "~0"), "/", "~1")
		}
	}
	return path
}

// silent are keywords that say nothing about values.
var silent = []string{
	"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$schema", "$id", "$comment", "$defs",
	"definitions", "$anchor", "discriminator", "contentMediaType", "contentEncoding", "strict", "externalDocs", "xml", "$vocabulary",
}

// of are the keywords that speak of one type.
var of = map[string][]string{
	"object":  {"properties", "required", "additionalProperties", "unevaluatedProperties", "patternProperties", "minProperties", "maxProperties", "propertyNames"},
	"array":   {"items", "prefixItems", "additionalItems", "unevaluatedItems", "minItems", "maxItems", "uniqueItems"},
	"string":  {"minLength", "maxLength", "pattern", "format"},
	"number":  {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
	"integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
	"boolean": {},
	"null":    {},
}

var typeNames = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// general are the keywords of all types.
var general = []string{"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "nullable"}

func at(path, format string, args ...any) error {
	if len(path) > 160 {
		path = path[:80] + "…" + path[len(path)-60:]
	}
	return fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...))
}

// node is what a schema allows.
func (b *schemaReader) node(v *jv, path string) (Node, error) {
	if b.depth++; b.depth > maxJSONDepth {
		return nil, at(path, "nests deeper than %d", maxJSONDepth)
	}
	defer func() { b.depth-- }()
	if err := b.step(path, 1); err != nil {
		return nil, err
	}
	switch v.kind {
	case 't':
		return b.anyValue(), nil
	case 'f':
		return Dead{}, nil
	case '{':
	default:
		return nil, at(path, "want a schema: an object, true or false")
	}
	if err := b.known(v, path); err != nil {
		return nil, err
	}
	if r := v.get("$ref"); r != nil {
		return b.ref(v, r, path)
	}
	if a := v.get("allOf"); a != nil {
		merged, err := b.all(v, a, path, 0)
		if err != nil {
			return nil, err
		}
		return b.node(merged, path)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if a := v.get(key); a != nil {
			return b.anyOf(v, a, key, path)
		}
	}
	if c := v.get("const"); c != nil {
		return b.values(v, []*jv{c}, path)
	}
	if e := v.get("enum"); e != nil {
		if e.kind != '[' {
			return nil, at(path+"/enum", "want an array")
		}
		return b.values(v, e.vals, path)
	}
	types, err := typesOf(v, path)
	if err != nil {
		return nil, err
	}
	if types == nil {
		return b.anyValue(), nil
	}
	var a Alt
	for _, t := range types {
		n, err := b.typed(v, t, path)
		if err != nil {
			return nil, err
		}
		a = append(a, n)
	}
	if len(a) == 1 {
		return a[0], nil
	}
	return a, nil
}

// known refuses keywords that would be ignored.
func (b *schemaReader) known(v *jv, path string) error {
	var errs []error
	for i, k := range v.keys {
		ok := slices.Contains(silent, k) || slices.Contains(general, k) || strings.HasPrefix(k, "x-")
		for _, of := range of {
			ok = ok || slices.Contains(of, k)
		}
		if !ok {
			errs = append(errs, at(path, "the keyword %q (%s) is not supported", k, brief(v.vals[i])))
		}
	}
	return errors.Join(errs...)
}

func brief(v *jv) string {
	switch v.kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return strconv.Quote(v.text[:min(len(v.text), 40)])
	}
	return v.text[:min(len(v.text), 40)]
}

// typesOf are the types that a schema speaks of; nil is any.
func typesOf(v *jv, path string) ([]string, error) {
	var types []string
	add := func(t *jv) error {
		if t.kind != '"' || !slices.Contains(typeNames, t.text) {
			return at(path+"/type", "want one of %s, not %s", strings.Join(typeNames, ", "), brief(t))
		}
		if !slices.Contains(types, t.text) {
			types = append(types, t.text)
		}
		return nil
	}
	switch t := v.get("type"); {
	case t == nil:
		for _, name := range typeNames[:4] {
			for _, k := range of[name] {
				if v.get(k) != nil && !slices.Contains(types, name) {
					types = append(types, name)
				}
			}
		}
		if len(types) == 0 {
			return nil, nil
		}
	case t.kind == '[':
		for _, e := range t.vals {
			if err := add(e); err != nil {
				return nil, err
			}
		}
		if len(types) == 0 {
			return nil, at(path+"/type", "names no type")
		}
	default:
		if err := add(t); err != nil {
			return nil, err
		}
	}
	if n := v.get("nullable"); n != nil && n.kind == 't' && !slices.Contains(types, "null") {
		types = append(types, "null")
	}
	if slices.Contains(types, "number") {
		types = slices.DeleteFunc(types, func(t string) bool { return t == "integer" })
	}
	return types, nil
}

func (b *schemaReader) typed(v *jv, t, path string) (Node, error) {
	switch t {
	case "object":
		return b.object(v, path)
	case "array":
		return b.array(v, path)
	case "string":
		return b.str(v, path)
	case "boolean":
		return Alt{Text("true"), Text("false")}, nil
	case "null":
		return Text("null"), nil
	}
	return b.num(v, t == "integer", path)
}

// anyValue is any JSON.
func (b *schemaReader) anyValue() Node {
	if b.any == nil {
		any := b.g.Add("JSON", nil)
		member := Seq{b.anyString(), colon, any}
		b.g.Rules[any].Body = Alt{
			Seq{Text("{"), blank, Optional(Seq{member, Repeat{Seq{comma, member}, 0, -1}}), blank, Text("}")},
			Seq{Text("["), blank, Optional(Seq{any, Repeat{Seq{comma, any}, 0, -1}}), blank, Text("]")},
			b.anyString(), anyNum, Text("true"), Text("false"), Text("null"),
		}
		b.any = any
	}
	return b.any
}

// anyString is any string: one rule, so that its mask is made once.
func (b *schemaReader) anyString() Node {
	for i, r := range b.g.Rules { // another schema of the grammar has it
		if r.Warm {
			return Ref(i)
		}
	}
	rule := b.g.Add("string", Seq{quote, Repeat{char, 0, -1}, quote})
	b.g.Rules[rule].Warm = true
	return rule
}

// values is those of list that the rest of v allows.
func (b *schemaReader) values(v *jv, list []*jv, path string) (Node, error) {
	var a Alt
	for _, e := range list {
		ok, err := allows(v, e, path)
		if err != nil {
			return nil, err
		}
		if ok {
			a = append(a, literal(e))
		}
	}
	if n := v.get("nullable"); n != nil && n.kind == 't' {
		a = append(a, Text("null"))
	}
	return a, nil
}

// allows reports whether the type, const and enum of v allow e. Other keywords beside them are refused: they would have to be computed.
func allows(v, e *jv, path string) (bool, error) {
	for _, k := range v.keys {
		if !slices.Contains(silent, k) && !slices.Contains([]string{"type", "enum", "const", "nullable"}, k) {
			return false, at(path, "%q beside enum or const is not supported; leave it out: the values say it", k)
		}
	}
	if l := v.get("enum"); l != nil && v.get("const") != nil && !slices.ContainsFunc(l.vals, e.equal) {
		return false, nil // a constant that is not among the values
	}
	if v.get("type") == nil {
		return true, nil
	}
	types, err := typesOf(v, path)
	return slices.Contains(types, e.typeName()) || slices.Contains(types, "number") && e.kind == '0', err
}

func (v *jv) typeName() string {
	switch v.kind {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case '0':
		if strings.ContainsAny(v.text, ".eE") {
			return "number"
		}
		return "integer"
	case 'n':
		return "null"
	}
	return "boolean"
}

// resolve finds what a local reference names.
func (b *schemaReader) resolve(r *jv, path string) (*jv, string, error) {
	if r.kind != '"' || !strings.HasPrefix(r.text, "#") {
		return nil, "", at(path+"/$ref", "only references into the same schema (#/…) are supported, not %s", brief(r))
	}
	if b.ids == 0 {
		if b.ids = 1; embedded(b.root, true) {
			b.ids = 2
		}
	}
	if b.ids == 2 {
		return nil, "", at(path+"/$ref", "references are not supported beside schemas with an $id of their own, for they may mean places in those")
	}
	v := b.root
	for _, part := range strings.Split(r.text, "/")[1:] {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		next := v.get(part)
		if v.kind == '[' {
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(v.vals) {
				next = v.vals[i]
			}
		}
		if next == nil {
			return nil, "", at(path+"/$ref", "%s names nothing", brief(r))
		}
		v = next
	}
	if r.text != "#" && !strings.HasPrefix(r.text, "#/") {
		return nil, "", at(path+"/$ref", "anchors are not supported; refer by a path (#/$defs/…)")
	}
	return v, r.text, nil
}

// embedded reports whether a value within v may be a schema with an $id of its own, to which references in it would be relative.
func embedded(v *jv, root bool) bool {
	if id := v.get("$id"); !root && id != nil && id.kind == '"' {
		return true
	}
	return slices.ContainsFunc(v.vals, func(e *jv) bool { return embedded(e, false) })
}

// ref is the rule of a reference; keywords beside it are merged into what it names.
func (b *schemaReader) ref(v, r *jv, path string) (Node, error) {
	target, name, err := b.resolve(r, path)
	if err != nil {
		return nil, err
	}
	beside := &jv{kind: '{'}
	for i, k := range v.keys {
		if k != "$ref" && !slices.Contains(silent, k) {
			beside.keys, beside.vals = append(beside.keys, k), append(beside.vals, v.vals[i])
		}
	}
	if len(beside.keys) > 0 {
		merged, err := b.merge(target, beside, path, 0)
		if err != nil {
			return nil, err
		}
		return b.node(merged, path)
	}
	if rule, ok := b.refs[name]; ok {
		return rule, nil
	}
	rule := b.g.Add(name, nil)
	b.refs[name] = rule
	depth := b.depth
	b.depth = 0
	body, err := b.node(target, name)
	b.depth = depth
	if err != nil {
		return nil, err
	}
	b.g.Rules[rule].Body = body
	return rule, nil
}
