package graphtest

import (
	"testing"

	"golang.org/x/tools/txtar"
)

// FuzzParse reads anything: it is a test or there is a reason, and a test survives being written and read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte("# A test.\nspec a.cue b.yaml\ntag a=1\nset b.c=2\n-- graph.yaml --\nname: a\n-- a.cue --\n"))
	f.Add([]byte("spec\n-- plan.yaml --\n"))
	f.Add([]byte("-- findings.txt --\n-- findings.txt --\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, wrong := parse(data)
		if (wrong == "") != (x != nil) {
			t.Fatalf("a test %v and %q", x, wrong)
		}
		if x == nil {
			return
		}
		if y, wrong := parse(txtar.Format(x.archive)); wrong != "" || len(y.specs) != len(x.specs) || len(y.tags) != len(x.tags) {
			t.Errorf("again: %q, %v and %v", wrong, x.specs, y)
		}
	})
}
