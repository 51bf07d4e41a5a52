package jsonschema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/jsonschema"
)

func registry(name, text string) *kind.Registry {
	r := &kind.Registry{}
	kind.Add(r, kind.Kind[struct{}]{Name: name, Summary: "e", Schema: text, Default: func() struct{} { return struct{}{} },
		Ports: func(struct{}) []kind.Port { return nil }, New: func(struct{}, kind.Host) (kind.Component, error) { return nil, nil }})
	return r
}

const echo = `
// #Echo says back what it hears.
#Echo: {
	kind: "echo"

	// times is how often; 1 to 9. Default: 1.
	times?: int & >0 & <10

	// volume is how loud.
	volume?: "low" | "high"

	// every is the pause. Default: none.
	every?: #Duration

	// size is how much.
	size!: #Size

	// words are what else it says.
	words?: [string & !="", ...string & !=""]

	// pair has two of them.
	pair?: [int, int]

	// flags are by name.
	flags?: [string]: string | number | bool

	// by is a source, or several.
	by?: #Source | [#Source, ...#Source]

	// ratio is a part.
	ratio?: number & >=0 & <=0.5

	// deep is below.
	deep?: {
		// on switches it.
		on?: bool
	}

	// open takes anything.
	open?: {...}
}
`

// TestKind writes everything that a kind's schema may be made of.
func TestKind(t *testing.T) {
	b, err := jsonschema.Generate(registry("echo", echo))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Definitions map[string]any `json:"definitions"`
		Required    []string       `json:"required"`
		Properties  struct {
			Nodes struct {
				AdditionalProperties struct {
					Properties struct {
						Kind struct{ Enum []string }
					}
					AllOf []any
				}
				PropertyNames map[string]any
			}
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	want := `{
		"type": "object", "additionalProperties": false, "required": ["size"], "description": "#Echo says back what it hears.",
		"properties": {
			"kind": {"const": "echo"},
			"times": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10, "description": "times is how often; 1 to 9. Default: 1."},
			"volume": {"enum": ["low", "high"], "description": "volume is how loud."},
			"every": {"type": "string", "pattern": "^([-+]?(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+|0)$", "description": "every is the pause. Default: none."},
			"size": {"type": "string", "pattern": "^[0-9]+(Ki|Mi|Gi|Ti)$", "description": "size is how much."},
			"words": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}, "description": "words are what else it says."},
			"pair": {"type": "array", "minItems": 2, "maxItems": 2, "description": "pair has two of them."},
			"flags": {"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}, "description": "flags are by name."},
			"by": {"anyOf": [
				{"type": "string", "pattern": "^(file:|pypi:|hf:|https?://)[^ ]+$"},
				{"type": "array", "minItems": 1, "items": {"type": "string", "pattern": "^(file:|pypi:|hf:|https?://)[^ ]+$", "description": "SOURCE"}}],
				"description": "by is a source, or several."},
			"ratio": {"type": "number", "minimum": 0, "maximum": 0.5, "description": "ratio is a part."},
			"deep": {"type": "object", "additionalProperties": false, "description": "deep is below.",
				"properties": {"on": {"type": "boolean", "description": "on switches it."}}},
			"open": {"type": "object", "description": "open takes anything."}
		}
	}`
	var wanted any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	got := doc.Definitions["echo"]
	source := got.(map[string]any)["properties"].(map[string]any)["by"].(map[string]any)["anyOf"].([]any)[1].(map[string]any)["items"].(map[string]any)
	if d, _ := source["description"].(string); !strings.HasPrefix(d, "#Source is where a file comes from") {
		t.Errorf("source: %v", source)
	}
	source["description"] = "SOURCE"
	if d := cmp.Diff(wanted, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	node := doc.Properties.Nodes
	if d := cmp.Diff([]string{"echo"}, node.AdditionalProperties.Properties.Kind.Enum); d != "" || len(node.AdditionalProperties.AllOf) != 1 {
		t.Errorf("kinds: %s %v", d, node.AdditionalProperties.AllOf)
	}
	if node.PropertyNames["maxLength"] != 63.0 {
		t.Errorf("names of nodes: %v", node.PropertyNames)
	}
	if d := cmp.Diff([]string{"name", "nodes"}, doc.Required); d != "" {
		t.Errorf("required: %s", d)
	}
}

// TestBroken wants a kind's author told of a schema that is none.
func TestBroken(t *testing.T) {
	for _, text := range []string{"#Echo: {", "#Echo: {kind: nothing}", "#Echo: {kind: \"echo\"}\nimport \"x.example/y\"\n"} {
		if b, err := jsonschema.Generate(registry("echo", text)); err == nil || !strings.Contains(err.Error(), "schema") {
			t.Errorf("%q: %v %.80s", text, err, b)
		}
	}
}
