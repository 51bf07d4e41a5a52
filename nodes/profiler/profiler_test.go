package profiler

import (
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

func TestCheck(t *testing.T) {
	g := &graph.Graph{
		Models: map[string]*graph.Model{"m": {Name: "m", Context: 1024}},
		Nodes:  map[string]*graph.Node{"prof": {Name: "prof"}, "route": {Name: "route"}, "w": {Name: "w", Model: "m"}},
		Edges: []*graph.Edge{
			{From: graph.End{Node: "prof"}, To: graph.End{Node: "route"}, Type: "tokens"}, {From: graph.End{Node: "route"}, To: graph.End{Node: "w"}, Type: "tokens"},
		},
		Fields: map[string]diag.Pos{"models.m.context": {File: "s", Line: 3, Col: 1}},
	}
	for _, tt := range []struct {
		c    Config
		want string
	}{
		{Config{Prompts: []int{128, 896}, Outputs: []int{128}, Concurrency: []int{8}, Requests: 8}, ""},
		{Config{Prompts: []int{128, 1000}, Outputs: []int{128}, Concurrency: []int{1}, Requests: 8}, "bad-value nodes.prof.prompts: prompt and answer have up to 1128 tokens, but models.m.context allows 1024"},
		{Config{Prompts: []int{1}, Outputs: []int{1}, Concurrency: []int{1, 64}, Requests: 32}, "bad-value nodes.prof.requests: 32 requests are never 64 at once"},
		{Config{Requests: 1}, "bad-value"},
	} {
		l := check(tt.c, kind.Site{Graph: g, Node: g.Nodes["prof"]})
		if tt.want == "" && len(l) > 0 || tt.want != "" && (len(l) != 1 || !strings.HasPrefix(l[0].Code+" "+l[0].Msg, tt.want)) {
			t.Errorf("%+v: got %v, want %q", tt.c, l, tt.want)
		}
	}
}
