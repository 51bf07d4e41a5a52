// Package misconfig is the corpus of graphs that people got wrong, and of right ones that must not be refused. Each wrong graph is a mistake
// that somebody made with a system like ours: its first line names the source.
package misconfig

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	_ "github.com/dynamograph/dynamo/nodes/all"
	"github.com/dynamograph/dynamo/specs/load"
)

// expected is one finding as a corpus file writes it: "code place" and, in the lines below, what its text must contain.
type expected struct {
	code, place string
	texts       []string
}

func (e expected) String() string { return e.code + " " + e.place }

// source is how the first line of a wrong graph says where the mistake was seen: a thread, a case of the recorded ones, or a page.
var source = regexp.MustCompile(`^Source: \S+(#\d+|-\d{3}|/\S+)`)

// vet checks the archive's spec as `dynamo graph vet` does, and returns what is wrong.
func vet(t *testing.T, a *txtar.Archive) diag.List {
	t.Helper()
	var edges diag.List
	g, list, err := read(t, a, func(g *graph.Graph) { edges = compiler.Edges(g, kind.Default) })
	if err != nil {
		t.Fatal(err)
	}
	if g == nil {
		list = append(list, edges...)
		list.Sort()
		return list
	}
	_, more := compiler.Compile(g, compiler.Options{Registry: kind.Default})
	list = append(list, more...)
	list.Sort()
	return list
}

// read loads the archive's spec, its first file. A section args has an argument a line: a flag with its value, or the folder that is the
// spec instead.
func read(t *testing.T, a *txtar.Archive, sketch func(*graph.Graph)) (*graph.Graph, diag.List, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, must(txtar.FS(a))(t)); err != nil {
		t.Fatal(err)
	}
	o := load.Options{Registry: kind.Default, Dir: dir, Sketch: sketch}
	spec := ""
	for _, f := range a.Files {
		if spec == "" && f.Name != "want" && f.Name != "args" {
			spec = f.Name
		}
	}
	for _, f := range a.Files {
		if f.Name != "args" {
			continue
		}
		for line := range strings.Lines(string(f.Data)) {
			flag, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch flag {
			case "-t":
				o.Tags = append(o.Tags, value)
			case "--set":
				o.Set = append(o.Set, value)
			case "--overlay":
				o.Overlays = append(o.Overlays, value)
			default:
				if strings.HasPrefix(flag, "-") || value != "" {
					t.Fatalf("args: %q is not known", flag)
				}
				spec = flag
			}
		}
	}
	return load.File(t.Context(), spec, o)
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// wants reads the section "want".
func wants(t *testing.T, a *txtar.Archive) []expected {
	t.Helper()
	for _, f := range a.Files {
		if f.Name != "want" {
			continue
		}
		var out []expected
		for _, block := range strings.Split(strings.TrimSpace(string(f.Data)), "\n\n") {
			lines := strings.Split(block, "\n")
			code, place, ok := strings.Cut(lines[0], " ")
			if !ok {
				t.Fatalf("want: %q: want CODE PLACE", lines[0])
			}
			if _, ok := diag.Codes[code]; !ok {
				t.Fatalf("want: no code %q", code)
			}
			out = append(out, expected{code, place, lines[1:]})
		}
		return out
	}
	t.Fatal("no section want")
	return nil
}

// text is all that a finding tells.
func text(d diag.Diagnostic) string {
	s := d.Msg + "\n" + d.Hint + "\n" + strings.Join(d.Notes, "\n")
	for _, r := range d.Related {
		s += fmt.Sprintf("\n%s %s", r.Pos, r.Msg)
	}
	return s
}

// TestWrong: every mistake is found, at its place, with both values; and nothing else is called wrong in that graph.
func TestWrong(t *testing.T) {
	files := corpus(t, "wrong")
	found := 0
	for _, path := range files {
		ok := t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a := must(txtar.ParseFile(path))(t)
			if !source.Match(a.Comment) {
				t.Errorf("the first line must name the source: \"Source: OWNER/REPO#NUMBER …\", \"Source: E-012 …\"")
			}
			want := wants(t, a)
			list := vet(t, a)
			used := make([]bool, len(list))
			for _, w := range want {
				at := -1
				for i, d := range list {
					if !used[i] && d.Code == w.code && d.Pos.String() == w.place {
						at = i
						break
					}
				}
				if at < 0 {
					t.Errorf("not found: %s", w)
					continue
				}
				used[at] = true
				for _, s := range w.texts {
					if !strings.Contains(text(list[at]), s) {
						t.Errorf("%s: its text lacks %q:\n%s", w, s, text(list[at]))
					}
				}
			}
			for i, d := range list {
				if !used[i] && d.Severity != diag.Note {
					t.Errorf("not expected: %s %s: %s: %s", d.Code, d.Pos, d.Severity, d.Msg)
				}
			}
		})
		if ok {
			found++
		}
	}
	t.Logf("%d of %d mistakes found, as they should be", found, len(files))
}

// TestRight: no right graph is refused or warned of.
func TestRight(t *testing.T) {
	files := corpus(t, "right")
	clean := 0
	for _, path := range files {
		ok := t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			quiet(t, vet(t, must(txtar.ParseFile(path))(t)))
		})
		if ok {
			clean++
		}
	}
	t.Logf("%d of %d right graphs without a finding", clean, len(files))
}

func corpus(t *testing.T, dir string) []string {
	t.Helper()
	files := must(filepath.Glob(filepath.Join(dir, "*.txtar")))(t)
	if len(files) == 0 {
		t.Fatalf("%s: no corpus", dir)
	}
	return files
}
