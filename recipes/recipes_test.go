package recipes_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/recipes"
)

func ExampleNames() {
	fmt.Println(strings.Join(recipes.Names(), " "))
	// Output: gemma-3-270m llama-3-70b smollm2
}

// TestWhole wants of each recipe what the index promises: a module of its own, graphs with a status, a README that names them, tests.
func TestWhole(t *testing.T) {
	for _, name := range recipes.Names() {
		dir, err := recipes.Module(name)
		if err != nil {
			t.Fatal(err)
		}
		read := func(file string) string {
			b, err := fs.ReadFile(dir, file)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return string(b)
		}
		if want := fmt.Sprintf("module: %q\n", "dynamo.graph/recipes/"+name+"@v0"); !strings.HasPrefix(read("cue.mod/module.cue"), want) {
			t.Errorf("%s: its module file does not begin with %s", name, want)
		}
		readme := read("README.md")
		for _, part := range []string{"Claims", "Tags: "} {
			if !strings.Contains(readme, part) {
				t.Errorf("%s: README.md has no %q", name, part)
			}
		}
		graphs, err := fs.Glob(dir, "*/graph.cue")
		if err != nil || len(graphs) == 0 {
			t.Errorf("%s: no graphs, %v", name, err)
		}
		for _, g := range graphs {
			text, short := read(g), strings.TrimSuffix(g, "/graph.cue")
			status := "compiled"
			if strings.Contains(text, `status: "run"`) {
				status = "run"
			} else if !strings.Contains(text, `status: "compiled"`) {
				t.Errorf("%s/%s: no status", name, short)
			}
			told := false
			for line := range strings.Lines(readme) {
				told = told || strings.HasPrefix(line, "| `"+short+"` |") && strings.Contains(line, "**"+status+"**")
			}
			if !told {
				t.Errorf("%s: README.md does not say that %q is %s", name, short, status)
			}
			if tests, err := fs.Glob(dir, "tests/*.txtar"); err != nil || !tested(dir, tests, "spec ../"+short+"\n") {
				t.Errorf("%s: no test of %q", name, short)
			}
		}
	}
	if _, err := recipes.Module("../specs"); err == nil {
		t.Error("a folder beside the recipes")
	}
}

func tested(dir fs.FS, tests []string, line string) bool {
	for _, f := range tests {
		if b, err := fs.ReadFile(dir, f); err == nil && strings.Contains(string(b), line) {
			return true
		}
	}
	return false
}
