package k8s_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/compiler/compilertest"
	"github.com/dynamograph/dynamo/compiler/target"
	"github.com/dynamograph/dynamo/compiler/target/k8s"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/plan"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txtar")

func Example() {
	p := &plan.Plan{
		Version: plan.Version, Graph: "hello", Store: plan.Store{Kind: "memory"},
		Groups: []*plan.Group{{Name: "api", Replicas: plan.Replicas{Min: 1, Want: 1, Max: 1}}},
	}
	files, list := k8s.Target{Image: "registry.example/dynamo:1"}.Lower(context.Background(), p)
	fmt.Println(len(list))
	for _, f := range files {
		fmt.Println(f.Path, strings.Count(string(f.Data), "apiVersion: "), "manifests")
	}
	// Output:
	// 0
	// 10-shared.yaml 1 manifests
	// 30-api.yaml 5 manifests
}

// TestGolden compiles the spec of each archive and lowers it; an archive holds the files or the findings.
func TestGolden(t *testing.T) {
	for _, file := range archives(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			files, list := lower(t, a)
			if (files == nil) != list.Failed() {
				t.Fatalf("%d files with findings %v", len(files), list)
			}
			got := &txtar.Archive{Comment: a.Comment, Files: a.Files[:1:1]}
			for _, f := range files {
				got.Files = append(got.Files, txtar.File{Name: f.Path, Data: f.Data})
			}
			var b strings.Builder
			for _, d := range list {
				fmt.Fprintf(&b, "%s: %s [%s]\n  = %s\n", d.Severity, d.Msg, d.Code, d.Hint)
				if _, ok := diag.Codes[d.Code]; !ok {
					t.Errorf("code %q is not in diag.Codes", d.Code)
				}
			}
			if b.Len() > 0 {
				got.Files = append(got.Files, txtar.File{Name: "findings", Data: []byte(b.String())})
			}
			if out := txtar.Format(got); *update {
				if err := os.WriteFile(file, out, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if d := cmp.Diff(string(txtar.Format(a)), string(out)); d != "" {
				t.Errorf("want -, got + (go test ./compiler/target/k8s -update rewrites):\n%s", d)
			}
			for range 10 { // maps must not show
				again, _ := lower(t, a)
				if !slices.EqualFunc(files, again, func(a, b target.File) bool { return a.Path == b.Path && bytes.Equal(a.Data, b.Data) }) {
					t.Fatalf("a second run differs:\n%s", cmp.Diff(files, again))
				}
			}
		})
	}
}

func archives(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	return files
}

// options are the comment of an archive.
type options struct {
	Target k8s.Target
}

func optionsOf(t *testing.T, a *txtar.Archive) (o options) {
	t.Helper()
	if len(a.Comment) > 0 {
		if err := json.Unmarshal(a.Comment, &o); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func lower(t *testing.T, a *txtar.Archive) ([]target.File, diag.List) {
	t.Helper()
	o := optionsOf(t, a)
	g, err := compilertest.Parse("spec", string(a.Files[0].Data))
	if err != nil {
		t.Fatal(err)
	}
	p, list := compiler.Compile(g, compiler.Options{Registry: compilertest.Registry()})
	if list.Failed() {
		t.Fatal(list)
	}
	before, err := plan.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	files, list := o.Target.Lower(t.Context(), p)
	after, err := plan.Encode(p)
	if err != nil || string(before) != string(after) {
		t.Errorf("Lower changed the plan: %v", err)
	}
	return files, list
}
