package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRecipes runs every graph of a recipe that says it ran, and wants an answer. One that says it was only compiled must say why it cannot.
func TestRecipes(t *testing.T) {
	files, err := filepath.Glob("../../recipes/*/*/graph.cue")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, f := range files {
		spec := filepath.Dir(f)
		name := strings.TrimPrefix(spec, "../../recipes/")
		out, err := exec.Command(need(t, "DYNAMO_TEST_BINARY"), "graph", "plan", spec, "--output", "json").Output()
		if err != nil {
			t.Fatalf("%s: plan: %v", name, err)
		}
		var plan struct {
			Status string
			Models map[string]struct{ Names []string }
		}
		if err := json.Unmarshal(out, &plan); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			switch plan.Status {
			case "run":
				ran++
				r := start(t, spec)
				q := ask("What is the capital of France?", 24)
				native := false
				for _, m := range plan.Models {
					q.Model, native = m.Names[0], true
				}
				if !native {
					q.Model = "mock"
				}
				got, err := r.chat(within(t, 2*time.Minute), q)
				if err != nil || got.Usage.Completion != 24 {
					t.Fatalf("%+v, %v: want 24 tokens", got, err)
				}
				if native && !strings.Contains(got.Text, "Paris") {
					t.Errorf("answer %q does not name Paris", got.Text)
				}
			case "compiled":
				out, err := exec.Command(need(t, "DYNAMO_TEST_BINARY"), "graph", "run", spec).CombinedOutput()
				if err == nil || !strings.Contains(string(out), "not run yet") {
					t.Errorf("it says that it never ran, but: %v %s", err, out)
				}
			default:
				t.Errorf("status %q: want run or compiled", plan.Status)
			}
		})
	}
	if ran < 3 {
		t.Errorf("%d recipes ran, want at least 3", ran)
	}
}
