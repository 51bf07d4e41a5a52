package load

import (
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/dynamograph/dynamo/graph/diag"
)

// span is one place in the author's files where a field is set.
type span struct {
	label diag.Pos // of its name
	width int
	value diag.Pos // of its value
	size  int      // bytes of the value where it is on one line, else of its first word
	expr  ast.Expr
	field *ast.Field // nil for an item of a list
}

// spans finds fields in the author's syntax trees, by path.
type spans struct {
	l    *loader
	at   map[string][]span
	left int // bounds the work on specs that refer to themselves a lot
}

// key joins a path; no label holds a zero byte, since no source does.
func key(path []string) string { return strings.Join(path, "\x00") }

// newSpans walks all files.
func newSpans(l *loader, srcs []*source) *spans {
	s := &spans{l: l, at: map[string][]span{}, left: 100_000}
	for _, src := range srcs {
		s.decls(nil, src.file.Decls, 0)
	}
	return s
}

func (s *spans) decls(prefix []string, ds []ast.Decl, depth int) {
	for _, d := range ds {
		switch x := d.(type) {
		case *ast.Field:
			name, _, err := ast.LabelName(x.Label)
			if err != nil {
				continue
			}
			p := append(prefix[:len(prefix):len(prefix)], name)
			s.add(p, x.Label.Pos(), x.Value, x)
			s.expr(p, x.Value, depth)
		case *ast.EmbedDecl:
			s.expr(prefix, x.Expr, depth)
		case *ast.Comprehension:
			s.expr(prefix, x.Value, depth)
		}
	}
}

// expr follows what is unified into the field at prefix.
func (s *spans) expr(prefix []string, e ast.Expr, depth int) {
	if s.left--; s.left < 0 || depth > 64 {
		return
	}
	switch x := e.(type) {
	case *ast.StructLit:
		s.decls(prefix, x.Elts, depth+1)
	case *ast.BinaryExpr:
		if x.Op == token.AND {
			s.expr(prefix, x.X, depth+1)
			s.expr(prefix, x.Y, depth+1)
		}
	case *ast.ParenExpr:
		s.expr(prefix, x.X, depth+1)
	case *ast.ListLit:
		for i, el := range x.Elts {
			if _, ok := el.(*ast.Ellipsis); ok {
				continue
			}
			p := append(prefix[:len(prefix):len(prefix)], strconv.Itoa(i))
			s.add(p, el.Pos(), el, nil)
			s.expr(p, el, depth+1)
		}
	case *ast.SelectorExpr: // a definition of an imported package
		id, ok := x.X.(*ast.Ident)
		if !ok {
			return
		}
		spec, ok := id.Node.(*ast.ImportSpec)
		if !ok {
			return
		}
		p, name := s.l.packageOf(spec), ""
		if name, _, _ = ast.LabelName(x.Sel); p == nil || name == "" {
			return
		}
		for _, f := range p.files {
			for _, d := range f.file.Decls {
				if fd, ok := d.(*ast.Field); ok {
					if n, _, _ := ast.LabelName(fd.Label); n == name {
						s.expr(prefix, fd.Value, depth+8)
					}
				}
			}
		}
	case *ast.Ident: // a definition or hidden field of the author's
		switch n := x.Node.(type) {
		case *ast.Field:
			s.expr(prefix, n.Value, depth+8)
		case *ast.LetClause:
			s.expr(prefix, n.Expr, depth+8)
		case ast.Expr:
			s.expr(prefix, n, depth+8)
		}
	}
}

func (s *spans) add(path []string, label token.Pos, value ast.Expr, f *ast.Field) {
	sp := span{label: s.l.pos(label), expr: value, field: f}
	src, ok := s.l.srcs[sp.label.File]
	if !ok {
		return
	}
	sp.width = src.width(sp.label)
	if value != nil {
		sp.value = s.l.pos(value.Pos())
	}
	if sp.value.IsValid() {
		sp.size = src.width(sp.value)
		if _, plain := value.(*ast.BasicLit); !plain && value.End().IsValid() {
			if end := s.l.pos(value.End()); end.File == sp.value.File && end.Line == sp.value.Line && end.Col > sp.value.Col && end.Col-sp.value.Col <= 120 {
				sp.size = end.Col - sp.value.Col
			}
		}
	}
	k := key(path)
	s.at[k] = append(s.at[k], sp)
}

// label returns the place of a field's name.
func (s *spans) label(path []string) (diag.Pos, int) {
	if sp := s.at[key(path)]; len(sp) > 0 {
		return sp[0].label, sp[0].width
	}
	return diag.Pos{}, 0
}

// value returns the place of a field's value: of the literal that gives it where there is one, else of its name.
func (s *spans) value(path []string, want string) (diag.Pos, int) {
	if p, n := s.literal(path, want); p.IsValid() {
		return p, n
	}
	for _, sp := range s.at[key(path)] {
		if sp.value.IsValid() {
			return sp.value, sp.size
		}
	}
	return s.label(path)
}

// literal returns the place of the literal that gives a field the value want, also as a default.
func (s *spans) literal(path []string, want string) (found diag.Pos, width int) {
	for _, sp := range s.at[key(path)] {
		ast.Walk(sp.expr, func(n ast.Node) bool {
			if u, ok := n.(*ast.UnaryExpr); ok && u.Op == token.SUB && !found.IsValid() {
				if b, ok := u.X.(*ast.BasicLit); ok && "-"+b.Value == want {
					if found = s.l.pos(u.Pos()); found.IsValid() {
						width = 1 + s.l.widthAt(s.l.pos(b.Pos()))
					}
				}
			}
			if b, ok := n.(*ast.BasicLit); ok && sameLiteral(b, want) && !found.IsValid() {
				if found = s.l.pos(b.Pos()); found.IsValid() {
					width = s.l.widthAt(found)
				}
			}
			_, isStruct := n.(*ast.StructLit)
			return !isStruct
		}, nil)
		if found.IsValid() {
			break
		}
	}
	return found, width
}

// sameLiteral reports whether b denotes the value that CUE prints as want.
func sameLiteral(b *ast.BasicLit, want string) bool {
	if b.Value == want {
		return true
	}
	if b.Kind != token.STRING {
		return false
	}
	x, err1 := literal.Unquote(b.Value)
	y, err2 := literal.Unquote(want)
	return err1 == nil && err2 == nil && x == y
}
