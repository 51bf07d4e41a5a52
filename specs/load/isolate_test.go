package load

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dynamograph/dynamo/graph"
)

// TestRisky tells specs whose evaluation is as large as their text from others.
func TestRisky(t *testing.T) {
	laughs := "#a0: {x: 1}\n"
	for i := range 30 {
		laughs += fmt.Sprintf("#a%d: {x: #a%d, y: #a%d}\n", i+1, i, i)
	}
	for _, c := range []struct {
		text string
		want bool
	}{
		{"nodes: w: spec.#Worker & {replicas: int | *2, engine: \"mock\" | \"native\"}", false},
		{"#small: {threads: 1}\nnodes: {a: spec.#Worker & #small, b: spec.#Worker & #small}", false},
		{"let n = 3\nnodes: w: replicas: n", false},
		{"nodes: [string]: spec.#Worker\nnodes: a: {}", false},
		{"nodes: w: replicas: len([])", true},
		{"for k in [1] {nodes: w: {}}", true},
		{"nodes: w: engine: \"\\(name)\"", true},
		{"nodes: w: replicas: 3 * 4", true},
		{"nodes: w: {kv: tokens: 1} | {kv: tokens: 2}", true},
		{"#a: {x: #a}\nnodes: w: #a", true},
		{"nodes: w: replicas: " + strings.Repeat("(1 | 2) & ", 9) + "1", true},
		{laughs + "nodes: w: #a30", true},
	} {
		text := "package p\n\nimport \"dynamo.graph/spec\"\n\nname: \"p\"\n" + c.text + "\n"
		in := &input{files: []*source{{name: "a.cue", format: "cue", layer: layerSpec, data: []byte(text)}}, set: arguments(setFile, nil), tags: arguments(tagFile, nil), home: &tree{}}
		l := newLoader("a.cue", in)
		if l.parseAll(in); l.list.Failed() {
			t.Fatalf("%s: %v", c.text, l.list)
		}
		if got := l.risky(); got != c.want {
			t.Errorf("%.200s: risky is %v", c.text, got)
		}
	}
}

// TestIsolated wants the same of an evaluation elsewhere as of one here: graph, explanation and findings.
func TestIsolated(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	jobs := 0
	for _, f := range files {
		a, err := txtar.ParseFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(a.Files[0].Name, ".cue") || strings.Contains(a.Files[0].Name, "/") {
			continue
		}
		dir := t.TempDir()
		o := Options{Registry: one(), Dir: dir, explain: []string{"nodes"}}
		for line := range strings.Lines(string(a.Comment)) {
			switch k, v, _ := strings.Cut(strings.TrimSpace(line), ": "); k {
			case "tag":
				o.Tags = append(o.Tags, v)
			case "set":
				o.Set = append(o.Set, v)
			case "over":
				o.Overlays = append(o.Overlays, v)
			}
		}
		// A call makes it risky.
		a.Files[0].Data = append(a.Files[0].Data, "\n_risk: len([])\n"...)
		write(t, dir, a)
		here, err := run(t.Context(), a.Files[0].Name, o)
		if err != nil {
			t.Fatal(err)
		}
		o.Isolate = func(ctx context.Context, job []byte, l Limits) ([]byte, error) { jobs++; return elsewhere(ctx, job, l) }
		there, err := run(t.Context(), a.Files[0].Name, o)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]any{here.graph, here.explained, here.list}, []any{there.graph, there.explained, there.list}, cmp.Comparer(func(a, b graph.Duration) bool { return a == b })); d != "" {
			t.Errorf("%s (-here +there):\n%s", f, d)
		}
	}
	if jobs < 50 {
		t.Errorf("%d jobs", jobs)
	}
}

// TestCrashed wants a finding of an evaluation that ends without an answer.
func TestCrashed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, txtar.Parse([]byte("-- a.cue --\nname: \"a\"\nnodes: w: replicas: len([])\n")))
	_, list, err := File(t.Context(), "a.cue", Options{Registry: one(), Dir: dir, Isolate: func(context.Context, []byte, Limits) ([]byte, error) {
		return nil, fmt.Errorf("%w: out of memory", ErrCrashed)
	}})
	if err != nil || len(list) != 1 || list[0].Code != "too-slow" || !strings.Contains(list[0].Msg, "10s and 1024 MiB: the evaluation ended: out of memory") {
		t.Errorf("%v %v", list, err)
	}
}
