package diff_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/diff"
	"github.com/dynamograph/dynamo/graph/plan"
)

var update = flag.Bool("update", false, "rewrite the golden")

func unit(node, kind, model, config string) *plan.Unit {
	return &plan.Unit{Node: node, Kind: kind, Model: model, Config: json.RawMessage(config)}
}

func group(name string, want int, memory int64, us ...*plan.Unit) *plan.Group {
	return &plan.Group{Name: name, Replicas: plan.Replicas{Min: want, Want: want, Max: want}, Units: us, Needs: plan.Needs{MemoryBytes: memory, SharedBytes: memory / 2}}
}

// pair is a frontend with a stage that migrates, prefill and decode.
func pair() *plan.Plan {
	return &plan.Plan{
		Version: plan.Version, Graph: "g", Store: plan.Store{Kind: "embedded"},
		Models: map[string]*plan.Model{"m": {Sources: []string{"file:/m"}, SHA256: "aa", Names: []string{"small"}}},
		Groups: []*plan.Group{
			group("api", 1, 0, unit("api", "frontend", "", `{"listen":":1"}`), unit("mig", "migrate", "m", `{}`), unit("route", "router", "", `{"policy":"a"}`)),
			group("decode", 2, 100, unit("decode", "decode", "m", `{"kv":{"block":16},"words":["x"]}`)),
			group("prefill", 1, 50, unit("prefill", "prefill", "m", `{"kv":{"block":16}}`)),
		},
		Edges: []*plan.Edge{
			{From: "api", FromPort: "out", To: "mig", ToPort: "in", Type: "tokens", Transport: "inproc"},
			{From: "mig", FromPort: "out", To: "route", ToPort: "in", Type: "tokens", Transport: "inproc"},
			{From: "prefill", FromPort: "kv", To: "decode", ToPort: "kv", Type: "kv", Transport: "shm"},
			{From: "route", FromPort: "decode", To: "decode", ToPort: "in", Type: "tokens", Transport: "grpc"},
			{From: "route", FromPort: "prefill", To: "prefill", ToPort: "in", Type: "tokens", Transport: "grpc"},
		},
	}
}

func options() diff.Options {
	return diff.Options{
		Migrates: func(k string) bool { return k == "migrate" },
		From:     func(p string) diag.Pos { return diag.Pos{File: "a " + p, Line: 1} },
		To:       func(p string) diag.Pos { return diag.Pos{File: "b " + p, Line: 2} },
	}
}

// short is what a diff says in a line: groups that change, edges that change, the streams' effect.
func short(d *diff.Diff) string {
	var out []string
	for _, g := range d.Groups {
		if g.Action != diff.Keep {
			out = append(out, string(g.Action)+" "+g.Name)
		}
		if g.Replicas.From != g.Replicas.To && g.Action == diff.Keep {
			out = append(out, fmt.Sprintf("%s %+d", g.Name, g.Replicas.To-g.Replicas.From))
		}
	}
	for _, e := range d.Edges {
		if e.Action != diff.Keep {
			out = append(out, string(e.Action)+" "+e.Edge)
		}
	}
	for _, s := range d.Streams {
		out = append(out, string(s.Effect)+" "+strings.Join(s.Through, ","))
	}
	return strings.TrimSpace(strings.Join(out, "; "))
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *plan.Plan)
		want   string
	}{
		{"nothing", func(*plan.Plan) {}, "none"},
		{"more replicas", func(p *plan.Plan) { p.Groups[1].Replicas.Want = 5 }, "decode +3; none"},
		{"fewer replicas", func(p *plan.Plan) { p.Groups[1].Replicas.Want = 1 }, "decode -1; migrate decode"},
		{"a field of what computes", func(p *plan.Plan) { p.Groups[2].Units[0].Config = json.RawMessage(`{"kv":{"block":32}}`) }, "replace prefill; migrate prefill"},
		{"a field of what clients call", func(p *plan.Plan) { p.Groups[0].Units[0].Config = json.RawMessage(`{"listen":":2"}`) }, "replace api; cut api"},
		{"space in a config", func(p *plan.Plan) { p.Groups[2].Units[0].Config = json.RawMessage(` { "kv" : { "block" : 16 } } `) }, "none"},
		{"a list", func(p *plan.Plan) { p.Groups[1].Units[0].Config = json.RawMessage(`{"kv":{"block":16},"words":["y"]}`) }, "replace decode; migrate decode"},
		{"the weights", func(p *plan.Plan) { p.Models["m"].SHA256 = "bb" }, "replace api; replace decode; replace prefill; cut api,decode,prefill"},
		{"a transport", func(p *plan.Plan) { p.Edges[2].Transport = "tcp" }, "rewire decode; rewire prefill; rewire prefill.kv -> decode.kv; migrate decode,prefill"},
		{"no prefill", func(p *plan.Plan) {
			p.Groups, p.Edges = p.Groups[:2], append(p.Edges[:2:2], p.Edges[3])
		}, "rewire api; rewire decode; remove prefill; remove prefill.kv -> decode.kv; remove route.prefill -> prefill.in; cut api,decode,prefill"},
		{"one more", func(p *plan.Plan) {
			p.Groups = append(p.Groups, group("spare", 1, 1, unit("spare", "kvtier", "", `{}`)))
		}, "add spare; none"},
		{"the store", func(p *plan.Plan) { p.Store.Kind = "etcd" }, "rewire api; rewire decode; rewire prefill; cut api,decode,prefill"},
		{"a node in a group", func(p *plan.Plan) { p.Groups[0].Units = p.Groups[0].Units[1:] }, "replace api; cut api"},
	} {
		to := pair()
		c.change(to)
		d := diff.Compare(pair(), to, options())
		if got := short(d); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
		if d.Changed != (c.want != "none") {
			t.Errorf("%s: changed is %v", c.name, d.Changed)
		}
	}
}

// What nothing continues is cut.
func TestNoMigration(t *testing.T) {
	to := pair()
	to.Groups[1].Replicas.Want = 1
	if got := short(diff.Compare(pair(), to, diff.Options{})); got != "decode -1; cut decode" {
		t.Error(got)
	}
}

// A model's requests are not concerned by what another's pass.
func TestTwoModels(t *testing.T) {
	two := func() *plan.Plan {
		p := pair()
		p.Models["n"] = &plan.Model{Sources: []string{"file:/n"}, Names: []string{"other"}}
		p.Groups = append(p.Groups, group("x-api", 1, 0, unit("x-api", "frontend", "", `{}`)), group("x-work", 1, 0, unit("x-work", "worker", "n", `{}`)))
		p.Edges = append(p.Edges, &plan.Edge{From: "x-api", FromPort: "out", To: "x-work", ToPort: "in", Type: "tokens", Transport: "grpc"})
		return p
	}
	to := two()
	to.Groups[3].Units[0].Config = json.RawMessage(`{"listen":":9"}`)
	if got := short(diff.Compare(two(), to, options())); got != "replace x-api; none ; cut x-api" {
		t.Error(got)
	}
}

// TestGolden pins the JSON form.
func TestGolden(t *testing.T) {
	to := pair()
	to.Groups[1].Units[0].Config = json.RawMessage(`{"kv":{"block":32},"words":["x"]}`)
	to.Groups[1].Replicas.Want = 3
	to.Edges[2].Transport = "tcp"
	to.DrainSeconds = 60
	got, err := json.MarshalIndent(diff.Compare(pair(), to, options()), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const file = "testdata/diff.json"
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("want -, got + (-update rewrites):\n%s", d)
	}
}

func ExampleCompare() {
	from := &plan.Plan{Graph: "g", Groups: []*plan.Group{{Name: "work", Replicas: plan.Replicas{Want: 2}}}}
	to := &plan.Plan{Graph: "g", Groups: []*plan.Group{{Name: "work", Replicas: plan.Replicas{Want: 3}}}}
	d := diff.Compare(from, to, diff.Options{})
	fmt.Println(d.Changed, d.Groups[0].Action, d.Groups[0].Replicas)
	// Output: true keep {2 3}
}
