package load

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/specs/schema"
)

// values are a spec and the schema, evaluated in one context that lives as long as the load.
type values struct {
	spec cue.Value // evaluated against the open copy; parts of it may be in error
	real cue.Value // the schema
}

func noImports(token.Pos, string) *build.Instance { return nil }

// evaluate builds the spec. ok is false where nothing can be said about its fields.
func (l *loader) evaluate(srcs []*source) (v values, ok bool) {
	before := len(l.list)
	l.poison = map[*ast.Ident]bool{}
	missing := l.references(srcs)
	if hasCode(l.list[before:], "unknown-import") {
		return v, false
	}
	ctx := cuecontext.New()
	ri, err := l.schema.instance()
	if err != nil {
		l.fail = err
		return v, false
	}
	if v.real = ctx.BuildInstance(ri); v.real.Err() != nil {
		l.fail = fmt.Errorf("schema: %w", flat(v.real.Err()))
		return v, false
	}
	for range 4 { // again without references to nothing, so that they hide no other mistake
		in, ok := l.build(srcs, missing)
		if !ok {
			return v, false
		}
		v.spec = ctx.BuildInstance(in)
		err := v.spec.Validate()
		if n := l.unresolved(err); n > 0 {
			continue
		}
		l.spans = newSpans(l, srcs)
		if err != nil {
			l.cueErrors(err)
		}
		break
	}
	if l.spans == nil || !v.spec.Exists() || v.spec.IncompleteKind()&^(cue.StructKind|cue.BottomKind) != 0 {
		return v, false
	}
	return v, true
}

// build makes a package of the spec's files. ok is false after a finding that leaves nothing to evaluate.
func (l *loader) build(srcs []*source, missing []string) (in *build.Instance, ok bool) {
	var bc *build.Context
	var openErr error
	bc = build.NewContext(build.Loader(func(_ token.Pos, path string) *build.Instance {
		if !isSchema(path) {
			return nil
		}
		var open *build.Instance
		open, openErr = l.schema.open(bc, missing)
		return open
	}))
	in = bc.NewInstance("", nil)
	pkg := ""
	for _, s := range srcs {
		if n := s.file.PackageName(); n != "" && pkg != "" && n != pkg {
			l.list.Add(diag.Diagnostic{Code: "bad-value", Pos: l.pos(s.file.Decls[0].Pos()),
				Msg: fmt.Sprintf("package %q in a folder of package %q", n, pkg), Hint: "load one file, or move it into a folder of its own"})
			return nil, false
		} else if n != "" {
			pkg = n
		}
		if err := in.AddSyntax(s.file); err != nil {
			l.cueErrors(err)
			return nil, false
		}
	}
	err := in.Complete()
	if openErr != nil {
		panic(openErr) // ours, not the author's
	}
	if err != nil && l.unresolved(err) == 0 {
		l.cueErrors(err)
		return nil, false
	}
	return in, true
}

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
	for _, s := range l.srcs {
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
			if d.Hint == "" {
				d.Hint = fmt.Sprintf("if it is text, write %q", id.Name)
			}
			l.list.Add(d)
			l.poison[id] = true
			id.Name = "_"
			return true
		}, nil)
	}
	return len(at)
}

func hasCode(list diag.List, code string) bool {
	return slices.ContainsFunc(list, func(d diag.Diagnostic) bool { return d.Code == code })
}

// isSchema reports whether an import is the schema's.
func isSchema(path string) bool {
	path, _, _ = strings.Cut(path, ":")
	base, version, _ := strings.Cut(path, "@")
	return base == schema.ImportPath && (version == "" || version == "v0")
}

// references checks imports and the definitions that are taken from the schema, which CUE would report one at a time. It returns the
// definitions that do not exist.
func (l *loader) references(srcs []*source) []string {
	var missing []string
	for _, s := range srcs {
		for spec := range s.file.ImportSpecs() {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil || isSchema(path) {
				continue
			}
			if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") && stdlib(path) {
				continue
			}
			d := diag.Diagnostic{Code: "unknown-import", Pos: l.pos(spec.Path.Pos()), Len: len(spec.Path.Value),
				Msg: fmt.Sprintf("import %q: not found", path), Hint: diag.Suggest(path, append([]string{schema.ImportPath}, known...)),
				Notes: []string{fmt.Sprintf("a spec may import %q and CUE's standard library", schema.ImportPath)}}
			l.list.Add(d)
		}
		ast.Walk(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			spec := importOf(s.file, x)
			if spec == nil {
				return true
			}
			name, _, err := ast.LabelName(sel.Sel)
			if err != nil || l.schema.shape[name] != "" {
				return true
			}
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

// stdlib reports whether CUE has a built-in package of that path.
func stdlib(path string) bool {
	v := cuecontext.New().CompileString(fmt.Sprintf("import p %q\np", path))
	return v.Err() == nil
}

// group is what CUE says about one path.
type group struct {
	path []string
	errs []errors.Error
}

// cueErrors turns the errors of building and evaluating a spec into findings, one a path.
func (l *loader) cueErrors(err error) {
	var groups []*group
	byPath := map[string]*group{}
	for _, e := range errors.Errors(err) {
		p := clean(e.Path())
		k := key(p)
		if len(p) == 0 {
			k = fmt.Sprint("\x00", e.Position(), e.Error())
		}
		g := byPath[k]
		if g == nil {
			g = &group{path: p}
			byPath[k] = g
			groups = append(groups, g)
		}
		g.errs = append(g.errs, e)
	}
	for _, g := range groups {
		l.list.Add(l.cueError(g))
	}
}

// clean unquotes labels.
func clean(p []string) []string {
	out := make([]string, 0, len(p))
	for _, s := range p {
		if u, err := strconv.Unquote(s); err == nil {
			s = u
		}
		out = append(out, s)
	}
	return out
}

// cueError makes one finding of what CUE says about one path.
func (l *loader) cueError(g *group) diag.Diagnostic {
	e := g.errs[0]
	format, args := e.Msg()
	msg := fmt.Sprintf(format, args...)
	if c := errors.Unwrap(e); c != nil && strings.TrimSpace(msg) != "" {
		msg += ": " + strings.TrimPrefix(c.Error(), strings.Join(e.Path(), ".")+": ")
	}
	places := l.places(e)
	d := diag.Diagnostic{Code: "bad-value", Path: strings.Join(g.path, "."), Msg: prefix(g.path, msg)}
	if len(places) > 0 {
		d.Pos = places[0]
	}
	if l.spans != nil && !d.Pos.IsValid() {
		d.Pos, d.Len = l.spans.value(g.path, "")
	}
	if s, ok := l.srcs[d.Pos.File]; ok && d.Len == 0 {
		d.Len = s.width(d.Pos)
	}
	switch {
	case strings.HasPrefix(format, "conflicting values") && len(args) >= 2:
		l.conflict(&d, g, fmt.Sprint(args[0]), fmt.Sprint(args[1]), places)
	case strings.HasPrefix(format, "undefined field"):
		d.Code = "unknown-reference"
	case strings.HasPrefix(msg, "imported and not used"):
		d.Code, d.Hint = "unused-import", "remove the import"
		d.Pos, d.Len = places[0], len(strings.TrimPrefix(msg, "imported and not used: "))
	}
	return d
}

// conflict describes two values for one field, with both places.
func (l *loader) conflict(d *diag.Diagnostic, g *group, x, y string, places []diag.Pos) {
	d.Code = "conflict"
	for _, sp := range l.spans.at[key(g.path)] {
		if t, ok := l.given[sp.label.String()]; ok {
			d.Pos, d.Len = l.spans.value(g.path, "")
			d.Msg = prefix(g.path, fmt.Sprintf("-t %s does not fit what the spec says", t.arg))
			d.Hint = "a tag can fill or narrow a value or replace a default, such as `int | *2`, but not change a plain value"
			return
		}
	}
	// Keep the places where these values are written; CUE also names the structs around them.
	var px, py diag.Pos
	for _, p := range places {
		switch word := l.word(p); {
		case word == x && !px.IsValid():
			px = p
		case word == y && !py.IsValid():
			py = p
		}
	}
	switch {
	case px.IsValid() && py.IsValid():
		places = []diag.Pos{px, py}
	case py.IsValid():
		places, x, y = []diag.Pos{py}, y, x
	case px.IsValid():
		places = []diag.Pos{px}
	}
	if len(places) > 1 && after(places[1], places[0]) {
		places[0], places[1] = places[1], places[0]
		x, y = y, x
	}
	d.Msg = prefix(g.path, fmt.Sprintf("%s conflicts with %s", x, y))
	if len(places) > 0 {
		d.Pos = places[0]
		d.Len = l.srcs[d.Pos.File].width(d.Pos)
	}
	if len(places) > 1 {
		d.Related = []diag.Related{{Pos: places[1], Len: l.srcs[places[1].File].width(places[1]), Msg: y + " is set here"}}
		d.Hint = "keep one of them"
	} else if g.path[len(g.path)-1] == "kind" {
		d.Hint = "the definition that the node is made of sets its kind: leave one of the two out"
	}
}

// word returns the label or plain value at p.
func (l *loader) word(p diag.Pos) string {
	s := l.srcs[p.File]
	o := s.offset(p)
	if o < 0 {
		return ""
	}
	return string(s.data[o:min(o+s.width(p), len(s.data))])
}

func after(a, b diag.Pos) bool {
	if a.File != b.File {
		return a.File > b.File
	}
	return a.Line > b.Line || a.Line == b.Line && a.Col > b.Col
}

// places lists the author's places that an error names, in its order.
func (l *loader) places(e errors.Error) []diag.Pos {
	var out []diag.Pos
	for _, p := range append([]token.Pos{e.Position()}, e.InputPositions()...) {
		if q := l.pos(p); q.IsValid() && !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	return out
}

// names lists what a reference in the author's files may mean.
func (l *loader) names() []string {
	var out []string
	for _, s := range l.srcs {
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

// prefix puts where before what.
func prefix(path []string, msg string) string {
	if len(path) == 0 {
		return msg
	}
	return place(path) + ": " + msg
}
