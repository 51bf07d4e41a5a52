package parse

import (
	"encoding/json"
	"strings"
	"testing"
)

var typedFunctions = []Function{
	{"log_ev", json.RawMessage(`{"type":"object","properties":{"day":{"type":"integer"}}}`)},
	{"edit", json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}}}`)},
	{"exp", json.RawMessage(`{"type":"object","properties":{"formats":{"type":"array","items":{"type":"object"}},"flag":{"type":"boolean"}}}`)},
	{"opt", json.RawMessage(`{"type":"object","properties":{"n":{"anyOf":[{"type":"integer"},{"type":"null"}]},"m":{"$ref":"#/$defs/m"}},"$defs":{"m":{"type":["number","string"]}}}`)},
	{"srch", json.RawMessage(`{"type":"object","properties":{"limit":{"type":"number"},"tags":{"type":"array","items":{"type":"string"}},"on":{"type":"boolean"},"q":{"type":"string"}}}`)},
	{"wx", json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}`)},
}

var typedCases = []struct{ id, tools, reasoning, tail, text, want string }{
	{"B-016", "glm47", "", "", `<tool_call>get_now</tool_call>`, `0 get_now {}.`},
	{"B-017", "glm47", "", "", `<tool_call>run_in_terminal<arg_key>cmd</arg_key><arg_value>ls</arg_value></tool_call>`, `0 run_in_terminal {"cmd": "ls"}.`},
	{"B-018", "glm45", "", "", "<tool_call>srch\n<arg_key>limit</arg_key>\n<arg_value>10</arg_value>\n<arg_key>tags</arg_key>\n<arg_value>[]</arg_value>\n<arg_key>on</arg_key>\n<arg_value>true</arg_value>\n<arg_key>q</arg_key>\n<arg_value>10</arg_value>\n</tool_call>", `0 srch {"limit": 10, "tags": [], "on": true, "q": "10"}.`},
	{"B-021", "qwen3_coder", "", "", "<tool_call>\n<function=log_ev>\n<parameter=day>\n2031-02-03\n</parameter>\n</function>\n</tool_call>", `0 log_ev {"day": "2031-02-03"}.`},
	{"B-022", "qwen3_coder", "", "", "<tool_call>\n<function=edit>\n<parameter=path>\n/a.c\n<parameter=text>\nint x;\n</function>\n</tool_call>", `0 edit {"path": "/a.c", "text": "int x;"}.`},
	{"B-026", "qwen3_coder", "", "", "<tool_call>\n<function=exp>\n<parameter=formats>\n[\"md\"]\n</parameter>\n<parameter=flag>\nTrue\n</parameter>\n</function>\n</tool_call>", `0 exp {"formats": ["md"], "flag": true}.`},
	{"B-027a", "qwen3_coder", "", "", "<tool_call><function=opt><parameter=n>null</parameter></function></tool_call>", `0 opt {"n": null}.`},
	{"B-027b", "qwen3_coder", "", "", "<tool_call><function=opt><parameter=n>7</parameter></function></tool_call>", `0 opt {"n": 7}.`},
	{"B-027c", "qwen3_coder", "", "", "<tool_call><function=opt><parameter=n>x</parameter></function></tool_call>", `0 opt {"n": "x"}.`},
	{"reference", "qwen3_coder", "", "", "<tool_call><function=opt><parameter=m>1.50</parameter></function></tool_call>", `0 opt {"m": 1.50}.`},
	{"python literal", "qwen3_coder", "", "", "<tool_call><function=exp><parameter=formats>[{'a': None}]</parameter></function></tool_call>", `0 exp {"formats": [{"a": null}]}.`},
	// What is broken in its block is over with it, so that its arguments are JSON.
	{"no value", "glm45", "", "", `<tool_call>wx<arg_key>city</arg_key><arg_value>Ulm</arg_value><arg_key>days</arg_key>5</tool_call>!`, `0 wx {"city": "Ulm"}.|C !`},
	{"torn tag", "qwen3_coder", "", "", "<tool_call><function=wx><parameter=city>Ulm</parameter><parameter=da", `0 wx {"city": "Ulm"}.`},
	{"torn tag of an invocation", "minimax_m2", "", "", `<minimax:tool_call><invoke name="wx"><parameter name="city">Ulm</parameter><parameter na`, `0 wx {"city": "Ulm"}.`},
	{"text around", "qwen3_coder", "qwen3", "<think>\n", "hm\n</think>\n\nLook:\n\n<tool_call>\n<function=wx>\n<parameter=city>\nUlm\n\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=ping>\n</function>\n</tool_call>", "R hm|C Look:|0 wx {\"city\": \"Ulm\\n\"}.|1 ping {}."},
	{"no wrapper", "qwen3_coder", "", "", "<function=ping>\n</function>\n</tool_call>", `0 ping {}.`},
	{"seed", "seed_oss", "seed_oss", "", "<seed:think>a</seed:think>b<seed:tool_call>\n<function=wx>\n<parameter=city>Ulm</parameter>\n<parameter=days>5</parameter>\n</function>\n</seed:tool_call>", `R a|C b|0 wx {"city": "Ulm", "days": 5}.`},
	{"B-052", "minimax_m2", "", "", "<minimax:tool_call>\n<invoke name=\"wx\">\n<parameter name=\"city\">Ulm</parameter>\n<parameter name=\"days\">5</parameter>\n</invoke>\n</minimax:tool_call>", `0 wx {"city": "Ulm", "days": 5}.`},
	{"B-055", "minimax_m2", "", "", `<minimax:tool_call><invoke name="ping"></invoke></minimax:tool_call>`, `0 ping {}.`},
	{"B-056", "minimax_m2", "minimax_m2", "<think>\n", `so <minimax:tool_call><invoke name="edit"><parameter name="text"><think>x</think></parameter></invoke></minimax:tool_call>`, `R so|0 edit {"text": "<think>x</think>"}.`},
	{"C-010", "glm45", "glm45", "", "<think>let me <tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>", `R let me|0 f {"a": 1}.`},
	{"dsml", "deepseek_v3_2", "", "", "ok\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"s\" string=\"true\">a\n\"b\"\n</｜DSML｜parameter>\n<｜DSML｜parameter name=\"n\" string=\"false\">{\"x\": [1]}</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"g\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>", "C ok|0 f {\"s\": \"a\\n\\\"b\\\"\\n\", \"n\": {\"x\": [1]}}.|1 g {}."},
	{"dsml v4", "deepseek_v4", "deepseek_v4", "<think>", "t</think>\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"n\" string=\"false\">5</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>", `R t|0 f {"n": 5}.`},
	{"step3", "step3", "", "", `<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="wx"><steptml:parameter name="city">Ulm</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="ping"></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>`, `0 wx {"city": "Ulm"}.|1 ping {}.`},
	{"gemma4", "gemma4", "gemma4", "", "<|channel>thought\nhm<channel|><|tool_call>call:wx{city:<|\"|>Ulm<|\"|>,days:5}<tool_call|><|tool_call>call:ping{}<tool_call|>", `R hm|0 wx {"city": "Ulm", "days": 5}.|1 ping {}.`},
	{"longcat", "longcat", "", "", "<longcat_tool_call>wx\n<longcat_arg_key>days</longcat_arg_key>\n<longcat_arg_value>5</longcat_arg_value>\n</longcat_tool_call>", `0 wx {"days": 5}.`},
	{"ernie", "ernie45", "", "", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>", `0 f {"a": 1}.`},
	{"no call", "glm45", "", "", "a <tool_call>!</tool_call> b", `C a <tool_call>!</tool_call> b`},
	{"no call either", "minimax_m2", "", "", "a <minimax:tool_call> b", `C a <minimax:tool_call> b`},
}

func TestTypedFormats(t *testing.T) {
	for _, c := range typedCases {
		t.Run(c.id, func(t *testing.T) {
			o := Options{Tools: c.tools, Reasoning: c.reasoning, Tail: c.tail, Functions: typedFunctions}
			if got := read(t, o, false, c.text); got != c.want {
				t.Errorf("%q\n got %s\nwant %s", c.text, got, c.want)
			}
			law(t, lawText{name: c.id, tools: c.tools, reasoning: c.reasoning, tail: c.tail, text: c.text, fs: typedFunctions})
			full := arguments(t, o, c.text)
			for i := range c.text { // what is cut is a prefix of the whole
				for call, args := range arguments(t, o, c.text[:i]) {
					if call >= len(full) || !strings.HasPrefix(full[call], args) {
						t.Fatalf("cut at %d: call %d has %q, whole %q", i, call, args, full)
					}
				}
			}
		})
	}
}

// arguments are those of each call of an output that was cut.
func arguments(t *testing.T, o Options, text string) []string {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var out []string
	for _, e := range append(append([]Event{}, p.Feed(text)...), p.Finish(true)...) {
		switch e.Kind {
		case CallBegin:
			out = append(out, "")
		case CallArguments:
			out[e.Call] += e.Text
		}
	}
	return out
}

// A text as long as a file comes in pieces, and is not held.
func TestTypedTextStreams(t *testing.T) {
	p, err := New(Options{Tools: "qwen3_coder", Functions: typedFunctions})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Feed("<tool_call><function=edit><parameter=text>\n")
	for range 200 {
		if n := len(p.Feed("forty bytes of a text that is quite long")); n != 1 {
			t.Fatalf("%d events", n)
		}
	}
}
