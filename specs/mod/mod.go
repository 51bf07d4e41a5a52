// Package mod makes and keeps CUE modules of graphs: a new project with the schema beside it, the modules that it depends on, and what
// others take of it from an OCI registry. Modules, registries, credentials and the cache are those of the cue command, which can be used
// on the same folders (CUE_REGISTRY, CUE_CACHE_DIR, CUE_CONFIG_DIR).
package mod

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"cuelang.org/go/mod/modfile"
	"cuelang.org/go/mod/module"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/schema"
)

// Language is the version of CUE that new modules ask for.
const Language = "v0.15.0"

// Module is a CUE module in a folder. It is not safe for concurrent use.
type Module struct {
	Dir  string // its root
	file *modfile.File
}

// Problem is something wrong with a module or with what was asked for, in contrast to a registry or a disk that cannot be reached.
type Problem struct {
	Msg  string
	Hint string // the way out; may be empty
}

// Error returns the message and the hint.
func (p *Problem) Error() string {
	if p.Hint == "" {
		return p.Msg
	}
	return p.Msg + "; " + p.Hint
}

func problem(hint, format string, args ...any) error {
	return &Problem{Msg: fmt.Sprintf(format, args...), Hint: hint}
}

// Open finds the module that dir lies in: dir itself or the next folder above it with a cue.mod/module.cue.
func Open(dir string) (*Module, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for at := abs; ; at = filepath.Dir(at) {
		path := filepath.Join(at, "cue.mod", "module.cue")
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			if filepath.Dir(at) == at {
				return nil, problem("make one with: dynamo graph mod init", "%s: no cue.mod/module.cue there or above", dir)
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		f, err := modfile.Parse(b, path)
		if err != nil {
			return nil, problem("", "%s: %s", path, oneLine(err))
		}
		if f.Module == "" {
			return nil, problem(`write module: "example.com/NAME@v0"`, "%s: the module has no name", path)
		}
		return &Module{Dir: at, file: f}, nil
	}
}

// Path is the module's path with its major version: "example.com/chat@v0".
func (m *Module) Path() string { return m.file.QualifiedModule() }

// base is the path without the major version, which import paths begin with.
func (m *Module) base() string { return m.file.ModuleRootPath() }

// Deps are the modules that it depends on, as "path@vX.Y.Z", sorted by path.
func (m *Module) Deps() []string {
	var out []string
	for _, v := range m.file.DepVersions() {
		out = append(out, v.String())
	}
	return out
}

// write stores the module file, whole or not at all.
func (m *Module) write(f *modfile.File) error {
	b, err := modfile.Format(f)
	if err != nil {
		return err
	}
	path := filepath.Join(m.Dir, "cue.mod", "module.cue")
	g, err := modfile.Parse(b, path) // with its private parts
	if err != nil {
		return err
	}
	if err := replace(path, b); err != nil {
		return err
	}
	m.file = g
	return nil
}

// replace writes a file whole or not at all.
func replace(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".dynamo-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}

// copyDir is where a module keeps the schema, so that plain cue finds it without a registry.
var copyDir = filepath.Join("cue.mod", "pkg", filepath.FromSlash(schema.ImportPath))

// copyFiles are the files of the copy, by their slash-separated paths in the module.
func copyFiles(r *kind.Registry) map[string][]byte {
	out := map[string][]byte{}
	for _, f := range schema.Files(r) {
		out[filepath.ToSlash(copyDir)+"/"+f.Name] = []byte(f.Text)
	}
	return out
}

// Sync brings the module's copy of the schema to that of r and reports whether it changed anything. A module that takes the schema from
// a registry gets no copy: CUE would find it twice.
func (m *Module) Sync(r *kind.Registry) (bool, error) {
	for _, v := range m.file.DepVersions() {
		if v.Path() == schema.Module {
			return false, nil
		}
	}
	changed := false
	want := copyFiles(r)
	have, err := os.ReadDir(filepath.Join(m.Dir, copyDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	for name, text := range want {
		path := filepath.Join(m.Dir, filepath.FromSlash(name))
		if old, err := os.ReadFile(path); err == nil && string(old) == string(text) {
			continue
		}
		if err := replace(path, text); err != nil {
			return changed, err
		}
		changed = true
	}
	for _, e := range have { // of kinds that this build does not have
		if _, ok := want[filepath.ToSlash(copyDir)+"/"+e.Name()]; !ok && strings.HasSuffix(e.Name(), ".cue") {
			if err := os.Remove(filepath.Join(m.Dir, copyDir, e.Name())); err != nil {
				return changed, err
			}
			changed = true
		}
	}
	return changed, nil
}

// Create makes a module in dir, which must not have one: cue.mod/module.cue and the copy of the schema.
func Create(dir, path string, r *kind.Registry) (*Module, error) {
	if err := CheckPath(path); err != nil {
		return nil, err
	}
	at := filepath.Join(dir, "cue.mod", "module.cue")
	if _, err := os.Lstat(at); err == nil {
		return nil, problem("", "%s is there already", at)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	m := &Module{Dir: abs}
	f, err := modfile.Parse(moduleFile(path), at)
	if err != nil {
		return nil, err
	}
	m.file = f
	if _, err := m.Sync(r); err != nil {
		return nil, err
	}
	return m, m.write(f)
}

// moduleFile is a new cue.mod/module.cue.
func moduleFile(path string) []byte {
	return fmt.Appendf(nil, "module: %q\nlanguage: {\n\tversion: %q\n}\nsource: {\n\tkind: \"self\"\n}\n", path, Language)
}

var domain = regexp.MustCompile(`^[^/]+\.[^/]+`)

// CheckPath says what is wrong with the path of a new module.
func CheckPath(path string) error {
	if err := module.CheckPath(path); err != nil {
		hint := `write it as "example.com/NAME@v0"`
		if !domain.MatchString(path) {
			return problem(hint, "module %q: its first part is no domain", path)
		}
		return problem(hint, "module %q: %s", path, cause(err))
	}
	return nil
}

// cause is the innermost of an error.
func cause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
