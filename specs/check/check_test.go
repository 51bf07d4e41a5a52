package check_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/build"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/check"
)

func kinds() *kind.Registry {
	r := &kind.Registry{}
	type config struct {
		Word string `json:"word,omitempty"`
		N    int    `json:"n,omitempty"`
	}
	kind.Add(r, kind.Kind[config]{
		Name:    "echo",
		Schema:  "// #Echo answers.\n#Echo: {\n\tkind: \"echo\"\n\t#worker\n\n\t// word is one.\n\tword?: \"yes\" | \"no\"\n\n\t// n is a number.\n\tn?: int & >0\n}",
		Default: func() config { return config{} },
		Ports: func(config) []kind.Port {
			return []kind.Port{{Name: "in", Type: "chat", Dir: kind.In}, {Name: "out", Type: "chat", Dir: kind.Out}}
		},
	})
	return r
}

func TestGraph(t *testing.T) {
	b := build.New("Hello", build.SLO(-time.Second, 0))
	a := b.Add("a", "echo", map[string]any{"word": "maybe", "n": -1}) // two lines below
	c := b.Add("c", "echo", nil, build.Replicas(-2))                  // three
	b.Join(a, c, build.Transport("pigeon"))                           // four
	g, list := b.Graph()
	if len(list) > 0 {
		t.Fatal(list)
	}
	list, err := check.Graph(t.Context(), g, kinds())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"name": 0, "nodes.a.word": 1, "nodes.a.n": 1, "nodes.c.replicas": 2, `edges.a -> c.transport`: 3}
	for _, d := range list {
		line, ok := want[d.Path]
		if !ok || d.Pos.Line != g.Pos.Line+line || !strings.HasSuffix(d.Pos.File, "check_test.go") {
			t.Errorf("%s: %s: %s", d.Path, d.Pos, d.Msg)
		}
		delete(want, d.Path)
	}
	if len(want) > 0 {
		t.Errorf("not found: %v\n%v", want, list)
	}
}

// A right graph has no finding; one that cannot be written is left to the compiler.
func TestRight(t *testing.T) {
	b := build.New("hello")
	b.Join(b.Add("a", "echo", map[string]any{"word": "yes"}), b.Add("c", "echo", nil))
	g, _ := b.Graph()
	if list, err := check.Graph(t.Context(), g, kinds()); err != nil || len(list) > 0 {
		t.Errorf("%v %v", list, err)
	}
	g.Nodes["x"] = &graph.Node{Name: "x", Kind: "nosuch"}
	if list, err := check.Graph(t.Context(), g, kinds()); err != nil || len(list) > 0 {
		t.Errorf("%v %v", list, err)
	}
}
