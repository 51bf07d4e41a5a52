package compiler_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/compiler/compilertest"
	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
)

// Whatever the graph: no panic; a plan, or an error with a known code; in a plan everything is said and placed once, and it compiles to
// the same bytes again.
func TestAnyGraph(t *testing.T) {
	registry := compilertest.Registry()
	kinds := []string{"worker", "router", "decode", "prefill", "frontend", "echo", "migrate", "preprocess", "nothing"}
	ports := []string{"", "", "", "in", "out", "kv", "events", "worker", "prefill", "decode", "side"}
	plans := 0
	rapid.Check(t, func(t *rapid.T) {
		g := parse(t, rapid.SampledFrom([]string{compilertest.Agg, compilertest.Disagg, "graph g\nnode api frontend\n"}).Draw(t, "base"))
		nodes := func() []string { return append(slices.Sorted(maps.Keys(g.Nodes)), "nobody") }
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			node := g.Nodes[rapid.SampledFrom(nodes()).Draw(t, "node")]
			if node == nil {
				node = &graph.Node{Name: fmt.Sprintf("n%d", len(g.Nodes)), Kind: rapid.SampledFrom(kinds).Draw(t, "new kind")}
				g.Nodes[node.Name] = node
			}
			switch rapid.IntRange(0, 7).Draw(t, "change") {
			case 0:
				node.Kind = rapid.SampledFrom(kinds).Draw(t, "kind")
			case 1:
				r := rapid.IntRange(-1, 3).Draw(t, "count")
				node.Replicas = &r
			case 2:
				node.Config = json.RawMessage(rapid.SampledFrom([]string{`{}`, `{"engine":"mock"}`, `{"x":1}`, `{`, `null`, `[]`}).Draw(t, "json"))
			case 3:
				node.Model = rapid.SampledFrom([]string{"", "default", "m1"}).Draw(t, "model")
			case 4:
				g.Models["m1"] = &graph.Model{Name: "m1", Sources: []string{"file:m1"}, Context: rapid.SampledFrom([]int{0, 100, 9000}).Draw(t, "context")}
			case 5:
				if len(g.Edges) > 0 {
					i := rapid.IntRange(0, len(g.Edges)-1).Draw(t, "edge")
					g.Edges = slices.Delete(g.Edges, i, i+1)
				}
			default:
				end := func(s string) graph.End {
					return graph.End{Node: rapid.SampledFrom(nodes()).Draw(t, s), Port: rapid.SampledFrom(ports).Draw(t, s+" port")}
				}
				g.Edges = append(g.Edges, &graph.Edge{
					From: end("from"), To: end("to"), Pos: diag.Pos{File: "g", Line: 100 + len(g.Edges), Col: 1},
					Transport: rapid.SampledFrom([]string{"", "", "", "grpc", "inproc", "shm", "warp"}).Draw(t, "transport"),
				})
			}
		}
		o := compiler.Options{Registry: registry, Facts: map[string]*model.Facts{"default": &tiny}, MemoryBytes: 64 << 20}
		p, list := compiler.Compile(g, o)
		if (p == nil) != list.Failed() {
			t.Fatalf("plan %v, findings %v", p, list)
		}
		for _, d := range list {
			if _, ok := diag.Codes[d.Code]; !ok || d.Code == "internal" || d.Msg == "" {
				t.Fatalf("finding %+v", d)
			}
		}
		if p == nil {
			return
		}
		plans++
		home := map[string]int{}
		for _, grp := range p.Groups {
			if grp.Replicas.Want < 1 {
				t.Fatalf("group %s has no replica", grp.Name)
			}
			for _, u := range grp.Units {
				home[u.Node]++
			}
		}
		for name := range g.Nodes {
			if home[name] != 1 {
				t.Fatalf("node %s is placed %d times", name, home[name])
			}
		}
		for _, e := range p.Edges {
			if home[e.From] != 1 || home[e.To] != 1 || e.FromPort == "" || e.ToPort == "" || e.Type == "" || e.Transport == "" {
				t.Fatalf("edge %+v", e)
			}
		}
		again, _ := compiler.Compile(g, o)
		a, err1 := plan.Encode(p)
		b, err2 := plan.Encode(again)
		if err1 != nil || err2 != nil || string(a) != string(b) {
			t.Fatalf("again it is another plan: %v %v", err1, err2)
		}
	})
	if plans == 0 {
		t.Error("no graph made a plan: nothing was tested")
	}
	t.Logf("%d plans", plans)
}

// Places survive where there are none: graphs built in Go have no columns.
func TestNoPlace(t *testing.T) {
	g := &graph.Graph{Name: "g", Nodes: map[string]*graph.Node{"api": {Name: "api", Kind: "frontend"}},
		Edges: []*graph.Edge{{From: graph.End{Node: "api"}, To: graph.End{Node: "apo"}}}}
	_, list := compiler.Compile(g, compiler.Options{Registry: compilertest.Registry()})
	if len(list) != 1 || list[0].Pos.IsValid() || list[0].Code != "unknown-node" || list[0].Path != `edges."api -> apo"` {
		t.Errorf("got %+v", list)
	}
}
