package misconfig

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/examples/ingo"
	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/specs/load"
	"github.com/dynamograph/dynamo/specs/write"
)

// quiet reports what is called wrong in a right graph.
func quiet(t *testing.T, list diag.List) {
	t.Helper()
	for _, d := range list {
		if d.Severity != diag.Note {
			t.Errorf("false alarm: %s %s: %s: %s", d.Code, d.Pos, d.Severity, d.Msg)
		}
	}
}

// again writes g in each format, and in one with all defaults, and wants what is written to be as right: it has the same plan, and is written
// again as it is.
func again(t *testing.T, g *graph.Graph) {
	t.Helper()
	want := lowered(t, g)
	for _, f := range slices.Concat(write.Formats, []string{""}) {
		o := write.Options{Defaults: f == ""}
		format := cmp.Or(f, write.Formats[len(g.Nodes)%len(write.Formats)])
		b := must(write.Spec(g, format, o))(t)
		g2, list, err := read(t, &txtar.Archive{Files: []txtar.File{{Name: "spec." + format, Data: b}}}, nil)
		if err != nil || g2 == nil {
			t.Fatalf("as %s, %+v: %v %v\n%s", format, o, err, list, b)
		}
		quiet(t, list)
		if !bytes.Equal(lowered(t, g2), want) {
			t.Errorf("as %s, %+v: another plan\n%s", format, o, b)
		}
		if !bytes.Equal(must(write.Spec(g2, format, o))(t), b) {
			t.Errorf("as %s, %+v: written again it differs from\n%s", format, o, b)
		}
	}
}

// lowered returns the plan of a right graph.
func lowered(t *testing.T, g *graph.Graph) []byte {
	t.Helper()
	p, list := compiler.Compile(g, compiler.Options{Registry: kind.Default})
	quiet(t, list)
	if p == nil {
		t.FailNow()
	}
	return must(plan.Encode(p))(t)
}

// TestReady: the ready specs, the recipes and the examples are right, as they are and written in each format.
func TestReady(t *testing.T) {
	var paths []string
	for _, pattern := range []string{"../../specs/*.cue", "../../recipes/*/*/graph.cue"} {
		found := must(filepath.Glob(pattern))(t)
		if len(found) == 0 {
			t.Fatalf("%s: nothing there", pattern)
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		t.Run(strings.TrimPrefix(path, "../../"), func(t *testing.T) {
			spec := path
			if filepath.Base(path) == "graph.cue" {
				spec = filepath.Dir(path)
			}
			g, list, err := load.File(t.Context(), spec, load.Options{Registry: kind.Default})
			if err != nil || g == nil {
				t.Fatal(err, list)
			}
			again(t, g)
			_, more := compiler.Compile(g, compiler.Options{Registry: kind.Default})
			quiet(t, append(list, more...))
		})
	}
	t.Run("examples/ingo", func(t *testing.T) {
		g, list := ingo.Disagg(2)
		again(t, g)
		_, more, err := ingo.Compile(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		quiet(t, append(list, more...))
	})
}

// TestWritten: a right graph is right in each format, and the right graphs together have every kind and every engine.
func TestWritten(t *testing.T) {
	kinds, engines := map[string]bool{}, map[string]bool{}
	for _, path := range corpus(t, "right") {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			g, _, err := read(t, must(txtar.ParseFile(path))(t), nil)
			if err != nil || g == nil {
				t.Fatal("it does not load", err)
			}
			for _, n := range g.Nodes {
				kinds[n.Kind] = true
				full := must(kind.Default.Lookup(n.Kind).Config(n.Config))(t)
				for _, e := range append(engine.Names(), engine.Foreign()...) {
					engines[e] = engines[e] || strings.Contains(string(full), fmt.Sprintf(`"engine":%q`, e))
				}
			}
			again(t, g)
		})
	}
	for _, k := range kind.Default.All() {
		if !kinds[k.Name] {
			t.Errorf("no right graph has a node of kind %q", k.Name)
		}
	}
	for _, e := range append(engine.Names(), engine.Foreign()...) {
		if !engines[e] {
			t.Errorf("no right graph has engine %q", e)
		}
	}
}

// TestLarge: a graph of several hundred nodes of all kinds is right.
func TestLarge(t *testing.T) {
	var b, edges strings.Builder
	line := func(s string, args ...any) { fmt.Fprintf(&b, s+"\n", args...) }
	edge := func(from, to string) { fmt.Fprintf(&edges, "  %s -> %s: {}\n", from, to) }
	const cells = 60
	engines := []string{
		"engine: native", "engine: mock", `engine: vllm, version: "0.32.0", device: h100`, `engine: sglang, version: "0.5.23", device: h100`,
		"engine: trtllm, device: h100",
	}
	line("name: large\nslo: {ttft: 1s, itl: 50ms}\ndevices:\n  h100: {memory: 80Gi, count: 8}\nmodels:")
	for i := range cells {
		file := "model.safetensors"
		if i%len(engines) == 0 {
			file = "model.gguf"
		}
		line("  m%d: {source: \"hf:org/model-%d/%s\", names: [m%d, org/model-%d], context: 8192}", i, i, file, i, i)
	}
	line("nodes:\n  api: {kind: frontend, requests: 100000}\n  other: {kind: external, url: \"https://api.example.com/v1\", key: \"env:KEY\"}")
	edge("api", "other")
	nodes := 2
	for i := range cells {
		e := engines[i%len(engines)]
		reports := i%len(engines) != 1 // the mock engine tells of no blocks
		policy := "least-loaded"
		if reports {
			policy = "kv"
		}
		line("  r%d: {kind: router, policy: %s}", i, policy)
		edge("api", fmt.Sprintf("r%d", i))
		for k := range 2 {
			line("  p%d-%d: {kind: prefill, model: m%d, %s}", i, k, i, e)
			line("  d%d-%d: {kind: decode, model: m%d, replicas: 2, %s}", i, k, i, e)
			edge(fmt.Sprintf("r%d.prefill", i), fmt.Sprintf("p%d-%d", i, k))
			edge(fmt.Sprintf("r%d.decode", i), fmt.Sprintf("d%d-%d", i, k))
			for to := range 2 {
				edge(fmt.Sprintf("p%d-%d.kv", i, k), fmt.Sprintf("d%d-%d.kv", i, to))
			}
			if reports {
				edge(fmt.Sprintf("p%d-%d.events", i, k), fmt.Sprintf("r%d", i))
			}
		}
		line("  s%d: {kind: planner, scale: {d%d-0: {max: 4, up: {signal: waiting, above: 8}}}}", i, i)
		edge(fmt.Sprintf("d%d-0.load", i), fmt.Sprintf("s%d", i))
		edge(fmt.Sprintf("s%d", i), fmt.Sprintf("d%d-0", i))
		nodes += 6
		if i%len(engines) == 2 || i%len(engines) == 3 {
			line("  c%d: {kind: kvtier, tiers: [{medium: dram, size: 64Gi}, {medium: nvme, size: 1Ti}]}", i)
			edge(fmt.Sprintf("d%d-0.offload", i), fmt.Sprintf("c%d", i))
			line("  e%d: {kind: encode, model: m%d, %s}", i, i, e)
			edge(fmt.Sprintf("e%d.media", i), fmt.Sprintf("p%d-0.media", i))
			nodes += 2
		}
	}
	b.WriteString("edges:\n" + edges.String())
	list := vet(t, &txtar.Archive{Files: []txtar.File{{Name: "spec.yaml", Data: []byte(b.String())}}})
	quiet(t, list)
	t.Logf("%d nodes", nodes)
	if nodes < 400 {
		t.Error("that is not large")
	}
}
