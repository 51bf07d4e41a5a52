// Package imports holds deployments of NVIDIA's Dynamo as people write them, and what `dynamo graph import` makes of each.
package imports

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	_ "github.com/dynamograph/dynamo/nodes/all"
	"github.com/dynamograph/dynamo/nodes/engine/table"
	"github.com/dynamograph/dynamo/specs/dgd"
	"github.com/dynamograph/dynamo/specs/load"
	"github.com/dynamograph/dynamo/specs/write"
)

var update = flag.Bool("update", false, "rewrite what is wanted in testdata")

// TestImport: each deployment gives the spec and the findings that stand below it, and that spec is right.
func TestImport(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d deployments: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			yaml := a.Files[0]
			g, list := dgd.Import(yaml.Name, yaml.Data, dgd.Options{Parser: func(field, name string) bool {
				k := table.Tools
				if field == "reasoning" {
					k = table.Reasoning
				}
				_, ok := table.Format(k, name)
				return ok
			}})
			var findings bytes.Buffer
			for _, d := range list {
				findings.WriteString(d.Pos.String() + " " + d.Severity.String() + " " + d.Code + ": " + d.Msg + "\n")
				if d.Hint != "" {
					findings.WriteString("  " + d.Hint + "\n")
				}
			}
			var spec []byte
			if g != nil {
				if spec, err = write.Spec(g, "cue", write.Options{}); err != nil {
					t.Fatal(err)
				}
				accepted(t, spec)
			}
			for _, w := range []struct {
				name string
				got  []byte
			}{{"spec.cue", spec}, {"findings", findings.Bytes()}} {
				i := -1
				for j, f := range a.Files {
					if f.Name == w.name {
						i = j
					}
				}
				if i < 0 {
					a.Files = append(a.Files, txtar.File{Name: w.name})
					i = len(a.Files) - 1
				}
				if *update {
					a.Files[i].Data = w.got
				}
				if d := cmp.Diff(string(a.Files[i].Data), string(w.got)); d != "" {
					t.Errorf("%s: want -, got + (go test ./tests/imports -update rewrites):\n%s", w.name, d)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// accepted loads and compiles a spec; warnings are allowed.
func accepted(t *testing.T, spec []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "spec.cue")
	if err := os.WriteFile(file, spec, 0o600); err != nil {
		t.Fatal(err)
	}
	g, list, err := load.File(t.Context(), file, load.Options{Registry: kind.Default})
	if err != nil {
		t.Fatal(err)
	}
	if g != nil {
		_, more := compiler.Compile(g, compiler.Options{Registry: kind.Default})
		list = append(list, more...)
	}
	if list.Failed() {
		var b strings.Builder
		_ = diag.Text(&b, list, os.ReadFile, false)
		t.Errorf("the spec is refused:\n%s\n%s", b.String(), spec)
	}
}
