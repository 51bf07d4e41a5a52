// Package conformance holds every kind of node of the standard set to what the loader and the compiler rely on.
package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	_ "github.com/dynamograph/dynamo/nodes/all"
	"github.com/dynamograph/dynamo/specs/load"
)

// vet loads a graph that has one node n of a kind, with the given fields.
func vet(t *testing.T, kindName, fields string) (*graph.Graph, diag.List) {
	t.Helper()
	spec := fmt.Sprintf("package p\n\nimport \"dynamo.graph/spec\"\n\nspec.#Graph & {\n\tname: \"p\"\n\tnodes: n: spec.#%s & {%s}\n}\n",
		strings.ToUpper(kindName[:1])+kindName[1:], fields)
	file := filepath.Join(t.TempDir(), "spec.cue")
	if err := os.WriteFile(file, []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	g, list, err := load.File(context.Background(), file, load.Options{Registry: kind.Default})
	if err != nil {
		t.Fatal(err)
	}
	return g, list
}

func codes(l diag.List) string {
	var out []string
	for _, d := range l {
		out = append(out, d.Code)
	}
	return strings.Join(out, " ")
}

// least is what a kind cannot do without.
var least = map[string]string{
	"external": `url: "https://api.example.com/v1"`,
	"kvtier":   `tiers: [{medium: "dram", size: "1Gi"}]`,
	"planner":  `scale: other: max: 2`,
}

// TestKinds: the schema and the Go config of a kind agree, and both refuse what they do not know.
func TestKinds(t *testing.T) {
	for _, k := range kind.Default.All() {
		t.Run(k.Name, func(t *testing.T) {
			g, list := vet(t, k.Name, least[k.Name])
			if list.Failed() {
				t.Fatalf("with the least fields: %v", list)
			}
			if _, list := vet(t, k.Name, ""); least[k.Name] != "" && codes(list) != "missing-field" {
				t.Errorf("without fields that it needs: %q", codes(list))
			}
			if _, list := vet(t, k.Name, strings.TrimPrefix(least[k.Name]+"\nzzz: 1", "\n")); codes(list) != "unknown-field" {
				t.Errorf("an unknown field: %q", codes(list))
			}
			if _, err := k.Config(json.RawMessage(`{"zzz":1}`)); err == nil {
				t.Error("the config takes an unknown field")
			}
			raw, err := k.Config(g.Nodes["n"].Config)
			if err != nil {
				t.Fatal(err)
			}
			// What the config calls its defaults, the schema takes.
			if _, list := vet(t, k.Name, strings.TrimSuffix(strings.TrimPrefix(string(raw), "{"), "}")); list.Failed() {
				t.Errorf("its defaults %s are refused: %v", raw, list)
			}
			ports, err := k.Ports(raw)
			if err != nil || len(ports) == 0 {
				t.Errorf("ports %v, %v", ports, err)
			}
			seen := map[string]bool{}
			for _, p := range ports {
				key := string(p.Dir) + p.Name
				if seen[key] {
					t.Errorf("%s port %q twice", p.Dir, p.Name)
				}
				seen[key] = true
			}
			if k.Summary == "" || !strings.HasSuffix(k.Summary, ".") {
				t.Errorf("summary %q is no sentence", k.Summary)
			}
		})
	}
}
