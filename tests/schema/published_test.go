package schema

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/schema"
)

var update = flag.Bool("update", false, "write what is published")

const (
	published = "../../specs/schema/published"
	page      = "../../docs/schema.md"
)

// What is in the tree is what the kinds say: the module "dynamo.graph" and the page. `make generate` writes both.
func TestPublished(t *testing.T) {
	want := map[string][]byte{
		filepath.Join(published, "cue.mod", "module.cue"): moduleFile(),
		page: reference(t),
	}
	for _, f := range schema.Files(kind.Default) {
		want[filepath.Join(published, "spec", f.Name)] = []byte(f.Text)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		got, err := os.ReadFile(name)
		if err == nil && bytes.Equal(got, want[name]) {
			continue
		}
		if !*update {
			t.Errorf("%s is not what the kinds say: run make generate (%v)", name, err)
			continue
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, want[name], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(published, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || want[path] != nil {
			return err
		}
		if *update {
			return os.Remove(path)
		}
		t.Errorf("%s is of no kind", path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// reference is the page of all fields, ports and words.
func reference(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("# Schema of graphs, %s\n\n", schema.Version)
	p("Generated from the schema and the kinds by `make generate`; do not edit. The same is said by `dynamo graph schema`, by `dynamo graph\n")
	p("explain` for one field, and by editors that read the published module (specs/schema/published). A field marked * must be set.\n\n")
	defs := definitions(t)
	of := map[string]bool{"#engine": true, "#worker": true, "#edge": true, "#Node": true}
	for e := range kinds(t) {
		of[schema.Definition(e.Name)] = true
	}
	p("## The graph\n")
	for _, name := range []string{"#Graph", "#Model", "#Facts", "#Adapter", "#Edge"} {
		of[name] = true
		p("\n### %s\n\n%s\n\n", name, defs[name].doc)
		table(&b, defs[name].fields, nil)
	}
	p("\n## Fields of nodes with a model\n\nOf every kind whose definition embeds `#worker`.\n\n")
	table(&b, defs["#worker"].fields, nil)
	p("\n## Fields of nodes with an engine\n\n%s Kinds: prefill, decode and worker.\n\n", defs["#engine"].doc)
	table(&b, defs["#engine"].fields, nil)
	p("\n## Kinds\n")
	shared := map[string]bool{"kind": true}
	for _, f := range slices.Concat(defs["#worker"].fields, defs["#engine"].fields) {
		shared[f.path] = true
	}
	for _, e := range kind.Default.All() {
		d := defs[schema.Definition(e.Name)]
		p("\n### %s\n\n%s\n\n", e.Name, strings.TrimPrefix(d.doc, d.name+" "))
		skip, note := map[string]bool{"kind": true}, ""
		if embeds(e, "#engine") {
			skip, note = shared, "Its fields are those of nodes with a model and an engine."
		} else if embeds(e, "#worker") {
			skip = map[string]bool{"kind": true, "model": true, "replicas": true}
			note = "It has the fields of nodes with a model, and:"
		}
		if e.Colocate {
			p("It runs in the process of the node that calls it.\n\n")
		}
		if note != "" {
			p("%s\n\n", note)
		}
		table(&b, d.fields, skip)
		ports(t, &b, e)
	}
	p("\n## Other definitions\n\n")
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		d := defs[name]
		if of[name] {
			continue
		}
		if d.fields != nil {
			p("\n### %s\n\n%s\n\n", name, d.doc)
			table(&b, d.fields, nil)
			p("\n")
			continue
		}
		p("- **`%s`** %s `%s`\n", name, strings.TrimPrefix(d.doc, name+" "), source(t, d.value))
	}
	p("\n## Signals\n\nWhat nodes tell of themselves at ports of type load and events.\n\n| signal | what |\n|---|---|\n")
	for _, s := range slices.Sorted(maps.Keys(kind.Signals)) {
		p("| %s | %s |\n", s, kind.Signals[s])
	}
	p("\n## Features\n\nWhat clients may ask of a model.\n\n| feature | what |\n|---|---|\n")
	for _, s := range slices.Sorted(maps.Keys(kind.Features)) {
		p("| %s | %s |\n", s, kind.Features[s])
	}
	return b.Bytes()
}

func embeds(e *kind.Entry, def string) bool {
	return strings.Contains(e.Schema, "\n\t"+def+"\n")
}

// cell makes a text fit into a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func table(b *bytes.Buffer, fields []field, skip map[string]bool) {
	head := false
	for _, f := range fields {
		if skip[f.path] {
			continue
		}
		if !head {
			fmt.Fprint(b, "| field | type | what |\n|---|---|---|\n")
			head = true
		}
		name, typ := f.path, "map"
		if f.need {
			name += " *"
		}
		if f.typ != "" {
			typ = "`" + cell(f.typ) + "`"
		}
		doc := f.doc
		if i := strings.LastIndexByte(f.path, '.'); true {
			doc = strings.TrimPrefix(doc, f.path[i+1:]+" ")
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", name, typ, cell(doc))
	}
}

func ports(t *testing.T, b *bytes.Buffer, e *kind.Entry) {
	t.Helper()
	ps, err := e.Ports(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(ps) == 0 {
		return
	}
	fmt.Fprint(b, "\n| port | | type | edges | |\n|---|---|---|---|---|\n")
	for _, p := range ps {
		edges := map[[2]bool]string{{false, false}: "0 or 1", {true, false}: "1", {false, true}: "any", {true, true}: "1 or more"}[[2]bool{p.Need, p.Many}]
		what := p.Doc
		if len(p.Signals) > 0 {
			gives := "gives "
			if p.Dir == kind.In {
				gives = "needs "
			}
			what = strings.TrimPrefix(strings.Join([]string{what, gives + strings.Join(p.Signals, ", ")}, "; "), "; ")
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", p.Name, p.Dir, p.Type, edges, cell(what))
	}
}
