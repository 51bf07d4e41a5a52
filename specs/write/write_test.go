package write_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/specs/load"
	"github.com/dynamograph/dynamo/specs/write"
)

type config struct {
	Greeting string             `json:"greeting"`
	Every    graph.Duration     `json:"every"`
	Ratio    float64            `json:"ratio,omitempty"`
	Loud     bool               `json:"loud,omitempty"`
	Words    []string           `json:"words,omitempty"`
	Map      map[string]any     `json:"map,omitempty"`
	Sub      struct{ A, B int } `json:"-"`
}

func kinds() *kind.Registry {
	r := &kind.Registry{}
	kind.Add(r, kind.Kind[config]{
		Name: "echo",
		Schema: `
// #Echo answers.
#Echo: {
	kind: "echo"
	#worker

	// greeting is said first.
	greeting?: string

	// every is the time between two.
	every?: #Duration

	// ratio is a share.
	ratio?: number

	// loud is how.
	loud?: bool

	// words are said.
	words?: [...string]

	// map holds others.
	map?: [string]: string | number | bool
}`,
		Default: func() config { return config{Greeting: "hello", Every: graph.Duration(time.Second)} },
		Ports: func(config) []kind.Port {
			return []kind.Port{{Name: "in", Type: "chat", Dir: kind.In}, {Name: "out", Type: "chat", Dir: kind.Out}}
		},
	})
	return r
}

func full() *graph.Graph {
	two := 2
	return &graph.Graph{
		Name: "all-of-it", Schema: "v0.1", Status: "compiled",
		Models: map[string]*graph.Model{
			"small": {Name: "small", Sources: []string{"file:/a", "https://example.com/a"}, Names: []string{"s", `quo"te`}, Context: 4096},
			"big": {Name: "big", Sources: []string{"hf:o/r@main/f.gguf"}, SHA256: strings.Repeat("ab", 32), Revision: "r1", Family: "llama3",
				Tools: "llama3_json", Reasoning: "none", Features: []string{"tools", "lora"},
				Stated:   &model.Stated{Parameters: 70_000_000_000, Layers: 80, Hidden: 8192, Heads: 64, KVHeads: 8, DType: "bf16"},
				Adapters: map[string]*graph.Adapter{"sql": {Name: "sql", Sources: []string{"file:/l"}, Rank: 16, Names: []string{"big-sql"}}}},
		},
		SLO:      graph.SLO{TTFT: graph.Duration(1500 * time.Millisecond), ITL: graph.Duration(25 * time.Millisecond)},
		Timeouts: graph.Timeouts{Client: graph.Duration(10 * time.Minute), Drain: graph.Duration(90 * time.Second), Grace: graph.Duration(2 * time.Hour)},
		Machine:  graph.Machine{MemoryBytes: 64 << 30, DiskBytes: 1 << 40, Cores: 16},
		Devices:  map[string]*graph.Device{"h100": {Name: "h100", MemoryBytes: 80 << 30, Count: 8}, "l4": {Name: "l4", MemoryBytes: 24 << 30, Count: 1}},
		Nodes: map[string]*graph.Node{
			"api": {Name: "api", Kind: "echo", Pos: diag.Pos{Line: 1}, Config: json.RawMessage(`{}`)},
			"work": {Name: "work", Kind: "echo", Pos: diag.Pos{Line: 2}, Model: "big", Replicas: &two, Config: json.RawMessage(
				`{"every":"250ms","greeting":"yes: \"no\"\n#null","loud":true,"map":{"a-b":1.5,"c":true,"d":"0x10","e":"~"},"ratio":1e-3,"words":["no","1",""]}`)},
			"last": {Name: "last", Kind: "echo", Config: json.RawMessage(`{}`)},
		},
		Edges: []*graph.Edge{
			{From: graph.End{Node: "api"}, To: graph.End{Node: "work", Port: "in"}, Transport: "grpc"},
			{From: graph.End{Node: "work", Port: "out"}, To: graph.End{Node: "last"}},
		},
	}
}

// reload writes g and loads it.
func reload(t *testing.T, g *graph.Graph, format string, o write.Options) *graph.Graph {
	t.Helper()
	o.Registry = kinds()
	b, err := write.Spec(g, format, o)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "spec."+format)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	got, list, err := load.File(context.Background(), file, load.Options{Registry: kinds()})
	if err != nil {
		t.Fatal(err)
	}
	if got == nil {
		t.Fatalf("it does not load: %v\n%s", list, b)
	}
	return got
}

// same compares graphs but for places; configs count as values.
func same(a, b *graph.Graph) string {
	return cmp.Diff(a, b, cmpopts.IgnoreTypes(diag.Pos{}, map[string]diag.Pos{}), cmpopts.IgnoreFields(graph.Edge{}, "Len"), cmpopts.EquateEmpty(),
		cmp.Transformer("config", func(r json.RawMessage) any {
			var v any
			if err := json.Unmarshal(r, &v); err != nil {
				return err.Error()
			}
			return v
		}))
}

func TestRoundTrip(t *testing.T) {
	short := full()
	delete(short.Models, "small")
	short.Models["default"], short.Models["big"].Name = short.Models["big"], "default"
	delete(short.Models, "big")
	short.Nodes["work"].Model = ""
	for name, g := range map[string]*graph.Graph{"full": full(), "one model": short} {
		for _, f := range write.Formats {
			if d := same(g, reload(t, g, f, write.Options{Comment: "A graph.\n\nOf tests."})); d != "" {
				t.Errorf("%s as %s: -want +got\n%s", name, f, d)
			}
		}
	}
}

// With defaults the configs are whole, and stay what they are when they are completed again.
func TestDefaults(t *testing.T) {
	want := full()
	for _, n := range want.Nodes {
		c, err := kinds().Lookup("echo").Config(n.Config)
		if err != nil {
			t.Fatal(err)
		}
		n.Config = c
	}
	for _, f := range write.Formats {
		if d := same(want, reload(t, full(), f, write.Options{Defaults: true})); d != "" {
			t.Errorf("%s: -want +got\n%s", f, d)
		}
	}
}

// TestEveryField fails when a field is added to the graph that write does not know.
func TestEveryField(t *testing.T) {
	g := full()
	var missing []string
	zero := func(where string, v any) {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		for k, v := range m {
			if s := fmt.Sprint(v); (s == "" || s == "0" || s == "<nil>" || s == "0s") && k != "Pos" && k != "Fields" {
				missing = append(missing, where+"."+k)
			}
		}
	}
	zero("Graph", g)
	zero("Model", struct{ *graph.Model }{g.Models["big"]})
	zero("Timeouts", g.Timeouts)
	zero("Machine", g.Machine)
	zero("SLO", g.SLO)
	zero("Device", g.Devices["h100"])
	zero("Adapter", g.Models["big"].Adapters["sql"])
	for _, m := range missing {
		switch m {
		case "Model.Context", "Model.Names", "Adapter.SHA256": // set in another model
		default:
			t.Errorf("%s is not set in full(): set it there, write it in tree", m)
		}
	}
}

// What bounds the time of a request is said only by authors.
func TestDefaultsOfLimits(t *testing.T) {
	type limited struct {
		Most int `json:"most"`
		Wait int `json:"wait"`
	}
	r := &kind.Registry{}
	kind.Add(r, kind.Kind[limited]{
		Name: "slow", Schema: "#Slow: {kind: \"slow\"}", Default: func() limited { return limited{5, 6} }, Ports: func(limited) []kind.Port { return nil },
		Limits: func(c limited) []kind.Limit {
			return []kind.Limit{{Bound: kind.Total, Field: "most", Value: int64(c.Most)}, {Bound: kind.Queue, Field: "wait", Value: int64(c.Wait)}}
		},
	})
	for config, want := range map[string]string{"": `"wait": 6`, `{"most":5}`: `"most": 5`} {
		g := &graph.Graph{Name: "g", Nodes: map[string]*graph.Node{"n": {Name: "n", Kind: "slow", Config: json.RawMessage(config)}}}
		b, err := write.Spec(g, "json", write.Options{Registry: r, Defaults: true})
		if err != nil || !strings.Contains(string(b), want) || strings.Contains(string(b), `"most"`) != (config != "") {
			t.Errorf("%q: %v\n%s", config, err, b)
		}
	}
}

func TestRefused(t *testing.T) {
	g := full()
	if _, err := write.Spec(g, "toml", write.Options{Registry: kinds()}); err == nil || !strings.Contains(err.Error(), "cue, yaml, json") {
		t.Errorf("toml: %v", err)
	}
	g.Nodes["api"].Kind = "nosuch"
	if _, err := write.Spec(g, "cue", write.Options{Registry: kinds()}); err == nil || !strings.Contains(err.Error(), `nodes.api: no kind "nosuch"`) {
		t.Errorf("unknown kind: %v", err)
	}
	g.Nodes["api"].Kind, g.Nodes["api"].Config = "echo", json.RawMessage(`[1]`)
	if _, err := write.Spec(g, "cue", write.Options{Registry: kinds()}); err == nil || !strings.Contains(err.Error(), "nodes.api: config: want an object") {
		t.Errorf("config: %v", err)
	}
}

func ExampleSpec() {
	g := &graph.Graph{
		Name:  "hello-world",
		Nodes: map[string]*graph.Node{"api": {Name: "api", Kind: "echo"}, "work": {Name: "work", Kind: "echo", Config: json.RawMessage(`{"greeting":"hi"}`)}},
		Edges: []*graph.Edge{{From: graph.End{Node: "api"}, To: graph.End{Node: "work"}}},
	}
	b, err := write.Spec(g, "cue", write.Options{Registry: kinds(), Comment: "Says hi."})
	if err != nil {
		panic(err)
	}
	fmt.Print(string(b))
	// Output:
	// // Says hi.
	// package hello_world
	//
	// import "dynamo.graph/spec"
	//
	// spec.#Graph & {
	// 	name: "hello-world"
	//
	// 	nodes: {
	// 		api: spec.#Echo
	// 		work: spec.#Echo & {greeting: "hi"}
	// 	}
	// 	edges: {"api -> work": {}}
	// }
}
