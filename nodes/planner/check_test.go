package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// site is a planner "plan" beside nodes "decode", "prefill" and "api", with edges "from -type> to".
func site(edges ...string) kind.Site {
	three := 3
	g := &graph.Graph{Nodes: map[string]*graph.Node{
		"plan": {Name: "plan", Kind: "planner"}, "api": {Name: "api", Kind: "frontend"}, "prefill": {Name: "prefill", Kind: "prefill"},
		"decode": {Name: "decode", Kind: "decode", Replicas: &three, Fields: map[string]diag.Pos{"batch.queue": {File: "s", Line: 9, Col: 1}}},
	}}
	for _, e := range edges {
		f := strings.Fields(e)
		g.Edges = append(g.Edges, &graph.Edge{
			From: graph.End{Node: f[0], Port: "out"}, To: graph.End{Node: f[2], Port: "in"}, Type: strings.Trim(f[1], "->"),
		})
	}
	return kind.Site{
		Graph: g, Node: g.Nodes["plan"],
		Gives: func(node string) []string {
			return map[string][]string{"decode": {"running", "waiting", "blocksUsed"}, "prefill": {"running", "prefillTokens"}, "api": {"ttft", "itl"}}[node]
		},
		Limits: func(node string) []kind.Limit {
			if node == "decode" {
				return []kind.Limit{{Bound: kind.Run, Field: "batch.seqs", Value: 16}, {Bound: kind.Wait, Field: "batch.queue", Value: 64}}
			}
			return nil
		},
	}
}

func TestCheck(t *testing.T) {
	up := func(signal string, above float64) *Up { return &Up{signal, above} }
	both := []string{"plan -scale> decode", "decode -load> plan"}
	zero, five := 0, 5
	for _, tt := range []struct {
		name  string
		scale map[string]Scale
		edges []string
		c     Config // where not zero, without Scale
		slo   bool
		want  []string // code and a part of the message each
	}{
		{name: "right", scale: map[string]Scale{"decode": {Max: 8, Up: up("waiting", 10), Down: &Down{"waiting", 1}}}, edges: both},
		{name: "by slo", scale: map[string]Scale{"decode": {Max: 8}}, edges: both, slo: true},
		{name: "ttft from the frontend", scale: map[string]Scale{"decode": {Max: 8, Up: up("ttft", 2)}}, edges: []string{"plan -scale> decode", "api -load> plan"}},
		{name: "to zero", scale: map[string]Scale{"decode": {Min: &zero, Max: 3, Up: up("running", 2)}}, edges: both},
		{name: "nothing to go by", scale: map[string]Scale{"decode": {Max: 8}}, edges: both, want: []string{"no-effect nothing ever adds"}},
		{name: "no such node", scale: map[string]Scale{"decod": {Max: 8}}, edges: both,
			want: []string{`unknown-node no node "decod"`}},
		{name: "no scale edge", scale: map[string]Scale{"decode": {Max: 8, Up: up("waiting", 10)}}, edges: both[1:], want: []string{"missing-edge no edge of type scale"}},
		{name: "no load edge", scale: map[string]Scale{"decode": {Max: 8}}, edges: both[:1], slo: true, want: []string{"missing-edge no edge of type load"}},
		{name: "load edge of another", scale: map[string]Scale{"decode": {Max: 8, Up: up("waiting", 1)}},
			edges: []string{both[0], "prefill -load> plan"}, want: []string{`missing-edge "decode" gives "waiting", but`}},
		{name: "not given", scale: map[string]Scale{"decode": {Max: 8, Up: up("prefillTokens", 1000)}}, edges: append(both, "prefill -load> plan"),
			want: []string{`missing-signal "decode" does not give "prefillTokens"`}},
		{name: "percent", scale: map[string]Scale{"decode": {Max: 8, Up: up("blocksUsed", 80)}}, edges: both, want: []string{"dead-threshold blocksUsed is never above 80"}},
		{name: "beyond the queue", scale: map[string]Scale{"decode": {Max: 8, Up: up("waiting", 64)}}, edges: both, want: []string{"dead-threshold waiting is never above 64: nodes.decode.batch.queue allows 64"}},
		{name: "beyond the batch", scale: map[string]Scale{"decode": {Max: 8, Up: up("running", 20)}}, edges: both, want: []string{"dead-threshold running is never above 20"}},
		{name: "never fewer", scale: map[string]Scale{"decode": {Max: 8, Up: up("waiting", 1), Down: &Down{"running", 0}}}, edges: both, want: []string{"dead-threshold no signal is ever below 0"}},
		{name: "crossed", scale: map[string]Scale{"decode": {Max: 8, Up: up("blocksUsed", .5), Down: &Down{"blocksUsed", .7}}}, edges: both, want: []string{"crossed-thresholds"}},
		{name: "min above max", scale: map[string]Scale{"decode": {Min: &five, Max: 4, Up: up("waiting", 1)}}, edges: both, want: []string{"bad-value 4 is below min, 5"}},
		{name: "replicas outside", scale: map[string]Scale{"decode": {Max: 2, Up: up("waiting", 1)}}, edges: both, want: []string{"bad-value 1 to 2 replicas, but nodes.decode.replicas begins with 3"}},
		{name: "window", scale: map[string]Scale{"decode": {Max: 8, Up: up("waiting", 1)}}, edges: both,
			c: Config{Every: graph.Duration(time.Minute), Window: graph.Duration(time.Second)}, want: []string{`bad-value "1s" is below every`}},
		{name: "every", scale: map[string]Scale{"decode": {Max: 8, Up: up("waiting", 1)}}, edges: both, c: Config{Every: -1}, want: []string{"bad-value"}},
		{name: "scales nothing", edges: both, want: []string{"missing-field", `no-effect nodes.plan.scale says nothing of "decode"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := tt.c
			if c.Every == 0 {
				c.Every = graph.Duration(30 * time.Second)
			}
			c.Scale = tt.scale
			s := site(tt.edges...)
			if tt.slo {
				s.Graph.SLO.TTFT = graph.Duration(time.Second)
			}
			l := check(c, s)
			if len(l) != len(tt.want) {
				t.Fatalf("got %v, want %v", l, tt.want)
			}
			for i, w := range tt.want {
				code, msg, _ := strings.Cut(w, " ")
				if l[i].Code != code || !strings.Contains(l[i].Msg, msg) || diag.Codes[code].Meaning == "" {
					t.Errorf("got %s: %s, want %s", l[i].Code, l[i].Msg, w)
				}
			}
		})
	}
	l := check(Config{Every: 1, Scale: map[string]Scale{"decode": {Max: 8, Up: up("waiting", 64)}}}, site(both...))
	if len(l) != 1 || len(l[0].Related) != 1 || l[0].Related[0].Pos.Line != 9 {
		t.Errorf("the second place is not shown: %+v", l)
	}
}
