package preprocess

import (
	"encoding/json"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/text/family"
)

func TestSwitchOf(t *testing.T) {
	for _, c := range []struct{ source, arg string }{
		{"{% if enable_thinking is defined and not enable_thinking %}x{% endif %}", "enable_thinking"},
		{"{%- if not thinking is defined %}{% set thinking = false %}{% endif -%}", "thinking"},
		{"{% if message.thinking %}{{ message . thinking }}{% endif %}", ""},
		{"{{ message['thinking'] }}{{ \"it's \\\" thinking\" }}thinking {# thinking #} {thinking} {{ 'enable_thinking'", ""},
		{"{{ is_thinking }}{{ thinking_budget }}", ""},
		{"{{ thinking", "thinking"},
		{"{", ""},
	} {
		if s := switchOf(c.source); s.Arg != c.arg || s.Effort {
			t.Errorf("%s: %+v", c.source, s)
		}
	}
	if s := switchOf("{% set effort = reasoning_effort|default('medium') %}"); s != (family.Switch{Effort: true}) {
		t.Errorf("%+v", s)
	}
}

func TestEffort(t *testing.T) {
	both := family.Switch{Arg: "thinking", On: "true", Off: "false", Effort: true}
	qwen := family.Switch{Arg: "enable_thinking", On: "true", Off: "false"}
	for _, c := range []struct {
		name, reasoning, effort, args, want string // want "!": refused
		think                               family.Switch
	}{
		{"not said", "qwen3", "", `{"a":1}`, `{"a":1}`, qwen},
		{"off", "qwen3", "none", "", `{"enable_thinking":false}`, qwen},
		{"on", "qwen3", "low", `{}`, `{"enable_thinking":true}`, qwen},
		{"beside others", "qwen3", "none", ` {"a":1}`, `{"enable_thinking":false,"a":1}`, qwen},
		{"the client's own", "qwen3", "none", `{"enable_thinking":true}`, `{"enable_thinking":true}`, qwen},
		{"both", "deepseek_v4", "max", "", `{"thinking":true,"reasoning_effort":"max"}`, both},
		{"both, off", "deepseek_v4", "none", "", `{"thinking":false}`, both},
		{"both, one the client's", "deepseek_v4", "max", `{"thinking":true}`, `{"reasoning_effort":"max","thinking":true}`, both},
		{"three words", "gpt_oss", "minimal", "", `{"reasoning_effort":"low"}`, family.Switch{Effort: true}},
		{"three words, most", "gpt_oss", "xhigh", "", `{"reasoning_effort":"high"}`, family.Switch{Effort: true}},
		{"always on", "gpt_oss", "none", "", "!", family.Switch{Effort: true}},
		{"thinks, no switch", "deepseek_r1", "low", "", "!", family.Switch{}},
		{"thinks, no switch, off", "deepseek_r1", "none", "", "!", family.Switch{}},
		{"does not think", "", "high", "", "!", family.Switch{}},
		{"does not think, off", "", "none", "", "", family.Switch{}},
	} {
		m := &served{think: c.think, reasoning: c.reasoning}
		got, err := m.args(&llm.ChatRequest{Model: "m", Effort: c.effort, TemplateArgs: json.RawMessage(c.args)})
		if c.want == "!" {
			if e := flow.AsError(err); err == nil || e.Class != flow.InvalidRequest || e.Param != "reasoning_effort" {
				t.Errorf("%s: %s %v", c.name, got, err)
			}
			continue
		}
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s %v, want %s", c.name, got, err, c.want)
		}
	}
}
