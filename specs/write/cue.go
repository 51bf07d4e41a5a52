package write

import (
	"encoding/json"
	"fmt"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/specs/schema"
)

// cueFile is the spec as a CUE file: spec.#Graph & {…}, nodes by their definitions.
func cueFile(g *graph.Graph, t fields, o Options) ([]byte, error) {
	f := &ast.File{}
	pkg := &ast.Package{Name: ast.NewIdent(packageName(g.Name))}
	if o.Comment != "" {
		c := &ast.CommentGroup{Doc: true}
		for line := range strings.Lines(o.Comment) {
			c.List = append(c.List, &ast.Comment{Text: strings.TrimRight("// "+strings.TrimRight(line, "\n"), " ")})
		}
		ast.AddComment(pkg, c)
	}
	spec := ast.NewImport(nil, schema.ImportPath)
	imports := &ast.ImportDecl{Specs: []*ast.ImportSpec{spec}}
	ast.SetRelPos(imports, token.NewSection)
	body, err := structure(t, func(name string, v any) (ast.Expr, bool, error) {
		if name != "nodes" {
			return nil, false, nil
		}
		x, err := structure(v.(fields), nodeExpr)
		return x, true, err
	})
	if err != nil {
		return nil, err
	}
	for i, d := range body.Elts {
		if i > 0 && multiline(d.(*ast.Field).Value) { // a blank line before what is long
			ast.SetRelPos(d, token.NewSection)
		}
	}
	embed := &ast.EmbedDecl{Expr: ast.NewBinExpr(token.AND, ast.NewSel(ast.NewIdent(schema.Package), "#Graph"), body)}
	ast.SetRelPos(embed, token.NewSection)
	f.Decls = []ast.Decl{pkg, imports, embed}
	b, err := format.Node(f)
	if err != nil {
		return nil, fmt.Errorf("graph %q: %w", g.Name, err)
	}
	// Once more as text: the formatter aligns fields by their places.
	if b, err = format.Source(b); err != nil {
		return nil, fmt.Errorf("graph %q: %w", g.Name, err)
	}
	return b, nil
}

// packageName makes a CUE identifier of a graph's name.
func packageName(name string) string {
	s := strings.ReplaceAll(name, "-", "_")
	if s == "" || token.Lookup(s).IsKeyword() || !ast.IsValidIdent(s) || strings.HasPrefix(s, "_") || strings.HasPrefix(s, "#") {
		return "graph"
	}
	return s
}

// nodeExpr writes a node as spec.#Kind & {…}.
func nodeExpr(_ string, v any) (ast.Expr, bool, error) {
	var def string
	var rest fields
	for _, f := range v.(fields) {
		if f.name == "kind" {
			def = schema.Definition(f.value.(string))
			continue
		}
		rest = append(rest, f)
	}
	x := ast.NewSel(ast.NewIdent(schema.Package), def)
	if len(rest) == 0 {
		return x, true, nil
	}
	s, err := structure(rest, nil)
	if err != nil {
		return nil, true, err
	}
	return ast.NewBinExpr(token.AND, x, s), true, nil
}

// structure writes a map. special may write a value in its own way.
func structure(t fields, special func(string, any) (ast.Expr, bool, error)) (*ast.StructLit, error) {
	s := ast.NewStruct()
	for _, f := range t {
		var x ast.Expr
		var err error
		done := false
		if special != nil {
			x, done, err = special(f.name, f.value)
		}
		if !done && err == nil {
			x, err = expr(f.value)
		}
		if err != nil {
			return nil, err
		}
		d := &ast.Field{Label: label(f.name), Value: x}
		s.Elts = append(s.Elts, d)
	}
	lines := len(s.Elts) > 3 || special != nil && len(s.Elts) > 1
	for _, d := range s.Elts {
		lines = lines || multiline(d.(*ast.Field).Value)
	}
	spread(s, false)
	if !lines {
		b, err := format.Node(s)
		if err != nil {
			return nil, err
		}
		lines = len(b) > maxWidth
	}
	if lines {
		spread(s, true)
	}
	return s, nil
}

// maxWidth is how many bytes of a map stand on one line.
const maxWidth = 80

// spread writes s on one line, or each field on a line of its own.
func spread(s *ast.StructLit, lines bool) {
	for i, d := range s.Elts {
		switch {
		case lines:
			ast.SetRelPos(d, token.Newline)
		case i == 0:
			ast.SetRelPos(d, token.NoSpace)
		default:
			ast.SetRelPos(d, token.Blank)
		}
	}
	s.Rbrace = token.NoSpace.Pos()
	if lines {
		s.Rbrace = token.Newline.Pos()
	}
}

// multiline reports whether x takes several lines.
func multiline(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.StructLit:
		return len(x.Elts) > 0 && x.Rbrace.RelPos() == token.Newline
	case *ast.BinaryExpr:
		return multiline(x.Y)
	}
	return false
}

func label(name string) ast.Label {
	if ast.StringLabelNeedsQuoting(name) {
		return ast.NewString(name)
	}
	return ast.NewIdent(name)
}

func expr(v any) (ast.Expr, error) {
	switch x := v.(type) {
	case string:
		return ast.NewString(x), nil
	case bool:
		return ast.NewBool(x), nil
	case nil:
		return ast.NewNull(), nil
	case int:
		return parser.ParseExpr("", fmt.Sprint(x))
	case json.Number:
		return parser.ParseExpr("", x.String())
	case []any:
		l := &ast.ListLit{}
		for _, e := range x {
			y, err := expr(e)
			if err != nil {
				return nil, err
			}
			l.Elts = append(l.Elts, y)
		}
		return l, nil
	case fields:
		return structure(x, nil)
	}
	return nil, fmt.Errorf("a value of type %T", v)
}
