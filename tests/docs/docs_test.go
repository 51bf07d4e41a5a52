// Package docs holds the documentation to the tree: links lead somewhere, and specs in it are right.
package docs

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	_ "github.com/dynamograph/dynamo/nodes/all"
	"github.com/dynamograph/dynamo/specs/load"
)

const root = "../.."

func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			out[f] = string(b)
		}
	}
	if len(out) < 8 {
		t.Fatalf("only %d pages: is the root right?", len(out))
	}
	return out
}

var (
	link = regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	code = regexp.MustCompile("`[^`\n]*`") // a pattern in it may look like a link
)

func TestLinks(t *testing.T) {
	for page, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s: link to %q: %v", page, m[1], err)
			}
		}
	}
}

var block = regexp.MustCompile("(?s)```cue\n(.*?)```")

// Specs that a page shows are loaded and compiled.
func TestSpecs(t *testing.T) {
	n := 0
	for page, text := range pages(t) {
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			n++
			file := filepath.Join(t.TempDir(), "spec.cue")
			if err := os.WriteFile(file, []byte(m[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			g, list, err := load.File(context.Background(), file, load.Options{Registry: kind.Default})
			if err != nil {
				t.Fatal(err)
			}
			if g != nil {
				_, more := compiler.Compile(g, compiler.Options{Registry: kind.Default})
				list = append(list, more...)
			}
			for _, d := range list {
				if d.Severity < diag.Note { // a note says what this build does not run
					t.Errorf("%s: a spec in it: %+v", page, d)
				}
			}
		}
	}
	if n == 0 {
		t.Fatal("no page shows a spec")
	}
}

// What the manual calls a kind is one, and every kind is in the manual.
func TestKinds(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "docs/kinds.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kind.Default.All() {
		if !regexp.MustCompile(`(?m)^\| ([a-z]+, )*` + k.Name + `(, [a-z]+)* \| .+ \| .+ \|$`).Match(b) {
			t.Errorf("docs/kinds.md does not name kind %q", k.Name)
		}
	}
}
