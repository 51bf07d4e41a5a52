// Package graphtest runs tests of graphs: a txtar file names a spec, tags and settings, and what must come out of them. Nothing outside of the
// spec counts: no model of this machine is looked at, so that a test ends alike everywhere.
package graphtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"golang.org/x/tools/txtar"

	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/specs/load"
)

// The sections of a test that say what must come out. What else a test holds is a file that its spec may be or use.
const (
	Findings = "findings.txt" // every error and warning, a line each: "error unknown-field nodes.api.lisen"; without it there must be none
	Graph    = "graph.yaml"   // a part of the graph as `graph export` writes it
	Plan     = "plan.yaml"    // a part of the plan as `graph plan --output json` writes it, its lists keyed by name
)

var sections = []string{Findings, Graph, Plan}

// Result is how a test ended.
type Result struct {
	File     string    `json:"file"`
	OK       bool      `json:"ok"`
	Updated  bool      `json:"updated,omitempty"`
	Failures []Failure `json:"failures,omitempty"`
}

// Failure is one thing that came out other than wanted.
type Failure struct {
	Section string `json:"section,omitempty"` // "" for the test itself
	Path    string `json:"path,omitempty"`    // in a part: "groups.worker.replicas.want"
	Want    any    `json:"want,omitempty"`
	Got     any    `json:"got,omitempty"` // nil: it is not there
	Diff    string `json:"diff,omitempty"`
	Msg     string `json:"msg"`
}

// Text writes the result for people: one line, and what differs below it.
func (r *Result) Text(w io.Writer) error {
	word := "FAIL"
	switch {
	case r.Updated:
		word = "new "
	case r.OK:
		word = "ok  "
	}
	if _, err := fmt.Fprintf(w, "%s %s\n", word, r.File); err != nil {
		return err
	}
	for _, f := range r.Failures {
		at := ""
		if f.Section != "" {
			at = f.Section + ": "
		}
		if _, err := fmt.Fprintf(w, "    %s%s\n", at, f.Msg); err != nil {
			return err
		}
		for line := range strings.Lines(f.Diff) {
			if _, err := fmt.Fprintf(w, "    %s\n", strings.TrimRight(line, "\n")); err != nil {
				return err
			}
		}
	}
	return nil
}

// test is a file, read.
type test struct {
	archive *txtar.Archive
	specs   []string // the first is the graph, the others go over it
	tags    []string
	sets    []string
}

// outcome is what came of a spec.
type outcome struct {
	graph *graph.Graph
	plan  *plan.Plan
	list  diag.List
}

// Options says how tests are run. The zero Options runs them with the kinds of kind.Default, without modules of registries.
type Options struct {
	Update bool         // return the test as it would pass
	Load   load.Options // tags, settings, overlays and the folder are the test's
}

// Run runs the test in data, which was read from file. With Update it returns the test as it would pass, or nil where it passes already.
// The error says that the test could not be run; what is wrong with the test itself is a failure.
func Run(ctx context.Context, file string, data []byte, opt Options) (*Result, []byte, error) {
	r := &Result{File: file}
	t, wrong := parse(data)
	if wrong != "" {
		r.Failures = []Failure{{Msg: wrong}}
		return r, nil, nil
	}
	if opt.Load.Registry == nil {
		opt.Load.Registry = kind.Default
	}
	o, err := t.load(ctx, filepath.Dir(file), opt.Load)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	r.Failures = t.compare(o, opt.Update)
	if opt.Update && len(r.Failures) > 0 && !slices.ContainsFunc(r.Failures, func(f Failure) bool { return f.Section == "" }) {
		fixed := txtar.Format(t.archive)
		r.OK, r.Updated, r.Failures = true, true, nil
		return r, fixed, nil
	}
	r.OK = len(r.Failures) == 0
	return r, nil, nil
}

// parse reads a test. Its head has a directive a line: "spec PATH…", "tag KEY=VALUE", "set PATH=VALUE"; "#" begins a comment. It
// returns what is wrong with the test.
func parse(data []byte) (t *test, wrong string) {
	t = &test{archive: txtar.Parse(data)}
	for i, line := range strings.Split(string(t.archive.Comment), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		switch {
		case word != "spec" && word != "tag" && word != "set":
			return nil, fmt.Sprintf("line %d: %q is not one of spec, tag, set", i+1, word)
		case rest == "":
			return nil, fmt.Sprintf("line %d: %s of what?", i+1, word)
		case word == "spec":
			t.specs = append(t.specs, strings.Fields(rest)...)
		case word == "tag":
			t.tags = append(t.tags, rest)
		case word == "set":
			t.sets = append(t.sets, rest)
		}
	}
	if len(t.specs) == 0 {
		return nil, "no spec: write \"spec PATH\" above the first section"
	}
	seen := map[string]bool{}
	for _, f := range t.archive.Files {
		if seen[f.Name] {
			return nil, fmt.Sprintf("section %q is there twice", f.Name)
		}
		seen[f.Name] = true
		if !slices.Contains(sections, f.Name) && !t.uses(f.Name) {
			return nil, fmt.Sprintf("section %q: want %s, or a file that the spec is in%s", f.Name, strings.Join(sections, ", "), suggestion(f.Name))
		}
	}
	if len(seen) == 0 || !slices.ContainsFunc(sections, func(s string) bool { return seen[s] }) {
		return nil, fmt.Sprintf("the test expects nothing: add a section %s; --update fills an empty one", strings.Join(sections, ", "))
	}
	return t, ""
}

// uses reports whether a file of the test is a spec or lies in the folder of one.
func (t *test) uses(name string) bool {
	return slices.ContainsFunc(t.specs, func(s string) bool { return s == name || strings.HasPrefix(name, strings.TrimSuffix(s, "/")+"/") })
}

// load loads and compiles the spec, which lies in the test or beside it.
func (t *test) load(ctx context.Context, dir string, lo load.Options) (*outcome, error) {
	tmp := ""
	for _, f := range t.archive.Files {
		if slices.Contains(sections, f.Name) {
			continue
		}
		if tmp == "" {
			var err error
			if tmp, err = os.MkdirTemp("", "dynamo-test-*"); err != nil {
				return nil, err
			}
			defer os.RemoveAll(tmp)
		}
		at := filepath.Join(tmp, filepath.FromSlash(f.Name))
		if !filepath.IsLocal(f.Name) {
			return nil, fmt.Errorf("section %q leaves the folder of the test", f.Name)
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(at, f.Data, 0o600); err != nil {
			return nil, err
		}
	}
	if tmp != "" {
		dir = tmp
	}
	o := &outcome{}
	var err error
	lo.Dir, lo.Tags, lo.Set, lo.Overlays = dir, t.tags, t.sets, t.specs[1:]
	var edges diag.List
	lo.Sketch = func(g *graph.Graph) { edges = compiler.Edges(g, lo.Registry) }
	o.graph, o.list, err = load.File(ctx, t.specs[0], lo)
	if err != nil {
		return nil, err
	}
	o.list = append(o.list, edges...)
	if o.graph != nil {
		var more diag.List
		o.plan, more = compiler.Compile(o.graph, compiler.Options{Registry: lo.Registry})
		o.list = append(o.list, more...)
	}
	o.list.Sort()
	return o, nil
}

// compare holds an outcome against the sections. With update it puts what came out into them, but still tells of it.
func (t *test) compare(o *outcome, update bool) (out []Failure) {
	got := findings(o.list)
	want, has := t.section(Findings)
	if string(want) != got {
		if update {
			t.put(Findings, []byte(got))
		}
		msg := "findings differ"
		if !has {
			msg = "there are findings"
		}
		out = append(out, Failure{Section: Findings, Msg: msg, Diff: lines(want, got), Want: string(want), Got: got})
	}
	for _, s := range []string{Graph, Plan} {
		if want, ok := t.section(s); ok {
			fixed, fs := part(s, want, o, messages(o.list))
			if update && len(fs) > 0 && fixed != nil {
				t.put(s, fixed)
			}
			out = append(out, fs...)
		}
	}
	return out
}

func (t *test) section(name string) ([]byte, bool) {
	for _, f := range t.archive.Files {
		if f.Name == name {
			return f.Data, true
		}
	}
	return nil, false
}

func (t *test) put(name string, data []byte) {
	for i, f := range t.archive.Files {
		if f.Name == name {
			t.archive.Files[i].Data = data
			return
		}
	}
	t.archive.Files = append(t.archive.Files, txtar.File{Name: name, Data: data})
}

// findings writes a list as a test does. Notes are left out: they ask for nothing.
func findings(list diag.List) string {
	var out []string
	for _, d := range list {
		if d.Severity != diag.Note {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", d.Severity, d.Code, d.Path))+"\n")
		}
	}
	slices.Sort(out) // not by place: that would change with every edit of the spec
	return strings.Join(out, "")
}

// messages are the texts of errors, for those who wonder why there is no plan.
func messages(list diag.List) string {
	var out []string
	for _, d := range list {
		if d.Severity == diag.Error {
			out = append(out, d.Msg)
		}
	}
	return strings.Join(out, "; ")
}

// lines shows how two texts differ.
func lines(want []byte, got string) string {
	d := string(diff.Diff("want", want, "got", []byte(got)))
	_, d, _ = strings.Cut(d, "\n") // the line that names a command
	return d
}

func suggestion(section string) string {
	if s := diag.Suggest(section, sections); s != "" {
		return "; " + s
	}
	return ""
}
