package load

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// Explanation is what is known of one place of a graph.
type Explanation struct {
	Path    string          `json:"path"`              // "nodes.decode.replicas"
	Type    string          `json:"type"`              // what the schema takes: "int >= 0"
	Doc     string          `json:"doc,omitempty"`     // the schema's comment, one line
	Value   json.RawMessage `json:"value,omitempty"`   // what the spec says, after all layers; nil where it says nothing
	Default json.RawMessage `json:"default,omitempty"` // what the kind takes where the spec says nothing; nil where the compiler decides, or nobody
	Fields  []string        `json:"fields,omitempty"`  // what a map may hold, in order
	Origins []Origin        `json:"origins,omitempty"` // who says something of it, the lowest layer first
}

// Origin is one place that says something of a value.
type Origin struct {
	Layer string   `json:"layer"` // "default" (of the kind), "import", "spec", "overlay", "tag" or "set"
	Pos   diag.Pos `json:"pos"`   // none for a kind's default
	Len   int      `json:"len,omitempty"`
	Text  string   `json:"text"`          // as it is written there: `int | *2`
	Gives string   `json:"gives"`         // "value", "default" or "bound"; "part" of a map
	Wins  bool     `json:"wins"`          // the value is this one's
	Why   string   `json:"why,omitempty"` // why it wins
}

// Explain loads a spec as File does and says where the value at a path of the graph comes from: "nodes.decode.replicas",
// `edges."a -> b".transport`, "models.default.context". It is nil where the list has an error: of the spec, or that there is no such path.
func Explain(ctx context.Context, spec string, o Options, path string) (*Explanation, diag.List, error) {
	segs, _, bad := parsePath(path + "=")
	if bad != "" {
		return nil, diag.List{{Code: "unknown-path", Msg: fmt.Sprintf("%q is no path: %s", path, strings.TrimPrefix(bad, "want path=value: ")),
			Hint: "write it as nodes.decode.replicas, or edges.\"a -> b\".transport"}}, nil
	}
	o.explain = []string{}
	for _, s := range segs {
		o.explain = append(o.explain, s.name)
	}
	r, err := run(ctx, spec, o)
	return r.explained, r.list, err
}

// explained makes the explanation of a path; nil after a finding.
func (c *checker) explained(path []string, r *kind.Registry) *Explanation {
	e := &Explanation{Path: written(path)}
	if len(path) > 1 && path[0] == "models" && path[1] == "default" && lookup(c.v.spec, "model").Exists() { // its short form
		path = append([]string{"model"}, path[2:]...)
	}
	k, s, v := "#Graph", c.v.real.LookupPath(cue.MakePath(cue.Def("#Graph"))), c.v.spec
	kindName := ""
	for i, name := range path {
		sh := c.shape(k, s)
		if f, ok := sh.fields[name]; ok {
			k, s = k+"."+name, f.v
		} else if len(sh.patterns) > 0 && (i != 1 || v.LookupPath(cue.MakePath(cue.Str(name))).Exists()) {
			k, s = k+"[0]", sh.patterns[0].v
		} else {
			known := sh.names
			if len(sh.patterns) > 0 {
				for _, f := range c.fields(v) {
					known = append(known, f.name)
				}
			}
			d := diag.Diagnostic{Code: "unknown-path", Pos: diag.Pos{File: c.path}, Msg: prefix(path[:i], fmt.Sprintf("no %q here", name)),
				Hint: diag.Suggest(name, known)}
			if len(known) > 0 {
				d.Notes = []string{"there is: " + strings.Join(known, ", ")}
			}
			c.list.Add(d)
			return nil
		}
		v = v.LookupPath(cue.MakePath(cue.Str(name)))
		if isNode(path[:i+1]) {
			var ok bool
			if k, s, ok = c.kind(path[:i+1], v); !ok {
				return nil
			}
			kindName, _ = v.LookupPath(cue.MakePath(cue.Str("kind"))).String()
		}
	}
	sh := c.shape(k, s)
	e.Type, e.Doc, e.Fields = sh.want, sh.doc, sh.names
	if len(sh.enum) > 0 {
		e.Type = strings.Join(sh.enum, " or ")
	}
	if v.Exists() {
		if b, err := v.MarshalJSON(); err == nil {
			e.Value = b
		}
	}
	if entry := r.Lookup(kindName); entry != nil && len(path) > 2 {
		if b, err := entry.Config(nil); err == nil {
			e.Default = lookupJSON(b, path[2:])
		}
	}
	if e.Default != nil {
		e.Origins = append(e.Origins, Origin{Layer: string(layerDefault), Text: brief(string(e.Default)), Gives: "default"})
	}
	c.origins(e, path, v)
	return e
}

// written joins a path as a user writes it.
func written(path []string) string {
	var out []string
	for _, p := range path {
		if strings.ContainsFunc(p, func(r rune) bool { return r < 0x80 && r != '-' && r != '_' && !isAlnum(byte(r)) }) {
			p = strconv.Quote(p)
		}
		out = append(out, p)
	}
	return strings.Join(out, ".")
}

// lookupJSON returns the value at a path; nil where there is none.
func lookupJSON(b json.RawMessage, path []string) json.RawMessage {
	for _, p := range path {
		var m map[string]json.RawMessage
		if json.Unmarshal(b, &m) != nil || m[p] == nil {
			return nil
		}
		b = m[p]
	}
	return b
}

// origins lists who says something of the value v at path, and which of them it is.
func (c *checker) origins(e *Explanation, path []string, v cue.Value) {
	for _, sp := range c.spans.at[key(path)] {
		x := sp.expr
		if b, ok := x.(*ast.BinaryExpr); ok && b.Op == token.AND && !b.OpPos.IsValid() { // a tag was given
			c.origin(e, b.Y)
			x = b.X
		}
		c.origin(e, x)
	}
	if len(e.Origins) == 0 || e.Default != nil && len(e.Origins) == 1 {
		if p, n := c.ownLabel(path, v); v.Exists() && p.IsValid() { // made by a comprehension
			e.Origins = append(e.Origins, Origin{Layer: string(c.layerOf(p)), Pos: p, Len: n, Text: show(v), Gives: "value"})
		}
	}
	slices.SortStableFunc(e.Origins, func(a, b Origin) int {
		switch x, y := layer(a.Layer), layer(b.Layer); {
		case x.over(y):
			return 1
		case y.over(x):
			return -1
		}
		return cmp.Compare(a.Pos.Line, b.Pos.Line)
	})
	win := -1
	for _, gives := range []string{"default", "value"} {
		for i, o := range e.Origins {
			if o.Gives == gives {
				win = i
			}
		}
	}
	if win < 0 {
		return
	}
	w := &e.Origins[win]
	w.Wins = true
	var below []string
	for _, o := range e.Origins[:win] {
		at := o.Pos.String()
		if o.Layer == string(layerDefault) {
			at = "the kind"
		}
		switch {
		case o.Gives == "default" && w.Gives == "value":
			below = append(below, fmt.Sprintf("replaces the default of %s", at))
		case o.Gives == "bound":
			below = append(below, fmt.Sprintf("is within %s of %s", o.Text, at))
		case o.Gives == "value" && o.Layer != w.Layer:
			below = append(below, fmt.Sprintf("is the same as in %s", at))
		}
	}
	switch {
	case len(below) > 0:
		w.Why = strings.Join(below, "; ")
	case w.Gives == "default":
		w.Why = "nothing else sets it"
	case len(e.Origins) == 1:
		w.Why = "only this sets it"
	}
}

// origin adds what an expression says.
func (c *checker) origin(e *Explanation, x ast.Expr) {
	p := c.pos(x.Pos())
	s, ok := c.srcs[p.File]
	if !ok {
		return
	}
	from, to := s.offset(p), s.offset(c.pos(x.End()))
	if to <= from {
		to = from + s.width(p)
	}
	o := Origin{Layer: string(s.layer), Pos: p, Len: s.width(p), Text: brief(string(s.data[from:min(to, len(s.data))])), Gives: gives(x)}
	if b, ok := x.(*ast.BasicLit); ok {
		if o.Text = brief(b.Value); s.format == "args" && b.Kind == token.STRING {
			o.Text = c.word(p)
		}
	}
	e.Origins = append(e.Origins, o)
}

// gives says what an expression contributes to a value.
func gives(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StructLit:
		return "part"
	case *ast.ParenExpr:
		return gives(x.X)
	case *ast.BinaryExpr:
		switch x.Op {
		case token.OR:
			mark := false
			ast.Walk(x, func(n ast.Node) bool {
				if u, ok := n.(*ast.UnaryExpr); ok && u.Op == token.MUL {
					mark = true
				}
				return !mark
			}, nil)
			if mark {
				return "default"
			}
			return "bound"
		case token.AND:
			a, b := gives(x.X), gives(x.Y)
			for _, g := range []string{"part", "value", "default"} {
				if a == g || b == g {
					return g
				}
			}
			return "bound"
		}
	case *ast.UnaryExpr:
		if x.Op != token.SUB && x.Op != token.ADD && x.Op != token.NOT {
			return "bound"
		}
	case *ast.Ident:
		if x.Node == nil && slices.Contains([]string{"_", "int", "string", "bool", "number", "float", "bytes", "uint", "null"}, x.Name) {
			return "bound"
		}
	}
	return "value"
}

// String writes the explanation for people.
func (e *Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", e.Path, e.Type)
	if e.Doc != "" {
		fmt.Fprintf(&b, "  %s\n", e.Doc)
	}
	if e.Value != nil {
		fmt.Fprintf(&b, "  value: %s\n", brief(string(e.Value)))
	}
	for _, o := range e.Origins {
		mark, at := " ", o.Pos.String()
		if o.Wins {
			mark = "→"
		}
		if at == "" {
			at = "the kind"
		}
		fmt.Fprintf(&b, "  %s %s: %s gives the %s %s", mark, at, o.Layer, o.Gives, o.Text)
		if o.Why != "" {
			b.WriteString(": " + o.Why)
		}
		b.WriteString("\n")
	}
	if len(e.Fields) > 0 {
		b.WriteString("  fields: " + strings.Join(e.Fields, ", ") + "\n")
	}
	return b.String()
}
