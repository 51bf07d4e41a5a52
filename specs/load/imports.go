package load

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/specs/schema"
)

// pkg is a package that a spec imports, directly or not.
type pkg struct {
	path  string // canonical
	name  string
	files []*source

	missing []string // what others take from it and it does not have; it stands for any value once that is reported
}

// imports finds and parses all packages that the files import. The error is for what could not be reached; what is wrong is a finding.
func (l *loader) imports(ctx context.Context, in *input, o Options) error {
	l.pkgs, l.canon, l.edges = map[string]*pkg{}, map[*tree]map[string]string{}, map[string][]string{}
	m := &modules{l: l, ctx: ctx, get: o.Modules, main: in.home, trees: map[string]*tree{}, left: maxImports}
	if in.root != "" {
		l.newer(&tree{fsys: in.home.fsys, dir: ".", name: in.home.name, pkgs: "cue.mod"})
	}
	opened := false
	queue := slices.Clone(in.files)
	owner := map[*source]string{} // the package that a file belongs to
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if s.format != "cue" {
			continue
		}
		for spec := range s.file.ImportSpecs() {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil || isSchema(p) {
				continue
			}
			if first, _, _ := strings.Cut(p, "/"); !strings.Contains(first, ".") {
				if !l.stdlib(p) {
					l.unknownImport(spec, p, "", in.root != "")
				}
				continue
			}
			if in.root != "" && !opened {
				opened = true
				t, err := m.open(in.root, in.home.name)
				if err != nil {
					return err
				}
				if t == nil {
					return nil // a finding
				}
				*in.home = *t
			}
			from := s.of
			if from == nil {
				from = in.home
			}
			ip := ast.ParseImportPath(p)
			files, canonical, why, err := m.find(from, ip)
			if err != nil {
				return fmt.Errorf("%v: import %q: %w", l.pos(spec.Path.Pos()), p, err)
			}
			if len(files) == 0 {
				l.unknownImport(spec, p, why, in.root != "")
				continue
			}
			if l.canon[from] == nil {
				l.canon[from] = map[string]string{}
			}
			l.canon[from][p] = canonical
			l.edges[owner[s]] = append(l.edges[owner[s]], canonical)
			if l.circle(canonical, owner[s]) {
				l.list.Add(diag.Diagnostic{Code: "import-cycle", Pos: l.pos(spec.Path.Pos()), Len: len(spec.Path.Value),
					Msg: fmt.Sprintf("import %q: packages import each other", p), Hint: "move what both need into a third package"})
				continue
			}
			if l.pkgs[canonical] != nil {
				continue
			}
			l.pkgs[canonical] = &pkg{path: canonical, name: ip.Qualifier, files: files}
			for _, f := range files {
				owner[f] = canonical
				if f.file == nil {
					l.parse(f)
				}
				if f.file != nil {
					queue = append(queue, f)
				}
			}
			if l.list.Failed() {
				return nil
			}
		}
	}
	return nil
}

// circle reports whether package from leads to package to by imports.
func (l *loader) circle(from, to string) bool {
	if to == "" {
		return false
	}
	seen := map[string]bool{}
	var walk func(p string) bool
	walk = func(p string) bool {
		if p == to {
			return true
		}
		if seen[p] {
			return false
		}
		seen[p] = true
		return slices.ContainsFunc(l.edges[p], walk)
	}
	return walk(from)
}

// unknownImport reports an import that leads to nothing. why says where the package should be.
func (l *loader) unknownImport(spec *ast.ImportSpec, path, why string, inModule bool) {
	d := diag.Diagnostic{Code: "unknown-import", Pos: l.pos(spec.Path.Pos()), Len: len(spec.Path.Value),
		Msg: fmt.Sprintf("import %q: not found", path), Hint: diag.Suggest(path, append([]string{schema.ImportPath}, known...))}
	switch first, _, _ := strings.Cut(path, "/"); {
	case path == "tool" || strings.HasPrefix(path, "tool/"):
		d.Msg, d.Hint = fmt.Sprintf("import %q: a spec does nothing, it only says what shall be", path), "remove it"
	case why != "":
		d.Msg += ": " + why
	case !strings.Contains(first, ".") || d.Hint != "":
	case inModule:
		d.Hint = "no module of cue.mod/module.cue has it: run dynamo graph mod tidy"
	default:
		d.Hint = "the spec lies in no module: make one with dynamo graph init"
	}
	if !inModule {
		d.Notes = []string{fmt.Sprintf("a spec may import %q and CUE's standard library; in a module, also its packages and those of modules that it depends on", schema.ImportPath)}
	}
	l.list.Add(d)
}

// instance makes the instance of an imported package for the evaluator.
func (p *pkg) instance(l *loader, bc *build.Context, loader build.LoadFunc) *build.Instance {
	in := bc.NewInstance("", loader)
	in.PkgName, in.ImportPath = p.name, p.path
	l.canonical(in, p.files[0])
	for _, f := range p.files {
		if err := in.AddSyntax(f.file); err != nil {
			return in // it holds the error
		}
	}
	if len(p.missing) > 0 {
		f := &ast.File{Filename: p.path, Decls: []ast.Decl{&ast.Package{Name: ast.NewIdent(p.name)}}}
		for _, n := range p.missing {
			f.Decls = append(f.Decls, &ast.Field{Label: ast.NewIdent(n), Value: ast.NewIdent("_")})
		}
		_ = in.AddSyntax(f) // of the same package: it cannot fail
	}
	if err := in.Complete(); err != nil && in.Err == nil {
		in.ReportError(errors.Promote(err, ""))
	}
	return in
}

// canonical tells an instance which packages the imports of its files are.
func (l *loader) canonical(in *build.Instance, s *source) {
	from := s.of
	if from == nil {
		from = l.home
	}
	in.CanonicalImportPath = func(p string) string {
		if isSchema(p) {
			return schema.ImportPath
		}
		if c, ok := l.canon[from][p]; ok {
			return c
		}
		return p
	}
}

// importer gives the evaluator packages by their canonical paths. open makes the copy of the schema.
func (l *loader) importer(bc **build.Context, open func() *build.Instance) build.LoadFunc {
	var f build.LoadFunc
	f = func(_ token.Pos, path string) *build.Instance {
		if path == schema.ImportPath {
			return open()
		}
		if p, ok := l.pkgs[path]; ok {
			return p.instance(l, *bc, f)
		}
		return nil
	}
	return f
}

// packageOf returns the package that an import spec of a file stands for, or nil.
func (l *loader) packageOf(spec *ast.ImportSpec) *pkg {
	if s, ok := l.srcs[spec.Path.Pos().Filename()]; ok {
		return l.imported(s, spec)
	}
	return nil
}

func (l *loader) imported(s *source, spec *ast.ImportSpec) *pkg {
	from := s.of
	if from == nil {
		from = l.home
	}
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return nil
	}
	return l.pkgs[l.canon[from][p]]
}

// importedAs returns the package that an identifier of a file stands for, or nil.
func (l *loader) importedAs(s *source, id *ast.Ident) *pkg {
	if _, field := id.Node.(*ast.Field); field {
		return nil
	}
	for spec := range s.file.ImportSpecs() {
		p := l.imported(s, spec)
		if p == nil {
			continue
		}
		name := p.name
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == id.Name {
			return p
		}
	}
	return nil
}
