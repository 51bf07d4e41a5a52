package load_test

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
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
