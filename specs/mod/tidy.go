package mod

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
	"cuelang.org/go/mod/modfile"
	"cuelang.org/go/mod/module"
	"golang.org/x/mod/semver"

	"github.com/dynamograph/dynamo/specs/schema"
)

// Tidy makes cue.mod/module.cue list the modules that the files of m import, and theirs, at the newest version that any of them asks for,
// and no other. What is not listed yet is looked for in the registry. It reports whether the file changed.
func (m *Module) Tidy(ctx context.Context, c *Client) (bool, error) {
	want, err := m.tidy(ctx, c)
	if err != nil || sameDeps(want, m.file) {
		return false, err
	}
	return true, m.write(want)
}

// Add makes m depend on a module: "path@v0.1.0", or "path", "path@v0" or "path@latest" for the newest release. It returns the version that
// was taken. A newer version that another dependency asks for is an error.
func (m *Module) Add(ctx context.Context, c *Client, what string) (string, error) {
	base, version, _ := strings.Cut(what, "@")
	if err := module.CheckPathWithoutVersion(base); err != nil {
		return "", problem("write it as example.com/NAME@v0.1.0", "module %q: %s", what, cause(err))
	}
	if base == m.base() {
		return "", problem("", "%s is this module itself", base)
	}
	if semver.Canonical(version) != version || version == "" {
		path := base
		if version != "" && version != "latest" {
			if semver.Major(version) != version {
				return "", problem("write it as example.com/NAME@v0.1.0", "module %q: no version %q", what, version)
			}
			path += "@" + version
		}
		vs, err := c.versions(ctx, path)
		if err != nil {
			return "", err
		}
		if version = latest(vs); version == "" {
			return "", c.absent("version of " + path)
		}
	}
	v, err := module.NewVersion(base, version)
	if err != nil {
		return "", problem("write it as example.com/NAME@v0.1.0", "module %q: %s", what, cause(err))
	}
	if _, err := c.require(ctx, v); err != nil {
		var p *Problem
		if vs, verr := c.versions(ctx, base); errors.As(err, &p) && verr == nil && len(vs) > 0 {
			p.Hint = "it has " + strings.Join(vs, ", ")
		}
		return "", err
	}
	if _, err := c.fetch(ctx, v); err != nil {
		return "", err
	}
	w := newWork(ctx, c, m)
	w.roots[v.Path()] = v
	if w.defaults[base] == "" {
		w.defaults[base] = semver.Major(version)
	}
	if err := w.choose(); err != nil {
		return "", err
	}
	if got := w.selected[v.Path()]; got != v {
		return "", problem("", "%s: another dependency asks for %s", v, got.Version())
	}
	f := w.file(m.file)
	for p := range m.file.Deps { // what is there already may rise, too
		if s, ok := w.selected[p]; ok {
			f.Deps[p].Version = s.Version()
		}
	}
	return v.String(), m.write(f)
}

// work is the search for what a module depends on.
type work struct {
	ctx      context.Context
	c        *Client
	m        *Module
	roots    map[string]module.Version // by path with major version
	selected map[string]module.Version // of all that roots lead to, the newest
	defaults map[string]string         // base → major version, for imports that do not say it
	needed   map[string]bool           // modules that an import leads to
}

func newWork(ctx context.Context, c *Client, m *Module) *work {
	w := &work{ctx: ctx, c: c, m: m, roots: map[string]module.Version{}, defaults: map[string]string{}, needed: map[string]bool{}}
	for _, v := range m.file.DepVersions() {
		w.roots[v.Path()] = v
		d := m.file.Deps[v.Path()]
		if d == nil {
			d = m.file.Deps[v.BasePath()]
		}
		if d != nil && d.Default {
			w.defaults[v.BasePath()] = semver.Major(v.Version())
		}
	}
	return w
}

// choose finds the newest version of each module that roots lead to.
func (w *work) choose() error {
	w.selected = map[string]module.Version{}
	seen := map[module.Version]bool{}
	todo := make([]module.Version, 0, len(w.roots))
	for _, v := range w.roots {
		todo = append(todo, v)
	}
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[v] {
			continue
		}
		seen[v] = true
		if old, ok := w.selected[v.Path()]; !ok || semver.Compare(v.Version(), old.Version()) > 0 {
			w.selected[v.Path()] = v
		}
		more, err := w.c.require(w.ctx, v)
		if err != nil {
			return err
		}
		todo = append(todo, more...)
	}
	return nil
}

// file is old with the modules that are needed, or with the roots where nothing was asked for.
func (w *work) file(old *modfile.File) *modfile.File {
	f := &modfile.File{Module: old.Module, Language: old.Language, Source: old.Source, Custom: old.Custom, Deps: map[string]*modfile.Dep{}}
	for p, v := range w.roots {
		f.Deps[p] = &modfile.Dep{Version: v.Version(), Default: w.defaults[v.BasePath()] == semver.Major(v.Version())}
	}
	return f
}

// tidy returns what the module file should be.
func (m *Module) tidy(ctx context.Context, c *Client) (*modfile.File, error) {
	w := newWork(ctx, c, m)
	for { // each round may add modules, whose own needs may raise others
		if err := w.choose(); err != nil {
			return nil, err
		}
		added, err := w.walk()
		if err != nil {
			return nil, err
		}
		if !added {
			break
		}
	}
	for p := range w.roots {
		if !w.needed[p] {
			delete(w.roots, p)
		}
	}
	for p := range w.needed {
		w.roots[p] = w.selected[p]
	}
	return w.file(m.file), nil
}

// pkg is a package and where it lies.
type pkg struct {
	fs  fs.FS
	dir string
}

// walk follows imports from the files of the module. It reports whether it had to add a module.
func (w *work) walk() (added bool, err error) {
	w.needed = map[string]bool{}
	imports, err := allImports(os.DirFS(w.m.Dir))
	if err != nil {
		return false, err
	}
	seen := map[string]bool{}
	for len(imports) > 0 {
		imp := imports[0]
		imports = imports[1:]
		if seen[imp.path] {
			continue
		}
		seen[imp.path] = true
		p, more, err := w.find(imp)
		if err != nil {
			return false, err
		}
		added = added || more
		if p == nil {
			continue
		}
		next, err := dirImports(p.fs, p.dir)
		if err != nil {
			return false, err
		}
		imports = append(imports, next...)
	}
	return added, nil
}

// find looks for an imported package in the modules that are selected, then in the registry. The package is nil where it needs no look.
func (w *work) find(imp imported) (p *pkg, added bool, err error) {
	ip := ast.ParseImportPath(imp.path)
	root := os.DirFS(w.m.Dir)
	if first, _, _ := strings.Cut(ip.Path, "/"); !strings.Contains(first, ".") {
		return nil, false, nil // CUE's own
	}
	own := ip.Version == "" || ip.Version == w.m.file.MajorVersion()
	if dir, ok := below(ip.Path, w.m.base()); ok && own && hasCUE(root, dir) {
		return nil, false, nil // its files are among all those of the module
	}
	for _, d := range []string{"cue.mod/pkg", "cue.mod/gen", "cue.mod/usr"} {
		if dir := d + "/" + ip.Path; hasCUE(root, dir) {
			return &pkg{root, dir}, false, nil
		}
	}
	for prefix := ip.Path; prefix != "."; prefix = path.Dir(prefix) {
		major := ip.Version
		if major == "" {
			major = w.defaultMajor(prefix)
		}
		v, ok := w.selected[prefix+"@"+major]
		if !ok {
			continue
		}
		if p, err := w.in(v, ip.Path, prefix); p != nil || err != nil {
			w.needed[v.Path()] = true
			return p, false, err
		}
	}
	for prefix := ip.Path; prefix != "."; prefix = path.Dir(prefix) {
		at := prefix
		if ip.Version != "" {
			at += "@" + ip.Version
		}
		vs, err := w.c.versions(w.ctx, at)
		if err != nil {
			return nil, false, err
		}
		newest := latest(vs)
		if newest == "" {
			continue
		}
		v, err := module.NewVersion(prefix, newest)
		if err != nil {
			continue
		}
		if _, ok := w.selected[v.Path()]; ok {
			continue // it does not have the package
		}
		if p, err := w.in(v, ip.Path, prefix); p != nil || err != nil {
			w.roots[v.Path()] = v
			w.needed[v.Path()] = true
			if ip.Version == "" {
				w.defaults[prefix] = semver.Major(newest)
			}
			return p, true, err
		}
	}
	if c := w.c; c.refusals.any(c.Host(ip.Path)) {
		return nil, false, denied(c.Host(ip.Path), ip.Path)
	}
	hint := "is the path right, and does CUE_REGISTRY name the right registry?"
	if ip.Path == schema.ImportPath {
		hint = "dynamo graph mod tidy puts a copy under cue.mod/pkg"
	}
	return nil, false, problem(hint, "%s: import %q: no module provides it; asked registry %s", imp.file, imp.path, w.c.Host(ip.Path))
}

// defaultMajor is the major version of an import that says none: the one that is marked, or the only one.
func (w *work) defaultMajor(base string) string {
	if d := w.defaults[base]; d != "" {
		return d
	}
	only := ""
	for p := range w.selected {
		if b, major, _ := strings.Cut(p, "@"); b == base {
			if only != "" {
				return ""
			}
			only = major
		}
	}
	return only
}

// in looks into a module for a package; nil where it is not there.
func (w *work) in(v module.Version, importPath, base string) (*pkg, error) {
	loc, err := w.c.fetch(w.ctx, v)
	if err != nil {
		return nil, err
	}
	dir, _ := below(importPath, base)
	if dir = path.Join(loc.Dir, dir); !hasCUE(loc.FS, dir) {
		return nil, nil
	}
	return &pkg{loc.FS, dir}, nil
}

// below returns the folder of a package in the module that is called base.
func below(importPath, base string) (string, bool) {
	if importPath == base {
		return ".", true
	}
	return strings.CutPrefix(importPath, base+"/")
}

func hasCUE(dir fs.FS, p string) bool {
	es, err := fs.ReadDir(dir, p)
	return err == nil && slices.ContainsFunc(es, func(e fs.DirEntry) bool { return !e.IsDir() && path.Ext(e.Name()) == ".cue" })
}

// imported is an import and the file that has it.
type imported struct{ path, file string }

// allImports lists what the CUE files of a module import, modules in folders below left out.
func allImports(dir fs.FS) ([]imported, error) {
	var out []imported
	err := fs.WalkDir(dir, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return nil
		}
		if b := path.Base(p); p != "." && (b == "cue.mod" || b[0] == '.' || b[0] == '_' || isModule(dir, p)) {
			return fs.SkipDir
		}
		more, err := dirImports(dir, p)
		out = append(out, more...)
		return err
	})
	return out, err
}

// dirImports lists what the CUE files of a folder import.
func dirImports(dir fs.FS, p string) ([]imported, error) {
	es, err := fs.ReadDir(dir, p)
	if err != nil {
		return nil, err
	}
	var out []imported
	for _, e := range es {
		if e.IsDir() || path.Ext(e.Name()) != ".cue" || e.Name()[0] == '.' || e.Name()[0] == '_' {
			continue
		}
		name := path.Join(p, e.Name())
		b, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(name, b, parser.ImportsOnly)
		if err != nil {
			var at token.Pos
			if ps := errors.Positions(err); len(ps) > 0 {
				at = ps[0]
			}
			return nil, problem("", "%s:%d:%d: %s", name, at.Line(), at.Column(), oneLine(err))
		}
		for s := range f.ImportSpecs() {
			if ip, err := importPath(s); err == nil {
				out = append(out, imported{ip, name})
			}
		}
	}
	return out, nil
}

func importPath(s *ast.ImportSpec) (string, error) {
	n := len(s.Path.Value)
	if n < 2 {
		return "", fmt.Errorf("empty import")
	}
	return s.Path.Value[1 : n-1], nil
}
