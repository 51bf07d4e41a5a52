package parse

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestStrict(t *testing.T) {
	fs := []Function{{Name: "f", Parameters: json.RawMessage(`{"type":"object"}`)}, {Name: "g"}}
	for _, c := range []struct{ format, want string }{
		{"hermes", `{"format":{"stop_after_first":false,"tags":[{"begin":"<tool_call>\n{\"name\": \"f\", \"arguments\": ","content":{"json_schema":{"type":"object"},` +
			`"type":"json_schema"},"end":"}\n</tool_call>","type":"tag"},{"begin":"<tool_call>\n{\"name\": \"g\", \"arguments\": ","content":{"json_schema":{"type":"object"},` +
			`"type":"json_schema"},"end":"}\n</tool_call>","type":"tag"}],"triggers":["<tool_call>"],"type":"triggered_tags"},"type":"structural_tag"}`},
		{"jamba", `"tags":[{"begin":"<tool_calls>[","content":{"at_least_one":true,`},
		{"llama3_json", `"type":"tags_with_separator"},{"elements":[{"pattern":"[^{\\[<\\s]","type":"regex"},{"type":"any_text"}],"type":"sequence"}],"type":"or"}`},
	} {
		tag, ok := Strict(c.format, fs, Mode{})
		var v any
		if tag = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(tag); !ok || json.Unmarshal([]byte(tag), &v) != nil || !strings.Contains(tag, c.want) {
			t.Errorf("%s: %v %s", c.format, ok, tag)
		}
	}
	for _, format := range []string{"", "none", "phi4", "harmony"} {
		if tag, ok := Strict(format, fs, Mode{}); ok {
			t.Errorf("%q: %s", format, tag)
		}
	}
	if tag, ok := Strict("hermes", fs, Mode{OneCall: true}); !ok || !strings.Contains(tag, `"stop_after_first":true`) {
		t.Error(tag)
	}
	if _, ok := Strict("hermes", nil, Mode{}); ok {
		t.Error("no functions")
	}
}
