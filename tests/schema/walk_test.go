// Package schema holds the schema of all kinds to its rules: every field is documented as it is, a misspelt one fails in plain CUE, and what
// is published, as CUE and as a page, is what the kinds say.
package schema

import (
	"fmt"
	"strings"
	"testing"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/dynamograph/dynamo/graph/kind"
	_ "github.com/dynamograph/dynamo/nodes/all"
	"github.com/dynamograph/dynamo/specs/schema"
)

// definition is one definition of the package, as it is written.
type definition struct {
	name, doc string
	value     ast.Expr
	fields    []field // in order, those of embedded definitions where they are embedded; nil for what is no struct
}

// field is one field, with what lies below it behind it.
type field struct {
	path string // "kv.block"; of a map's values "scale.NAME.max"
	need bool   // it must be set
	doc  string // one line
	typ  string // as CUE; "" for a struct whose fields follow
	expr ast.Expr
}

func definitions(t *testing.T) map[string]*definition {
	t.Helper()
	defs := map[string]*definition{}
	for _, f := range schema.Files(kind.Default) {
		file, err := parser.ParseFile(f.Name, f.Text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			fd, ok := d.(*ast.Field)
			if !ok {
				continue
			}
			name, _, err := ast.LabelName(fd.Label)
			if err != nil || !strings.HasPrefix(name, "#") || name == "#Kinds" {
				continue
			}
			defs[name] = &definition{name: name, doc: comment(fd), value: fd.Value}
		}
	}
	for _, d := range defs {
		if s, ok := d.value.(*ast.StructLit); ok {
			d.fields = walk(t, defs, "", s)
		}
	}
	return defs
}

// walk lists the fields of a struct.
func walk(t *testing.T, defs map[string]*definition, prefix string, s *ast.StructLit) []field {
	t.Helper()
	var out []field
	for _, d := range s.Elts {
		switch d := d.(type) {
		case *ast.EmbedDecl:
			id, ok := d.Expr.(*ast.Ident)
			if !ok {
				continue // of #Node: what its kind selects
			}
			embedded, ok := defs[id.Name].value.(*ast.StructLit)
			if !ok {
				t.Fatalf("%s: it embeds %s, which is no struct", prefix, id.Name)
			}
			out = append(out, walk(t, defs, prefix, embedded)...)
		case *ast.Field:
			name := "NAME" // of a map
			if n, _, err := ast.LabelName(d.Label); err == nil {
				name = n
			} else if prefix == "" && s.Lbrace.IsValid() == false {
				t.Fatalf("a label that is neither a name nor a pattern: %v", d.Label)
			}
			f := field{path: strings.TrimPrefix(prefix+"."+name, "."), need: d.Constraint == token.NOT || d.Constraint == token.ILLEGAL && name != "NAME", doc: comment(d), expr: d.Value}
			sub, isStruct := d.Value.(*ast.StructLit)
			if !isStruct {
				f.typ = source(t, d.Value)
			}
			out = append(out, f)
			if isStruct {
				out = append(out, walk(t, defs, f.path, sub)...)
			}
		}
	}
	return out
}

func source(t *testing.T, e ast.Expr) string {
	t.Helper()
	b, err := format.Node(e)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

// comment returns the comment above a field as one line.
func comment(d *ast.Field) string {
	for _, g := range ast.Comments(d) {
		if g.Doc {
			return strings.Join(strings.Fields(g.Text()), " ")
		}
	}
	return ""
}

func (f field) String() string { return fmt.Sprintf("%s (%s)", f.path, f.typ) }

// kinds returns the kinds of the standard set with their definitions.
func kinds(t *testing.T) map[*kind.Entry]*definition {
	t.Helper()
	defs, out := definitions(t), map[*kind.Entry]*definition{}
	for _, e := range kind.Default.All() {
		out[e] = defs[schema.Definition(e.Name)]
	}
	return out
}
