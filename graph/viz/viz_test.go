package viz_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/graph/viz"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txtar")

// TestGolden draws the plan of each archive.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Decode(a.Files[0].Data)
			if err != nil {
				t.Fatal(err)
			}
			got := &txtar.Archive{Comment: a.Comment, Files: []txtar.File{
				a.Files[0],
				{Name: "text", Data: []byte(viz.Text(p, viz.Options{}))},
				{Name: "ascii", Data: []byte(viz.Text(p, viz.Options{ASCII: true}))},
				{Name: "dot", Data: []byte(viz.DOT(p))},
				{Name: "mermaid", Data: []byte(viz.Mermaid(p))},
			}}
			if out := txtar.Format(got); *update {
				if err := os.WriteFile(file, out, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if d := cmp.Diff(string(txtar.Format(a)), string(out)); d != "" {
				t.Errorf("want -, got + (go test ./graph/viz -update rewrites):\n%s", d)
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
