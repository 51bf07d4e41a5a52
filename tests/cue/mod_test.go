package cue

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/recipes"
	"github.com/dynamograph/dynamo/specs/mod"
	"github.com/dynamograph/dynamo/specs/mod/modtest"
)

// registry starts one in this process; the environment leads to it and to nobody else.
func registry(t *testing.T) []string {
	t.Helper()
	host, stop := modtest.Registry(nil)
	t.Cleanup(stop)
	dir := t.TempDir()
	t.Cleanup(func() { // the cache of modules is read-only
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				_ = os.Chmod(p, 0o700)
			}
			return nil
		})
	})
	env := offline(dir)
	env[0] = "CUE_REGISTRY=" + host + "+insecure"
	return env
}

// fresh is env with another cache, so that what it finds was fetched.
func fresh(t *testing.T, env []string) []string {
	out := slices.Clone(env)
	out[1] = "CUE_CACHE_DIR=" + filepath.Join(strings.TrimPrefix(out[3], "HOME="), t.Name(), "cache2")
	return out
}

func client(t *testing.T, env []string) *mod.Client {
	t.Helper()
	c, err := mod.NewClient(mod.Options{Env: env})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// place makes files below dir.
func place(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// consumer depends on what publish put into the registry.
const consumer = `package g

import (
	"dynamo.graph/recipes/smollm2"
)

smollm2.#Disaggregated & {
	name: "mine"
	nodes: {prefill: replicas: 1, decode: replicas: 3}
}
`

// extract writes a recipe to a folder, as its author has it.
func extract(t *testing.T, name string) string {
	t.Helper()
	fsys, err := recipes.Module(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, fsys); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestOursThenCue publishes a recipe and the schema with our code, and uses them with plain cue alone.
func TestOursThenCue(t *testing.T) {
	tool(t)
	ctx := context.Background()
	env := registry(t)
	c := client(t, env)
	if _, err := c.PublishSchema(ctx, kind.Default, "v0.2.0", false); err != nil {
		t.Fatal(err)
	}
	m, err := mod.Open(extract(t, "smollm2"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Sync(kind.Default); err != nil { // the author's copy stays behind
		t.Fatal(err)
	}
	p, err := m.Publish(ctx, c, "v0.1.0", false)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(p.Files, func(f string) bool { return strings.HasPrefix(f, "cue.mod/pkg") }) || !slices.Contains(p.Files, "smollm2.cue") {
		t.Errorf("published %v", p.Files)
	}

	dir := t.TempDir()
	place(t, dir, map[string]string{"g.cue": consumer})
	cueEnv := fresh(t, env)
	for _, args := range [][]string{
		{"mod", "init", "--source=self", "example.com/mine@v0"},
		{"mod", "get", "dynamo.graph/recipes/smollm2@v0.1.0"},
		{"mod", "tidy"},
		{"vet", "-c", "."},
	} {
		if out, ok := runCue(t, dir, cueEnv, args...); !ok {
			t.Fatalf("cue %s: %s", strings.Join(args, " "), out)
		}
	}
	// What cue finds tidy, ours does too.
	ours, err := mod.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := ours.Tidy(ctx, c); changed || err != nil {
		t.Errorf("tidy after cue mod tidy: changed %v, %v", changed, err)
	}
	if want := []string{"dynamo.graph/recipes/smollm2@v0.1.0", "dynamo.graph@v0.2.0"}; !slices.Equal(ours.Deps(), want) {
		t.Errorf("deps %v, want %v", ours.Deps(), want)
	}
	// The bounds of the recipe hold.
	edit(t, filepath.Join(dir, "g.cue"), "decode: replicas: 3", "decode: replicas: 30")
	if out, ok := runCue(t, dir, cueEnv, "vet", "-c", "."); ok || !strings.Contains(out, "nodes.decode.replicas") {
		t.Errorf("30 replicas: %v %s", ok, out)
	}
}

// TestCueThenOurs publishes with plain cue, and adds with our code; cue finds the result tidy, with the copy of the schema and without.
func TestCueThenOurs(t *testing.T) {
	tool(t)
	ctx := context.Background()
	env := registry(t)
	author := project(t, "smollm2")
	edit(t, filepath.Join(author, "cue.mod/module.cue"), "example.com/mine@v0", "dynamo.graph/recipes/smollm2@v0")
	for _, f := range []string{"agg", "disagg", "tiered"} {
		edit(t, filepath.Join(author, f, "graph.cue"), "example.com/mine", "dynamo.graph/recipes/smollm2")
	}
	if out, ok := runCue(t, author, env, "mod", "publish", "v0.1.0"); !ok {
		t.Fatalf("cue mod publish: %s", out)
	}
	c := client(t, fresh(t, env))
	dir := t.TempDir()
	m, err := mod.Create(dir, "example.com/mine@v0", kind.Default)
	if err != nil {
		t.Fatal(err)
	}
	place(t, dir, map[string]string{"g.cue": consumer})
	if v, err := m.Add(ctx, c, "dynamo.graph/recipes/smollm2"); err != nil || v != "dynamo.graph/recipes/smollm2@v0.1.0" {
		t.Fatalf("add: %q %v", v, err)
	}
	for _, args := range [][]string{{"mod", "tidy", "--check"}, {"vet", "-c", "."}} {
		if out, ok := runCue(t, dir, env, args...); !ok {
			t.Errorf("cue %s after our add: %s", strings.Join(args, " "), out)
		}
	}
	// Without the copy, the schema comes from the registry.
	if _, err := c.PublishSchema(ctx, kind.Default, "v0.2.0", false); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "cue.mod/pkg")); err != nil {
		t.Fatal(err)
	}
	if changed, err := m.Tidy(ctx, c); !changed || err != nil {
		t.Fatalf("tidy: changed %v, %v", changed, err)
	}
	for _, args := range [][]string{{"mod", "tidy", "--check"}, {"vet", "-c", "."}} {
		if out, ok := runCue(t, dir, env, args...); !ok {
			t.Errorf("cue %s after our tidy: %s", strings.Join(args, " "), out)
		}
	}
}
