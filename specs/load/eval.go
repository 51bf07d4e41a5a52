package load

import (
	"fmt"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/token"

	"github.com/dynamograph/dynamo/graph/diag"
)

// values are a spec and the schema, evaluated in one context that lives as long as the load.
type values struct {
	spec cue.Value // evaluated against the open copy; parts of it may be in error
	real cue.Value // the schema
}

func noImports(token.Pos, string) *build.Instance { return nil }

// evaluate builds the spec. ok is false where nothing can be said about its fields.
func (l *loader) evaluate(srcs []*source) (v values, ok bool) {
	l.poison = map[*ast.Ident]bool{}
	missing := l.references(l.parsed())
	for _, s := range l.parsed() {
		loosen(s.file)
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
	if l.spans == nil || v.spec.IncompleteKind()&^cue.StructKind != 0 {
		if !l.list.Failed() {
			l.list.Add(diag.Diagnostic{Code: "no-graph", Pos: diag.Pos{File: srcs[0].name, Line: 1, Col: 1},
				Msg: "want one map with name, nodes and edges, got " + typeName(v.spec.IncompleteKind())})
		}
		return v, false
	}
	return v, true
}

// build makes a package of the spec's files. ok is false after a finding that leaves nothing to evaluate.
func (l *loader) build(srcs []*source, missing []string) (in *build.Instance, ok bool) {
	var bc *build.Context
	var openErr error
	load := l.importer(&bc, func() (open *build.Instance) {
		open, openErr = l.schema.open(bc, missing)
		return open
	})
	bc = build.NewContext(build.Loader(load))
	in = bc.NewInstance("", load)
	l.canonical(in, srcs[0])
	for _, s := range srcs {
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

// onePackage makes the files of the spec and of overlays files of one package, so that they can refer to each other. It reports whether
// they may be.
func (l *loader) onePackage(srcs []*source) bool {
	var first *ast.Package
	var without []*source
	for _, s := range srcs {
		p := clause(s.file)
		switch {
		case p == nil && s.format == "cue":
			without = append(without, s)
		case p == nil:
		case first == nil:
			first = p
		case p.Name.Name != first.Name.Name:
			d := diag.Diagnostic{Code: "package-mismatch", Pos: l.pos(p.Name.Pos()), Len: len(p.Name.Name),
				Msg:     fmt.Sprintf("package %q in a folder of package %q", p.Name.Name, first.Name.Name),
				Hint:    "load one file, or move it into a folder of its own",
				Related: []diag.Related{{Pos: l.pos(first.Name.Pos()), Len: len(first.Name.Name), Msg: "the package is named here"}}}
			if s.layer == layerOverlay {
				d.Msg = fmt.Sprintf("an overlay of package %q over a spec of package %q", p.Name.Name, first.Name.Name)
				d.Hint = fmt.Sprintf("write package %s, or leave the clause out", first.Name.Name)
			}
			l.list.Add(d)
			return false
		}
	}
	if first != nil && len(srcs) > 1 {
		for _, s := range without {
			s.file.Decls = append([]ast.Decl{&ast.Package{Name: ast.NewIdent(first.Name.Name)}}, s.file.Decls...)
		}
	}
	return true
}

// clause returns the package clause of a file, or nil.
func clause(f *ast.File) *ast.Package {
	for _, d := range f.Decls {
		if p, ok := d.(*ast.Package); ok {
			return p
		}
	}
	return nil
}
