package load_test

import (
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/specs/load"
)

// TestExplain asks for places whose values come from all layers, and for such as are not there.
func TestExplain(t *testing.T) {
	for _, g := range goldens(t, "testdata/explain*.txtar") {
		var b strings.Builder
		_, paths, _ := strings.Cut(string(g.archive.Comment), "paths:\n")
		for path := range strings.Lines(paths) {
			e, list, err := load.Explain(t.Context(), g.spec, g.options(), strings.TrimSpace(path))
			if err != nil {
				t.Fatal(err)
			}
			if (e == nil) != list.Failed() {
				t.Errorf("%s: %v %v", path, e, list)
			}
			if e != nil {
				b.WriteString(e.String())
			}
			for _, d := range list {
				b.WriteString(d.Code + ": " + d.Msg + "; " + d.Hint + "\n")
			}
		}
		g.compare(t, b.String())
	}
}
