package mod_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/mod"
	"github.com/dynamograph/dynamo/specs/mod/modtest"
)

func kinds() *kind.Registry {
	r := &kind.Registry{}
	kind.Add(r, kind.Kind[struct{}]{Name: "echo", Summary: "e", Schema: "#Echo: kind: \"echo\"\n", Default: func() struct{} { return struct{}{} },
		Ports: func(struct{}) []kind.Port { return nil }, New: func(struct{}, kind.Host) (kind.Component, error) { return nil, nil }})
	return r
}

// registry starts a registry in this process and returns its host and a client of it.
func registry(t *testing.T, h func(http.Handler) http.Handler) (string, *mod.Client, mod.Options) {
	t.Helper()
	host, stop := modtest.Registry(h)
	t.Cleanup(stop)
	dir := t.TempDir()
	o := mod.Options{Env: []string{"CUE_REGISTRY=" + host + "+insecure", "CUE_CACHE_DIR=" + dir + "/cache", "HOME=" + dir, "CUE_CONFIG_DIR=" + dir + "/config"}}
	t.Cleanup(func() { // the cache is read-only
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				_ = os.Chmod(p, 0o700)
			}
			return nil
		})
	})
	c, err := mod.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	return host, c, o
}

// module writes a module of these files and opens it.
func module(t *testing.T, path string, files map[string]string) *mod.Module {
	t.Helper()
	dir := t.TempDir()
	m, err := mod.Create(dir, path, kinds())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func publish(t *testing.T, c *mod.Client, version, path string, files map[string]string) {
	t.Helper()
	m := module(t, path, files)
	if _, err := m.Tidy(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Publish(context.Background(), c, version, false); err != nil {
		t.Fatal(err)
	}
}

// TestModules publishes a chain of modules, and depends on it.
func TestModules(t *testing.T) {
	ctx := context.Background()
	host, c, _ := registry(t, nil)
	publish(t, c, "v0.1.0", "a.example/base", map[string]string{"base.cue": "package base\n#X: int\n"})
	publish(t, c, "v0.2.0", "a.example/base@v0", map[string]string{"base.cue": "package base\n#X: int | string\n"})
	publish(t, c, "v0.3.0-rc.1", "a.example/base@v0", map[string]string{"base.cue": "package base\n#X: _\n"})
	publish(t, c, "v1.0.0", "a.example/mid@v1", map[string]string{
		"mid.cue":       "package mid\nimport \"a.example/base\"\n#Y: base.#X\n",
		"other/x.cue":   "package other\n#Z: 1\n",
		"README.md":     "read me",
		".git/config":   "hidden",
		"nested/n.cue":  "package nested\n",
		"_draft/no.cue": "package draft\nimport \"b.example/nowhere\"\n",
	})
	m := module(t, "c.example/mine@v0", map[string]string{
		"g.cue": "package g\nimport (\n\t\"strings\"\n\t\"a.example/mid@v1\"\n\t\"c.example/mine/sub\"\n\t\"dynamo.graph/spec\"\n)\n" +
			"a: mid.#Y & sub.#S\nb: strings.MinRunes(1)\nc: spec.#Echo\n",
		"sub/s.cue": "package sub\n#S: int\n",
	})
	changed, err := m.Tidy(ctx, c)
	if err != nil || !changed {
		t.Fatalf("tidy: %v, changed %v", err, changed)
	}
	want := []string{"a.example/base@v0.2.0", "a.example/mid@v1.0.0"} // the newest release, and what it asked for
	if !slices.Equal(m.Deps(), want) {
		t.Errorf("deps %v, want %v", m.Deps(), want)
	}
	if changed, err = m.Tidy(ctx, c); err != nil || changed {
		t.Errorf("tidy again: %v, changed %v", err, changed)
	}
	if v, err := m.Add(ctx, c, "a.example/base@v0.3.0-rc.1"); err != nil || v != "a.example/base@v0.3.0-rc.1" {
		t.Errorf("add: %q %v", v, err)
	}
	if _, err := m.Tidy(ctx, c); err != nil || !slices.Contains(m.Deps(), "a.example/base@v0.3.0-rc.1") {
		t.Errorf("a version that was raised does not stay: %v %v", m.Deps(), err)
	}
	if err := os.Remove(filepath.Join(m.Dir, "g.cue")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Tidy(ctx, c); err != nil || len(m.Deps()) != 0 {
		t.Errorf("nothing imported, but deps %v, %v", m.Deps(), err)
	}
	if _, err := m.Add(ctx, c, "a.example/mid"); err != nil || !slices.Equal(m.Deps(), []string{"a.example/mid@v1.0.0"}) {
		t.Errorf("add of the newest: %v %v", m.Deps(), err)
	}
	pub, err := module(t, "a.example/mid@v1", map[string]string{"mid.cue": "package mid\n", ".hidden": "x", "b/b.cue": "package b\n"}).Publish(ctx, c, "v1.0.1", true)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(pub.Module, pub.Registry, pub.Files); got != fmt.Sprint("a.example/mid@v1.0.1", host, []string{"b/b.cue", "cue.mod/module.cue", "mid.cue"}) {
		t.Errorf("dry: %s", got)
	}
	if vs, err := m.Add(ctx, c, "a.example/mid@v1.0.1"); err == nil {
		t.Errorf("a dry run has published %s", vs)
	} else if want := "registry " + host + " has no a.example/mid@v1.0.1; it has v1.0.0"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

// TestSchema depends on the published schema in place of the copy.
func TestSchema(t *testing.T) {
	ctx := context.Background()
	_, c, _ := registry(t, nil)
	if _, err := c.PublishSchema(ctx, kinds(), "v0.1.0", false); err != nil {
		t.Fatal(err)
	}
	m := module(t, "c.example/mine@v0", map[string]string{"g.cue": "package g\nimport \"dynamo.graph/spec\"\nx: spec.#Echo\n"})
	if err := os.RemoveAll(filepath.Join(m.Dir, "cue.mod/pkg")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Tidy(ctx, c); err != nil || !slices.Equal(m.Deps(), []string{"dynamo.graph@v0.1.0"}) {
		t.Fatalf("%v %v", m.Deps(), err)
	}
	if changed, err := m.Sync(kinds()); changed || err != nil {
		t.Errorf("a copy beside the dependency: %v %v", changed, err)
	}
	if m, err := mod.Open(filepath.Join(m.Dir, "sub")); err == nil || m != nil { // it does not exist, but lies below a module
		t.Logf("open below: %v %v", m, err)
	}
}

func TestSync(t *testing.T) {
	m := module(t, "c.example/mine@v0", nil)
	if changed, err := m.Sync(kinds()); changed || err != nil {
		t.Fatalf("fresh: %v %v", changed, err)
	}
	dir := filepath.Join(m.Dir, "cue.mod/pkg/dynamo.graph/spec")
	for name, text := range map[string]string{"graph.cue": "package spec\n// old\n", "kind_gone.cue": "package spec\n#Gone: {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if changed, err := m.Sync(kinds()); !changed || err != nil {
		t.Fatalf("old: %v %v", changed, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "kind_gone.cue")); err == nil {
		t.Error("a kind that is gone is still there")
	}
	if b, err := os.ReadFile(filepath.Join(dir, "graph.cue")); err != nil || strings.Contains(string(b), "// old") {
		t.Errorf("graph.cue is the old one: %v", err)
	}
}

func TestMistakes(t *testing.T) {
	ctx := context.Background()
	host, c, _ := registry(t, nil)
	publish(t, c, "v0.1.0", "a.example/base@v0", map[string]string{"base.cue": "package base\n"})
	tidy := func(text string) error {
		_, err := module(t, "c.example/mine@v0", map[string]string{"g.cue": text}).Tidy(ctx, c)
		return err
	}
	pub := func(version string, files map[string]string) error {
		_, err := module(t, "a.example/base@v0", files).Publish(ctx, c, version, false)
		return err
	}
	add := func(what string) error {
		_, err := module(t, "c.example/mine@v0", nil).Add(ctx, c, what)
		return err
	}
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"import", tidy("package g\nimport \"b.example/none\"\n"), `g.cue: import "b.example/none": no module provides it; asked registry ` + host},
		{"package of a module", tidy("package g\nimport \"a.example/base/sub\"\n"), `import "a.example/base/sub": no module provides it`},
		{"syntax", tidy("package g\nimport (\n"), "g.cue"},
		{"same version", pub("v0.1.0", nil), "registry " + host + " has a.example/base@v0.1.0 already; a version is never replaced"},
		{"major", pub("v1.0.0", nil), `version "v1.0.0" does not fit module a.example/base@v0; write v0.N.N`},
		{"no version", pub("1.0", nil), `version "1.0"`},
		{"not tidy", pub("v0.2.0", map[string]string{"x.cue": "package x\nimport \"a.example/base@v1\"\n"}), "no module provides it"},
		{"unknown", add("b.example/none"), "registry " + host + " has no version of b.example/none"},
		{"odd version", add("a.example/base@0.1"), `no version "0.1"`},
		{"not a path", add("base"), `module "base"`},
		{"itself", add("c.example/mine@v0.1.0"), "is this module itself"},
		{"no domain", mod.CheckPath("mine@v0"), "its first part is no domain"},
		{"no folder", func() error { _, err := mod.Open(t.TempDir()); return err }(), "no cue.mod/module.cue there or above; make one with: dynamo graph mod init"},
	} {
		var p *mod.Problem
		if tc.err == nil || !errors.As(tc.err, &p) || !strings.Contains(tc.err.Error(), tc.want) {
			t.Errorf("%s: got %v, want a Problem with %q", tc.name, tc.err, tc.want)
		}
	}
}

// TestUnreachable wants the registry named, and a way out.
func TestUnreachable(t *testing.T) {
	ctx := context.Background()
	for _, tc := range []struct {
		name, env, want, hint string
		handler               func(http.Handler) http.Handler
	}{
		{name: "down", env: "CUE_REGISTRY=127.0.0.1:1+insecure", want: "registry 127.0.0.1:1", hint: "is it up"},
		{name: "none", env: "CUE_REGISTRY=none", want: "registry (none)", hint: "set CUE_REGISTRY"},
		{name: "denied", want: "access denied", hint: "cue login", handler: func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
		}},
		{name: "broken", want: "500", hint: "is it up", handler: func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			host, c, o := registry(t, tc.handler)
			want := tc.want
			if tc.env != "" {
				o.Env[0] = tc.env
				var err error
				if c, err = mod.NewClient(o); err != nil {
					t.Fatal(err)
				}
			} else {
				want = "registry " + host + ": "
			}
			m := module(t, "c.example/mine@v0", map[string]string{"g.cue": "package g\nimport \"a.example/base\"\n"})
			_, tidy := m.Tidy(ctx, c)
			_, add := m.Add(ctx, c, "a.example/base@v0.1.0")
			_, pub := module(t, "c.example/mine@v0", nil).Publish(ctx, c, "v0.1.0", false)
			for i, err := range []error{tidy, add, pub} {
				var r *mod.RegistryError
				if err == nil || !errors.As(err, &r) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), tc.hint) {
					t.Errorf("%d: got %v, want a RegistryError with %q, %q and %q", i, err, want, tc.want, tc.hint)
				}
			}
		})
	}
}

// TestProgress tells of long transfers only.
func TestProgress(t *testing.T) {
	ctx := context.Background()
	_, _, o := registry(t, nil)
	var mu sync.Mutex
	var told []mod.Progress
	o.Progress = func(p mod.Progress) { mu.Lock(); told = append(told, p); mu.Unlock() }
	c, err := mod.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, c, "v0.1.0", "a.example/small@v0", map[string]string{"a.cue": "package a\n"})
	if len(told) > 0 {
		t.Errorf("told of a short transfer: %+v", told)
	}
	var b strings.Builder
	b.WriteString("package big\n")
	for i := range 300_000 { // does not compress to little
		fmt.Fprintf(&b, "// %x\n", uint64(i)*0x9e3779b97f4a7c15)
	}
	publish(t, c, "v0.1.0", "a.example/big@v0", map[string]string{"a.cue": b.String()})
	pushed := len(told)
	if pushed == 0 || !told[pushed-1].Push || told[pushed-1].Done != told[pushed-1].Total || told[pushed-1].Total < 1<<20 {
		t.Fatalf("push: %+v", told)
	}
	m := module(t, "c.example/mine@v0", nil)
	if _, err := m.Add(ctx, c, "a.example/big@v0.1.0"); err != nil {
		t.Fatal(err)
	}
	if last := told[len(told)-1]; len(told) == pushed || last.Push || last.Done < 1<<20 {
		t.Errorf("pull: %+v", last)
	}
}

func TestCanceled(t *testing.T) {
	_, c, _ := registry(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.PublishSchema(ctx, kinds(), "v0.1.0", false); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestFiles(t *testing.T) {
	r := kinds()
	files, err := mod.Project{Name: "chat"}.Files(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"graph.cue", "README.md", "tests/graph.txtar", ".gitignore", ".vscode/tasks.json", ".vscode/settings.json",
		".github/workflows/graph.yml", "cue.mod/module.cue", "cue.mod/pkg/dynamo.graph/spec/graph.cue", "cue.mod/pkg/dynamo.graph/spec/kind_echo.cue"} {
		if len(files[want]) == 0 {
			t.Errorf("no %s among %v", want, slices.Sorted(maps.Keys(files)))
		}
	}
	for name, b := range files {
		if !strings.HasPrefix(name, "cue.mod/pkg/") && (strings.Contains(string(b), "NAME") || strings.Contains(string(b), "SPECS")) {
			t.Errorf("%s: a placeholder is left", name)
		}
	}
	recipe := fstest.MapFS{
		"cue.mod/module.cue": {Data: []byte("module: \"r.example/r@v0\"\nlanguage: version: \"v0.15.0\"\ndeps: \"a.example/b@v0\": v: \"v0.1.0\"\n")},
		"r.cue":              {Data: []byte("package r\n")},
		"one/one.cue":        {Data: []byte("package one\nimport (\n\t\"r.example/r\"\n\tx \"r.example/r/sub:x\"\n\t\"r.example/rest\"\n)\n")},
		"README.md":          {Data: []byte("recipe NAME")},
	}
	files, err = mod.Project{Name: "chat", Module: "c.example/chat@v0", Recipe: recipe}.Files(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(files["one/one.cue"]); got != "package one\nimport (\n\t\"c.example/chat:r\"\n\tx \"c.example/chat/sub:x\"\n\t\"r.example/rest\"\n)\n" {
		t.Errorf("imports: %s", got)
	}
	if got := string(files["cue.mod/module.cue"]); !strings.Contains(got, `module: "c.example/chat@v0"`) || !strings.Contains(got, `"a.example/b@v0"`) {
		t.Errorf("module: %s", got)
	}
	if files["graph.cue"] != nil || string(files["README.md"]) != "recipe NAME" || !strings.Contains(string(files[".github/workflows/graph.yml"]), "github one\n") {
		t.Errorf("files: %v, %s", slices.Sorted(maps.Keys(files)), files[".github/workflows/graph.yml"])
	}
	for _, p := range []mod.Project{{}, {Name: "Chat"}, {Name: "a b"}, {Name: "a", Module: "a@v0"}} {
		var pr *mod.Problem
		if _, err := p.Files(r); !errors.As(err, &pr) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestWrite(t *testing.T) {
	files := map[string][]byte{"a": []byte("1"), "b/c/d": []byte("2")}
	list := func(dir string) (out []string) {
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && p != dir {
				out = append(out, strings.TrimPrefix(p, dir+"/"))
			}
			return err
		})
		return out
	}
	dir := filepath.Join(t.TempDir(), "x", "y")
	if err := mod.Write(dir, files, false); err != nil {
		t.Fatal(err)
	}
	want := []string{"a", "b", "b/c", "b/c/d"}
	if got := list(dir); !slices.Equal(got, want) {
		t.Fatalf("%v", got)
	}
	err := mod.Write(dir, files, false)
	if err == nil || !strings.Contains(err.Error(), "is not empty: it has a, b/; take another folder, or --force") {
		t.Errorf("%v", err)
	}
	if err := mod.Write(dir, map[string][]byte{"a": []byte("3"), "e": nil}, true); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "a")); string(b) != "3" {
		t.Errorf("a is %q", b)
	}
	// "b" is a folder, "e" a file: what cannot be written takes the rest back.
	before := list(dir)
	if err := mod.Write(dir, map[string][]byte{"0": nil, "b": []byte("4"), "z": nil}, true); err == nil {
		t.Error("a file in place of a folder")
	}
	if err := mod.Write(dir, map[string][]byte{"0": nil, "e/f": nil}, true); err == nil {
		t.Error("a folder in place of a file")
	}
	if got := list(dir); !slices.Equal(got, before) {
		t.Errorf("left: %v, before: %v", got, before)
	}
	file := filepath.Join(dir, "a")
	if err := mod.Write(filepath.Join(file, "sub"), files, false); err == nil {
		t.Error("a folder below a file")
	}
}

// TestLogin takes the credentials that `cue login` stored.
func TestLogin(t *testing.T) {
	host, c, o := registry(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer let-me-in" {
				w.Header().Set("WWW-Authenticate", `Bearer realm="none"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	_, err := c.PublishSchema(context.Background(), kinds(), "v0.1.0", false)
	var r *mod.RegistryError
	if !errors.As(err, &r) || r.Host != host {
		t.Fatalf("without a login: %v", err)
	}
	dir := strings.TrimPrefix(o.Env[3], "CUE_CONFIG_DIR=")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	logins := fmt.Sprintf(`{"registries": {%q: {"access_token": "let-me-in", "token_type": "Bearer"}}}`, host)
	if err := os.WriteFile(filepath.Join(dir, "logins.json"), []byte(logins), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = mod.NewClient(o); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PublishSchema(context.Background(), kinds(), "v0.1.0", false); err != nil {
		t.Errorf("with a login: %v", err)
	}
}
