package load

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGraphsBelow: of a folder without a graph those below it are named.
func TestGraphsBelow(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"agg/graph.cue": "package agg\n", "cue.mod/module.cue": "module: \"graphs.example/a@v0\"\nlanguage: version: \"v0.12.0\"\n", "docs/a.md": "", "disagg/graph.cue": "package disagg\n",
	} {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, defs := range []string{"", "package a\n\n#A: 1\n"} { // no file, and one without a graph
		if defs != "" {
			if err := os.WriteFile(filepath.Join(dir, "defs.cue"), []byte(defs), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, list, err := File(t.Context(), ".", Options{Dir: dir})
		if err != nil || len(list) != 1 || list[0].Code != "no-graph" || !strings.HasSuffix(list[0].Hint, ": agg, disagg") {
			t.Errorf("%q: got %v, %v", defs, list, err)
		}
	}
}
