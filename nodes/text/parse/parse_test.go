package parse

import (
	"fmt"
	"strings"
	"testing"
)

// told is what events say, merged: what must not depend on how an output was split.
func told(events []Event) string {
	var b strings.Builder
	last := Event{}
	for _, e := range events {
		e.ID = ""
		switch {
		case e.Kind == last.Kind && e.Call == last.Call && (e.Kind == Content || e.Kind == Reasoning || e.Kind == CallArguments):
			b.WriteString(e.Text)
		case e.Kind == Content:
			b.WriteString("|C " + e.Text)
		case e.Kind == Reasoning:
			b.WriteString("|R " + e.Text)
		case e.Kind == CallBegin:
			fmt.Fprintf(&b, "|%d %s", e.Call, e.Name)
		case e.Kind == CallArguments:
			b.WriteString(" " + e.Text)
		case e.Kind == CallEnd:
			b.WriteString(".")
		}
		last = e
	}
	return strings.TrimPrefix(b.String(), "|")
}

// read feeds pieces and returns what they told.
func read(t testing.TB, o Options, cut bool, pieces ...string) string {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var all []Event
	for _, s := range pieces {
		all = append(all, p.Feed(s)...)
	}
	return told(append(all, p.Finish(cut)...))
}

var jsonCases = []struct {
	id, tools, reasoning, tail, text, want string
}{
	{"B-001", "hermes", "", "", `Let me look. <tool_call>{"name":"find_bus","arguments":{"stop":"K4"}}</tool_call>`, `C Let me look.|0 find_bus {"stop":"K4"}.`},
	{"B-003", "hermes", "", "", "<tool_call>\n{\"name\":\"a1\",\"arguments\":{\"x\":1}}\n</tool_call>\n<tool_call>\n{\"name\":\"b2\",\"arguments\":{\"y\":\"</z>\"}}\n</tool_call>", `0 a1 {"x":1}.|1 b2 {"y":"</z>"}.`},
	{"B-004", "hermes", "", "", "Done.</tool_call> And more", "C Done. And more"},
	{"B-005", "hermes", "", "", "5 < 6 and <tool_box> end", "C 5 < 6 and <tool_box> end"},
	{"B-006", "mistral", "", "", `[TOOL_CALLS][{"name":"find_bus","arguments":{"stop":"K4"}}][/TOOL_CALLS]`, `0 find_bus {"stop":"K4"}.`},
	{"B-007", "mistral", "", "", `[TOOL_CALLS][{"name":"a","arguments":{"v":[1,[2,3]]}}, {"name":"b","arguments":{"t":"]}"}}][/TOOL_CALLS]`, `0 a {"v":[1,[2,3]]}.|1 b {"t":"]}"}.`},
	{"B-008", "mistral", "", "", `[TOOL_CALLS]get_file[ARGS]{"path":"/a/b.txt"}`, `0 get_file {"path":"/a/b.txt"}.`},
	{"B-012", "deepseek_v3_1", "", "", `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>find_bus<｜tool▁sep｜>{"stop":"K4"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`, `0 find_bus {"stop":"K4"}.`},
	{"deepseek v3", "deepseek_v3", "", "", "Sure.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", `C Sure.|0 f {"a": 1}.|1 g {}.`},
	{"B-029", "kimi_k2", "", "", `<|tool_calls_section_begin|><|tool_call_begin|>functions.calc:0<|tool_call_argument_begin|>{"e":"1"}<|tool_call_end|><|tool_calls_section_end|>ok`, `0 calc {"e":"1"}.|C ok`},
	{"B-030", "kimi_k2", "", "", `<|tool_call_section_begin|><|tool_call_begin|>functions.calc:0<|tool_call_argument_begin|>{"e":"1"}<|tool_call_end|><|tool_call_section_end|>`, `0 calc {"e":"1"}.`},
	{"B-031", "kimi_k2", "", "", `<|tool_calls_section_begin|><|tool_call_begin|>functions.calc:0<|tool_call_argument_begin|>{"loc":1}`, `0 calc {"loc":1}.`},
	{"B-033", "harmony", "gpt_oss", "", `<|channel|>commentary to=functions.set_t <|constrain|>json<|message|>{"c":"20"}<|call|>`, `0 set_t {"c":"20"}.`},
	{"B-034", "harmony", "gpt_oss", "", `<|start|>assistant<|channel|>commentary to=functions.web-look <|constrain|>json<|message|>{}<|call|>`, `0 web-look {}.`},
	{"B-035", "harmony", "gpt_oss", "", `<|channel|>––commentary<|message|>hi<|end|>`, `C hi`},
	{"B-035b", "harmony", "gpt_oss", "", `<|channel|>commentary<|constrain|>response<|message|>x<|return|>`, `C x`},
	{"B-037", "harmony", "gpt_oss", "", `<|start|>assistant to=functions.f<|channel|>commentary <|constrain|>json<|message|>{"a":1}<|call|>`, `0 f {"a":1}.`},
	{"B-039", "harmony", "gpt_oss", "", `<|channel|>commentary?commentary?<|channel|>analysis<|message|>t<|end|><|start|>assistant<|channel|>final<|message|>Hi<|return|>`, `R t|C Hi`},
	{"B-040", "harmony", "gpt_oss", "", `<|channel|>commentary<|message|>I will check two things.<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>`, `C I will check two things.|0 f {}.`},
	{"B-041", "pythonic", "", "", `[run(cmd='grep -F "]" a.txt')]`, `0 run {"cmd": "grep -F \"]\" a.txt"}.`},
	{"B-043", "pythonic", "", "", "[put(text='line1\nline2')]", `0 put {"text": "line1\nline2"}.`},
	{"B-044", "pythonic", "", "", `[ask(queries=["a, b", "c"], opt={"k":[{"z":1}]})]`, `0 ask {"queries": ["a, b", "c"], "opt": {"k": [{"z": 1}]}}.`},
	{"B-046", "pythonic", "", "", `{"type":"function","name":"sh","parameters":{"cmd":"ls"}}`, `0 sh {"cmd":"ls"}.`},
	{"B-046b", "pythonic", "", "", `{"name":"Ann"}`, `C {"name":"Ann"}`},
	{"B-047", "llama3_json", "", "", `<|python_tag|>{"name":"srch","parameters":{"f":{"a":{"b":1}},"q":"}"}}`, `0 srch {"f":{"a":{"b":1}},"q":"}"}.`},
	{"B-049", "llama3_json", "", "", "{\"type\":\"function\",\"name\":\"open_list\",\"parameters\":{}} \n\nAnything else?", "0 open_list {}.|C Anything else?"},
	{"B-050", "llama3_json", "", "", `Both: <|python_tag|>{"name":"a","arguments":{"x":1}};{"name":"a","arguments":{"x":2}} Done.`, `C Both:|0 a {"x":1}.|1 a {"x":2}.|C   Done.`},
	{"B-065a", "hermes", "", "", `<tool_call>{"name":"","arguments":{}}</tool_call>`, `C <tool_call>{"name":"","arguments":{}}</tool_call>`},
	{"B-065b", "hermes", "", "", `<tool_call>{"name":"f","arguments":"{\"a\":1}"}</tool_call>`, `0 f {"a":1}.`},
	{"B-065c", "hermes", "", "", `<tool_call>{"name":"f","arguments":null}</tool_call>`, `0 f {}.`},
	{"B-065d", "hermes", "", "", `<tool_call>{"name":"f"}</tool_call>`, `0 f {}.`},
	{"B-067", "hermes", "", "", "<tool_call>{\"name\": \"f\", \"arguments\": {\n  \"b\": 1,\n  \"a\": 2\n}}</tool_call>", "0 f {\n  \"b\": 1,\n  \"a\": 2\n}."},
	{"B-068", "phi4", "", "", `functools[{"name":"f","arguments":{"a":1}}]`, `0 f {"a":1}.`},
	{"B-068b", "phi4", "", "", `functional code`, `C functional code`},
	{"B-069a", "nemotron_deci", "", "", `<TOOLCALL>[{"name":"f","arguments":{"a":"</TOOLCALL>"}}]</TOOLCALL>`, `0 f {"a":"</TOOLCALL>"}.`},
	{"B-069b", "jamba", "", "", "<tool_calls>[\n {\"name\":\"f\",\"arguments\":{}}\n]</tool_calls>", `0 f {}.`},
	{"B-069c", "granite", "", "", `<|tool_call|>[{"name":"f","arguments":{}}]`, `0 f {}.`},
	{"arguments first", "hermes", "", "", `<tool_call>{"arguments":{"a":1},"name":"f"}</tool_call> so`, `0 f {"a":1}.|C so`},
	{"no JSON", "hermes", "", "", `<tool_call>f(1)</tool_call> so`, `C <tool_call>f(1)</tool_call> so`},
	{"broken arguments", "hermes", "", "", `<tool_call>{"name":"f","arguments":{"a":1]}</tool_call>so`, `0 f {"a":1]}.|C so`},
	{"function object", "hermes", "", "", `<tool_call>{"type":"function","function":{"name":"f","arguments":"{}"}}</tool_call>`, `0 f {}.`},
	{"functiongemma", "functiongemma", "", "", `<start_function_call>call:get{city:<escape>Ulm "x"<escape>,n:3,l:[1,true],o:{k:null}}<end_function_call>`, `0 get {"city": "Ulm \"x\"", "n": 3, "l": [1, true], "o": {"k": null}}.`},
	{"olmo3", "olmo3", "olmo3", "", "why</think>\n<function_calls>f(a=1)\ng()</function_calls> ok", `R why|0 f {"a": 1}.|1 g {}.|C ok`},
	{"json fallback", "json", "", "", `[{"name":"f","parameters":{"a":1}},{"name":"g","parameters":{}}]`, `0 f {"a":1}.|1 g {}.`},
	{"C-001", "", "qwen3", "assistant\n<think>\n", "plan…\n</think>\n\nHi", "R plan…|C Hi"},
	{"C-004", "", "deepseek_r1", "", "ab</think>cd", "R ab|C cd"},
	{"C-005", "", "glm45", "<think>", "r1</think>mid<think>r2</think>end", "R r1|C mid|R r2|C end"},
	{"C-007", "", "basic", "", "before <think>x</think> after", "C before|R x|C   after"},
	{"C-013", "", "qwen3", "", "</think>\n\nAnswer", "C Answer"},
	{"C-015", "", "granite", "", "Here's my thought process:\nA\nHere's my response:\nB", "R A|C B"},
	{"C-017", "", "minimax_append_think", "<think>\n", "A</think>B", "C <think>A</think>B"},
	{"C-017b", "", "minimax_m2", "<think>\n", "A</think>B", "R A|C B"},
	{"C-018", "mistral", "mistral", "", "[THINK]A[/THINK]B[TOOL_CALLS]f[ARGS]{}", "R A|C B|0 f {}."},
	{"C-019", "harmony", "gpt_oss", "", "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>", "R A|C B"},
	{"C-020", "", "deepseek_v3", "<｜Assistant｜></think>", "Hi", "C Hi"},
	{"C-020b", "", "deepseek_v3", "<｜Assistant｜><think>", "A</think>Hi", "R A|C Hi"},
	{"in thoughts", "hermes", "qwen3", "<think>\n", "let me <tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>", "R let me|0 f {}."},
}

func TestFormats(t *testing.T) {
	for _, c := range jsonCases {
		t.Run(c.id, func(t *testing.T) {
			o := Options{Tools: c.tools, Reasoning: c.reasoning, Tail: c.tail}
			got := read(t, o, false, c.text)
			if got != c.want {
				t.Errorf("%q\n got %s\nwant %s", c.text, got, c.want)
			}
			law(t, lawText{name: c.id, tools: c.tools, reasoning: c.reasoning, tail: c.tail, text: c.text})
		})
	}
}
