package cue

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/recipes"
	"github.com/dynamograph/dynamo/specs/jsonschema"
	"github.com/dynamograph/dynamo/specs/load"
	"github.com/dynamograph/dynamo/specs/write"
)

// compiled is our document in a validator that is not ours; it also holds the document against the schema of schemas.
func compiled(t *testing.T) *validator.Schema {
	t.Helper()
	b, err := jsonschema.Generate(kind.Default)
	if err != nil {
		t.Fatal(err)
	}
	again, err := jsonschema.Generate(kind.Default)
	if err != nil || !bytes.Equal(b, again) {
		t.Errorf("two runs differ: %v", err)
	}
	doc, err := validator.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := validator.NewCompiler()
	if err := c.AddResource("graph.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("graph.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// specs lists the ready specs and the graphs of all recipes.
func specs(t *testing.T) []string {
	t.Helper()
	out, err := filepath.Glob("../../specs/*.cue")
	if err != nil {
		t.Fatal(err)
	}
	n := len(out)
	dirs, err := filepath.Glob("../../recipes/*/*/graph.cue")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		out = append(out, filepath.Dir(d))
	}
	if n < 4 || len(dirs) < 2*len(recipes.Names()) {
		t.Fatalf("only %v: is the root right?", out)
	}
	return out
}

// TestSchemaTakesSpecs validates each spec as YAML and as JSON.
func TestSchemaTakesSpecs(t *testing.T) {
	s := compiled(t)
	for _, name := range specs(t) {
		g, list, err := load.File(context.Background(), name, load.Options{Registry: kind.Default})
		if err != nil || g == nil {
			t.Errorf("%s: %v %v", name, list, err)
			continue
		}
		for _, defaults := range []bool{false, true} {
			for _, format := range []string{"yaml", "json"} {
				b, err := write.Spec(g, format, write.Options{Defaults: defaults})
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Validate(value(t, b)); err != nil {
					t.Errorf("%s as %s: %v", name, format, err)
				}
			}
		}
	}
}

// value reads YAML or JSON as the validator wants it.
func value(t *testing.T, text []byte) any {
	t.Helper()
	b, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	v, err := validator.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const yamlSpec = `name: mine
model: {source: "file:m.gguf"}
slo: {ttft: 500ms}
nodes:
  api: {kind: frontend, listen: "127.0.0.1:8000"}
  route: {kind: router, policy: least-loaded}
  worker:
    kind: worker
    replicas: 2
    kv: {tokens: 4096}
    batch: {seqs: 4}
edges:
  api -> route: {}
  route.worker -> worker: {}
`

// TestSchemaRefuses wants one mistake refused each, and at its place.
func TestSchemaRefuses(t *testing.T) {
	s := compiled(t)
	if err := s.Validate(value(t, []byte(yamlSpec))); err != nil {
		t.Fatalf("the right one: %v", err)
	}
	for _, c := range []struct{ name, old, new, at string }{ // at: "text" of the error, where the validator has no place for it
		{"enum", "least-loaded", "least", "/nodes/route/policy"},
		{"field of a node", "replicas: 2", "replica: 2", "/nodes/worker"},
		{"field of another kind", "kind: worker", "kind: worker\n    policy: random", "/nodes/worker"},
		{"field below", "tokens: 4096", "token: 4096", "/nodes/worker/kv"},
		{"field at the top", "slo:", "sloo:", ""},
		{"kind", "kind: worker", "kind: wroker", "/nodes/worker/kind"},
		{"no kind", "kind: router, ", "", "/nodes/route"},
		{"no name", "name: mine\n", "", ""},
		{"type", "replicas: 2", "replicas: two", "/nodes/worker/replicas"},
		{"fraction", "replicas: 2", "replicas: 2.5", "/nodes/worker/replicas"},
		{"range", "seqs: 4", "seqs: 0", "/nodes/worker/batch/seqs"},
		{"duration", "500ms", "500", "/slo/ttft"},
		{"duration without a unit", "500ms", `"500"`, "/slo/ttft"},
		{"source that is no text", `"file:m.gguf"`, "7", "/model/source"},
		{"source", "file:m.gguf", "m.gguf", "/model/source"},
		{"name of a node", "  route: {", "  Route: {", `"invalid propertyName 'Route'`},
		{"edge", "api -> route", "api => route", `"invalid propertyName 'api => route'`},
		{"transport", "worker: {}", "worker: {transport: carrier}", "/edges/route.worker -> worker/transport"},
	} {
		spec := strings.Replace(yamlSpec, c.old, c.new, 1)
		if spec == yamlSpec {
			t.Fatalf("%s: no %q", c.name, c.old)
		}
		err := s.Validate(value(t, []byte(spec)))
		var places []string
		if ve, ok := err.(*validator.ValidationError); ok {
			places = leaves(ve)
		}
		text, isText := strings.CutPrefix(c.at, `"`)
		found := isText && err != nil && strings.Contains(err.Error(), text)
		for _, p := range places {
			found = found || p == c.at
		}
		if !found {
			t.Errorf("%s: found at %q, want %q: %v", c.name, places, c.at, err)
		}
	}
}

// leaves lists where the innermost errors are.
func leaves(e *validator.ValidationError) []string {
	if len(e.Causes) == 0 {
		p := ""
		for _, s := range e.InstanceLocation {
			p += "/" + s
		}
		return []string{p}
	}
	var out []string
	for _, c := range e.Causes {
		out = append(out, leaves(c)...)
	}
	return out
}

// TestSchemaAgrees changes one value at a time: what the document refuses, the loader must refuse. (The loader refuses more.)
func TestSchemaAgrees(t *testing.T) {
	s := compiled(t)
	n := 0
	for _, name := range []string{"../../specs/llama-disagg.cue", "../../recipes/llama-3-70b/disagg"} {
		g, list, err := load.File(context.Background(), name, load.Options{Registry: kind.Default})
		if err != nil || g == nil {
			t.Fatal(list, err)
		}
		b, err := write.Spec(g, "json", write.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var v map[string]any
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "g.json")
		mutate(v, func(what string) {
			n++
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			refusal := s.Validate(value(t, b))
			if refusal == nil {
				return
			}
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if g, _, err := load.File(context.Background(), file, load.Options{Registry: kind.Default}); err != nil || g != nil {
				t.Errorf("%s, %s: the document refuses what loads: %v %v", name, what, refusal, err)
			}
		})
	}
	if n < 150 {
		t.Errorf("only %d mutations", n)
	}
}

// mutate changes one value at a time anywhere in v, calls f, and changes it back.
func mutate(v map[string]any, f func(what string)) {
	for k, old := range v {
		for what, new := range map[string]any{"a number": 7.0, "a text": "zzz"} {
			v[k] = new
			f(k + ": " + what)
		}
		v[k] = old
		if m, ok := old.(map[string]any); ok {
			m["zzz"] = "zzz"
			f(k + ": an unknown name")
			delete(m, "zzz")
			mutate(m, f)
		}
	}
}
