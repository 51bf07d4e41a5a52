package load_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs"
	"github.com/dynamograph/dynamo/specs/load"
)

func mustLoad(t *testing.T, path string, tags ...string) *graph.Graph {
	t.Helper()
	g, list, err := load.File(context.Background(), path, load.Options{Registry: testKinds(), Tags: tags})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) > 0 {
		var b bytes.Buffer
		_ = diag.Text(&b, list, os.ReadFile, false)
		t.Fatalf("findings:\n%s", &b)
	}
	return g
}

func TestReadySpecs(t *testing.T) {
	for _, name := range specs.Names() {
		if g := mustLoad(t, "../"+name+".cue"); g.Name != name {
			t.Errorf("%s.cue: the graph is called %q", name, g.Name)
		}
	}
}

func TestDisagg(t *testing.T) {
	g := mustLoad(t, "../llama-disagg.cue", "decode=3", "model=file:/m.gguf")
	var edges []string
	for _, e := range g.Edges {
		edges = append(edges, e.String())
	}
	if d := cmp.Diff([]string{"api -> route", "route.prefill -> prefill", "route.decode -> decode", "prefill.kv -> decode.kv"}, edges); d != "" {
		t.Error(d)
	}
	if e := g.Edges[3]; e.Pos != (diag.Pos{File: "../llama-disagg.cue", Line: 26, Col: 3}) || e.Len != len(`"prefill.kv -> decode.kv"`) {
		t.Errorf("edge %v at %v, %d bytes", e, e.Pos, e.Len)
	}
	if n := g.Nodes["decode"]; n.Kind != "decode" || n.Replicas == nil || *n.Replicas != 3 || string(n.Config) != "{}" {
		t.Errorf("decode: %+v", n)
	}
	if n := g.Nodes["route"]; string(n.Config) != `{"policy":"least-loaded"}` || n.Fields["policy"].Line != 17 || n.Fields["policy"].Col != 26 {
		t.Errorf("route: %s at %v", n.Config, n.Fields)
	}
	if n := g.Nodes["prefill"]; *n.Replicas != 1 {
		t.Errorf("prefill: %d replicas, want the spec's default", *n.Replicas)
	}
	want := &graph.Model{Name: "default", Pos: diag.Pos{File: "../llama-disagg.cue", Line: 8, Col: 2}, Sources: []string{"file:/m.gguf"},
		SHA256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", Names: []string{"smollm2"}}
	if d := cmp.Diff(map[string]*graph.Model{"default": want}, g.Models); d != "" {
		t.Error(d)
	}
	if g.SLO.TTFT.Std().String() != "500ms" || g.SLO.ITL.Std().String() != "25ms" {
		t.Errorf("slo: %+v", g.SLO)
	}
}

// TestCannotCheck lists what is an error rather than a finding.
func TestCannotCheck(t *testing.T) {
	_, _, err := load.File(context.Background(), "no-such.cue", load.Options{Registry: testKinds(), Dir: t.TempDir()})
	if err == nil || err.Error() != "spec no-such.cue: no such file or directory" {
		t.Errorf("missing file: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err = load.File(ctx, "../llama-agg.cue", load.Options{Registry: testKinds()}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for _, broken := range []string{"#Broken: {", "#Other: {}", "#Broken: {kind: \"broken\", a: nope}"} {
		r := &kind.Registry{}
		kind.Add(r, kind.Kind[anyConfig]{Name: "broken", Summary: "b", Schema: broken, Default: func() anyConfig { return nil },
			Ports: func(anyConfig) []kind.Port { return nil }, New: func(anyConfig, kind.Host) (kind.Component, error) { return nil, nil }})
		_, list, err := load.File(context.Background(), "../llama-agg.cue", load.Options{Registry: r})
		if err == nil || !strings.Contains(err.Error(), "schema: ") {
			t.Errorf("schema %q: %v %v", broken, list, err)
		}
	}
}

// TestFreshContext loads often and wants the memory back: a long-lived context would grow.
func TestFreshContext(t *testing.T) {
	live := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	mustLoad(t, "../llama-disagg.cue")
	before := live()
	for range 50 {
		mustLoad(t, "../llama-disagg.cue")
	}
	if after := live(); after > before+4<<20 {
		t.Errorf("50 loads keep %d KiB", (after-before)>>10)
	}
}

func TestConcurrent(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			g, list, err := load.File(context.Background(), "../llama-disagg.cue", load.Options{Registry: testKinds()})
			if err != nil || list.Failed() || len(g.Edges) != 4 {
				t.Errorf("%v %v", err, list)
			}
		})
	}
	wg.Wait()
}

func ExampleFile() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	spec := "name: demo\nnodes:\n  api: {kind: frontend, lisen: \":80\"}\n"
	if err := os.WriteFile(filepath.Join(dir, "demo.yaml"), []byte(spec), 0o600); err != nil {
		panic(err)
	}
	_, list, err := load.File(context.Background(), "demo.yaml", load.Options{Registry: testKinds(), Dir: dir})
	if err != nil {
		panic(err) // could not be checked
	}
	_ = diag.Text(os.Stdout, list, func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, name)) }, false)
	// Output:
	// demo.yaml:3:25: error: nodes.api: unknown field "lisen" [unknown-field]
	//   3 |   api: {kind: frontend, lisen: ":80"}
	//     |                         ^^^^^ did you mean "listen"?
	//   = fields: kind, listen
}
