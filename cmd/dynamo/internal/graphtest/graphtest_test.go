package graphtest_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/graphtest"
	_ "github.com/dynamograph/dynamo/nodes/all"
)

const graph = `-- g.cue --
package g
import "dynamo.graph/spec"
spec.#Graph & {
	name: "g"
	nodes: {
		api: spec.#Frontend
		w: spec.#Worker & {engine: "mock", replicas: int | *1 @tag(w,type=int)}
	}
	edges: "api -> w": {}
}
`

func run(t *testing.T, text string, update bool) (*graphtest.Result, string, string) {
	t.Helper()
	r, fixed, err := graphtest.Run(context.Background(), filepath.Join(t.TempDir(), "a.txtar"), []byte(text), graphtest.Options{Update: update})
	if err != nil {
		t.Fatal(err)
	}
	r.File = "a.txtar"
	var b bytes.Buffer
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	return r, b.String(), string(fixed)
}

func TestRun(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"right", "# A test.\nspec g.cue\ntag w=2\n" + graph + "-- plan.yaml --\ngroups: {w: {replicas: {want: 2}}}\n-- graph.yaml --\n{name: g, model: null}\n",
			"ok   a.txtar\n"},
		{"set", "spec g.cue\nset nodes.w.replicas=3\n" + graph + "-- graph.yaml --\nnodes: {w: {replicas: 3}}\n", "ok   a.txtar\n"},
		{"overlay", "spec g.cue more.cue\n" + graph + "-- more.cue --\nnodes: w: replicas: 4\n-- graph.yaml --\nnodes: {w: {replicas: 4}}\n", "ok   a.txtar\n"},
		{"folder", "spec sub\n" + strings.Replace(graph, "g.cue", "sub/g.cue", 1) + "-- graph.yaml --\nname: g\n", "ok   a.txtar\n"},
		{"value", "spec g.cue\n" + graph + "-- plan.yaml --\ngroups: {w: {replicas: {want: 2}}}\n",
			"FAIL a.txtar\n    plan.yaml: groups.w.replicas.want: want 2, got 1\n"},
		{"absent", "spec g.cue\n" + graph + "-- graph.yaml --\nnodes: {v: {replicas: 2}}\n",
			"FAIL a.txtar\n    graph.yaml: nodes.v: want {\"replicas\":2}, but it is not there; there are: api, w\n"},
		{"present", "spec g.cue\n" + graph + "-- graph.yaml --\nname: null\n", "FAIL a.txtar\n    graph.yaml: name: want nothing, got \"g\"\n"},
		{"type", "spec g.cue\n" + graph + "-- graph.yaml --\nname: {a: 1}\n", "FAIL a.txtar\n    graph.yaml: name: want {\"a\":1}, got \"g\"\n"},
		{"findings", "spec g.cue\ntag w=-1\n" + graph + "-- findings.txt --\nerror bad-value nodes.w.replicas\n", "ok   a.txtar\n"},
		{"findings unexpected", "spec g.cue\ntag w=-1\n" + graph + "-- graph.yaml --\nname: g\n",
			"FAIL a.txtar\n    findings.txt: there are findings\n    --- want\n    +++ got\n    @@ -0,0 +1,1 @@\n    +error bad-value nodes.w.replicas\n" +
				"    graph.yaml: there is none, because of: nodes.w.replicas: want int >= 0 and <= 1_000_000, got -1\n"},
		{"findings missed", "spec g.cue\n" + graph + "-- findings.txt --\nerror bad-value nodes.w.replicas\n",
			"FAIL a.txtar\n    findings.txt: findings differ\n    --- want\n    +++ got\n    @@ -1,1 +0,0 @@\n    -error bad-value nodes.w.replicas\n"},
		{"empty section", "spec g.cue\n" + graph + "-- plan.yaml --\n", "FAIL a.txtar\n    plan.yaml: the section is empty; --update fills it\n"},
		{"no YAML", "spec g.cue\n" + graph + "-- plan.yaml --\n\t- a: [\n", "FAIL a.txtar\n    plan.yaml: this is no YAML: "},
		{"no spec", graph + "-- plan.yaml --\n", "FAIL a.txtar\n    no spec: write \"spec PATH\" above the first section\n"},
		{"directive", "spec g.cue\nflag w=1\n" + graph, "FAIL a.txtar\n    line 2: \"flag\" is not one of spec, tag, set\n"},
		{"directive of nothing", "spec\n" + graph, "FAIL a.txtar\n    line 1: spec of what?\n"},
		{"section", "spec g.cue\n" + graph + "-- plan.yml --\n", "FAIL a.txtar\n    section \"plan.yml\": want findings.txt, graph.yaml, plan.yaml, or a file that the spec is in; did you mean \"plan.yaml\"?\n"},
		{"twice", "spec g.cue\n" + graph + graph, "FAIL a.txtar\n    section \"g.cue\" is there twice\n"},
		{"expects nothing", "spec g.cue\n" + graph, "FAIL a.txtar\n    the test expects nothing: add a section findings.txt, graph.yaml, plan.yaml; --update fills an empty one\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, got, _ := run(t, tc.text, false)
			if got != tc.want && !(strings.HasSuffix(tc.want, ": ") && strings.HasPrefix(got, tc.want)) {
				t.Errorf("got:\n%s\nwant:\n%s", got, tc.want)
			}
			if r.OK != (len(r.Failures) == 0) {
				t.Errorf("ok %v with %d failures", r.OK, len(r.Failures))
			}
		})
	}
}

// TestUpdate wants an updated test to pass, and one that passes to be left alone.
func TestUpdate(t *testing.T) {
	text := "# A comment.\nspec g.cue\ntag w=2\n" + graph + "-- plan.yaml --\ngroups: {w: {replicas: {want: 7}}, gone: {}}\n-- graph.yaml --\n"
	r, _, fixed := run(t, text, true)
	if !r.OK || !r.Updated {
		t.Fatalf("%+v", r)
	}
	if !strings.HasPrefix(fixed, "# A comment.\nspec g.cue\ntag w=2\n") || !strings.Contains(fixed, "-- plan.yaml --\ngroups:\n  w:\n    replicas:\n      want: 2\n-- graph.yaml --\n") {
		t.Errorf("fixed:\n%s", fixed)
	}
	if r, out, again := run(t, fixed, true); !r.OK || r.Updated || again != "" {
		t.Errorf("the updated test: %s%s", out, again)
	}
	r, _, fixed = run(t, "spec g.cue\ntag w=-1\n"+graph+"-- findings.txt --\n", true)
	if !r.OK || !strings.HasSuffix(fixed, "-- findings.txt --\nerror bad-value nodes.w.replicas\n") {
		t.Errorf("%+v\n%s", r, fixed)
	}
	// What is wrong with the test itself is not written over.
	if r, _, fixed := run(t, "spec g.cue\n"+graph, true); r.OK || fixed != "" {
		t.Errorf("%+v %q", r, fixed)
	}
}

func TestUnreadable(t *testing.T) {
	if _, _, err := graphtest.Run(context.Background(), "a.txtar", []byte("spec nowhere.cue\n-- plan.yaml --\n"), graphtest.Options{}); err == nil {
		t.Error("a spec that is not there")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "g.yaml"), []byte("name: g\nnodes: {api: {kind: frontend}, w: {kind: worker, engine: mock}}\nedges: {api -> w: {}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, _, err := graphtest.Run(context.Background(), filepath.Join(dir, "t", "a.txtar"), []byte("spec ../g.yaml\n-- graph.yaml --\nname: g\n"), graphtest.Options{})
	if err != nil || !r.OK {
		t.Errorf("a spec beside the test: %+v %v", r, err)
	}
}
