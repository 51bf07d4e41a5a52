package helm_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dynamograph/dynamo/compiler/target/helm"
	"github.com/dynamograph/dynamo/compiler/target/k8s"
	"github.com/dynamograph/dynamo/graph/plan"
)

var update = flag.Bool("update", false, "rewrite testdata/chart.txtar")

func example() *plan.Plan {
	unit := func(kind, config string) []*plan.Unit {
		return []*plan.Unit{{Node: kind, Kind: kind, Model: "m", Config: json.RawMessage(config)}}
	}
	return &plan.Plan{
		Version: plan.Version, Graph: "demo", Store: plan.Store{Kind: "embedded"},
		Models: map[string]*plan.Model{"m": {Sources: []string{"hf:org/repo/m.gguf"}, Names: []string{"m"}}},
		Groups: []*plan.Group{
			{Name: "api", Replicas: plan.Replicas{Min: 1, Want: 1, Max: 1}, Units: []*plan.Unit{{Node: "api", Kind: "api", Model: "m",
				Config: json.RawMessage(`{"listen":":8000","template":"{{ messages }} and {{- more }}"}`), Listen: map[string]string{"listen": ":8000"}}}},
			{Name: "work-er", Replicas: plan.Replicas{Min: 1, Want: 2, Max: 8}, Units: unit("work-er", `{}`), Needs: plan.Needs{MemoryBytes: 1 << 30, Threads: 2}},
		},
		Edges: []*plan.Edge{{From: "api", FromPort: "out", To: "work-er", ToPort: "in", Type: "tokens", Transport: "grpc"}},
	}
}

func Example() {
	files, list := helm.Target{Target: k8s.Target{Image: "registry.example/dynamo:1"}}.Lower(context.Background(), example())
	fmt.Println(len(list))
	for _, f := range files {
		fmt.Println(f.Path)
	}
	// Output:
	// 0
	// Chart.yaml
	// templates/10-shared.yaml
	// templates/20-store.yaml
	// templates/30-api.yaml
	// templates/30-work-er.yaml
	// templates/NOTES.txt
	// values.schema.json
	// values.yaml
}

// TestGolden holds every byte of a chart; that helm makes the manifests of package k8s of it is shown in tests/kube.
func TestGolden(t *testing.T) {
	files, list := helm.Target{}.Lower(t.Context(), example())
	if list.Failed() {
		t.Fatal(list)
	}
	got := &txtar.Archive{}
	for _, f := range files {
		got.Files = append(got.Files, txtar.File{Name: f.Path, Data: f.Data})
	}
	file := filepath.Join("testdata", "chart.txtar")
	if *update {
		if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(txtar.Format(got))); d != "" {
		t.Errorf("want -, got + (go test ./compiler/target/helm -update rewrites):\n%s", d)
	}
	for range 10 {
		again, _ := helm.Target{}.Lower(t.Context(), example())
		if d := cmp.Diff(files, again); d != "" {
			t.Fatalf("a second run differs:\n%s", d)
		}
	}
}

// A finding of the manifests is one of the chart.
func TestRefuses(t *testing.T) {
	p := example()
	p.Models["m"].Sources = []string{"file:m.gguf"}
	if files, list := (helm.Target{}).Lower(t.Context(), p); files != nil || !list.Failed() || !strings.Contains(list[0].Msg, "models.m") {
		t.Errorf("%d files, %v", len(files), list)
	}
}
