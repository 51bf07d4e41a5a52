package compiler_test

import (
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
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txtar")

// tiny is a model of 1 MiB whose cache takes 1 KiB a token.
var tiny = model.Facts{
	Format: "gguf", Architecture: "llama", FileBytes: 1 << 20, Layers: 4, Heads: 8, KVHeads: 4, HeadDim: 16, Embedding: 128, Vocabulary: 1000,
	Context: 2048, KV: model.Plain(4, 4, 16),
}

// TestGolden compiles each archive's graph. It holds either the plan, or the findings, or both.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			src := a.Files[0]
			g, err := compilertest.Parse(src.Name, string(src.Data))
			if err != nil {
				t.Fatal(err)
			}
			o := compiler.Options{Registry: compilertest.Registry()}
			if facts := strings.Contains(string(a.Comment), "facts"); facts {
				o.Facts = map[string]*model.Facts{}
				for name := range g.Models {
					o.Facts[name] = &tiny
				}
				o.MemoryBytes = 16 << 20
			}
			p, list := compiler.Compile(g, o)
			if (p == nil) != list.Failed() {
				t.Fatalf("plan is %v with findings %v", p, list)
			}
			got := &txtar.Archive{Comment: a.Comment, Files: []txtar.File{src}}
			if len(list) > 0 {
				got.Files = append(got.Files, txtar.File{Name: "findings", Data: []byte(text(list, string(src.Data)))})
			}
			if p != nil {
				b, err := plan.Encode(p)
				if err != nil {
					t.Fatal(err)
				}
				got.Files = append(got.Files, txtar.File{Name: "plan.json", Data: b})
			}
			if out := txtar.Format(got); *update {
				if err := os.WriteFile(file, out, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if d := cmp.Diff(string(txtar.Format(a)), string(out)); d != "" {
				t.Errorf("want -, got + (go test ./compiler -update rewrites):\n%s", d)
			}
			for _, d := range list {
				seen[d.Code] = true
				if _, ok := diag.Codes[d.Code]; !ok {
					t.Errorf("code %q is not in diag.Codes", d.Code)
				}
			}
		})
	}
	for _, code := range append(compiler.RuleCodes(), "unknown-kind", "unknown-node", "unknown-port", "port-mismatch", "ambiguous-port",
		"duplicate-edge", "too-many-edges", "missing-edge", "unknown-model", "missing-model", "two-homes", "bad-value") {
		if !seen[code] {
			t.Errorf("no archive shows %q", code)
		}
	}
}

// text prints findings with what they point at.
func text(list diag.List, src string) string {
	lines := strings.Split(src, "\n")
	var b strings.Builder
	at := func(p diag.Pos, n int) {
		if p.IsValid() {
			line := lines[p.Line-1]
			fmt.Fprintf(&b, "  %s\n  %s%s\n", line, strings.Repeat(" ", p.Col-1), strings.Repeat("^", max(1, n)))
		}
	}
	for _, d := range list {
		fmt.Fprintf(&b, "%s: %s [%s]\n", d.Severity, d.Msg, d.Code)
		at(d.Pos, d.Len)
		if d.Hint != "" {
			fmt.Fprintf(&b, "  = %s\n", d.Hint)
		}
		for _, n := range d.Notes {
			fmt.Fprintf(&b, "  - %s\n", n)
		}
		for _, r := range d.Related {
			fmt.Fprintf(&b, "  related: %s\n", r.Msg)
			at(r.Pos, r.Len)
		}
	}
	return b.String()
}

// A plan survives its JSON, and its digest is that of its content.
func TestRoundTrip(t *testing.T) {
	for _, src := range []string{compilertest.Agg, compilertest.Disagg} {
		p := mustCompile(t, src)
		b, err := plan.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		q, err := plan.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		c, err := plan.Encode(q)
		if err != nil || string(b) != string(c) {
			t.Errorf("encoded again, the plan differs: %v\n%s", err, cmp.Diff(string(b), string(c)))
		}
		d1, err1 := plan.Digest(p)
		d2, err2 := plan.Digest(q)
		if err1 != nil || err2 != nil || d1 != d2 {
			t.Errorf("digests %s, %s: %v, %v", d1, d2, err1, err2)
		}
		q.Groups[0].Replicas.Want++
		if d3, _ := plan.Digest(q); d3 == d1 {
			t.Error("the digest does not see the replicas")
		}
	}
}

// Equal graphs give equal bytes, whatever the order of maps and edges; the graph itself is not changed.
func TestDeterministic(t *testing.T) {
	g, err := compilertest.Parse("g", compilertest.Disagg)
	if err != nil {
		t.Fatal(err)
	}
	before := g.Clone()
	var first []byte
	for i := range 30 {
		if i%2 == 1 {
			slices.Reverse(g.Edges)
			slices.Reverse(before.Edges)
		}
		p, list := compiler.Compile(g, compiler.Options{Registry: compilertest.Registry()})
		if list.Failed() {
			t.Fatal(list)
		}
		b, err := plan.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		}
		if string(b) != string(first) {
			t.Fatalf("run %d differs:\n%s", i, cmp.Diff(string(first), string(b)))
		}
	}
	if d := cmp.Diff(before, g); d != "" {
		t.Errorf("Compile changed the graph:\n%s", d)
	}
}

func mustCompile(t testing.TB, src string) *plan.Plan {
	t.Helper()
	g, err := compilertest.Parse("spec", src)
	if err != nil {
		t.Fatal(err)
	}
	p, list := compiler.Compile(g, compiler.Options{Registry: compilertest.Registry()})
	if list.Failed() {
		t.Fatal(text(list, src))
	}
	return p
}
