package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/specs/load"
	"github.com/dynamograph/dynamo/specs/write"
)

// rightSpecs are the ready specs, those of recipes, and those of the corpus of right graphs that are one file without arguments.
func rightSpecs(t *testing.T) []string {
	t.Helper()
	out, err := filepath.Glob("../../specs/*.cue")
	if err != nil || len(out) == 0 {
		t.Fatalf("no specs: %v", err)
	}
	recipes, err := filepath.Glob("../../recipes/*/*/*.cue")
	if err != nil || len(recipes) == 0 {
		t.Fatalf("no recipes: %v", err)
	}
	for _, r := range recipes {
		if dir := filepath.Dir(r); filepath.Base(dir) != "cue.mod" && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	right, err := filepath.Glob("../../tests/misconfig/right/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, r := range right {
		a, err := txtar.ParseFile(r)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Files) != 1 || strings.Contains(a.Files[0].Name, "/") {
			continue // with arguments, overlays or a module
		}
		file := filepath.Join(dir, strings.TrimSuffix(filepath.Base(r), ".txtar")+filepath.Ext(a.Files[0].Name))
		if err := os.WriteFile(file, a.Files[0].Data, 0o600); err != nil {
			t.Fatal(err)
		}
		out = append(out, file)
	}
	return out
}

// compiled loads and compiles a spec; the plan is nil where that fails.
func compiled(t *testing.T, file string) (*graph.Graph, []byte) {
	t.Helper()
	g, list, err := load.File(t.Context(), file, load.Options{Registry: kind.Default})
	if err != nil {
		t.Fatal(err)
	}
	if g == nil {
		t.Fatalf("%s: %v", file, list)
	}
	p, list := compiler.Compile(g, compiler.Options{Registry: kind.Default})
	if p == nil {
		t.Fatalf("%s: %v", file, list)
	}
	b, err := plan.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return g, b
}

// TestExportRoundTrip: what export writes has the same plan, in every format, with and without defaults; of the corpus, for it is large, in
// one format each.
func TestExportRoundTrip(t *testing.T) {
	for i, file := range rightSpecs(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			g, want := compiled(t, file)
			for _, format := range write.Formats {
				for _, defaults := range []bool{false, true} {
					if !strings.HasPrefix(file, "../..") && format != write.Formats[i%3] {
						continue
					}
					b, err := write.Spec(g, format, write.Options{Defaults: defaults})
					if err != nil {
						t.Fatal(err)
					}
					again := filepath.Join(t.TempDir(), "spec."+format)
					if err := os.WriteFile(again, b, 0o600); err != nil {
						t.Fatal(err)
					}
					g2, got := compiled(t, again)
					if !bytes.Equal(want, got) {
						t.Errorf("as %s, defaults %v: another plan\n%s", format, defaults, b)
					}
					c, err := write.Spec(g2, format, write.Options{Defaults: defaults})
					if err != nil || !slices.Equal(b, c) {
						t.Errorf("as %s, defaults %v: written again it differs (%v)", format, defaults, err)
					}
				}
			}
		})
	}
}
