package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/mod/modfile"
	"cuelang.org/go/mod/module"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/specs/schema"
)

// Modules brings CUE modules from registries or a cache of them. Errors say which registry and module, why, and what to do.
type Modules interface {
	// Fetch returns where the files of a module are.
	Fetch(ctx context.Context, v module.Version) (module.SourceLoc, error)
	// Require lists what a module depends on.
	Require(ctx context.Context, v module.Version) ([]module.Version, error)
}

// maxImports bounds the files of all packages that a spec imports.
const maxImports = 8 << 20

// tree is a module whose files are at hand.
type tree struct {
	path string // "example.com/a@v0"; "" where the spec lies in no module
	fsys fs.FS
	dir  string // in fsys
	name func(file string) string
	deps []module.Version
	pkgs string // folder of vendored packages, "" for modules other than the spec's
}

func (t *tree) base() string { base, _, _ := strings.Cut(t.path, "@"); return base }

// modules finds the packages that a spec imports.
type modules struct {
	l     *loader
	ctx   context.Context
	get   func() (Modules, error)
	from  Modules
	main  *tree
	list  []module.Version // what is chosen of all that is required; nil until it is needed
	trees map[string]*tree // by path@version
	left  int64
}

// home finds the module that the spec at lies in: the next folder upwards with a cue.mod/module.cue. name is what the user calls the spec.
func home(name, at string, folder bool) (root string, display func(string) string, err error) {
	abs, err := filepath.Abs(at)
	if err != nil {
		return "", nil, err
	}
	dir, shown := abs, name
	if !folder {
		dir, shown = filepath.Dir(abs), filepath.Dir(name)
	}
	start := dir
	for {
		if st, err := os.Stat(filepath.Join(dir, "cue.mod", "module.cue")); err == nil && st.Mode().IsRegular() {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", nil, nil
		}
		dir = up
	}
	root = dir
	return root, func(file string) string { // as the user would name it from where he is
		full := filepath.Join(root, filepath.FromSlash(file))
		rel, err := filepath.Rel(start, full)
		if err != nil || filepath.IsAbs(shown) {
			return full
		}
		return filepath.Join(shown, rel)
	}, nil
}

var (
	schemaDep = regexp.MustCompile(`"dynamo\.graph@v0"\s*:\s*\{?\s*v\s*:\s*"(v0\.\d+)[^"]*"`)
	schemaOwn = regexp.MustCompile(`(?m)^#Version:\s*"(v0\.\d+)"`)
)

// newer refuses a module that needs a later schema than this one: by its module file, or by the copy of the schema that it holds.
func (l *loader) newer(t *tree) {
	check := func(file string, re *regexp.Regexp, what string) {
		b, err := readFS(t.fsys, path.Join(t.dir, file), maxBytes)
		if err != nil {
			return
		}
		m := re.FindSubmatchIndex(b)
		if m == nil || !schema.Newer(string(b[m[2]:m[3]])) {
			return
		}
		s := l.add(&source{name: t.name(file), data: b, format: "cue", layer: layerImport})
		l.list.Add(diag.Diagnostic{Code: "newer-schema", Pos: s.pos(m[2]), Len: m[3] - m[2],
			Msg:  fmt.Sprintf("%s %s, but this dynamo speaks the language up to %s", what, b[m[2]:m[3]], schema.Version),
			Hint: "use a newer dynamo"})
	}
	check("cue.mod/module.cue", schemaDep, "the module needs schema")
	if t.pkgs != "" {
		check(path.Join("cue.mod/pkg", schema.ImportPath, "kinds_gen.cue"), schemaOwn, "the module's copy of the schema is")
	}
}

// add makes a source known.
func (l *loader) add(s *source) *source {
	if old, ok := l.srcs[s.name]; ok {
		return old
	}
	l.srcs[s.name] = s
	return s
}

// open reads the module file at the root of a module.
func (m *modules) open(root string, display func(string) string) (*tree, error) {
	t := &tree{fsys: module.OSDirFS(root), dir: ".", name: display, pkgs: "cue.mod"}
	b, err := readFS(t.fsys, "cue.mod/module.cue", maxBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", display("cue.mod/module.cue"), cause(err))
	}
	f, err := modfile.ParseNonStrict(b, "module.cue")
	if err != nil {
		s := m.l.add(&source{name: display("cue.mod/module.cue"), data: b, format: "cue", layer: layerImport})
		d := diag.Diagnostic{Code: "bad-module", Pos: s.pos(0), Msg: "this is no module file", Hint: `write module: "example.com/NAME@v0"`}
		if all := cueerrors.Errors(err); len(all) > 0 {
			for _, p := range cueerrors.Positions(all[0]) {
				if p.Filename() == "module.cue" && p.IsValid() {
					d.Pos = diag.Pos{File: s.name, Line: p.Line(), Col: p.Column()}
					d.Len = s.width(d.Pos)
				}
			}
			if w := plainWords(all[0].Error()); w != "" {
				d.Msg += ": " + w
			}
		}
		m.l.list.Add(d)
		return nil, nil
	}
	t.path, t.deps = f.QualifiedModule(), f.DepVersions()
	return t, nil
}

// choose fills in list: of each module and major version the newest that any module asks for.
func (m *modules) choose() error {
	if m.list != nil {
		return nil
	}
	best := map[string]module.Version{}
	queue := slices.Clone(m.main.deps)
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		if v.Path() == schema.Module || v.Path() == m.main.path {
			continue
		}
		if old, ok := best[v.Path()]; ok && old.Compare(v) >= 0 {
			continue
		}
		best[v.Path()] = v
		from, err := m.registry()
		if err != nil {
			return err
		}
		more, err := from.Require(m.ctx, v)
		if err != nil {
			return named(v, err)
		}
		queue = append(queue, more...)
	}
	m.list = []module.Version{}
	for _, v := range best {
		m.list = append(m.list, v)
	}
	slices.SortFunc(m.list, module.Version.Compare)
	return nil
}

func (m *modules) registry() (Modules, error) {
	if m.from == nil {
		if m.get == nil {
			return nil, errors.New("no registry is set up")
		}
		var err error
		if m.from, err = m.get(); err != nil {
			return nil, err
		}
	}
	return m.from, nil
}

// named makes sure that an error says which module it is about.
func named(v module.Version, err error) error {
	if strings.Contains(err.Error(), v.String()) {
		return err
	}
	return fmt.Errorf("module %s: %w", v, err)
}

// fetch returns the files of a module of the list.
func (m *modules) fetch(v module.Version) (*tree, error) {
	if t, ok := m.trees[v.String()]; ok {
		return t, nil
	}
	from, err := m.registry()
	if err != nil {
		return nil, err
	}
	loc, err := from.Fetch(m.ctx, v)
	if err != nil {
		return nil, named(v, err)
	}
	t := &tree{path: v.Path(), fsys: loc.FS, dir: loc.Dir}
	root := v.String()
	if osfs, ok := loc.FS.(module.OSRootFS); ok && osfs.OSRoot() != "" {
		root = filepath.Join(osfs.OSRoot(), filepath.FromSlash(loc.Dir))
	}
	t.name = func(file string) string { return filepath.Join(root, filepath.FromSlash(file)) }
	if t.deps, err = from.Require(m.ctx, v); err != nil {
		return nil, named(v, err)
	}
	m.trees[v.String()] = t
	m.l.newer(t)
	return t, nil
}

// find returns the files of the package that a module imports as ip, and the canonical path of it. A nil list says that there is none;
// why says where it should be.
func (m *modules) find(from *tree, ip ast.ImportPath) (files []*source, canonical string, why string, err error) {
	if m.main.pkgs != "" { // vendored packages stand before all others
		for _, kind := range []string{"pkg", "gen", "usr"} {
			fs, err := m.files(m.main, path.Join("cue.mod", kind, ip.Path), ip.Qualifier, false)
			if err != nil {
				return nil, "", "", err
			}
			files = append(files, fs...)
		}
		if len(files) > 0 {
			ip.Version = ""
			return files, ip.Canonical().String(), "", nil
		}
	}
	in := func(t *tree) bool {
		base, major, _ := strings.Cut(t.path, "@")
		return base != "" && (ip.Path == base || strings.HasPrefix(ip.Path, base+"/")) && (ip.Version == "" || ip.Version == major)
	}
	try := func(t *tree) (bool, error) {
		base, major, _ := strings.Cut(t.path, "@")
		files, err = m.files(t, strings.TrimPrefix(strings.TrimPrefix(ip.Path, base), "/"), ip.Qualifier, true)
		ip := ip
		ip.Version = major
		canonical = ip.Canonical().String()
		return len(files) > 0, err
	}
	if in(from) {
		if ok, err := try(from); ok || err != nil {
			return files, canonical, "", err
		}
		why = fmt.Sprintf("module %s has no package in the folder %q", from.path, "./"+strings.TrimPrefix(strings.TrimPrefix(ip.Path, from.base()), "/"))
	}
	if from.path == "" {
		return nil, "", why, nil
	}
	// Of the modules that the path may lie in, the longest that has the package. Where the path says no major version, the importing
	// module's own choice counts.
	if !slices.ContainsFunc(slices.Concat(m.main.deps, from.deps), func(v module.Version) bool { return in(&tree{path: v.Path()}) }) {
		return nil, "", why, nil
	}
	if err := m.choose(); err != nil {
		return nil, "", "", err
	}
	cand := slices.DeleteFunc(slices.Clone(m.list), func(v module.Version) bool { return !in(&tree{path: v.Path()}) })
	own := func(v module.Version) bool {
		return slices.ContainsFunc(from.deps, func(d module.Version) bool { return d.Path() == v.Path() })
	}
	slices.SortStableFunc(cand, func(a, b module.Version) int {
		if n := len(b.BasePath()) - len(a.BasePath()); n != 0 {
			return n
		}
		switch {
		case own(a) == own(b):
			return 0
		case own(a):
			return -1
		}
		return 1
	})
	for _, v := range cand {
		t, err := m.fetch(v)
		if err != nil {
			return nil, "", "", err
		}
		if ok, err := try(t); ok || err != nil {
			return files, canonical, "", err
		}
		why = fmt.Sprintf("module %s has no such package", v)
	}
	return nil, "", why, nil
}

// files reads the files of one package in a folder of a module, and of the folders above it where up says so, as CUE does.
func (m *modules) files(t *tree, dir, pkg string, up bool) (out []*source, err error) {
	for {
		es, err := fs.ReadDir(t.fsys, path.Join(t.dir, dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", t.name(dir), cause(err))
		}
		n := len(out)
		for _, e := range es {
			name := e.Name()
			if !e.Type().IsRegular() || path.Ext(name) != ".cue" || strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") ||
				strings.HasSuffix(name, "_test.cue") || strings.HasSuffix(name, "_tool.cue") {
				continue
			}
			file := path.Join(dir, name)
			s := m.l.add(&source{name: t.name(file), format: "cue", layer: layerImport, of: t})
			if s.data == nil {
				if s.data, err = readFS(t.fsys, path.Join(t.dir, file), m.left+1); err != nil {
					return nil, fmt.Errorf("%s: %w", s.name, cause(err))
				}
				if m.left -= int64(len(s.data)); m.left < 0 {
					m.l.list.Add(diag.Diagnostic{Code: "too-large", Pos: diag.Pos{File: s.name}, Msg: "the imported packages are more than 8 MiB"})
					return nil, nil
				}
			}
			if packageOf(s.data) == pkg {
				out = append(out, s)
			}
		}
		if len(out) == n && n == 0 { // the folder itself must have a file
			return nil, nil
		}
		if !up || dir == "" || dir == "." {
			return out, nil
		}
		if dir = path.Dir(dir); dir == "." {
			dir = ""
		}
	}
}

var packageClause = regexp.MustCompile(`(?m)^package[ \t]+([A-Za-z_$#][\w$#]*)`)

// packageOf returns the name in the package clause of a file, "" where there is none.
func packageOf(text []byte) string {
	if m := packageClause.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}

// readFS reads at most n bytes of a plain file.
func readFS(fsys fs.FS, name string, n int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() {
		return nil, errors.New("is no plain file")
	}
	return io.ReadAll(io.LimitReader(f, n))
}
