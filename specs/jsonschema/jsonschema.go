// Package jsonschema writes the schema of graphs as one JSON Schema document, for editors and for checks of specs in YAML and JSON. The kind
// of a node selects its fields by if and then, so that one mistake is one finding. What only the compiler knows is not in it.
package jsonschema

import (
	"encoding/json"
	"fmt"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/parser"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/schema"
)

// Draft is the version that the document is written in: the newest that editors for YAML understand whole.
const Draft = "http://json-schema.org/draft-07/schema#"

// durations are what time.ParseDuration takes, which CUE checks by a function.
const durations = `^([-+]?(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+|0)$`

// object is a JSON object.
type object = map[string]any

// Generate returns the document for the kinds of r, indented and with a final newline. Equal registries give equal bytes. The error is a
// kind's author's mistake. It is safe for concurrent use.
func Generate(r *kind.Registry) ([]byte, error) {
	v, err := evaluate(r)
	if err != nil {
		return nil, err
	}
	w := &writer{kinds: object{}}
	var then []any
	var names []any
	for _, e := range r.All() {
		w.kinds[e.Name] = w.value(v.LookupPath(cue.MakePath(cue.Def(schema.Definition(e.Name)))))
		names = append(names, e.Name)
		then = append(then, object{
			"if":   object{"properties": object{"kind": object{"const": e.Name}}, "required": []string{"kind"}},
			"then": object{"$ref": "#/definitions/" + e.Name},
		})
	}
	node := v.LookupPath(cue.MakePath(cue.Def("#Node")))
	w.node = object{
		"type": "object", "description": doc(node), "required": []string{"kind"},
		"properties": object{"kind": object{"enum": names, "description": doc(node.LookupPath(cue.MakePath(cue.Str("kind").Required())))}},
		"allOf":      then,
	}
	out := w.value(v.LookupPath(cue.MakePath(cue.Def("#Graph"))))
	if w.err != nil {
		return nil, w.err
	}
	out["$schema"] = Draft
	out["$id"] = "https://" + schema.ImportPath + "/graph.schema.json"
	out["title"] = "Dynamo graph"
	out["definitions"] = w.kinds
	b, err := json.MarshalIndent(out, "", "  ")
	return append(b, '\n'), err
}

// evaluate builds the CUE package.
func evaluate(r *kind.Registry) (cue.Value, error) {
	in := build.NewContext().NewInstance("", nil)
	in.PkgName, in.ImportPath = schema.Package, schema.ImportPath
	for _, f := range schema.Files(r) {
		file, err := parser.ParseFile(f.Name, f.Text, parser.ParseComments)
		if err == nil {
			err = in.AddSyntax(file)
		}
		if err != nil {
			return cue.Value{}, fmt.Errorf("schema: %s", errors.Details(err, nil))
		}
	}
	if err := in.Complete(); err != nil {
		return cue.Value{}, fmt.Errorf("schema: %s", errors.Details(err, nil))
	}
	v := cuecontext.New().BuildInstance(in)
	if v.Err() != nil {
		return v, fmt.Errorf("schema: %s", errors.Details(v.Err(), nil))
	}
	return v, nil
}

// writer turns values of the schema into JSON Schema.
type writer struct {
	kinds object
	node  object
	err   error
}

// value writes what v takes.
func (w *writer) value(v cue.Value) object {
	out := object{}
	w.add(out, v, 0)
	if d := doc(v); d != "" {
		out["description"] = d
	}
	return out
}

// add adds to out what v takes. depth bounds what a schema may be made of.
func (w *writer) add(out object, v cue.Value, depth int) {
	if depth > 16 {
		w.err = fmt.Errorf("schema: %s is nested too deep", v.Path())
		return
	}
	if isDuration(v) {
		out["type"], out["pattern"] = "string", durations
		return
	}
	if v.IncompleteKind() == cue.StructKind {
		w.structure(out, v)
		return
	}
	if b, err := v.MarshalJSON(); err == nil && v.IsConcrete() && v.IncompleteKind() != cue.ListKind {
		var x any
		if w.err == nil {
			w.err = json.Unmarshal(b, &x)
		}
		out["const"] = x
		return
	}
	op, args := cue.Dereference(v).Expr()
	switch op {
	case cue.OrOp:
		w.choice(out, args, depth)
		return
	case cue.AndOp:
		for _, a := range args {
			w.add(out, a, depth+1)
		}
		if out["type"] == nil {
			w.kind(out, v)
		}
		return
	case cue.GreaterThanOp, cue.GreaterThanEqualOp, cue.LessThanOp, cue.LessThanEqualOp, cue.NotEqualOp, cue.RegexMatchOp:
		w.bound(out, op, args[0])
		if k := v.IncompleteKind(); k == cue.StringKind || depth == 0 { // beside an int, a bound's own type would be too wide
			w.kind(out, v)
		}
		return
	case cue.CallOp: // strings.MaxRunes(63)
		if f := fmt.Sprint(args[0]); strings.HasSuffix(f, "MaxRunes") && len(args) == 2 {
			n, err := args[1].Int64()
			if err == nil {
				out["maxLength"] = n
			}
		}
		return
	}
	w.kind(out, v)
	if v.IncompleteKind() == cue.ListKind {
		w.list(out, v)
	}
}

// kind adds v's type.
func (w *writer) kind(out object, v cue.Value) {
	var ts []string
	k := v.IncompleteKind()
	for _, t := range []struct {
		kind cue.Kind
		name string
	}{{cue.NullKind, "null"}, {cue.BoolKind, "boolean"}, {cue.StringKind, "string"}, {cue.StructKind, "object"}, {cue.ListKind, "array"}} {
		if k&t.kind != 0 {
			ts = append(ts, t.name)
		}
	}
	switch {
	case k&cue.FloatKind != 0:
		ts = append(ts, "number")
	case k&cue.IntKind != 0:
		ts = append(ts, "integer")
	}
	switch {
	case k == cue.TopKind:
	case len(ts) == 1:
		out["type"] = ts[0]
	case len(ts) > 1:
		out["type"] = ts
	}
}

// choice adds one of several values or forms.
func (w *writer) choice(out object, args []cue.Value, depth int) {
	var enum []any
	for _, a := range args {
		s, err := a.String()
		if err != nil {
			enum = nil
			break
		}
		enum = append(enum, s)
	}
	if enum != nil {
		out["enum"] = enum
		return
	}
	var any []any
	for _, a := range args {
		one := object{}
		w.add(one, a, depth+1)
		any = append(any, one)
	}
	out["anyOf"] = any
}

// bound adds a limit.
func (w *writer) bound(out object, op cue.Op, arg cue.Value) {
	if s, err := arg.String(); err == nil {
		switch {
		case op == cue.RegexMatchOp:
			out["pattern"] = s
		case op == cue.NotEqualOp && s == "":
			out["minLength"] = 1
		}
		return
	}
	word := map[cue.Op]string{cue.GreaterThanOp: "exclusiveMinimum", cue.GreaterThanEqualOp: "minimum",
		cue.LessThanOp: "exclusiveMaximum", cue.LessThanEqualOp: "maximum"}[op]
	if b, err := arg.MarshalJSON(); err == nil && word != "" {
		out[word] = json.RawMessage(b)
	}
}

// list adds the items of a list.
func (w *writer) list(out object, v cue.Value) {
	min := 0
	for v.LookupPath(cue.MakePath(cue.Index(min))).Exists() && min < 1000 {
		min++
	}
	if min > 0 {
		out["minItems"] = min
	}
	if rest := v.LookupPath(cue.MakePath(cue.AnyIndex)); rest.Exists() {
		out["items"] = w.value(rest)
	} else {
		out["maxItems"] = min
	}
}

// structure adds the fields of a map.
func (w *writer) structure(out object, v cue.Value) {
	out["type"] = "object"
	props := object{}
	var need []string
	it, err := v.Fields(cue.Optional(true), cue.Patterns(true))
	if err != nil {
		w.err = fmt.Errorf("schema: %s: %w", v.Path(), err)
		return
	}
	open := v.Allows(cue.AnyString)
	for it.Next() {
		sel, f := it.Selector(), it.Value()
		if sel.ConstraintType() == cue.PatternConstraint {
			if isNode(f) {
				out["additionalProperties"] = w.node
			} else {
				out["additionalProperties"] = w.value(f)
			}
			if names := w.value(sel.Pattern()); names["pattern"] != nil {
				delete(names, "type")
				out["propertyNames"] = names
			}
			open = true
			continue
		}
		name := sel.Unquoted()
		props[name] = w.value(f)
		if sel.ConstraintType() == cue.RequiredConstraint {
			need = append(need, name)
		}
	}
	if len(props) > 0 {
		out["properties"] = props
	}
	if len(need) > 0 {
		out["required"] = need
	}
	if !open {
		out["additionalProperties"] = false
	}
}

// refers reports whether v is just the definition.
func refers(v cue.Value, def string) bool {
	_, p := v.ReferencePath()
	return p.String() == def
}

func isNode(v cue.Value) bool     { return refers(v, "#Node") }
func isDuration(v cue.Value) bool { return refers(v, "#Duration") }

// doc is the comment of a field, or of the definition that it is.
func doc(v cue.Value) string {
	for _, at := range []cue.Value{v, cue.Dereference(v)} {
		for _, g := range at.Doc() {
			if t := strings.Join(strings.Fields(g.Text()), " "); t != "" && !strings.HasPrefix(t, "Package ") {
				return t
			}
		}
	}
	return ""
}
