package chat

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/frontend"
)

// Faults that users of other servers reported, each named by the thread that told of it; they are asked for with a stream and without,
// and in deltas of one token, of three, and of all.
var cases = []struct {
	id, from string
	setup    setup
	fields   string
	want     string // content, reasoning, calls, finish
}{
	{"B-001", "ai-dynamo/dynamo#10445", setup{tools: "hermes", text: `Let me look. <tool_call>{"name":"find_bus","arguments":{"stop":"K4"}}</tool_call>`}, tools,
		`"Let me look." "" ["find_bus({\"stop\":\"K4\"})"] [tool_calls]`},
	{"B-051", "waybarrios/vllm-mlx#580", setup{tools: "llama3_json", text: `<|python_tag|>{"name":"f","parameters":{"a":1}}`}, tools,
		`null "" ["f({\"a\":1})"] [tool_calls]`},
	{"B-060 B-061", "ai-dynamo/dynamo#4154, vllm-project/vllm#9209", setup{tools: "hermes", text: `<tool_call>{"name":"f","arguments":{}}</tool_call>`}, tools,
		`null "" ["f({})"] [tool_calls]`},
	{"B-064", "OpenAI's reference", setup{tools: "hermes", text: `<tool_call>{"name":"f","arguments":{"a":1}}</tool_call><tool_call>{"name":"wx","arguments":{}}</tool_call>`}, tools,
		`null "" ["f({\"a\":1})" "wx({})"] [tool_calls]`},
	{"parallel_tool_calls", "OpenAI's reference", setup{tools: "hermes", text: `<tool_call>{"name":"f","arguments":{"a":1}}</tool_call><tool_call>{"name":"wx","arguments":{}}</tool_call>`},
		tools + `,"parallel_tool_calls":false`, `null "" ["f({\"a\":1})"] [tool_calls]`},
	{"B-071", "reports on tool_choice none", setup{tools: "hermes", text: `<tool_call>{"name":"f","arguments":{}}</tool_call>`}, tools + `,"tool_choice":"none","skip_special_tokens":false`,
		`"<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>" "" [] [stop]`},
	{"cut", "ai-dynamo/dynamo 1.6.1", setup{tools: "hermes", text: `<tool_call>{"name":"wx","arguments":{"city":"Os`, finish: llm.FinishLength}, tools,
		`null "" ["wx({\"city\":\"Os)"] [length]`},
	{"malformed", "ai-dynamo/dynamo 1.6.1", setup{tools: "hermes", text: `a <tool_call>{"nam</tool_call> b`}, tools, `"a <tool_call>{\"nam</tool_call> b" "" [] [stop]`},
	{"C-012", "vllm-project/vllm#14170, #14550", setup{reasoning: "deepseek_r1", text: "compare 9.11 and 9.8 or</think>x"}, `"chat_template_kwargs":{"enable_thinking":true},"stop":["9.8"]`,
		`null "compare 9.11 and " [] [stop]`},
	{"C-019", "gpt-oss", setup{tools: "harmony", reasoning: "gpt_oss", text: `<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>final<|message|>B`}, "",
		`"B" "A" [] [stop]`},
	{"B-040", "openai/harmony", setup{tools: "harmony", reasoning: "gpt_oss", text: `<|channel|>commentary<|message|>I will check two things.<|end|>` +
		`<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}`}, tools, `"I will check two things." "" ["f({})"] [tool_calls]`},
	{"C-022", "OpenAI's reference", setup{tools: "hermes", reasoning: "qwen3", text: `<think>12345</think>678`}, tools, `"678" "12345" [] [stop]`},
	{"C-010", "vllm-project/vllm#45915", setup{tools: "hermes", reasoning: "qwen3", text: `<think>let me <tool_call>{"name":"f","arguments":{"a":1}}</tool_call>`}, tools,
		`null "let me" ["f({\"a\":1})"] [tool_calls]`},
	{"C-010 glm", "vllm-project/vllm#45915", setup{tools: "glm45", reasoning: "glm45", text: "<think>let me <tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>"}, tools,
		`null "let me" ["f({\"a\": 1})"] [tool_calls]`},
	{"no parsers", "", setup{text: "<think>a</think>"}, "", `"a" "" [] [stop]`},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		for _, size := range []int{1, 3, 1000} {
			t.Run(fmt.Sprintf("%s by %d", c.id, size), func(t *testing.T) {
				c.setup.size = size
				if got := serve(t, c.setup).ask(c.fields); got.String() != c.want {
					t.Errorf("%s: got  %v\nwant %v", c.from, got, c.want)
				}
			})
		}
	}
}

// Case B-057 (vllm-project/vllm#25054): how a demanded call ends, with a stream and without.
func TestCaseB057(t *testing.T) {
	for choice, want := range map[string]string{`"required"`: "tool_calls", `{"type":"function","function":{"name":"wx"}}`: "stop"} {
		s := serve(t, setup{tools: "hermes", text: `<tool_call>{"name":"wx","arguments":{"city":"Ulm"}}</tool_call>`})
		a := s.ask(tools + `,"tool_choice":` + choice)
		if !slices.Equal(a.finish, []string{want}) || !slices.Equal(a.calls, []string{`wx({"city":"Ulm"})`}) {
			t.Errorf("%s: %v", choice, a)
		}
		if q := s.e.got[0]; q.Constraint == nil || q.Constraint.Tags == "" || !strings.Contains(q.Constraint.Tags, "wx") || strings.Contains(q.Constraint.Tags, `\"f\"`) == (want == "stop") {
			t.Errorf("%s: the engine is bound by %+v", choice, q.Constraint)
		}
	}
}

// A function that is named is called once, as with OpenAI and vLLM: clients read the first call.
func TestNamedIsCalledOnce(t *testing.T) {
	s := serve(t, setup{text: `[{"name": "wx", "parameters": {"city": "Ulm"}}, {"name": "wx", "parameters": {"ci`, finish: llm.FinishLength})
	a := s.ask(tools + `,"tool_choice":{"type":"function","function":{"name":"wx"}}`)
	if a.String() != `null "" ["wx({\"city\": \"Ulm\"})"] [stop]` || !strings.Contains(s.e.got[0].Constraint.Tags, `"stop_after_first":true`) {
		t.Errorf("%v, bound by %+v", a, s.e.got[0].Constraint)
	}
}

// A call can be demanded of a model of which nobody knows how it writes them.
func TestCallOfAnyModel(t *testing.T) {
	s := serve(t, setup{text: `[{"name": "wx", "parameters": {"city": "Ulm"}}]`})
	a := s.ask(tools + `,"tool_choice":"required"`)
	if a.String() != `null "" ["wx({\"city\": \"Ulm\"})"] [tool_calls]` || s.e.got[0].Constraint == nil {
		t.Errorf("%v, bound by %+v", a, s.e.got[0].Constraint)
	}
}

// Case B-063 (ai-dynamo/dynamo#13975): long arguments come as they are written.
func TestCaseB063(t *testing.T) {
	long := strings.Repeat("x", 8000)
	s := serve(t, setup{tools: "hermes", size: 40, text: `<tool_call>{"name":"wx","arguments":{"city":"` + long + `"}}</tool_call>`})
	if a := s.ask(tools); a.pieces < 100 || !slices.Equal(a.calls, []string{`wx({"city":"` + long + `"})`}) {
		t.Errorf("%d pieces", a.pieces)
	}
}

// Case C-022: tokens are counted once, those of reasoning beside.
func TestCaseC022(t *testing.T) {
	s := serve(t, setup{reasoning: "qwen3", text: "<think>12345</think>678"})
	a := s.ask(`"logprobs":true`)
	details, _ := a.usage["completion_tokens_details"].(map[string]any)
	if a.usage["completion_tokens"] != 10.0 || details["reasoning_tokens"] != 7.0 || a.logprobs != 3 {
		t.Errorf("%v, %d log-probabilities", a.usage, a.logprobs)
	}
}

// Tokens that come to be no text have no log-probabilities, whatever stood in their delta: markers at the end, and those of a stop string.
func TestLogprobsOfTheEnd(t *testing.T) {
	for _, c := range []struct {
		text, fields string
		want         int
	}{
		{"a</think>", `"logprobs":true`, 1},
		{"abEND", `"logprobs":true,"stop":["END"]`, 2},
		{"abEN", `"logprobs":true,"stop":["END"]`, 4},
		{"ab ", `"logprobs":true`, 3},
	} {
		for _, size := range []int{1, 2, 3, 100} {
			s := serve(t, setup{reasoning: "qwen3", text: c.text, size: size})
			if a := s.ask(c.fields); a.logprobs != c.want {
				t.Errorf("%q by %d: %d log-probabilities, want %d: %v", c.text, size, a.logprobs, c.want, a)
			}
		}
	}
}

// Case C-021: reasoning of the history reaches the template; a client reads the field that the operator chose.
func TestCaseC021(t *testing.T) {
	for _, name := range []string{"reasoning", "reasoning_content"} {
		s := serve(t, setup{reasoning: "qwen3", text: "<think>so</think>yes", change: func(c *frontend.Config) { c.ReasoningField = name }})
		_, body := s.post(`"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","` + name + `":"old"},{"role":"user","content":"c"}]`)
		if !strings.Contains(s.prompt(), "b(old)<|im_end|>") || !strings.Contains(body, `"`+name+`":"so"`) {
			t.Errorf("%q %s", s.prompt(), body)
		}
	}
}

// Case D-018 (ggml-org/llama.cpp#11402): what a template raises is the client's to read, and no engine's to compute.
func TestCaseD018(t *testing.T) {
	s := serve(t, setup{template: `{% for m in messages %}{% if (m.role == "user") != (loop.index0 % 2 == 0) %}{{ raise_exception("Roles must alternate") }}{% endif %}{% endfor %}`})
	status, body := s.post(`"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"}]`)
	if status != 400 || !strings.Contains(body, "Roles must alternate") || !strings.Contains(body, `"invalid_request_error"`) || len(s.e.got) != 0 {
		t.Errorf("%d %s", status, body)
	}
}

// Cases D-026 (ai-dynamo/dynamo#7391) and D-027 (#13396, #13431): the model sees the tools that it may call, and no others.
func TestCaseD026(t *testing.T) {
	s := serve(t, setup{tools: "hermes", text: "x"})
	used := func(fields string) float64 { return s.ask(fields).usage["prompt_tokens"].(float64) }
	plain, none, auto := used(""), used(tools+`,"tool_choice":"none"`), used(tools)
	if none != plain || auto <= plain || !strings.HasPrefix(s.prompt(), "tools:wx f <|im_start|>") {
		t.Errorf("%v tokens without tools, %v with tool_choice none, %v with auto: %q", plain, none, auto, s.prompt())
	}
	allowed := used(tools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}}`)
	if allowed >= auto || !strings.HasPrefix(s.prompt(), "tools:f <|im_start|>") {
		t.Errorf("%v tokens: %q", allowed, s.prompt())
	}
}

// What binds the output begins behind reasoning, where there is any.
func TestFormBehindReasoning(t *testing.T) {
	for _, c := range []struct {
		name, fields, after string
		setup               setup
	}{
		{"no reasoning", `"response_format":{"type":"json_object"}`, "", setup{}},
		{"a turn that thinks", `"response_format":{"type":"json_object"},"chat_template_kwargs":{"enable_thinking":true}`, "</think>", setup{reasoning: "deepseek_r1"}},
		{"a call", tools + `,"tool_choice":"required","chat_template_kwargs":{"enable_thinking":true}`, "</think>", setup{tools: "hermes", reasoning: "deepseek_r1"}},
	} {
		s := serve(t, c.setup)
		if status, body := s.post(c.fields); status != 200 || s.e.got[0].Constraint == nil || s.e.got[0].Constraint.After != c.after {
			t.Errorf("%s: %d %s: %+v", c.name, status, body, s.e.got[0].Constraint)
		}
	}
}

// A model whose format is not known refuses tools by name, and says where it is set.
func TestNoFormat(t *testing.T) {
	status, body := serve(t, setup{}).post(tools)
	if status != 400 || !strings.Contains(body, `"param":"tools"`) || !strings.Contains(body, "models.m.tools") || !strings.Contains(body, "hermes") {
		t.Errorf("%d %s", status, body)
	}
}
