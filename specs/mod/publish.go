package mod

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/mod/modfile"
	"cuelang.org/go/mod/module"
	"cuelang.org/go/mod/modzip"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/schema"
)

// Published is what was or would be published.
type Published struct {
	Module   string   `json:"module"`   // "example.com/chat@v0.1.0"
	Registry string   `json:"registry"` // host
	Files    []string `json:"files"`    // sorted
	Bytes    int      `json:"bytes"`    // of the archive
}

// Publish puts the module into its registry as version, which must be new there. The copy of the schema, hidden files and modules in folders
// below stay behind. With dry, it only checks.
func (m *Module) Publish(ctx context.Context, c *Client, version string, dry bool) (*Published, error) {
	if m.file.Source == nil || m.file.Source.Kind != "self" {
		return nil, problem(`write source: kind: "self" in cue.mod/module.cue, or use cue mod publish`, "module %s: its source is not the folder itself", m.Path())
	}
	if want, err := m.tidy(ctx, c); err != nil {
		return nil, err
	} else if !sameDeps(want, m.file) {
		return nil, problem("run: dynamo graph mod tidy", "module %s: cue.mod/module.cue does not list what its files import", m.Path())
	}
	files, err := publishable(os.DirFS(m.Dir))
	if err != nil {
		return nil, err
	}
	return c.publish(ctx, files, m.Path(), version, dry)
}

// PublishSchema puts the schema of r into the registry of the module that specs import it from.
func (c *Client) PublishSchema(ctx context.Context, r *kind.Registry, version string, dry bool) (*Published, error) {
	files := []packed{{"cue.mod/module.cue", moduleFile(schema.Module)}}
	for _, f := range schema.Files(r) {
		files = append(files, packed{path.Base(schema.ImportPath) + "/" + f.Name, []byte(f.Text)})
	}
	return c.publish(ctx, files, schema.Module, version, dry)
}

func (c *Client) publish(ctx context.Context, files []packed, modPath, version string, dry bool) (*Published, error) {
	v, err := module.NewVersion(modPath, version)
	if err != nil {
		_, major, _ := strings.Cut(modPath, "@")
		return nil, problem(fmt.Sprintf("write %s.N.N, such as %s.1.0", major, major), "version %q does not fit module %s", version, modPath)
	}
	zip, err := pack(v, files)
	if err != nil {
		return nil, err
	}
	out := &Published{Module: v.String(), Registry: c.Host(v.BasePath()), Bytes: zip.Len()}
	for _, f := range files {
		out.Files = append(out.Files, f.name)
	}
	slices.Sort(out.Files)
	have, err := c.versions(ctx, modPath)
	if err != nil {
		return nil, err
	}
	if slices.Contains(have, version) {
		return nil, problem("a version is never replaced: publish a new one", "registry %s has %s already", out.Registry, v)
	}
	if out.Registry == "" {
		return nil, c.failed(modPath, fs.ErrNotExist)
	}
	if dry {
		return out, nil
	}
	if err := c.direct.PutModule(ctx, v, bytes.NewReader(zip.Bytes()), int64(zip.Len())); err != nil {
		if c.refusals.any(out.Registry) { // the error of a push does not say it in a way that can be asked
			return nil, denied(out.Registry, v.String())
		}
		return nil, c.failed(v.String(), err)
	}
	return out, nil
}

// publishable reads the files of a module that others get.
func publishable(dir fs.FS) ([]packed, error) {
	var out []packed
	err := fs.WalkDir(dir, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(path.Base(p), ".") && p != "."
		switch {
		case d.IsDir() && (hidden || p == "cue.mod/pkg" || p == "cue.mod/gen" || p == "cue.mod/usr" || p != "." && isModule(dir, p)):
			return fs.SkipDir
		case d.Type().IsRegular() && !hidden && p != "cue.mod/local-module.cue":
			b, err := fs.ReadFile(dir, p)
			out = append(out, packed{p, b})
			return err
		}
		return nil
	})
	return out, err
}

func isModule(dir fs.FS, p string) bool {
	_, err := fs.Stat(dir, p+"/cue.mod/module.cue")
	return err == nil
}

// packed is a file of an archive.
type packed struct {
	name string
	data []byte
}

// pack makes the archive of a module. modzip takes what it packs from a folder.
func pack(v module.Version, files []packed) (*bytes.Buffer, error) {
	dir, err := os.MkdirTemp("", "dynamo-mod-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for _, f := range files {
		at := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(at, f.data, 0o600); err != nil {
			return nil, err
		}
	}
	var zip bytes.Buffer
	if err := modzip.CreateFromDir(&zip, v, dir); err != nil {
		return nil, problem("", "module %s: %s", v, oneLine(err))
	}
	return &zip, nil
}

func sameDeps(a, b *modfile.File) bool {
	if len(a.Deps) != len(b.Deps) {
		return false
	}
	for p, x := range a.Deps {
		if y := b.Deps[p]; y == nil || *x != *y {
			return false
		}
	}
	return true
}
