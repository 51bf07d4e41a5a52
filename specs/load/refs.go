package load

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/specs/schema"
)

// unresolved reports the references to nothing among the errors, and makes them stand for any value. It returns how many there were.
func (l *loader) unresolved(err error) int {
	at := map[token.Pos]errors.Error{}
	for _, e := range errors.Errors(err) {
		if f, args := e.Msg(); strings.Contains(f, "reference %q not found") && len(args) > 0 {
			at[e.Position()] = e
		}
	}
	if len(at) == 0 {
		return 0
	}
	names := l.names()
	for _, s := range l.parsed() {
		told := map[string]bool{}
		ast.Walk(s.file, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok || l.poison[id] {
				return true
			}
			e, ok := at[id.Pos()]
			if !ok {
				return true
			}
			path := clean(e.Path())
			d := diag.Diagnostic{Code: "unknown-reference", Pos: l.pos(id.Pos()), Len: len(id.Name), Path: strings.Join(path, "."),
				Msg: prefix(path, fmt.Sprintf("no %q in this file", id.Name)), Hint: diag.Suggest(id.Name, names)}
			if text := fmt.Sprintf("if it is text, write %q", id.Name); d.Hint == "" {
				d.Hint = text
			} else if !strings.HasPrefix(id.Name, "_") && !strings.HasPrefix(id.Name, "#") {
				d.Hint += " " + text
			}
			if pkg := unimported(id.Name); pkg != "" {
				d.Hint = fmt.Sprintf("write `import %q` at the top of the file, below its package clause", pkg)
			}
			if d.Hint == "" || !told[d.Hint] { // one import mends all of them
				l.list.Add(d)
			}
			told[d.Hint] = unimported(id.Name) != ""
			l.poison[id] = true
			id.Name = "_"
			return true
		}, nil)
	}
	return len(at)
}

// unimported says which package a name would stand for, if it was imported: the schema or one of CUE's own; "" for none.
func unimported(name string) string {
	if name == schema.ImportPath[strings.LastIndexByte(schema.ImportPath, '/')+1:] {
		return schema.ImportPath
	}
	if slices.Contains(known, name) {
		return name
	}
	return ""
}

// parsed lists the author's files, by name.
func (l *loader) parsed() []*source {
	var out []*source
	for _, n := range l.fileNames() {
		if s := l.srcs[n]; s.file != nil {
			out = append(out, s)
		}
	}
	return out
}

// isSchema reports whether an import is the schema's.
func isSchema(path string) bool {
	path, _, _ = strings.Cut(path, ":")
	base, version, _ := strings.Cut(path, "@")
	return base == schema.ImportPath && (version == "" || version == "v0")
}

// references checks the definitions that are taken from the schema, which CUE would report one at a time. It returns those that do not
// exist.
func (l *loader) references(srcs []*source) []string {
	var missing []string
	for _, s := range srcs {
		ast.Walk(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			name, _, err := ast.LabelName(sel.Sel)
			if err != nil {
				return true
			}
			spec := importOf(s.file, x)
			if spec == nil {
				l.foreign(s, x, sel.Sel, name)
				return true
			}
			if l.schema.shape[name] != "" {
				return true
			}
			l.poison[x] = true
			hint := diag.Suggest(name, l.schema.defs)
			if !strings.HasPrefix(name, "#") {
				if d := "#" + name; slices.Contains(l.schema.defs, d) {
					hint = fmt.Sprintf("did you mean %q?", d)
				}
			}
			d := diag.Diagnostic{Code: "unknown-definition", Pos: l.pos(sel.Sel.Pos()), Len: len(name),
				Msg: fmt.Sprintf("no definition %s in package spec", name), Hint: hint}
			if hint == "" {
				d.Notes = []string{"kinds: " + strings.Join(l.schema.kindDefs(), ", ")}
			}
			l.list.Add(d)
			if !slices.Contains(missing, name) {
				missing = append(missing, name)
			}
			return true
		}, nil)
	}
	return missing
}

// foreign checks a reference to a field of an imported package.
func (l *loader) foreign(s *source, x *ast.Ident, sel ast.Label, name string) {
	p := l.importedAs(s, x)
	if p == nil {
		return
	}
	var have []string
	for _, f := range p.files {
		for _, d := range f.file.Decls {
			switch d := d.(type) {
			case *ast.Field:
				if n, _, err := ast.LabelName(d.Label); err == nil {
					have = append(have, n)
				}
			case *ast.EmbedDecl, *ast.Comprehension: // may hold anything
				return
			}
		}
	}
	if slices.Contains(have, name) {
		return
	}
	l.poison[x] = true
	d := diag.Diagnostic{Code: "unknown-definition", Pos: l.pos(sel.Pos()), Len: len(name), Msg: fmt.Sprintf("no %s in package %s", name, p.name),
		Hint: diag.Suggest(name, have)}
	if d.Hint == "" {
		slices.Sort(have)
		d.Notes = []string{"it has: " + strings.Join(slices.Compact(have), ", ")}
	}
	l.list.Add(d)
	if !slices.Contains(p.missing, name) {
		p.missing = append(p.missing, name)
	}
}

// kindDefs lists the definitions of kinds, sorted.
func (c *compiled) kindDefs() []string {
	var out []string
	for d := range c.kinds {
		out = append(out, d)
	}
	slices.Sort(out)
	return out
}

// importOf returns the import of the schema that id stands for in f, or nil.
func importOf(f *ast.File, id *ast.Ident) *ast.ImportSpec {
	for spec := range f.ImportSpecs() {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !isSchema(path) {
			continue
		}
		name := schema.Package
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if _, field := id.Node.(*ast.Field); id.Name == name && !field {
			return spec
		}
	}
	return nil
}

// known are the packages of CUE's standard library that a spec may have use for.
var known = []string{"list", "math", "net", "path", "regexp", "strconv", "strings", "struct", "time"}

// stdlib reports whether CUE has a built-in package of that path that a spec may use.
func (l *loader) stdlib(path string) bool {
	if path == "tool" || strings.HasPrefix(path, "tool/") {
		return false
	}
	if slices.Contains(known, path) {
		return true
	}
	v := cuecontext.New().CompileString(fmt.Sprintf("import p %q\np", path))
	return v.Err() == nil
}

// names lists what a reference in the author's files may mean.
func (l *loader) names() []string {
	var out []string
	for _, s := range l.parsed() {
		ast.Walk(s.file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.Field:
				if id, ok := x.Label.(*ast.Ident); ok {
					out = append(out, id.Name)
				}
			case *ast.LetClause:
				out = append(out, x.Ident.Name)
			}
			return true
		}, nil)
		for spec := range s.file.ImportSpecs() {
			if path, err := strconv.Unquote(spec.Path.Value); err == nil {
				out = append(out, path[strings.LastIndexByte(path, '/')+1:])
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
