package mutation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
)

// TestRandom: whatever is joined to whatever, the compiler ends, says what it finds with codes that are known, and says the same again.
func TestRandom(t *testing.T) {
	var configs [][2]string // kind and config
	all := variants()
	for _, v := range all {
		for _, text := range v.nodes {
			k, raw, _ := strings.Cut(text, " ")
			configs = append(configs, [2]string{k, raw})
		}
	}
	slices.SortFunc(configs, func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) })
	configs = slices.Compact(configs)
	plans := 0
	rapid.Check(t, func(t *rapid.T) {
		odd := rapid.Bool().Draw(t, "odd") // else only the edges are
		duration := func(t *rapid.T, name string) graph.Duration {
			if !odd {
				return 0
			}
			return graph.Duration(rapid.SampledFrom([]time.Duration{0, -1, time.Second, time.Minute, time.Hour}).Draw(t, name))
		}
		g := &graph.Graph{
			Name: "random", Models: map[string]*graph.Model{}, Nodes: map[string]*graph.Node{},
			Devices: map[string]*graph.Device{"other": {Name: "other", MemoryBytes: 80 << 30, Count: rapid.SampledFrom([]int{8, 8, 1, 0}).Draw(t, "devices")}},
			Timeouts: graph.Timeouts{
				Client: duration(t, "client"), Drain: duration(t, "drain"), Grace: duration(t, "grace"),
			},
			SLO: graph.SLO{TTFT: duration(t, "ttft")},
		}
		models := 1
		if odd {
			models = rapid.IntRange(0, 3).Draw(t, "models")
		}
		for i := range models {
			name := fmt.Sprintf("m%d", i)
			if !odd {
				g.Models[name] = &graph.Model{Name: name, Names: []string{"m"}, Sources: []string{"hf:o/r/m.gguf"}}
				break
			}
			g.Models[name] = &graph.Model{
				Name: name, Sources: []string{rapid.SampledFrom([]string{"hf:o/r/m.gguf", "hf:o/r/n.gguf", "file:m.gguf"}).Draw(t, "source")},
				Context:  rapid.SampledFrom([]int{0, 100, 100_000}).Draw(t, "context"),
				Features: rapid.SliceOfN(rapid.SampledFrom([]string{"tools", "images", "lora", "embeddings"}), 0, 1).Draw(t, "features"),
				Revision: rapid.SampledFrom([]string{"", "v1"}).Draw(t, "revision"),
			}
		}
		var outs, ins []graph.End
		add := func(name string, c [2]string) {
			n := &graph.Node{Name: name, Kind: c[0], Config: json.RawMessage(c[1]), Fields: map[string]diag.Pos{}}
			if r := rapid.IntRange(-1, 3).Draw(t, "replicas"); r >= 0 && (odd || r > 0) {
				n.Replicas = &r
			}
			if odd {
				n.Model = rapid.SampledFrom([]string{"", "m0", "m1", "none"}).Draw(t, "model")
			}
			var v any
			if c[1] != "" {
				if err := json.Unmarshal(n.Config, &v); err != nil {
					t.Fatal(err)
				}
			}
			places(n.Fields, "", v)
			g.Nodes[n.Name] = n
			ps, err := kind.Default.Lookup(c[0]).Ports(n.Config)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range ps {
				if e := (graph.End{Node: n.Name, Port: p.Name}); p.Dir == kind.Out {
					outs = append(outs, e)
				} else {
					ins = append(ins, e)
				}
			}
		}
		most := 14
		if rapid.Bool().Draw(t, "from a right one") {
			v := rapid.SampledFrom(all).Draw(t, "variant")
			for _, name := range slices.Sorted(maps.Keys(v.nodes)) {
				k, raw, _ := strings.Cut(v.nodes[name], " ")
				add(name, [2]string{k, raw})
			}
			for i, e := range v.edges {
				from, to, _ := strings.Cut(e, " -> ")
				end := func(s string) graph.End { n, p, _ := strings.Cut(s, "."); return graph.End{Node: n, Port: p} }
				if !odd || rapid.Bool().Draw(t, "keep it") {
					g.Edges = append(g.Edges, &graph.Edge{From: end(from), To: end(to), Pos: diag.Pos{File: "g", Line: 100 + i, Col: 1}})
				}
			}
			most = 1
		} else {
			for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
				add(fmt.Sprintf("n%d", i), rapid.SampledFrom(configs).Draw(t, "node"))
			}
		}
		for i := range rapid.IntRange(0, most).Draw(t, "edges") {
			if len(outs) == 0 || len(ins) == 0 {
				break
			}
			e := &graph.Edge{From: rapid.SampledFrom(outs).Draw(t, "from"), To: rapid.SampledFrom(ins).Draw(t, "to"), Pos: diag.Pos{File: "g", Line: i + 1, Col: 1}}
			if rapid.Bool().Draw(t, "without ports") {
				e.From.Port, e.To.Port = "", ""
			}
			if !odd {
				g.Edges = append(g.Edges, e)
				continue
			}
			e.Transport = rapid.SampledFrom([]string{"", "", "", "shm", "tcp", "rdma", "grpc"}).Draw(t, "transport")
			g.Edges = append(g.Edges, e)
		}
		o := compiler.Options{Run: odd && rapid.Bool().Draw(t, "run")}
		if rapid.Bool().Draw(t, "facts") {
			o.Facts = map[string]*model.Facts{"m0": &facts, "m1": &facts}
		}
		p, list := compiler.Compile(g, o)
		if (p == nil) != list.Failed() {
			t.Fatalf("a plan %v beside %v", p != nil, list)
		}
		for _, d := range list {
			if _, ok := diag.Codes[d.Code]; !ok || d.Code == "internal" || d.Msg == "" {
				t.Fatalf("%+v", d)
			}
		}
		q, again := compiler.Compile(g, o)
		if fmt.Sprint(list) != fmt.Sprint(again) {
			t.Fatalf("once it says\n%v\nthen\n%v", list, again)
		}
		if p == nil {
			return
		}
		plans++
		a, err1 := plan.Encode(p)
		b, err2 := plan.Encode(q)
		if err1 != nil || err2 != nil || string(a) != string(b) {
			t.Fatalf("again it is another plan: %v %v", err1, err2)
		}
		if _, err := plan.Decode(a); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("%d plans", plans)
}
