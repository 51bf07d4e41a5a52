package viz_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/graph/viz"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata")

// TestGolden draws testdata/*/plan.json and compares with the files beside it.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*/plan.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no plans: %v", err)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			for name, got := range map[string]string{
				"text.txt": viz.Text(p, viz.Options{}), "ascii.txt": viz.Text(p, viz.Options{ASCII: true}),
				"graph.dot": viz.DOT(p), "graph.mmd": viz.Mermaid(p),
			} {
				golden := filepath.Join(dir, name)
				if *update {
					if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(string(want), got); d != "" {
					t.Errorf("%s: want -, got + (go test ./graph/viz -update rewrites):\n%s", name, d)
				}
			}
			if s := viz.Text(p, viz.Options{ASCII: true}); strings.ContainsFunc(s, func(r rune) bool { return r > 126 }) {
				t.Errorf("not ASCII:\n%s", s)
			}
			width := func(s string) int { return len([]rune(s)) }
			var box int
			for l := range strings.Lines(viz.Text(p, viz.Options{})) { // boxes are closed on the right
				l = strings.TrimSuffix(l, "\n")
				switch {
				case strings.HasPrefix(l, "┌"):
					box = width(l)
				case strings.HasPrefix(l, "│"), strings.HasPrefix(l, "└"):
					if width(l) != box {
						t.Errorf("line %q is %d wide, its box %d", l, width(l), box)
					}
				}
			}
		})
	}
}

func ExampleText() {
	p := &plan.Plan{
		Graph: "hello", Store: plan.Store{Kind: "memory"},
		Groups: []*plan.Group{{Name: "api", Replicas: plan.Replicas{Want: 1}, Units: []*plan.Unit{
			{Node: "api", Kind: "frontend"}, {Node: "api-preprocess", Kind: "preprocess", Inserted: true},
		}}},
		Edges: []*plan.Edge{{From: "api", To: "api-preprocess", Type: "chat", Transport: "inproc"}},
	}
	fmt.Print(viz.Text(p, viz.Options{ASCII: true}))
	// Output:
	// hello: 1 process
	//
	// +- api -------------------------+
	// |   api (frontend)              |
	// |     v chat                    |
	// | + api-preprocess (preprocess) |
	// +-------------------------------+
	//
	// + inserted by the compiler
}
