package router

import (
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

func TestSignals(t *testing.T) {
	for _, tt := range []struct {
		name  string
		c     Config
		edges string // "from.type>to"
		want  string
	}{
		{"kv with events", Config{Policy: byKV, KV: &KV{}}, "route.worker>w w.events>route", ""},
		{"kv of a pair", Config{Policy: byKV}, "route.prefill>p route.decode>d p.kv>d p.events>route", ""},
		{"kv without events", Config{Policy: byKV}, "route.worker>w", `missing-signal nodes.route.policy: "kv" needs to know which blocks w holds`},
		{"kv without those of one", Config{Policy: byKV}, "route.worker>w route.worker>x w.events>route", "missing-signal nodes.route.policy: \"kv\" needs to know which blocks x holds"},
		{"events for nothing", Config{Policy: LeastLoaded}, "route.worker>w w.events>route", `no-effect edge "w.events -> route.in": policy "least-loaded"`},
		{"load for nothing", Config{Policy: LeastLoaded}, "route.worker>w w.load>route", "no-effect"},
		{"kv for nothing", Config{Policy: LeastLoaded, KV: &KV{}}, "route.worker>w", "no-effect nodes.route.kv"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := &graph.Graph{Nodes: map[string]*graph.Node{"route": {Name: "route"}}}
			for e := range strings.FieldsSeq(tt.edges) {
				from, rest, _ := strings.Cut(e, ".")
				typ, to, _ := strings.Cut(rest, ">")
				port := typ
				if from == "route" {
					typ = "tokens"
				}
				g.Edges = append(g.Edges, &graph.Edge{From: graph.End{Node: from, Port: port}, To: graph.End{Node: to, Port: "in"}, Type: typ})
			}
			l := check(tt.c, kind.Site{Graph: g, Node: g.Nodes["route"]})
			if tt.want == "" && len(l) > 0 || tt.want != "" && (len(l) != 1 || !strings.HasPrefix(l[0].Code+" "+l[0].Msg, tt.want)) {
				t.Fatalf("got %v, want %q", l, tt.want)
			}
			if strings.HasSuffix(tt.name, "for nothing") && tt.c.KV == nil && l[0].Severity != diag.Warning {
				t.Error("an edge too many is refused")
			}
		})
	}
}
