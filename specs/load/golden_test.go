package load_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/specs/load"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// golden is one txtar: a comment with "tag: key=value" lines, the spec's files, and what is wanted.
type golden struct {
	file    string
	overlay []string // "over: FILE"
	set     []string // "set: path=value"
	archive *txtar.Archive
	tags    []string
	spec    string // the spec's path, relative to dir
	dir     string
	want    *txtar.File
}

func goldens(t *testing.T, pattern string) []*golden {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	var out []*golden
	for _, f := range files {
		a, err := txtar.ParseFile(f)
		if err != nil {
			t.Fatal(err)
		}
		g := &golden{file: f, archive: a, dir: t.TempDir()}
		for line := range strings.Lines(string(a.Comment)) {
			if tag, ok := strings.CutPrefix(line, "tag: "); ok {
				g.tags = append(g.tags, strings.TrimSpace(tag))
			}
			if set, ok := strings.CutPrefix(line, "set: "); ok {
				g.set = append(g.set, strings.TrimSpace(set))
			}
			if over, ok := strings.CutPrefix(line, "over: "); ok {
				g.overlay = append(g.overlay, strings.TrimSpace(over))
			}
		}
		for i, x := range a.Files {
			if x.Name == "want" {
				g.want = &a.Files[i]
				continue
			}
			if g.spec == "" {
				g.spec, _, _ = strings.Cut(x.Name, "/")
			}
			if err := os.MkdirAll(filepath.Dir(filepath.Join(g.dir, x.Name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(g.dir, x.Name), x.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if g.want == nil || g.spec == "" {
			t.Fatalf("%s: needs a spec and a section called want", f)
		}
		out = append(out, g)
	}
	return out
}

func (g *golden) options() load.Options {
	return load.Options{Registry: testKinds(), Tags: g.tags, Overlays: g.overlay, Set: g.set, Dir: g.dir}
}

func (g *golden) read(name string) ([]byte, error) { return g.options().ReadFile(name) }

func (g *golden) compare(t *testing.T, got string) {
	t.Helper()
	if *update {
		g.want.Data = []byte(got)
		if err := os.WriteFile(g.file, txtar.Format(g.archive), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(string(g.want.Data), got); d != "" {
		t.Errorf("run with -update to accept (-want +got):\n%s", d)
	}
}

// TestBad holds what each mistake is reported as. go test ./specs/load -update rewrites the goldens.
func TestBad(t *testing.T) {
	for _, g := range goldens(t, "testdata/bad/*.txtar") {
		t.Run(strings.TrimSuffix(filepath.Base(g.file), ".txtar"), func(t *testing.T) {
			graph, list, err := load.File(context.Background(), g.spec, g.options())
			if err != nil {
				t.Fatal(err)
			}
			if !list.Failed() || graph != nil {
				t.Errorf("a wrong spec was loaded: %v", list)
			}
			for _, d := range list {
				if _, ok := diag.Codes[d.Code]; !ok {
					t.Errorf("code %q is not in diag.Codes", d.Code)
				}
				if d.Pos.File == "" || strings.Contains(d.Pos.File, g.dir) {
					t.Errorf("%s at %q: not a file as the user named it", d.Code, d.Pos.File)
				}
				for _, leak := range []string{"#Kinds", "_|_", "disjunction", "dynamo.graph/spec/"} {
					if strings.Contains(d.Msg, leak) {
						t.Errorf("%s: %q is CUE's own text", d.Code, d.Msg)
					}
				}
			}
			var b bytes.Buffer
			if err := diag.Text(&b, list, g.read, false); err != nil {
				t.Fatal(err)
			}
			g.compare(t, b.String())
		})
	}
}

// TestOK holds the graphs that right specs give.
func TestOK(t *testing.T) {
	for _, g := range goldens(t, "testdata/ok/*.txtar") {
		t.Run(strings.TrimSuffix(filepath.Base(g.file), ".txtar"), func(t *testing.T) {
			graph, list, err := load.File(context.Background(), g.spec, g.options())
			if err != nil || len(list) > 0 {
				t.Fatalf("%v %v", err, list)
			}
			b, err := json.MarshalIndent(graph, "", "\t")
			if err != nil {
				t.Fatal(err)
			}
			g.compare(t, string(b)+"\n")
		})
	}
}
