package mutation

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/specs/schema"
)

// ofGraph holds a change for each field outside of nodes: one that the compiler must see, or that must be refused. fields are those that
// count as set by the author.
var ofGraph = map[string]func(g *graph.Graph){
	"name":            func(g *graph.Graph) { g.Name = "another" },
	"status":          func(g *graph.Graph) { g.Status = "compiled" },
	"slo.ttft":        func(g *graph.Graph) { g.SLO.TTFT = graph.Duration(time.Second) },
	"slo.itl":         func(g *graph.Graph) { g.SLO.ITL = graph.Duration(time.Second) },
	"timeouts.client": func(g *graph.Graph) { g.Timeouts.Client = graph.Duration(time.Millisecond) },
	"timeouts.drain":  func(g *graph.Graph) { g.Timeouts.Drain = graph.Duration(time.Minute) },
	"timeouts.grace":  func(g *graph.Graph) { g.Timeouts.Grace = graph.Duration(time.Hour) },
	"machine.memory":  func(g *graph.Graph) { g.Machine.MemoryBytes = 1 << 20 },
	"machine.disk":    func(g *graph.Graph) { g.Machine.DiskBytes = 1 << 20 },
	"machine.cores":   func(g *graph.Graph) { g.Machine.Cores = 1 },
	"devices.memory":  func(g *graph.Graph) { g.Devices["other"].MemoryBytes = 1 << 20 },
	"devices.count":   func(g *graph.Graph) { g.Devices["other"].Count = 1 },

	"models.source":    func(g *graph.Graph) { g.Models["m"].Sources = []string{"hf:org/repo/n.gguf"} },
	"models.sha256":    func(g *graph.Graph) { g.Models["m"].SHA256 = strings.Repeat("0", 64) },
	"models.context":   func(g *graph.Graph) { g.Models["m"].Context = 100 },
	"models.names":     func(g *graph.Graph) { g.Models["m"].Names = []string{"other"} },
	"models.revision":  func(g *graph.Graph) { g.Models["m"].Revision = "v2" },
	"models.family":    func(g *graph.Graph) { g.Models["m"].Family = "qwen3" },
	"models.tools":     func(g *graph.Graph) { g.Models["m"].Tools = "hermes" },
	"models.reasoning": func(g *graph.Graph) { g.Models["m"].Reasoning = "qwen3" },
	"models.features":  func(g *graph.Graph) { g.Models["m"].Features = []string{"images"} },

	"models.adapters.source": func(g *graph.Graph) { g.Models["m"].Adapters["a"].Sources = []string{"hf:org/repo/b.gguf"} },
	"models.adapters.sha256": func(g *graph.Graph) { g.Models["m"].Adapters["a"].SHA256 = strings.Repeat("0", 64) },
	"models.adapters.rank":   func(g *graph.Graph) { g.Models["m"].Adapters["a"].Rank = 8 },
	"models.adapters.names":  func(g *graph.Graph) { g.Models["m"].Adapters["a"].Names = []string{"other"} },

	"edges.transport": func(g *graph.Graph) {
		for _, e := range g.Edges {
			if e.From.Port == "kv" {
				e.Transport = "tcp"
			}
		}
	},
	"models.facts.parameters":       stated(func(s *model.Stated) { s.Parameters *= 2 }),
	"models.facts.expertParameters": stated(func(s *model.Stated) { s.ExpertParameters = s.Parameters / 2 }),
	"models.facts.bytes":            stated(func(s *model.Stated) { s.Bytes = 7 << 30 }),
	"models.facts.dtype":            stated(func(s *model.Stated) { s.DType = "fp8" }),
	"models.facts.layers":           stated(func(s *model.Stated) { s.Layers = 40 }),
	"models.facts.hidden":           stated(func(s *model.Stated) { s.Hidden *= 2 }),
	"models.facts.heads":            stated(func(s *model.Stated) { s.Heads *= 2 }),
	"models.facts.kvHeads":          stated(func(s *model.Stated) { s.KVHeads *= 2 }),
	"models.facts.headDim":          stated(func(s *model.Stated) { s.HeadDim *= 2 }),
	"models.facts.vocabulary":       stated(func(s *model.Stated) { s.Vocabulary *= 2 }),
	"models.facts.context":          stated(func(s *model.Stated) { s.Context /= 2 }),
	"models.facts.experts":          stated(func(s *model.Stated) { s.Experts = 3 }),
	"models.facts.latent":           stated(func(s *model.Stated) { s.Latent = 576 }),
	"models.facts.window":           stated(func(s *model.Stated) { s.Window /= 2 }),
	"models.facts.windowLayers":     stated(func(s *model.Stated) { s.WindowLayers /= 2 }),
}

func stated(f func(*model.Stated)) func(*graph.Graph) {
	return func(g *graph.Graph) {
		s := *g.Models["m"].Stated
		f(&s)
		g.Models["m"].Stated = &s
	}
}

// bases are the graphs to which the changes are made: one of them must show each.
func bases(t *testing.T) []*graph.Graph {
	t.Helper()
	complete := func(v variant) *graph.Graph {
		g := graphOf(t, v, nil)
		g.Fields = map[string]diag.Pos{}
		g.Devices["other"].Count = 8
		g.Machine = graph.Machine{MemoryBytes: 4 << 40, DiskBytes: 64 << 40, Cores: 64}
		g.Models["m"].Adapters = map[string]*graph.Adapter{"a": {Name: "a", Sources: []string{"hf:org/repo/a.gguf"}, Rank: 16}}
		g.Models["m"].Stated = &model.Stated{
			Parameters: 70_000_000_000, DType: "bf16", Layers: 80, Hidden: 8192, Heads: 64, KVHeads: 8, HeadDim: 128, Vocabulary: 128256,
			Context: 131072, Experts: 8, Window: 1024, WindowLayers: 40,
		}
		return g
	}
	const foreign = ` {"engine":"vllm","device":"other","tp":4,"dp":2,"kv":{"transports":["tcp","rdma"]},"flags":{"enable-lora":true,"enable-expert-parallel":true}}`
	large := complete(variant{"", "", map[string]string{"api": "frontend", "route": "router", "pre": "prefill" + foreign, "dec": "decode" + foreign},
		[]string{"api -> route", "route.prefill -> pre", "route.decode -> dec", "pre.kv -> dec.kv"}})
	small := complete(variant{"", "", map[string]string{"api": `frontend {"timeout":"20s"}`, "work": `worker {"threads":8}`}, []string{"api -> work"}})
	small.Models["m"].Adapters = nil
	small.Models["m"].Stated.Bytes = 5 << 30
	return []*graph.Graph{large, small}
}

// TestGraphFields is about the fields of the graph as a whole, its models, machines and edges.
func TestGraphFields(t *testing.T) {
	s, _ := schemas(t)
	var want []string
	for _, l := range leaves(s, "") {
		p := strings.ReplaceAll(l.path, ".work", "")
		if !strings.HasPrefix(p, "nodes") && !strings.HasPrefix(p, "model.") && p != "schema" {
			want = append(want, p)
		}
	}
	if have := slices.Sorted(maps.Keys(ofGraph)); !slices.Equal(have, slices.Sorted(slices.Values(want))) {
		t.Errorf("the fields of the schema are\n%q\nbut there are changes for\n%q", slices.Sorted(slices.Values(want)), have)
	}
	if !schema.Newer("v0.999") {
		t.Error("a spec may ask for a version that is not there")
	}
	var unchanged []string
	for _, field := range slices.Sorted(maps.Keys(ofGraph)) {
		seen := false
		for i := range bases(t) {
			before, list := outcomeOf(t, bases(t)[i])
			if list.Failed() {
				t.Fatalf("base %d is refused: %v", i, list)
			}
			g := bases(t)[i]
			if strings.Contains(field, "adapters") && g.Models["m"].Adapters == nil {
				continue
			}
			ofGraph[field](g)
			g.Fields[field] = diag.Pos{File: "spec", Line: 2000, Col: 1}
			after, _ := outcomeOf(t, g)
			seen = seen || before != after
		}
		if !seen {
			unchanged = append(unchanged, field)
		}
	}
	if len(unchanged) > 0 {
		t.Errorf("taken, and without effect: %s", strings.Join(unchanged, ", "))
	}
}

// outcomeOf is outcome without facts: what the author states of the model counts.
func outcomeOf(t *testing.T, g *graph.Graph) (string, diag.List) {
	t.Helper()
	return outcomeWith(t, g, "", nil)
}
