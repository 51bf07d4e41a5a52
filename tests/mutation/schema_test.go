package mutation

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/jsonschema"
)

// object is a JSON object.
type object = map[string]any

// schemas returns the schema of each kind and of the graph.
func schemas(t *testing.T) (graph object, kinds map[string]object) {
	t.Helper()
	b, err := jsonschema.Generate(kind.Default)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &graph); err != nil {
		t.Fatal(err)
	}
	kinds = map[string]object{}
	for name, s := range graph["definitions"].(object) {
		kinds[name] = s.(object)
	}
	return graph, kinds
}

// leaf is one field of a schema that holds a value, with values that it takes.
type leaf struct {
	path   string
	values []any
}

// leaves returns the fields below an object's schema, sorted. In a list or map they are those of one entry: "tiers.0.size".
func leaves(s object, prefix string) []leaf {
	var out []leaf
	props, _ := s["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		out = append(out, below(props[name].(object), prefix+name)...)
	}
	return out
}

func below(p object, path string) []leaf {
	if items, ok := p["items"].(object); ok && items["properties"] != nil {
		return below(items, path+".0")
	}
	if p["properties"] != nil {
		return leaves(p, path+".")
	}
	if more, ok := p["additionalProperties"].(object); ok && more["properties"] != nil { // a map: its key is the name of a node or a model
		return leaves(more, path+".work.")
	}
	return []leaf{{path, candidates(p, path[strings.LastIndexByte(path, '.')+1:])}}
}

// texts are tried where a schema wants a text, with what fits names and patterns of the kinds.
var texts = []string{
	"7s", "45s", "3Gi", "900Gi", "env:OTHER", "file:/run/other", "127.0.0.1:8055", "https://other.example.com/v1", "other", "/tmp/other", "0.10.2", "b4000", "nixl",
	"s3://other/x",
}

// candidates returns values that a schema takes. Where it is open, there are several, so that one of them is another than the default.
func candidates(p object, name string) []any {
	switch e := p["enum"].(type) {
	case []any:
		return e
	}
	if all, ok := anyOf(p); ok {
		var out []any
		for _, x := range all {
			out = append(out, candidates(x.(object), name)...)
		}
		return out
	}
	if p["const"] != nil {
		return []any{p["const"]}
	}
	switch typ := p["type"]; {
	case typ == "boolean":
		return []any{true, false}
	case typ == "integer" || typ == "number":
		var out []any
		for _, n := range []float64{1, 2, 3, 8, 16, 48, 0.5, 4096, 0} {
			if fits(p, n) {
				out = append(out, n)
			}
		}
		return out
	case typ == "string" || p["pattern"] != nil:
		var out []any
		pattern, _ := p["pattern"].(string)
		re := regexp.MustCompile(pattern)
		for _, s := range texts {
			if re.MatchString(s) && len(out) < 3 {
				out = append(out, s)
			}
		}
		return out
	case typ == "array":
		items, _ := p["items"].(object)
		var out []any
		for _, v := range candidates(items, name) {
			out = append(out, []any{v})
		}
		return out
	case typ == "object":
		var out []any
		if items, ok := p["additionalProperties"].(object); ok {
			for _, v := range candidates(items, name) {
				out = append(out, object{"other": v})
			}
		}
		return out
	}
	return nil
}

func anyOf(p object) ([]any, bool) {
	for _, k := range []string{"anyOf", "oneOf"} {
		if all, ok := p[k].([]any); ok {
			return all, true
		}
	}
	return nil, false
}

func fits(p object, n float64) bool {
	number := func(k string) (float64, bool) { v, ok := p[k].(float64); return v, ok }
	if p["type"] == "integer" && n != float64(int(n)) {
		return false
	}
	for _, c := range []struct {
		key string
		bad func(limit float64) bool
	}{
		{"minimum", func(l float64) bool { return n < l }}, {"maximum", func(l float64) bool { return n > l }},
		{"exclusiveMinimum", func(l float64) bool { return n <= l }}, {"exclusiveMaximum", func(l float64) bool { return n >= l }},
	} {
		if l, ok := number(c.key); ok && c.bad(l) {
			return false
		}
	}
	return true
}
