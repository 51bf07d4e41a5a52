package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamograph/dynamo/graph/plan"
)

// full has every field set, so that a round trip loses none unseen.
func full() *plan.Plan {
	return &plan.Plan{
		Version: plan.Version, Graph: "g",
		Models: map[string]*plan.Model{"m": {Sources: []string{"file:x"}, SHA256: "ab", Context: 7, Names: []string{"m<&>"}}},
		Store:  plan.Store{Kind: "etcd", Endpoints: []string{"a:1"}, Replicas: 3},
		Groups: []*plan.Group{{
			Name: "api", Replicas: plan.Replicas{Min: 1, Want: 2, Max: 3},
			Units: []*plan.Unit{{
				Node: "api", Kind: "frontend", Model: "m", Config: []byte(`{"listen":":1"}`), Inserted: true, Listen: map[string]string{"listen": ":1"},
			}},
			Needs: plan.Needs{MemoryBytes: 1, SharedBytes: 2, DiskBytes: 3, Threads: 4},
		}},
		Edges: []*plan.Edge{{From: "a", FromPort: "out", To: "b", ToPort: "in", Type: "chat", Transport: "grpc", Inserted: true}},
	}
}

func ExampleDecode() {
	p, err := plan.Decode([]byte(`{"version": 1, "graph": "hello", "store": {"kind": "memory"}, "groups": [], "edges": []}`))
	fmt.Println(p.Graph, err)
	_, err = plan.Decode([]byte(`{"version": 2}`))
	fmt.Println(err)
	// Output:
	// hello <nil>
	// plan: version 2: this program reads version 1
}

func TestRoundTrip(t *testing.T) {
	b, err := plan.Encode(full())
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	c, err := plan.Encode(p)
	if err != nil || string(c) != string(b) {
		t.Errorf("encoded again: %v\n%s", err, cmp.Diff(string(b), string(c)))
	}
	if strings.Contains(string(b), `\u003c`) {
		t.Error("HTML is escaped")
	}
	d1, err1 := plan.Digest(full())
	d2, err2 := plan.Digest(p) // its configs are indented
	if err1 != nil || err2 != nil || d1 != d2 || !strings.HasPrefix(d1, "sha256:") {
		t.Errorf("digests %s %s, %v %v", d1, d2, err1, err2)
	}
	if p.GroupOf("api") != p.Groups[0] || p.GroupOf("nobody") != nil {
		t.Error("GroupOf finds another group")
	}
}

// Each field counts for the digest.
func TestDigestSeesAll(t *testing.T) {
	first, err := plan.Digest(full())
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*plan.Plan){
		"graph":     func(p *plan.Plan) { p.Graph = "h" },
		"source":    func(p *plan.Plan) { p.Models["m"].Sources[0] = "file:y" },
		"context":   func(p *plan.Plan) { p.Models["m"].Context++ },
		"store":     func(p *plan.Plan) { p.Store.Kind = "memory" },
		"replicas":  func(p *plan.Plan) { p.Groups[0].Replicas.Max++ },
		"config":    func(p *plan.Plan) { p.Groups[0].Units[0].Config = []byte(`{}`) },
		"model":     func(p *plan.Plan) { p.Groups[0].Units[0].Model = "n" },
		"transport": func(p *plan.Plan) { p.Edges[0].Transport = "inproc" },
	} {
		p := full()
		change(p)
		if d, err := plan.Digest(p); err != nil || d == first {
			t.Errorf("%s: digest %s is unchanged, %v", name, d, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{``, "plan: unexpected end"},
		{`{`, "plan: unexpected end"},
		{`{}`, "version 0"},
		{`{"version": 9, "new": true}`, "version 9"},
		{`{"version": 1, "new": true}`, `unknown field "new"`},
		{`{"version": 1} {}`, "after top-level value"},
		{`{"version": 1, "groups": 7}`, "cannot unmarshal"},
		{`{"version": 1, "groups": [null]}`, "null"},
		{`{"version": 1, "groups": [{"units": [null]}]}`, "null"},
		{`{"version": 1, "edges": [null]}`, "null"},
		{`{"version": 1, "models": {"m": null}}`, `model "m" is null`},
	} {
		if p, err := plan.Decode([]byte(tt.in)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, %v; want %q", tt.in, p, err, tt.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	b, err := plan.Encode(full())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"version":1,"groups":[null],"edges":[null]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		p, err := plan.Decode(in)
		if err != nil {
			return
		}
		out, err := plan.Encode(p)
		if err != nil {
			t.Fatalf("%q was read and cannot be written: %v", in, err)
		}
		q, err := plan.Decode(out)
		if err != nil {
			t.Fatalf("%q cannot be read back: %v", out, err)
		}
		if again, err := plan.Encode(q); err != nil || string(again) != string(out) {
			t.Fatalf("%q changes: %q, %v", out, again, err)
		}
	})
}
