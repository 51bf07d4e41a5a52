package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamograph/dynamo/graph"
)

// of makes a graph of edges "a-tokens>b".
func of(edges string) *graph.Graph {
	g := &graph.Graph{Nodes: map[string]*graph.Node{}}
	for s := range strings.FieldsSeq(edges) {
		from, rest, _ := strings.Cut(s, "-")
		typ, to, _ := strings.Cut(rest, ">")
		for _, n := range []string{from, to} {
			g.Nodes[n] = &graph.Node{Name: n}
		}
		g.Edges = append(g.Edges, &graph.Edge{From: graph.End{Node: from}, To: graph.End{Node: to}, Type: typ})
	}
	return g
}

func ExampleGraph_Order() {
	g := of("route-tokens>decode route-tokens>prefill api-chat>route decode-events>route prefill-kv>decode")
	fmt.Println(g.Order())
	// Output: [api route decode prefill] <nil>
}

func TestCycles(t *testing.T) {
	for _, tt := range []struct{ edges, want string }{
		{"a-tokens>b b-events>a", "[]"}, // subscriptions may close loops
		{"a-tokens>b b-load>a b-scale>a", "[]"},
		{"a-tokens>b b-tokens>a", "[[a b]]"},
		{"a-tokens>b b-kv>a", "[[a b]]"}, // each waits for the other
		{"a-media>b b-tokens>c c-kv>a", "[[a b c]]"},
		{"a-tokens>b b->a", "[]"}, // not resolved
		{"a-tokens>a", "[[a]]"},
	} {
		g := of(tt.edges)
		if got := fmt.Sprint(g.Cycles()); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.edges, got, tt.want)
		}
	}
	if _, err := of("a-tokens>b b-tokens>a").Order(); err == nil {
		t.Error("a cycle of calls has an order")
	}
}

func TestReach(t *testing.T) {
	g := of("a-tokens>b b-tokens>c b-kv>d e-tokens>a")
	if got := g.Reach(func(e *graph.Edge) bool { return graph.IsCall(e.Type) }, "a"); len(got) != 3 || !got["c"] || got["d"] {
		t.Errorf("by calls: %v", got)
	}
	if got := g.Reach(nil, "a"); len(got) != 4 || !got["d"] {
		t.Errorf("by all edges: %v", got)
	}
	g.Edges = append(g.Edges, &graph.Edge{From: graph.End{Node: "c"}, To: graph.End{Node: "nobody"}, Type: "tokens"})
	if got := g.Reach(nil, "a"); got["nobody"] {
		t.Error("a node that is not there is reached")
	}
}

// A clone is equal and shares nothing that a compiler changes.
func TestClone(t *testing.T) {
	two := 2
	g := of("a-tokens>b")
	g.Models = map[string]*graph.Model{"m": {Name: "m", Sources: []string{"file:x"}, Names: []string{"n"}}}
	g.Nodes["a"].Replicas = &two
	g.Nodes["a"].Config = json.RawMessage(`{"x":1}`)
	before := fmt.Sprintf("%+v %+v %+v %d", *g.Nodes["a"], *g.Edges[0], *g.Models["m"], *g.Nodes["a"].Replicas)
	c := g.Clone()
	if d := cmp.Diff(g, c); d != "" {
		t.Fatal(d)
	}
	c.Nodes["a"].Model = "m"
	*c.Nodes["a"].Replicas = 9
	c.Nodes["a"].Config[2] = 'y'
	c.Nodes["z"] = &graph.Node{}
	c.Edges[0].Type = "kv"
	c.Models["m"].Sources[0] = "file:y"
	c.Models["m"].Names[0] = "o"
	if after := fmt.Sprintf("%+v %+v %+v %d", *g.Nodes["a"], *g.Edges[0], *g.Models["m"], *g.Nodes["a"].Replicas); after != before || len(g.Nodes) != 2 {
		t.Errorf("the original changed:\n%s\n%s", before, after)
	}
}

func TestDuration(t *testing.T) {
	var v struct{ D graph.Duration }
	if err := json.Unmarshal([]byte(`{"D":"1m30s"}`), &v); err != nil || v.D.Std() != 90*time.Second {
		t.Errorf("got %v, %v", v.D.Std(), err)
	}
	if b, err := json.Marshal(v); err != nil || string(b) != `{"D":"1m30s"}` {
		t.Errorf("got %s, %v", b, err)
	}
	for _, bad := range []string{`{"D":90}`, `{"D":"90"}`, `{"D":""}`} {
		if err := json.Unmarshal([]byte(bad), &v); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func TestDurationString(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 250 * time.Millisecond: "250ms", 10 * time.Second: "10s", 90 * time.Second: "1m30s", 10 * time.Minute: "10m", time.Hour: "1h",
		100 * time.Minute: "1h40m", time.Hour + time.Second: "1h0m1s",
	} {
		if got := graph.Duration(d).String(); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
