package load

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// one is a registry of one kind.
func one() *kind.Registry {
	r := &kind.Registry{}
	kind.Add(r, kind.Kind[map[string]any]{
		Name: "worker", Summary: "w", Schema: "#Worker: {\n#worker\n#engine\nkind: \"worker\"\n}",
		Default: func() map[string]any { return nil },
		Ports:   func(map[string]any) []kind.Port { return nil },
		New:     func(map[string]any, kind.Host) (kind.Component, error) { return nil, nil },
	})
	return r
}

func write(t testing.TB, dir string, a *txtar.Archive) {
	t.Helper()
	for _, f := range a.Files {
		file := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// elsewhere is an Options.Isolate that does jobs as another process would.
func elsewhere(ctx context.Context, job []byte, _ Limits) ([]byte, error) {
	var out bytes.Buffer
	err := Serve(ctx, one(), bytes.NewReader(job), &out)
	return out.Bytes(), err
}

func loadText(t testing.TB, name, text string) diag.List {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g, list, err := File(context.Background(), name, Options{Registry: one(), Dir: dir, Isolate: elsewhere})
	if err != nil {
		t.Fatal(err)
	}
	if (g == nil) != list.Failed() {
		t.Fatalf("graph %v, list %v", g, list)
	}
	return list
}

// TestHostile loads specs that are made to break a loader. Each must end in a finding, soon.
func TestHostile(t *testing.T) {
	rep := strings.Repeat
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(rep(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	for _, c := range []struct{ name, file, text string }{
		{"brackets", "a.cue", "name: " + rep("[", 1<<19)},
		{"closed brackets", "a.cue", "name: " + rep("[", 1<<18) + rep("]", 1<<18)},
		{"nested structs", "a.cue", rep("{a:", 1<<17) + "1" + rep("}", 1<<17)},
		{"nested fields", "a.cue", rep("a: ", 1<<17) + "1"},
		{"unary", "a.cue", "name: " + rep("-", 1<<19) + "1"},
		{"binary", "a.cue", "name: 1" + rep("+1", 1<<18)},
		{"selectors", "a.cue", "a: {}\nname: a" + rep(".a", 1<<18)},
		{"calls", "a.cue", "name: len" + rep("(len", 1<<17)},
		{"interpolations", "a.cue", "name: " + rep(`"\(`, 1<<17)},
		{"disjunction", "a.cue", "name: 1" + rep("|1", 1<<16)},
		{"self", "a.cue", "name: name\nnodes: nodes\n"},
		{"self struct", "a.cue", "nodes: a: nodes\n"},
		{"structural cycle", "a.cue", "#a: {b: #a}\nnodes: #a\n"},
		{"yaml flow", "a.yaml", "name: " + rep("[", 1<<19)},
		{"yaml nested", "a.yaml", "name: " + rep("- ", 1<<17)},
		{"yaml aliases", "a.yaml", bomb},
		{"yaml self", "a.yaml", "name: &a [*a]\n"},
		{"json nested", "a.json", `{"name":` + rep("[", 1<<19)},
		{"json closed", "a.json", `{"name":` + rep("[", 9000) + rep("]", 9000) + "}"},
		{"too large", "a.cue", rep("//\n", 1<<19)},
		{"long name", "a.cue", `name: "` + rep("x", 1<<19) + `"`},
		{"many fields", "a.json", `{"name":"a","nodes":{` + strings.TrimSuffix(manyKeys(3000), ",") + `}}`},
		{"attribute", "a.cue", "name: string @tag(" + rep("(", 1<<18)},
		{"number", "a.cue", "name: \"a\"\nnodes: a: {kind: \"worker\", replicas: 1e999999999}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			list := loadText(t, c.file, c.text)
			if !list.Failed() {
				t.Error("it was loaded")
			}
			for _, d := range list {
				if d.Code == "internal" {
					t.Errorf("%v", d)
				}
				if len(d.Msg) > 1000 {
					t.Errorf("message of %d bytes: %.100s", len(d.Msg), d.Msg)
				}
			}
			t.Logf("%v: %d findings, first [%s] %.200s", time.Since(start), len(list), list[0].Code, list[0].Msg)
		})
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"n%d":{"kind":"x"},`, i)
	}
	return b.String()
}

func TestWatch(t *testing.T) {
	wide := Limits{Time: time.Minute, Memory: 1 << 40}
	r, err := watch(context.Background(), "f", wide, func() result { panic("boom") })
	if err != nil || len(r.list) != 1 || r.list[0].Code != "internal" || !strings.Contains(r.list[0].Msg, "boom") {
		t.Errorf("panic: %v %v", r.list, err)
	}
	if n := r.list[0].Notes; len(n) != 1 || !strings.Contains(n[0], "hostile_test.go") {
		t.Errorf("place of the panic: %v", n)
	}
	stop := make(chan struct{})
	defer close(stop)
	wait := func() result { <-stop; return result{} }
	r, err = watch(context.Background(), "f", Limits{Time: time.Millisecond, Memory: 1 << 40}, wait)
	if err != nil || len(r.list) != 1 || r.list[0].Code != "too-slow" {
		t.Errorf("time: %v %v", r.list, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err = watch(ctx, "f", wide, wait); err == nil {
		t.Error("a cancelled ctx is no error")
	}
	r, err = watch(context.Background(), "f", Limits{Time: time.Minute, Memory: 1 << 20}, func() result {
		big := make([]byte, 64<<20)
		<-stop
		runtime.KeepAlive(big)
		return result{}
	})
	if err != nil || len(r.list) != 1 || r.list[0].Code != "too-slow" || !strings.Contains(r.list[0].Msg, "memory") {
		t.Errorf("Memory: %v %v", r.list, err)
	}
}

// FuzzLoad loads anything in each format: never a panic, and a graph exactly where there is no error.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.txtar", "testdata/ok/*.txtar"} {
		files, _ := filepath.Glob(pattern)
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			_, text, _ := strings.Cut(string(b), " --\n")
			text, _, _ = strings.Cut(text, "-- want --")
			format := uint8(0)
			if strings.Contains(string(b), ".yaml --") {
				format = 1
			} else if strings.Contains(string(b), ".json --") {
				format = 2
			}
			f.Add(text, format)
		}
	}
	f.Fuzz(func(t *testing.T, text string, format uint8) {
		name := []string{"a.cue", "a.yaml", "a.json"}[format%3]
		noRawCUE(t, text, loadText(t, name, text))
	})
}

// FuzzOver lays anything over a spec: a setting, a tag and an overlay in CUE.
func FuzzOver(f *testing.F) {
	for _, seed := range [][3]string{
		{"nodes.w.replicas=3", "n=2", "nodes: w: threads: 2"},
		{`edges."a -> b".transport=grpc`, "n", "package p\n_x: 3"},
		{"nodes.w.kv={tokens: 3, block: [1, 2]}", "m=1.5", "nodes: x: _|_"},
		{"nodes.w=>=3 & <9", "=", "import \"list\"\nnodes: w: script: list.Repeat([\"a\"], 3)"},
		{"a.\"b\\\"c\".d=\n\t{", "n=\n", "}{"},
		{"..=", "", ""}, {"nodes.0=1", "n=-", "name: *\"a\" | \"b\""}, {"name=-", "n=-1", "name: \"b\""},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	spec := "package p\n\nimport \"dynamo.graph/spec\"\n\nspec.#Graph & {\n\tname: *\"p\" | string\n\tnodes: w: spec.#Worker & {replicas: int | *1 @tag(n,type=int), threads?: <9 @tag(m,type=number)}\n}\n"
	f.Fuzz(func(t *testing.T, set, tag, over string) {
		dir := t.TempDir()
		write(t, dir, &txtar.Archive{Files: []txtar.File{{Name: "a.cue", Data: []byte(spec)}, {Name: "o.cue", Data: []byte(over)}}})
		o := Options{Registry: one(), Dir: dir, Set: []string{set}, Tags: []string{tag}, Overlays: []string{"o.cue"}, Isolate: elsewhere}
		g, list, err := File(context.Background(), "a.cue", o)
		if err != nil {
			t.Fatal(err)
		}
		if (g == nil) != list.Failed() {
			t.Fatalf("graph %v, list %v", g, list)
		}
		noRawCUE(t, spec+set+tag+over, list)
		for _, d := range list {
			if _, err := o.ReadFile(d.Pos.File); err != nil {
				t.Errorf("%s: %v", d.Pos.File, err)
			}
		}
	})
}
