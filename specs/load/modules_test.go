package load_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"cuelang.org/go/mod/modconfig"
	"cuelang.org/go/mod/modregistrytest"
	"cuelang.org/go/mod/module"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/specs/load"
)

// registry is CUE's own client.
type registry struct{ modconfig.Registry }

func (r registry) Require(ctx context.Context, v module.Version) ([]module.Version, error) {
	f, err := r.ModFile(ctx, v)
	if err != nil {
		return nil, err
	}
	return f.DepVersions(), nil
}

// published are the modules of the registry: kit needs parts v0.2.0, and the spec asks for v0.1.0 only.
const published = `
-- example.com_kit_v0.1.0/cue.mod/module.cue --
module: "example.com/kit@v0"
language: version: "v0.17.0"
deps: "example.com/parts@v0": v: "v0.2.0"
-- example.com_kit_v0.1.0/kit.cue --
package kit

import (
	"dynamo.graph/spec"
	"example.com/parts/sizes"
)

#Worker: {
	spec.#Worker
	engine: "mock"
	kv: tokens: sizes.tokens
}
-- example.com_parts_v0.1.0/cue.mod/module.cue --
module: "example.com/parts@v0"
language: version: "v0.17.0"
-- example.com_parts_v0.1.0/sizes/sizes.cue --
package sizes

tokens: 1024
-- example.com_parts_v0.2.0/cue.mod/module.cue --
module: "example.com/parts@v0"
language: version: "v0.17.0"
-- example.com_parts_v0.2.0/sizes/sizes.cue --
package sizes

tokens: 2048
-- example.com_parts_v1.0.0/cue.mod/module.cue --
module: "example.com/parts@v1"
language: version: "v0.17.0"
-- example.com_parts_v1.0.0/sizes/sizes.cue --
package sizes

tokens: 4096
-- example.com_late_v0.1.0/cue.mod/module.cue --
module: "example.com/late@v0"
language: version: "v0.17.0"
deps: "dynamo.graph@v0": v: "v0.77.0"
-- example.com_late_v0.1.0/late.cue --
package late

x: 1
-- example.com_bad_v0.1.0/cue.mod/module.cue --
module: "example.com/bad@v0"
language: version: "v0.17.0"
-- example.com_bad_v0.1.0/bad.cue --
package bad

import "dynamo.graph/spec"

#Worker: spec.#Worker & {engin: "mock"}
`

func serve(t *testing.T) (env []string, stop func()) {
	t.Helper()
	files := fstest.MapFS{}
	for _, f := range txtar.Parse([]byte(published)).Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	reg, err := modregistrytest.New(files, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reg.Close)
	cache := filepath.Join(t.TempDir(), "cache")
	t.Cleanup(func() { // CUE makes it read-only
		_ = filepath.WalkDir(cache, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				_ = os.Chmod(p, 0o700)
			}
			return nil
		})
	})
	return []string{"CUE_REGISTRY=" + reg.Host() + "+insecure", "CUE_CACHE_DIR=" + cache, "HOME=" + t.TempDir()}, reg.Close
}

// inModule loads a spec of a worker that imports and is said to depend on what it is given.
func inModule(t *testing.T, env []string, deps, imports, worker string) (*graph.Graph, diag.List, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"cue.mod/module.cue": "module: \"example.com/mine@v0\"\nlanguage: version: \"v0.17.0\"\ndeps: {" + deps + "}\n",
		"chat/spec.cue": "package chat\n\nimport (\n\t\"dynamo.graph/spec\"\n\t" + imports + "\n)\n\nspec.#Graph & {\n\tname: \"chat\"\n" +
			"\tnodes: {api: spec.#Frontend, work: " + worker + "}\n\tedges: \"api -> work\": {}\n}\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return load.File(t.Context(), "chat/spec.cue", load.Options{Registry: testKinds(), Dir: dir, Modules: func() (load.Modules, error) {
		reg, err := modconfig.NewRegistry(&modconfig.Config{Env: env})
		return registry{reg}, err
	}})
}

const (
	kitDep  = `"example.com/kit@v0": v: "v0.1.0", "example.com/parts@v0": v: "v0.1.0"`
	bothDep = kitDep + `, "example.com/parts@v1": v: "v1.0.0"`
)

func TestModules(t *testing.T) {
	env, stop := serve(t)
	work := func(deps, imports, worker string) string {
		t.Helper()
		g, list, err := inModule(t, env, deps, imports, worker)
		if err != nil || len(list) > 0 {
			t.Fatalf("%v %v", list, err)
		}
		return string(g.Nodes["work"].Config)
	}
	if got := work(kitDep, `"example.com/kit"`, `kit.#Worker`); got != `{"engine":"mock","kv":{"tokens":2048}}` {
		t.Errorf("config %s: the newest version that a module asks for is not what counts", got)
	}
	if got := work(bothDep, `"example.com/kit"`+"\n"+`v1 "example.com/parts/sizes@v1"`, `kit.#Worker & {batch: queue: v1.tokens}`); got != `{"batch":{"queue":4096},"engine":"mock","kv":{"tokens":2048}}` {
		t.Errorf("config %s: two major versions are mixed up", got)
	}
	_, list, err := inModule(t, env, `"example.com/bad@v0": v: "v0.1.0"`, `"example.com/bad"`, `bad.#Worker`)
	if err != nil || len(list) != 1 || list[0].Code != "unknown-field" || !filepath.IsAbs(list[0].Pos.File) || list[0].Pos.Line != 5 {
		t.Errorf("a mistake in a module of the registry: %v %v", list, err)
	}
	_, list, err = inModule(t, env, `"example.com/late@v0": v: "v0.1.0"`, `"example.com/late"`, `spec.#Worker & {threads: late.x}`)
	if err != nil || len(list) != 1 || list[0].Code != "newer-schema" || !strings.Contains(list[0].Msg, "v0.77") {
		t.Errorf("a module that needs a later schema: %v %v", list, err)
	}
	_, list, err = inModule(t, env, kitDep, `"example.com/kit/none"`, `none.#Worker`)
	if err != nil || len(list) != 1 || list[0].Code != "unknown-import" || !strings.Contains(list[0].Msg, "module example.com/kit@v0.1.0 has no such package") {
		t.Errorf("a package that the module has not: %v %v", list, err)
	}
	for what, dep := range map[string]string{
		"module": `"example.com/none@v0": v: "v0.1.0"`, "version": `"example.com/none@v0": v: "v0.9.0"`,
	} {
		_, _, err := inModule(t, env, dep, `"example.com/none"`, `none.#Worker`)
		if err == nil || !strings.Contains(err.Error(), `chat/spec.cue:5:2: import "example.com/none": module example.com/none@v0.`) {
			t.Errorf("no such %s: %v", what, err)
		}
	}
	stop()
	if got := work(kitDep, `"example.com/kit"`, `kit.#Worker`); got != `{"engine":"mock","kv":{"tokens":2048}}` {
		t.Errorf("config %s from the cache", got)
	}
	if _, _, err := inModule(t, env, `"example.com/other@v0": v: "v0.1.0"`, `"example.com/other"`, `other.#Worker`); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("registry down: %v", err)
	}
}
