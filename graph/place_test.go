package graph_test

import (
	"testing"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
)

func TestPlace(t *testing.T) {
	at := func(n int) diag.Pos { return diag.Pos{File: "a", Line: n} }
	g := &graph.Graph{
		Pos: at(1), Fields: map[string]diag.Pos{"slo.ttft": at(2), "models.m.context": at(3)},
		Models:  map[string]*graph.Model{"m": {Pos: at(4)}, "default": {Pos: at(5)}},
		Devices: map[string]*graph.Device{"d": {Pos: at(6)}},
		Nodes:   map[string]*graph.Node{"n": {Pos: at(7), Fields: map[string]diag.Pos{"kv": at(8), "kv.block": at(9)}}},
		Edges: []*graph.Edge{
			{From: graph.End{Node: "a"}, To: graph.End{Node: "b", Port: "in"}, Pos: at(10), Fields: map[string]diag.Pos{"transport": at(11)}},
		},
	}
	for path, line := range map[string]int{
		"name": 1, "slo.ttft": 2, "slo.itl": 0, "models.m.context": 3, "models.m.names": 4, "model.context": 5, "devices.d.count": 6, "nodes.n": 7,
		"nodes.n.batch.seqs": 7, "nodes.n.kv.tokens": 8, "nodes.n.kv.block": 9, "nodes.x": 0, "": 0,
		`edges."a -> b.in"`: 10, `edges."a.out -> b.in".transport`: 11, `edges."a -> b.in".x`: 10, `edges."a -> c"`: 0, `edges."ab -> b.in"`: 0,
	} {
		if got := g.Place(path); got.Line != line {
			t.Errorf("%q: line %d, want %d", path, got.Line, line)
		}
	}
}
