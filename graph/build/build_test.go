package build_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/build"
)

type inner struct {
	Tokens int  `json:"tokens,omitempty"`
	Zero   *int `json:"zero,omitempty"`
}

type shared struct {
	Threads int `json:"threads"`
}

type config struct {
	shared
	Engine string         `json:"engine"`
	Wait   graph.Duration `json:"wait"`
	KV     inner          `json:"kv"`
	Batch  inner          `json:"batch"`
	Mock   *inner         `json:"mock,omitempty"`
	Words  []string       `json:"words"`
	Hidden string         `json:"-"`
	NoTag  bool
}

func TestConfig(t *testing.T) {
	zero := 0
	for _, c := range []struct {
		name   string
		config any
		want   string
	}{
		{"nothing", nil, `{}`},
		{"zero", config{}, `{}`},
		{"nil", (*config)(nil), `{}`},
		{"struct", config{shared: shared{4}, Engine: "mock", Wait: graph.Duration(2 * time.Second), KV: inner{Tokens: 7, Zero: &zero}, Words: []string{"a"}, Hidden: "x", NoTag: true},
			`{"NoTag":true,"engine":"mock","kv":{"tokens":7,"zero":0},"threads":4,"wait":"2s","words":["a"]}`},
		{"pointer", &config{Mock: &inner{}}, `{"mock":{}}`},
		{"map", map[string]any{"engine": "", "n": 0, "m": map[string]int{"a": 1}}, `{"engine":"","m":{"a":1},"n":0}`},
		{"large number", map[string]any{"n": int64(1) << 60}, `{"n":1152921504606846976}`},
	} {
		b := build.New("g")
		b.Add("n", "k", c.config)
		g, list := b.Graph()
		if len(list) > 0 {
			t.Errorf("%s: %v", c.name, list)
			continue
		}
		if got := string(g.Nodes["n"].Config); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Every part has the place of the call that made it.
func TestPlaces(t *testing.T) {
	b := build.New("g", build.Model("m", graph.Model{Sources: []string{"file:/x"}}), build.SLO(time.Second, 0))
	a := b.Add("a", "k", config{Engine: "e", KV: inner{Tokens: 1}}, build.Replicas(2), build.Serves("m"))
	c := b.Add("c", "k", nil)
	b.Join(a.Out("out"), c, build.Transport("tcp"))
	g, list := b.Graph()
	if len(list) > 0 {
		t.Fatal(list)
	}
	first := g.Pos.Line
	got := map[string]int{}
	for f, p := range g.Fields {
		got[f] = p.Line - first
	}
	for f, p := range g.Nodes["a"].Fields {
		got["a."+f] = p.Line - first
	}
	got["a"], got["c"], got["edge"], got["transport"] = g.Nodes["a"].Pos.Line-first, g.Nodes["c"].Pos.Line-first, g.Edges[0].Pos.Line-first, g.Edges[0].Fields["transport"].Line-first
	want := map[string]int{"name": 0, "models.m.source": 0, "slo.ttft": 0, "a": 1, "a.kind": 1, "a.engine": 1, "a.kv": 1, "a.kv.tokens": 1, "a.replicas": 1,
		"a.model": 1, "c": 2, "edge": 3, "transport": 3}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if f := filepath.Base(g.Pos.File); f != "build_test.go" {
		t.Errorf("file %q", f)
	}
}

func TestFindings(t *testing.T) {
	b := build.New("g", build.Model("m", graph.Model{}), build.Model("m", graph.Model{}), build.Device("d", 1<<30, 1), build.Device("d", 1<<30, 1))
	b.Add("a", "k", nil)
	b.Add("a", "k", nil)
	b.Add("b", "k", 7)
	b.Add("c", "k", map[string]any{"f": func() {}})
	b.Add("d", "k", []int{1})
	g, list := b.Graph()
	var got []string
	for _, d := range list {
		got = append(got, d.Code+" "+d.Path)
		if !d.Pos.IsValid() {
			t.Errorf("%+v: no place", d)
		}
	}
	want := []string{"conflict devices.d", "conflict models.m", "conflict nodes.a", "bad-value nodes.b", "bad-value nodes.c", "bad-value nodes.d"}
	if d := cmp.Diff(want, got); g != nil || d != "" {
		t.Errorf("%v\n%s", g, d)
	}
}

// The graph that was returned does not change with the builder.
func TestCopy(t *testing.T) {
	b := build.New("g")
	b.Add("a", "k", nil)
	g, _ := b.Graph()
	b.Add("b", "k", nil)
	if len(g.Nodes) != 1 {
		t.Errorf("%d nodes", len(g.Nodes))
	}
}

func ExampleNew() {
	g := build.New("hello", build.SLO(500*time.Millisecond, 25*time.Millisecond))
	api := g.Add("api", "frontend", map[string]any{"listen": ":8000"})
	route := g.Add("route", "router", nil)
	work := g.Add("work", "worker", map[string]any{"engine": "mock"}, build.Replicas(2))
	g.Join(api, route)
	g.Join(route.Out("worker"), work)
	graph, findings := g.Graph()
	if len(findings) > 0 {
		fmt.Println(findings)
		return
	}
	for _, e := range graph.Edges {
		fmt.Println(e)
	}
	b, _ := json.Marshal(graph.Nodes["work"].Config)
	fmt.Println(string(b))
	// Output:
	// api -> route
	// route.worker -> work
	// {"engine":"mock"}
}

// What is said of the whole has the place of the call; what is not said has none.
func TestWhole(t *testing.T) {
	timeouts, machine := graph.Timeouts{Client: graph.Duration(time.Minute)}, graph.Machine{MemoryBytes: 1 << 30, Cores: 4}
	g, list := build.New("g", build.Timeouts(timeouts), build.Machine(machine), build.Status("compiled")).Graph()
	if len(list) > 0 || g.Timeouts != timeouts || g.Machine != machine || g.Status != "compiled" {
		t.Fatalf("%+v %v", g, list)
	}
	for path, said := range map[string]bool{
		"timeouts.client": true, "timeouts.drain": false, "timeouts.grace": false,
		"machine.memory": true, "machine.disk": false, "machine.cores": true, "status": true,
	} {
		if pos, ok := g.Fields[path]; ok != said || said && filepath.Base(pos.File) != "build_test.go" {
			t.Errorf("%s: %v, at %v", path, ok, pos)
		}
	}
}
