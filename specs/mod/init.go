package mod

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/mod/modfile"

	"github.com/dynamograph/dynamo/graph/kind"
)

//go:embed all:start
var start embed.FS

var label = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Project is a folder to be made for a graph.
type Project struct {
	Name   string // of the graph, or of the project where a recipe brings its own; a DNS label
	Module string // "example.com/chat@v0"; "" is "graphs.example/" and the name
	Recipe fs.FS  // a recipe's module to begin with; nil: one worker with a small model
}

// Files are the files of a new project with the schema of r, by slash-separated path.
func (p Project) Files(r *kind.Registry) (map[string][]byte, error) {
	if !label.MatchString(p.Name) {
		return nil, problem("use at most 63 lower-case letters, digits and hyphens, the first a letter", "name %q", p.Name)
	}
	if p.Module == "" {
		p.Module = "graphs.example/" + p.Name + "@v0"
	}
	if err := CheckPath(p.Module); err != nil {
		return nil, err
	}
	out := copyFiles(r)
	sub, err := fs.Sub(start, "start")
	if err != nil {
		return nil, err
	}
	specs := "graph.cue"
	add := func(name string, b []byte) { out[name] = []byte(strings.ReplaceAll(string(b), "NAME", p.Name)) }
	err = each(sub, func(name string, b []byte) {
		if p.Recipe == nil || strings.HasPrefix(name, ".") { // a recipe has its own graphs, README and tests
			add(name, b)
		}
	})
	if err != nil {
		return nil, err
	}
	out["cue.mod/module.cue"] = moduleFile(p.Module)
	if p.Recipe != nil {
		if specs, err = p.recipe(out); err != nil {
			return nil, err
		}
	}
	ci := ".github/workflows/graph.yml"
	out[ci] = []byte(strings.ReplaceAll(string(out[ci]), "SPECS", specs))
	return out, nil
}

// recipe adds the files of the recipe, whose imports of its own packages become imports of the new module's. It returns its graphs.
func (p Project) recipe(out map[string][]byte) (specs string, err error) {
	b, err := fs.ReadFile(p.Recipe, "cue.mod/module.cue")
	if err != nil {
		return "", err
	}
	f, err := modfile.Parse(b, "cue.mod/module.cue")
	if err != nil {
		return "", err
	}
	old := f.ModuleRootPath()
	f.Module = p.Module
	if out["cue.mod/module.cue"], err = modfile.Format(f); err != nil {
		return "", err
	}
	base, _, _ := strings.Cut(p.Module, "@")
	own := regexp.MustCompile(`"` + regexp.QuoteMeta(old) + `(/[^"@:]*)?(@v[0-9]+)?(:[^"]+)?"`)
	var list []string
	err = each(p.Recipe, func(name string, b []byte) {
		if strings.HasPrefix(name, "cue.mod/") {
			return
		}
		text := string(b)
		if strings.HasSuffix(name, ".cue") {
			text = own.ReplaceAllStringFunc(text, func(imp string) string {
				m := own.FindStringSubmatch(imp)
				if m[1] == "" && m[3] == "" { // the package is no longer called as the path ends
					m[3] = ":" + path.Base(old)
				}
				return `"` + base + m[1] + m[2] + m[3] + `"`
			})
			if dir := path.Dir(name); dir != "." && !slices.Contains(list, dir) {
				list = append(list, dir)
			}
		}
		out[name] = []byte(text)
	})
	slices.Sort(list)
	return strings.Join(list, " "), err
}

// each calls f with every file of dir, in order.
func each(dir fs.FS, f func(name string, data []byte)) error {
	return fs.WalkDir(dir, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(dir, p)
		if err == nil {
			f(p, b)
		}
		return err
	})
}

// Write puts files into dir, all or none. A folder that is not empty is refused, unless force says to put them beside what is there; files
// of the same names are then replaced.
func Write(dir string, files map[string][]byte, force bool) (err error) {
	es, err := os.ReadDir(dir)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err != nil && !fresh {
		return err
	}
	if len(es) > 0 && !force {
		return problem("take another folder, or --force to write beside them", "%s is not empty: it has %s", dir, some(es))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	stage, err := os.MkdirTemp(dir, ".dynamo-init-*")
	if err != nil {
		return err
	}
	var made []string // what is new, to be taken back if the rest fails
	defer func() {
		_ = os.RemoveAll(stage)
		if err == nil {
			return
		}
		for _, p := range slices.Backward(made) {
			_ = os.Remove(p)
		}
		if fresh {
			_ = os.Remove(dir)
		}
	}()
	names := slices.Sorted(maps.Keys(files))
	for i, name := range names {
		if err := os.WriteFile(filepath.Join(stage, fmt.Sprint(i)), files[name], 0o644); err != nil {
			return err
		}
	}
	for i, name := range names {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := mkdirs(dir, filepath.Dir(at), &made); err != nil {
			return err
		}
		if _, serr := os.Lstat(at); errors.Is(serr, fs.ErrNotExist) {
			made = append(made, at)
		}
		if err := os.Rename(filepath.Join(stage, fmt.Sprint(i)), at); err != nil {
			return err
		}
	}
	return nil
}

// mkdirs makes dir and those between it and root, and notes which are new.
func mkdirs(root, dir string, made *[]string) error {
	if dir == filepath.Clean(root) {
		return nil
	}
	if err := mkdirs(root, filepath.Dir(dir), made); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		if st, serr := os.Stat(dir); serr == nil && !st.IsDir() {
			return err
		}
		return nil
	}
	if err == nil {
		*made = append(*made, dir)
	}
	return err
}

// some names what a folder has, at most six.
func some(es []fs.DirEntry) string {
	var out []string
	for i, e := range es {
		if i == 6 {
			out = append(out, fmt.Sprintf("%d more", len(es)-i))
			break
		}
		n := e.Name()
		if e.IsDir() {
			n += "/"
		}
		out = append(out, n)
	}
	return strings.Join(out, ", ")
}
