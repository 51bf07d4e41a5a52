package load

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
	"cuelang.org/go/encoding/json"
	"cuelang.org/go/encoding/yaml"

	"github.com/dynamograph/dynamo/graph/diag"
)

// parse makes s.file, or findings.
func (l *loader) parse(s *source) {
	if len(strings.TrimSpace(string(s.data))) == 0 {
		l.list.Add(diag.Diagnostic{Code: "no-graph", Pos: s.pos(0), Msg: "the file is empty"})
		return
	}
	var err error
	switch s.format {
	case "cue":
		if !l.modest(s) {
			return
		}
		s.file, err = parser.ParseFile(s.name, s.data)
	case "json":
		var x ast.Expr
		if x, err = json.Extract(s.name, s.data); err == nil {
			s.file = &ast.File{Filename: s.name, Decls: decls(x)}
		}
	case "yaml":
		if off := oddBreak(s.data); off >= 0 {
			l.list.Add(diag.Diagnostic{Code: "syntax", Pos: s.pos(off), Len: 1, Msg: "YAML: a line ends here, but not with a newline",
				Hint: "save the file with Unix or Windows line ends"})
			return
		}
		s.file, err = yaml.Extract(s.name, s.data)
	}
	if err != nil {
		l.syntax(s, err)
		return
	}
	if s.format != "cue" {
		l.data(s)
		return
	}
	ast.Walk(s.file, func(n ast.Node) bool {
		a, ok := n.(*ast.Attribute)
		if !ok {
			return true
		}
		if k, _ := a.Split(); slices.Contains([]string{"if", "ignore", "embed", "extern"}, k) {
			l.list.Add(diag.Diagnostic{Code: "unsupported-cue", Pos: l.pos(a.Pos()), Len: len(a.Text), Msg: fmt.Sprintf("@%s has no place in a spec", k),
				Hint: "write the value out, or use @tag"})
		}
		return true
	}, nil)
}

// oddBreak returns the offset of what ends a line for YAML but for little else (a lone carriage return, U+0085, U+2028, U+2029), or -1: CUE
// and editors count lines without it.
func oddBreak(b []byte) int {
	s := string(b)
	for i, r := range s {
		switch r {
		case '\r':
			if !strings.HasPrefix(s[i+1:], "\n") {
				return i
			}
		case '\u0085', '\u2028', '\u2029':
			return i
		}
	}
	return -1
}

// decls returns the declarations of a file that is x.
func decls(x ast.Expr) []ast.Decl {
	if st, ok := x.(*ast.StructLit); ok {
		return st.Elts
	}
	return []ast.Decl{&ast.EmbedDecl{Expr: x}}
}

// data checks what CUE would let pass in JSON and YAML: a file that is no map, and keys given twice.
func (l *loader) data(s *source) {
	for _, d := range s.file.Decls {
		if e, ok := d.(*ast.EmbedDecl); ok {
			p := l.pos(e.Pos())
			if !p.IsValid() {
				p = s.pos(0)
			}
			what := "a plain value"
			if _, ok := e.Expr.(*ast.ListLit); ok {
				what = "a list"
				if s.format == "yaml" {
					what = "a list, or several documents"
				}
			}
			l.list.Add(diag.Diagnostic{Code: "no-graph", Pos: p, Msg: "want one map with name, nodes and edges, got " + what})
			return
		}
	}
	if s.format == "yaml" {
		plainEdges(s.file)
	}
	var visit func(ds []ast.Decl)
	visit = func(ds []ast.Decl) {
		seen := map[string]*ast.Field{}
		for _, d := range ds {
			f, ok := d.(*ast.Field)
			if !ok {
				continue
			}
			name, _, err := ast.LabelName(f.Label)
			if err != nil {
				continue
			}
			if old, ok := seen[name]; ok {
				p, q := l.pos(f.Label.Pos()), l.pos(old.Label.Pos())
				l.list.Add(diag.Diagnostic{Code: "duplicate-field", Pos: p, Len: s.width(p), Msg: fmt.Sprintf("field %q is set twice", name),
					Hint:    "keep one of them",
					Related: []diag.Related{{Pos: q, Len: s.width(q), Msg: fmt.Sprintf("%q is first set here", name)}}})
			}
			seen[name] = f
			ast.Walk(f.Value, func(n ast.Node) bool {
				if st, ok := n.(*ast.StructLit); ok {
					visit(st.Elts)
					return false
				}
				return true
			}, nil)
		}
	}
	visit(s.file.Decls)
}

// plainEdges lets a YAML file write an edge without settings as "a -> b:", where YAML has null.
func plainEdges(f *ast.File) {
	for _, d := range f.Decls {
		edges, ok := d.(*ast.Field)
		if !ok {
			continue
		}
		st, isMap := edges.Value.(*ast.StructLit)
		if name, _, err := ast.LabelName(edges.Label); err != nil || name != "edges" || !isMap {
			continue
		}
		for _, d := range st.Elts {
			if e, ok := d.(*ast.Field); ok {
				if b, ok := e.Value.(*ast.BasicLit); ok && b.Kind == token.NULL {
					e.Value = &ast.StructLit{Lbrace: b.Pos(), Rbrace: b.Pos()}
				}
			}
		}
	}
}

var (
	yamlLine  = regexp.MustCompile(`(?:^|[ :])line (\d+)`)
	fileLine  = regexp.MustCompile(`:(\d+): `)
	wantFound = regexp.MustCompile(`expected (.+?), found (.+)`)
)

// syntax turns a parser's errors into findings, one a line.
func (l *loader) syntax(s *source, err error) {
	seen := map[int]bool{}
	es := errors.Errors(err)
	slices.SortStableFunc(es, func(a, b errors.Error) int { return cmp.Compare(a.Position().Offset(), b.Position().Offset()) })
	for _, e := range es {
		p := l.pos(e.Position())
		f, args := e.Msg()
		msg := fmt.Sprintf(f, args...)
		if s.format != "cue" {
			msg = e.Error()
		}
		if !p.IsValid() {
			p = diag.Pos{File: s.name, Line: 1, Col: 1}
			for _, re := range []*regexp.Regexp{yamlLine, fileLine} {
				if m := re.FindStringSubmatch(msg); m != nil {
					p.Line, _ = strconv.Atoi(m[1])
					p.Col = 1 + len(s.indent(s.offset(p)))
					break
				}
			}
		}
		if seen[p.Line] {
			continue
		}
		seen[p.Line] = true
		d := diag.Diagnostic{Code: "syntax", Pos: p, Len: s.width(p), Msg: l.plainSyntax(s, msg)}
		s.explain(&d)
		l.list.Add(d)
	}
}

// plainSyntax says what a parser says without naming it.
func (l *loader) plainSyntax(s *source, msg string) string {
	if s.format != "cue" {
		if i := strings.LastIndex(msg, ": "); i >= 0 {
			msg = msg[i+2:]
		}
		return strings.ToUpper(s.format) + ": " + strings.TrimPrefix(msg, "yaml: ")
	}
	if m := wantFound.FindStringSubmatch(msg); m != nil {
		name := strings.NewReplacer("'EOF'", "the end of the file", "EOF", "the end of the file", "newline", "the end of the line",
			"'IDENT' ", "", "'STRING' ", "", "'INT' ", "")
		return fmt.Sprintf("want %s, got %s", name.Replace(m[1]), name.Replace(m[2]))
	}
	if strings.Contains(msg, "@experiment") {
		return "this form is an experiment of CUE's that a spec may not use"
	}
	if i := strings.IndexByte(msg, '"'); i >= 0 && strings.Contains(msg, "alias") {
		name, _, _ := strings.Cut(msg[i+1:], `"`)
		return fmt.Sprintf("%q stands for two things here", name)
	} else if strings.Contains(msg, "alias") {
		return "a name cannot stand here"
	}
	return brief(msg)
}

// pos returns the place of a token in the author's files; the zero Pos where it lies elsewhere.
func (l *loader) pos(p token.Pos) diag.Pos {
	if !p.IsValid() {
		return diag.Pos{}
	}
	q := p.Position()
	if _, ok := l.srcs[q.Filename]; !ok {
		return diag.Pos{}
	}
	return diag.Pos{File: q.Filename, Line: q.Line, Col: q.Column}
}
