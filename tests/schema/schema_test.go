package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/load"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/schema"
)

var (
	bounded = regexp.MustCompile(`\b(above|below|or more|at most|each above)\b`)
	number  = regexp.MustCompile(`\b(int|number|float|uint)\b`)
	// said is how a comment gives a default: a value, or words.
	said = regexp.MustCompile(`Default(?:, also for 0)?: (.+)$`)
	// literal is a default that is a value.
	literal = regexp.MustCompile(`^("[^"]*"|-?[0-9]+(?:\.[0-9]+)?|true|false|\[[-0-9, ]*\])`)
)

// Every field says what it is, in which range, and what it is where a spec leaves it out.
func TestDocumented(t *testing.T) {
	n := 0
	for _, d := range definitions(t) {
		if d.doc == "" && d.name != "#edge" || d.doc != "" && !strings.HasPrefix(d.doc, d.name+" ") {
			t.Errorf("%s: its comment must begin with its name: %q", d.name, d.doc)
		}
		for _, f := range d.fields {
			name := f.path[strings.LastIndexByte(f.path, '.')+1:]
			if f.path == "kind" || name == "NAME" {
				continue // set by the definition; a map's values are said with the map
			}
			n++
			if !strings.HasPrefix(f.doc, name+" ") {
				t.Errorf("%s: %s: its comment must begin with its name: %q", d.name, f.path, f.doc)
			}
			if !f.need && f.typ != "" && !strings.HasPrefix(f.typ, "[#") && !said.MatchString(f.doc) && f.typ != "#Model" {
				t.Errorf("%s: %s: its comment does not say its default: %q", d.name, f.path, f.doc)
			}
			if number.MatchString(f.typ) && !bounded.MatchString(f.doc) {
				t.Errorf("%s: %s: its comment does not say its range: %q", d.name, f.path, f.doc)
			}
		}
	}
	if n < 150 {
		t.Errorf("only %d fields found", n)
	}
}

// applied are the defaults that are values and that the config does not hold, with where they are applied. 0 means "not said" in all of them.
var applied = map[string]string{
	"replicas":        "compiler",
	"tp":              "nodes/engine/serve: Contract, Size",
	"pp":              "nodes/engine/serve: Size",
	"dp":              "nodes/engine/serve: Size",
	"dtype":           "the engine: its own name for its default",
	"kv.block":        "nodes/engine/serve: BlockTokens",
	"kv.dtype":        "nodes/engine/native",
	"kv.connector":    "nodes/engine/serve: Contract",
	"kv.handOff":      "nodes/engine: HandOffs",
	"mock.seed":       "zero",
	"mock.ttft":       "zero",
	"mock.perPrompt":  "zero",
	"mock.itl":        "zero",
	"mock.handOff":    "nodes/engine: HandOffs",
	"mock.fail.after": "zero",
	"mock.fail.every": "nodes/engine/mock",
	"insecure":        "zero",
	"kv.overlap":      "nodes/router, with policy kv",
	"kv.temperature":  "zero",
}

// The default that a comment gives is the one that the kind has.
func TestDefaults(t *testing.T) {
	compared := 0
	used := map[string]bool{}
	for e, d := range kinds(t) {
		raw, err := e.Config(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range d.fields {
			m := said.FindStringSubmatch(f.doc)
			if m == nil {
				continue
			}
			want := literal.FindString(m[1])
			got, has := lookup(t, raw, f.path)
			switch {
			case want == "" && has:
				t.Errorf("%s.%s: its comment gives no value as default, but it is %s: %q", e.Name, f.path, got, f.doc)
			case want == "":
			case !has && applied[f.path] == "":
				t.Errorf("%s.%s: its comment gives %s as default, but the config holds none", e.Name, f.path, want)
			case !has:
				used[f.path] = true
			default:
				compared++
				if !equal(t, got, want) {
					t.Errorf("%s.%s: its comment gives %s as default, but it is %s", e.Name, f.path, want, got)
				}
			}
		}
	}
	if compared < 25 {
		t.Errorf("only %d defaults compared", compared)
	}
	for p := range applied {
		if !used[p] {
			t.Errorf("applied[%q] is not needed", p)
		}
	}
}

func lookup(t *testing.T, raw json.RawMessage, path string) (json.RawMessage, bool) {
	t.Helper()
	for p := range strings.SplitSeq(path, ".") {
		var m map[string]json.RawMessage
		if json.Unmarshal(raw, &m) != nil {
			return nil, false
		}
		v, ok := m[p]
		if !ok {
			return nil, false
		}
		raw = v
	}
	return raw, true
}

func equal(t *testing.T, got json.RawMessage, want string) bool {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(got, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatalf("%s: %v", want, err)
	}
	if s, ok := a.(string); ok { // durations as Go writes them
		return s == b || strings.TrimSuffix(strings.TrimSuffix(s, "0s"), "0m") == b
	}
	return fmt.Sprint(a) == fmt.Sprint(b)
}

// A field that the schema does not have fails in plain CUE, at every depth of every kind; one that it has does not.
func TestUnknownField(t *testing.T) {
	v := instance(t)
	checked := 0
	for e, d := range kinds(t) {
		needs := required(d)
		within := []string{""}
		for _, f := range d.fields {
			if s, ok := f.expr.(*ast.StructLit); ok && !strings.Contains(f.path, "NAME") && f.path != "flags" && f.path != "models" && f.path != "scale" && len(s.Elts) > 0 {
				within = append(within, f.path+".")
			}
		}
		for _, p := range within {
			if err := node(v, e, needs, p+"noSuchField"); err == nil || !strings.Contains(err.Error(), "noSuchField") {
				t.Errorf("%s: unknown field %snoSuchField: %v", e.Name, p, err)
			}
			checked++
		}
		if err := node(v, e, needs, ""); err != nil {
			t.Errorf("%s: a node of what must be set: %v", e.Name, err)
		}
	}
	if checked < 25 {
		t.Errorf("only %d structs checked", checked)
	}
}

// required gives what must be set of each kind.
func required(d *definition) map[string]any {
	return map[string]map[string]any{
		"#Kvtier":   {"tiers": []any{map[string]any{"medium": "dram", "size": "1Gi"}}},
		"#Planner":  {"scale": map[string]any{"w": map[string]any{"max": 2}}},
		"#External": {"url": "https://example.com/v1"},
	}[d.name]
}

// node validates a graph of one node that sets a field to 1, and what its kind needs.
func node(v cue.Value, e *kind.Entry, needs map[string]any, field string) error {
	n := map[string]any{"kind": e.Name}
	maps.Copy(n, needs)
	at := n
	parts := strings.Split(field, ".")
	for _, p := range parts[:len(parts)-1] {
		below := map[string]any{}
		at[p] = below
		at = below
	}
	if field != "" {
		at[parts[len(parts)-1]] = 1
	}
	g := v.LookupPath(cue.ParsePath("#Graph")).Unify(cuecontext.New().Encode(map[string]any{"name": "g", "nodes": map[string]any{"x": n}}))
	return g.Validate(cue.Concrete(true))
}

func instance(t *testing.T) cue.Value {
	t.Helper()
	overlay := map[string]load.Source{"/schema/cue.mod/module.cue": load.FromBytes(moduleFile())}
	for _, f := range schema.Files(kind.Default) {
		overlay["/schema/spec/"+f.Name] = load.FromString(f.Text)
	}
	in := load.Instances([]string{"./spec"}, &load.Config{Dir: "/schema", Overlay: overlay})[0]
	if in.Err != nil {
		t.Fatal(in.Err)
	}
	v := cuecontext.New().BuildInstance(in)
	if err := v.Err(); err != nil {
		t.Fatal(err)
	}
	return v
}

func moduleFile() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "module: %q\nlanguage: version: \"v0.15.0\"\n", schema.Module)
	return b.Bytes()
}

// Definitions are of this package alone: two kinds that define one name would be unified.
func TestDefinitionsAreApart(t *testing.T) {
	seen := map[string]string{}
	for _, f := range schema.Files(kind.Default) {
		for _, m := range regexp.MustCompile(`(?m)^(#\w+): `).FindAllStringSubmatch(f.Text, -1) {
			if other := seen[m[1]]; other != "" && m[1] != "#Kinds" && other != f.Name {
				t.Errorf("%s is defined in %s and %s", m[1], other, f.Name)
			}
			seen[m[1]] = f.Name
		}
	}
	if !slices.Contains(slices.Collect(maps.Keys(seen)), "#Decode") {
		t.Error("no #Decode")
	}
}
