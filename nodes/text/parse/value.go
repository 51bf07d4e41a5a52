package parse

import (
	"encoding/json"
	"slices"
	"strings"
)

// shape is what a parameter's schema says of its type. Nil: nothing is known.
type shape struct{ types []string }

// only reports whether the parameter is a string and nothing else.
func (s *shape) text() bool { return s != nil && len(s.types) == 1 && s.types[0] == "string" }

func (s *shape) has(t string) bool { return s == nil || slices.Contains(s.types, t) }

// schemaNode is as much of a JSON Schema as tells types.
type schemaNode struct {
	Type       json.RawMessage       `json:"type"`
	Properties map[string]schemaNode `json:"properties"`
	Items      json.RawMessage       `json:"items"`
	AnyOf      []schemaNode          `json:"anyOf"`
	OneOf      []schemaNode          `json:"oneOf"`
	AllOf      []schemaNode          `json:"allOf"`
	Enum       []json.RawMessage     `json:"enum"`
	Const      json.RawMessage       `json:"const"`
	Ref        string                `json:"$ref"`
	Nullable   bool                  `json:"nullable"`
	Defs       map[string]schemaNode `json:"$defs"`
	Old        map[string]schemaNode `json:"definitions"`
}

// shapes returns the types of a function's parameters; nil where the request does not have the function.
func (p *Parser) shapes(function string) map[string]*shape {
	if s, ok := p.types[function]; ok {
		return s
	}
	var out map[string]*shape
	for _, f := range p.o.Functions {
		var root schemaNode
		if f.Name != function || json.Unmarshal(f.Parameters, &root) != nil {
			continue
		}
		out = map[string]*shape{}
		for k, v := range root.Properties {
			if t := v.typesOf(&root, 0); len(t) > 0 {
				out[k] = &shape{t}
			}
		}
	}
	if p.types == nil {
		p.types = map[string]map[string]*shape{}
	}
	p.types[function] = out
	return out
}

// typesOf collects the types that a schema may have; nil is unknown.
func (n *schemaNode) typesOf(root *schemaNode, depth int) []string {
	if depth > 16 {
		return nil
	}
	var out []string
	add := func(more []string) {
		for _, t := range more {
			if !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	if name, ok := strings.CutPrefix(n.Ref, "#/$defs/"); ok {
		if d, ok := root.Defs[name]; ok {
			add(d.typesOf(root, depth+1))
		}
	} else if name, ok := strings.CutPrefix(n.Ref, "#/definitions/"); ok {
		if d, ok := root.Old[name]; ok {
			add(d.typesOf(root, depth+1))
		}
	}
	var one string
	var many []string
	switch {
	case json.Unmarshal(n.Type, &one) == nil:
		add([]string{one})
	case json.Unmarshal(n.Type, &many) == nil:
		add(many)
	default:
		for _, l := range [][]schemaNode{n.AnyOf, n.OneOf, n.AllOf} {
			for i := range l {
				t := l[i].typesOf(root, depth+1)
				if t == nil && len(n.AllOf) == 0 {
					return nil // one of them may be anything
				}
				add(t)
			}
		}
		for _, v := range append(slices.Clip(n.Enum), n.Const) {
			add(typeOf(v))
		}
		if out == nil && n.Properties != nil {
			add([]string{"object"})
		}
	}
	if n.Nullable && out != nil {
		add([]string{"null"})
	}
	return out
}

func typeOf(v json.RawMessage) []string {
	if len(v) == 0 {
		return nil
	}
	switch v[0] {
	case '{':
		return []string{"object"}
	case '[':
		return []string{"array"}
	case '"':
		return []string{"string"}
	case 't', 'f':
		return []string{"boolean"}
	case 'n':
		return []string{"null"}
	}
	return []string{"number"}
}

// coerce makes JSON of a value as models write it between tags: what its schema allows and its text is, else a string. Numbers keep their
// digits. Without a schema loose says whether text that is JSON, but no string, is that.
func coerce(raw string, s *shape, loose bool) string {
	if s == nil && !loose || s.text() {
		return `"` + escaped(raw) + `"`
	}
	v := strings.Trim(raw, blanks)
	switch low := strings.ToLower(v); {
	case (low == "null" || low == "none") && s.has("null"):
		return "null"
	case (low == "true" || low == "false") && s.has("boolean"):
		return low
	case number(v) && (s.has("number") || s.has("integer") && !strings.ContainsAny(v, ".eE")):
		return strings.TrimPrefix(v, "+")
	case strings.HasPrefix(v, "{") && s.has("object") || strings.HasPrefix(v, "[") && s.has("array"):
		if json.Valid([]byte(v)) {
			return v
		}
		var b strings.Builder
		q := &Parser{buf: v, eof: true, keep: -1}
		if q.pyValue(func(t string) { b.WriteString(t) }, 0) && q.at == len(v) {
			return b.String()
		}
	case s != nil && !s.has("string") && json.Valid([]byte(v)) && strings.HasPrefix(v, `"`):
		return v // quoted although it should be something else: a string at least
	}
	return `"` + escaped(raw) + `"`
}
