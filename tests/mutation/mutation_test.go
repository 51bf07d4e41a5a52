// Package mutation sets each field of each kind of node to other values, in each variant of a graph. What the compiler makes of it must
// change, or the field must be read by what runs the variant, or the spec must be refused: a field never is without effect and taken.
package mutation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
	_ "github.com/dynamograph/dynamo/nodes/all"
)

// variant is a graph with a node whose fields are set.
type variant struct {
	name  string
	node  string // "" for none
	nodes map[string]string
	edges []string
}

const edgesOfAgg = "api -> route,route.worker -> work"

var (
	engines = []string{"native", "mock", "vllm", "sglang", "trtllm", "llamacpp"}
	paired  = []string{"native", "mock", "vllm", "sglang", "trtllm"}
)

// variants returns one graph for each way in which a node of a kind may be set up.
func variants() []variant {
	var out []variant
	add := func(name, node string, nodes map[string]string, edges string) {
		out = append(out, variant{name, node, nodes, strings.Split(edges, ",")})
	}
	agg := func(more map[string]string) map[string]string {
		m := map[string]string{"api": `frontend`, "route": `router`, "work": `worker {"engine":"mock"}`}
		maps.Copy(m, more)
		return m
	}
	add("frontend", "api", agg(nil), edgesOfAgg)
	add("frontend tls", "api", agg(map[string]string{"api": `frontend {"keys":"env:KEYS","tls":{"cert":"/c.pem","key":"env:K","clients":"/ca.pem"}}`}), edgesOfAgg)
	add("frontend routes", "api", agg(map[string]string{"api": `frontend {"routes":[{"model":"m","to":"route","fallbacks":["route2"]}]}`, "route2": "router",
		"work2": "worker"}), edgesOfAgg+",api -> route2,route2.worker -> work2")
	for _, p := range []string{"round-robin", "random", "power-of-two", "least-loaded", "kv"} {
		add("router "+p, "route", agg(map[string]string{"route": fmt.Sprintf(`router {"policy":%q}`, p), "work": "worker"}), edgesOfAgg+",work.events -> route")
	}
	staged := agg(map[string]string{"pre": "preprocess", "move": "migrate"})
	for _, n := range []string{"pre", "move"} {
		add(n, n, staged, "api -> pre,pre -> move,move -> route,route.worker -> work")
	}
	for _, e := range engines {
		add("worker "+e, "work", agg(map[string]string{"work": fmt.Sprintf(`worker {"engine":%q}`, e)}), edgesOfAgg)
	}
	for _, e := range paired {
		for _, n := range []string{"pre", "dec"} {
			c := fmt.Sprintf(` {"engine":%q}`, e)
			add(n+" "+e, n, map[string]string{"api": "frontend", "route": "router", "pre": "prefill" + c, "dec": "decode" + c},
				"api -> route,route.prefill -> pre,route.decode -> dec,pre.kv -> dec.kv")
		}
	}
	add("encode", "enc", agg(map[string]string{"work": `worker {"engine":"vllm"}`, "enc": "encode"}), edgesOfAgg+",enc -> work")
	for _, m := range []string{"dram", "nvme", "object"} {
		c := fmt.Sprintf(`kvtier {"tiers":[{"medium":%q,"size":"64Gi"}]}`, m)
		if m == "object" {
			c = `kvtier {"tiers":[{"medium":"object","size":"64Gi","url":"s3://b/p"}]}`
		}
		add("kvtier "+m, "tier", agg(map[string]string{"work": `worker {"engine":"vllm"}`, "tier": c}), edgesOfAgg+",work.offload -> tier")
	}
	add("planner", "plan", agg(map[string]string{"plan": `planner {"scale":{"work":{"max":3,"up":{"signal":"waiting","above":4},"down":{"signal":"running","below":1}}}}`}),
		edgesOfAgg+",work.load -> plan,plan.scale -> work")
	add("profiler", "prof", agg(map[string]string{"prof": "profiler", "work2": `worker {"engine":"mock"}`}), edgesOfAgg+",prof -> work2")
	add("external", "out", map[string]string{"api": "frontend", "out": `external {"url":"https://example.com/v1"}`}, "api -> out")
	return out
}

// facts are those of a model of 1.5 GB, so that sizes are known.
var facts = model.Facts{
	Format: "gguf", Architecture: "llama", FileBytes: 1 << 30, Layers: 16, Heads: 32, KVHeads: 8, HeadDim: 64, Embedding: 2048, Vocabulary: 1000,
	Context: 4096, KV: model.Plain(16, 8, 64),
}

// graphOf builds the graph of a variant, with a place for each field of the node of which the author may be asked.
func graphOf(t *testing.T, v variant, set func(config object)) *graph.Graph {
	t.Helper()
	g := &graph.Graph{
		Name: "mutation", Models: map[string]*graph.Model{"m": {Name: "m", Sources: []string{"hf:org/repo/m.gguf"}}}, Nodes: map[string]*graph.Node{},
		Devices: map[string]*graph.Device{"other": {Name: "other", MemoryBytes: 80 << 30, Count: 64}},
	}
	for name, text := range v.nodes {
		k, raw, _ := strings.Cut(text, " ")
		n := &graph.Node{Name: name, Kind: k, Fields: map[string]diag.Pos{}}
		c := object{}
		if raw != "" {
			if err := json.Unmarshal([]byte(raw), &c); err != nil {
				t.Fatal(err)
			}
		}
		if name == v.node && set != nil {
			set(c)
		}
		if r, ok := c["replicas"].(float64); ok {
			i := int(r)
			n.Replicas = &i
		}
		if m, ok := c["model"].(string); ok {
			n.Model = m
		}
		places(n.Fields, "", c)
		delete(c, "replicas")
		delete(c, "model")
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		n.Config = b
		g.Nodes[name] = n
	}
	for i, e := range v.edges {
		from, to, ok := strings.Cut(e, " -> ")
		if !ok {
			t.Fatalf("edge %q", e)
		}
		end := func(s string) graph.End { n, p, _ := strings.Cut(s, "."); return graph.End{Node: n, Port: p} }
		g.Edges = append(g.Edges, &graph.Edge{From: end(from), To: end(to), Pos: diag.Pos{File: "spec", Line: i + 1, Col: 1}})
	}
	return g
}

// places says that the author set each field.
func places(to map[string]diag.Pos, prefix string, v any) {
	each := func(k string, x any) {
		to[prefix+k] = diag.Pos{File: "spec", Line: 1000 + len(to), Col: 1}
		places(to, prefix+k+".", x)
	}
	switch v := v.(type) {
	case object:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			each(k, v[k])
		}
	case []any:
		for i, x := range v {
			each(strconv.Itoa(i), x)
		}
	}
}

// put sets the field at a path, and makes what is above it.
func put(v any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if i, err := strconv.Atoi(path[0]); err == nil {
		list, _ := v.([]any)
		list = slices.Clone(list)
		for len(list) <= i {
			list = append(list, nil)
		}
		list[i] = put(list[i], path[1:], value)
		return list
	}
	m, _ := v.(object)
	if m = maps.Clone(m); m == nil {
		m = object{}
	}
	m[path[0]] = put(m[path[0]], path[1:], value)
	return m
}

// outcome is what the compiler makes of a graph: the plan without the config of one node, and what it found but for places.
func outcome(t *testing.T, g *graph.Graph, node string) (text string, list diag.List) {
	t.Helper()
	return outcomeWith(t, g, node, map[string]*model.Facts{"m": &facts})
}

func outcomeWith(t *testing.T, g *graph.Graph, node string, facts map[string]*model.Facts) (text string, list diag.List) {
	t.Helper()
	p, list := compiler.Compile(g, compiler.Options{Facts: facts})
	if p != nil {
		for _, grp := range p.Groups {
			for _, u := range grp.Units {
				if u.Node == node {
					u.Config = json.RawMessage(`{}`)
				}
			}
		}
		b, err := plan.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	for _, d := range list {
		text += fmt.Sprintf("\n%s %s %s", d.Severity, d.Code, d.Msg)
	}
	return text, list
}

// TestFields is about the fields of nodes.
func TestFields(t *testing.T) {
	_, kinds := schemas(t)
	engine := fields(t, "./nodes/engine", "Config")
	runs := map[string]map[string]bool{"native": reads(t, "./nodes/engine/native"), "mock": reads(t, "./nodes/engine/mock")}
	own := map[string]map[string]string{}
	tried, refused, planned, read, notRun := 0, 0, 0, 0, 0
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			base, list := outcome(t, graphOf(t, v, nil), v.node)
			if list.Failed() {
				t.Fatalf("the variant itself is refused: %v", list)
			}
			kindName, raw, _ := strings.Cut(v.nodes[v.node], " ")
			entry := kind.Default.Lookup(kindName)
			var c struct{ Engine string }
			if err := json.Unmarshal([]byte(cmp.Or(raw, "{}")), &c); err != nil {
				t.Fatal(err)
			}
			at, does := engine, runs[c.Engine]
			if pkg := "./nodes/" + kindName; c.Engine == "" && entry.New != nil {
				if own[kindName] == nil {
					own[kindName], runs[kindName] = fields(t, pkg, "Config"), reads(t, pkg)
				}
				at, does = own[kindName], runs[kindName]
			}
			for _, l := range leaves(kinds[kindName], "") {
				if l.path == "kind" || l.path == "engine" || l.path == "model" {
					continue // they say what the variant is
				}
				if len(l.values) == 0 {
					t.Errorf("%s: no value is known to try", l.path)
				}
				var idle []any // values that are taken and change nothing
				stated := false
				for _, value := range l.values {
					tried++
					got, list := outcome(t, graphOf(t, v, func(c object) {
						path := strings.Split(l.path, ".")
						c[path[0]] = put(c[path[0]], path[1:], value)
					}), v.node)
					switch {
					case list.Failed():
						refused++
						stated = stated || !slices.ContainsFunc(list, func(d diag.Diagnostic) bool { return d.Code == "no-effect" })
					case got != base:
						planned++
					case entry.New == nil || slices.ContainsFunc(list, func(d diag.Diagnostic) bool { return d.Code == "not-runnable" }):
						notRun++
					case does[at[l.path]]:
						read++
					case same(t, entry, v.nodes[v.node], l.path, value): // the default itself
					case value != "auto":
						idle = append(idle, value)
					}
				}
				if only := len(idle) == 1 && stated; only { // a statement: it is so anyway, and any other value is refused
					idle = nil
				}
				if len(idle) > 0 {
					t.Errorf("%s: %v: taken, and without effect", l.path, idle)
				}
			}
		})
	}
	t.Logf("%d changes: %d refused, %d seen in the plan, %d read by what runs, %d of what is not run yet", tried, refused, planned, read, notRun)
}

// same reports whether a value is what the config has without it.
func same(t *testing.T, k *kind.Entry, node, path string, value any) bool {
	t.Helper()
	_, raw, _ := strings.Cut(node, " ")
	c, err := k.Config(json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(c, &v); err != nil {
		t.Fatal(err)
	}
	if path == "replicas" {
		return value == float64(1)
	}
	for p := range strings.SplitSeq(path, ".") {
		m, _ := v.(object)
		v = m[p]
	}
	return fmt.Sprint(v) == fmt.Sprint(value) || v == nil && (value == false || value == "" || value == 0.0)
}
