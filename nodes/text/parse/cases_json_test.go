package parse

import (
	"fmt"
	"strings"
	"testing"
)

// What models write that is not as it should be, and what is near it and right.
var crookedCases = []struct {
	id, tools, reasoning, tail, text, want string
	cut                                    bool
	fs                                     []Function
}{
	// Calls that did not come to be one stay text, and what follows is read.
	{id: "no call in a call", tools: "hermes", text: `<tool_call>{"city": "Oslo <tool_call>{"name":"f","arguments":{}}</tool_call>`, want: `C <tool_call>{"city": "Oslo|0 f {}.`},
	{id: "no name", tools: "hermes", text: `<tool_call>{"arguments":{"a":1}}</tool_call>!`, want: `C <tool_call>{"arguments":{"a":1}}</tool_call>!`},
	{id: "name of another type", tools: "hermes", text: `<tool_call>{"name":1,"arguments":{}}</tool_call>`, want: `C <tool_call>{"name":1,"arguments":{}}</tool_call>`},
	{id: "B-004 behind a call", tools: "hermes", text: `<tool_call>{"name":"f","arguments":{}}</tool_call></tool_call>x`, want: `0 f {}.|C x`},
	{id: "one brace too many", tools: "hermes", text: `<tool_call>{"name":"f","arguments":{"a":1}}}</tool_call>x`, want: `0 f {"a":1}.|C x`},
	{id: "B-047 one brace too many", tools: "llama3_json", text: `{"name":"f","parameters":{"a":1}}}`, want: `0 f {"a":1}.`},
	{id: "one brace too few", tools: "hermes", text: "<tool_call>\n{\"name\":\"f\",\"arguments\":{\"a\":1}\n</tool_call>x", want: `0 f {"a":1}.|C x`},
	{id: "arguments without their brace", tools: "hermes", text: `<tool_call>{"name":"f","arguments":{"a":1</tool_call>x`, want: `0 f {"a":1.|C x`},
	{id: "junk behind arguments", tools: "hermes", text: `<tool_call>{"name":"f","arguments":{"a":1}, so}</tool_call>`, want: `0 f {"a":1}.|C , so}`},
	{id: "no end", tools: "hermes", text: "<tool_call>{\"name\":\"f\",\"arguments\":{}}\n<tool_call>{\"name\":\"g\",\"arguments\":{}}", want: `0 f {}.|1 g {}.`},
	{id: "objects with commas", tools: "hermes", text: `<tool_call>{"name":"f","arguments":{}},{"name":"g","arguments":{}}</tool_call>`, want: `0 f {}.|1 g {}.`},
	{id: "a list", tools: "hermes", text: `<tool_call>[{"name":"f","arguments":{}},{"name":"g","arguments":{}}]</tool_call>`, want: `0 f {}.|1 g {}.`},
	{id: "an empty list", tools: "jamba", text: `None.<tool_calls>[]</tool_calls>`, want: `C None.`},
	{id: "one of a list is none", tools: "jamba", text: `<tool_calls>[{"name":"f","arguments":{}}, {"x":1}]</tool_calls>`, want: `0 f {}.|C , {"x":1}]`},
	{id: "B-065 string arguments", tools: "jamba", text: `<tool_calls>[{"name":"f","arguments":"{\"a\": \"\u00e9\\n\"}"}]</tool_calls>`, want: `0 f {"a": "é\n"}.`},
	{id: "B-065 empty string", tools: "hermes", text: `<tool_call>{"name":"f","arguments":""}</tool_call>`, want: `0 f {}.`},
	{id: "pairs of surrogates", tools: "hermes", text: `<tool_call>{"name":"f\ud83d\ude00","arguments":"\ud83d\ude00\ud83d"}</tool_call>`, want: "0 f😀 😀\ufffd."},
	{id: "B-031, ended", tools: "kimi_k2", text: `<|tool_calls_section_begin|><|tool_call_begin|>functions.calc:0<|tool_call_argument_begin|>{"loc`, want: `0 calc {"loc`},
	{id: "B-031, ended, hermes", tools: "hermes", text: `<tool_call>{"name":"f","arguments":{"city":"Os`, want: `0 f {"city":"Os`},
	{id: "no UTF-8", tools: "hermes", text: "<tool_call>{\"name\":\"f\xff\",\"\xff\":\"\x00\xff\",\"arguments\":\"\xff\"}</tool_call>", want: "0 f\xff \xff."},
	{id: "ids of the model", tools: "hermes", text: `<tool_call>{"id":"1","name":"f","arguments":{}}</tool_call>`, want: `0 f {}.`},

	// What ends in the midst.
	{id: "cut in arguments", tools: "hermes", text: `<tool_call>{"name":"f","arguments":{"city":"Os`, cut: true, want: `0 f {"city":"Os`},
	{id: "cut before the name", tools: "hermes", text: `<tool_call>{"na`, cut: true, want: `C <tool_call>{"na`},
	{id: "cut in the name", tools: "mistral", text: `[TOOL_CALLS]get_wea`, cut: true, want: `C [TOOL_CALLS]get_wea`},
	{id: "B-031 no JSON", tools: "kimi_k2", text: `<|tool_calls_section_begin|><|tool_call_begin|>functions.calc:0<|tool_call_argument_begin|>{"loc`, cut: true, want: `0 calc {"loc`},
	{id: "B-044 truncated", tools: "pythonic", text: `[ask(queries=["a, b", "c"], opt={"k":[{"z":1}]})`, want: `0 ask {"queries": ["a, b", "c"], "opt": {"k": [{"z": 1}]}}.`},
	{id: "B-044 cut", tools: "pythonic", text: `[ask(queries=["a, b", "c`, cut: true, want: `0 ask {"queries": ["a, b", "c`},

	// Python.
	{id: "B-043 escapes", tools: "pythonic", text: `[put(a='\x41\u00e9\U0001f600', b="it's\td\d\/", c=+1.5e3, d=(1, None), e={1: True, 'k': False}, f=-2)]`,
		want: `0 put {"a": "Aé😀", "b": "it's\td\\d\\/", "c": 1.5e3, "d": [1, null], "e": {"1": true, "k": false}, "f": -2}.`},
	{id: "Python's numbers", tools: "pythonic", text: `[f(a=.5, b=-5., c=1_000, d=[1.e3, +.25], e=0), g()]`, want: `0 f {"a": 0.5, "b": -5.0, "c": 1000, "d": [1.0e3, 0.25], "e": 0}.|1 g {}.`},
	{id: "B-044 two calls", tools: "pythonic", text: "[f(), a.b-c(x='') ,\ng(y=[])]", want: `0 f {}.|1 a.b-c {"x": ""}.|2 g {"y": []}.`},
	{id: "B-046 list that is no call", tools: "pythonic", text: `[1, 2] are numbers`, want: `C [1, 2] are numbers`},
	{id: "B-046 link", tools: "pythonic", text: `[see](http://x)`, want: `C [see](http://x)`},
	{id: "strings side by side", tools: "pythonic", text: `[f(a='x' "y", b="")]`, want: `0 f {"a": "xy", "b": ""}.`},
	{id: "positional", tools: "pythonic", text: `[f("x")]`, want: `C [f("x")]`},
	{id: "python marks", tools: "pythonic", text: `<|python_start|>[f(a=1)]<|python_end|>`, want: `0 f {"a": 1}.`},

	// Answers that are near a call.
	{id: "B-046 answer", tools: "llama3_json", text: `{"name":"Ann","age":3}`, want: `C {"name":"Ann","age":3}`},
	{id: "B-046 answer with arguments", tools: "llama3_json", text: `{"name":"Ann","arguments":[1]}`, want: `C {"name":"Ann","arguments":[1]}`},
	{id: "JSON in the midst", tools: "llama3_json", text: `So: {"name":"f","parameters":{}}`, want: `C So: {"name":"f","parameters":{}}`},
	{id: "B-068 prose", tools: "phi4", text: `import functools; functools.reduce [x]`, want: `C import functools; functools.reduce [x]`},
	{id: "fence", tools: "xlam", text: "```json\n{\"name\": \"Ann\"}\n```", want: "C ```json\n{\"name\": \"Ann\"}\n```"},
	{id: "xlam fence", tools: "xlam", text: "```json\n[{\"name\": \"f\", \"arguments\": {}}]\n```", want: "0 f {}."},

	{id: "llama list", tools: "llama3_json", text: `[{"name":"f","parameters":{}}, {"name":"g","parameters":{}}]`, want: `0 f {}.|1 g {}.`},
	{id: "llama list of answers", tools: "llama3_json", text: `[{"name":"Ann"}]`, want: `C [{"name":"Ann"}]`},
	{id: "llama list behind its mark", tools: "llama3_json", text: `<|python_tag|>[{"name":"f","parameters":{}}]`, want: `0 f {}.`},
	{id: "B-068 phi4-mini", tools: "phi4", text: `<|tool_call|>[{"name":"f","arguments":{}}]<|/tool_call|>`, want: `0 f {}.`},
	{id: "python blanks", tools: "pythonic", text: "[ f ( a = 1 , b = 'x' ) ]", want: `0 f {"a": 1, "b": "x"}.`},
	{id: "lfm2", tools: "pythonic", text: "A<|tool_call_start|>[f(a=1)]<|tool_call_end|>B", want: `C A|0 f {"a": 1}.|C B`},

	// Mistral.
	{id: "B-008 ids", tools: "mistral", text: `[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"a":1}[TOOL_CALLS]g{"b":2}`, want: `0 f {"a":1}.|1 g {"b":2}.`},
	{id: "B-008 prose", tools: "mistral", text: `A [TOOL_CALLS] mark, [TOOL_x`, want: `C A [TOOL_CALLS] mark, [TOOL_x`},
	{id: "C-018 thought", tools: "mistral", reasoning: "mistral", text: `[THINK]a[/THINK][TOOL_CALLS][{"name":"f","arguments":{}}]`, want: `R a|0 f {}.`},

	// DeepSeek, Kimi.
	{id: "B-012 two", tools: "deepseek_v3_1", text: "x<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁call▁begin｜>g<｜tool▁sep｜>{\"s\":\"<｜tool▁call▁end｜>\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>y",
		want: `C x|0 f {}.|1 g {"s":"<｜tool▁call▁end｜>"}.|C y`},
	{id: "B-030 no name", tools: "kimi_k2", text: `<|tool_call_begin|>call_ab12<|tool_call_argument_begin|>{"e":"1"}<|tool_call_end|>`,
		want: `C call_ab12{"e":"1"}`},
	{id: "B-030 known name", tools: "kimi_k2", fs: []Function{{Name: "calc"}}, text: `<|tool_call_begin|>calc<|tool_call_argument_begin|>{"e":"1"}<|tool_call_end|>`, want: `0 calc {"e":"1"}.`},

	// Harmony.
	{id: "prompt has the role", tools: "harmony", reasoning: "gpt_oss", tail: "<|end|><|start|>assistant", text: ` to=functions.f<|channel|>commentary<|message|>{}<|call|>`, want: `0 f {}.`},
	{id: "prompt has the channel", tools: "harmony", reasoning: "gpt_oss", tail: "<|start|>assistant<|channel|>analysis<|message|>So", text: ` be it.<|end|><|start|>assistant<|channel|>final<|message|>Hi`, want: `R be it.|C Hi`},
	{id: "plain", tools: "harmony", reasoning: "gpt_oss", tail: "<|start|>assistant", text: `final answer <b>: assistant`, want: `C final answer <b>: assistant`},
	{id: "B-035 no body", tools: "harmony", reasoning: "gpt_oss", text: `<|channel|>final Hello<|return|>`, want: `C  Hello`},
	{id: "B-034 call stops the engine", tools: "harmony", reasoning: "gpt_oss", text: `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a":1}`, want: `0 f {"a":1}.`},
	{id: "B-034 cut", tools: "harmony", reasoning: "gpt_oss", text: `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a":`, cut: true, want: `0 f {"a":`},
	{id: "B-037 analysis", tools: "harmony", reasoning: "gpt_oss", text: `<|channel|>analysis to=functions.f code<|message|>{"a":1}<|call|><|start|>assistant<|channel|>analysis<|message|>t`, want: `0 f {"a":1}.|R t`},
	{id: "B-040 known recipient", tools: "harmony", fs: []Function{{Name: "f"}}, text: `<|channel|>commentary to=f<|message|>{}<|call|>`, want: `0 f {}.`},
	{id: "B-040 unknown recipient", tools: "harmony", text: `<|channel|>commentary to=browser<|message|>{}<|call|>`, want: `C {}`},
	{id: "B-071 no tools", reasoning: "gpt_oss", text: `<|channel|>commentary to=functions.f<|message|>{}<|call|>`, want: `C {}`},
}

func TestCrooked(t *testing.T) {
	for _, c := range crookedCases {
		t.Run(c.id, func(t *testing.T) {
			o := Options{Tools: c.tools, Reasoning: c.reasoning, Tail: c.tail, Functions: c.fs}
			if got := read(t, o, c.cut, c.text); got != c.want {
				t.Errorf("%q\n got %s\nwant %s", c.text, got, c.want)
			}
			law(t, lawText{name: c.id, tools: c.tools, reasoning: c.reasoning, tail: c.tail, text: c.text, fs: c.fs})
		})
	}
}

// TestStream is B-063: arguments come as they are written, a call's name and id once.
func TestStream(t *testing.T) {
	for tools, wire := range map[string][2]string{
		"hermes":        {`<tool_call>{"name":"f","arguments":{"s":"`, `"}}</tool_call>`},
		"jamba":         {`<tool_calls>[{"name":"f","arguments":"{\"s\":\"`, `\"}"}]</tool_calls>`},
		"pythonic":      {`[f(s='`, `')]`},
		"mistral":       {`[TOOL_CALLS]f[ARGS]{"s":"`, `"}`},
		"harmony":       {`<|channel|>commentary to=functions.f<|message|>{"s":"`, `"}<|call|>`},
		"deepseek_v3_1": {`<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"s":"`, `"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`},
		"functiongemma": {`<start_function_call>call:f{s:<escape>`, `<escape>}<end_function_call>`},
	} {
		t.Run("B-063 "+tools, func(t *testing.T) {
			p, err := New(Options{Tools: tools})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			word := strings.Repeat("x", 40) + " "
			pieces, begins := 0, 0
			count := func(events []Event) {
				for _, e := range events {
					switch e.Kind {
					case CallArguments:
						pieces++
					case CallBegin:
						if begins++; e.ID == "" || e.Name != "f" {
							t.Errorf("%+v", e)
						}
					}
				}
			}
			count(p.Feed(wire[0]))
			for range 200 {
				before := pieces
				count(p.Feed(word))
				if pieces != before+1 {
					t.Fatalf("%d pieces of a delta", pieces-before)
				}
			}
			count(p.Feed(wire[1]))
			if count(p.Finish(false)); begins != 1 {
				t.Errorf("%d calls", begins)
			}
		})
	}
}

// TestIDs: each call has its own; B-011: those of Mistral's models are nine letters.
func TestIDs(t *testing.T) {
	ids := func(tools, text string) (out []string) {
		p, err := New(Options{Tools: tools})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range append(append([]Event(nil), p.Feed(text)...), p.Finish(false)...) {
			if e.Kind == CallBegin {
				out = append(out, e.ID)
			}
		}
		return out
	}
	call := `{"name":"f","id":"1","arguments":{}}`
	for _, c := range []struct {
		tools, text string
		length      int
		prefix      string
	}{
		{"hermes", "<tool_call>" + call + "</tool_call><tool_call>" + call + "</tool_call>", 29, "call_"},
		{"B-050 llama3_json", call + ";" + call, 29, "call_"},
		{"B-011 mistral", "[TOOL_CALLS][" + call + "," + call + "]", 9, ""},
	} {
		got := ids(c.tools[strings.LastIndex(c.tools, " ")+1:], c.text)
		if len(got) != 2 || got[0] == got[1] || len(got[0]) != c.length || !strings.HasPrefix(got[0], c.prefix) {
			t.Errorf("%s: %q", c.tools, got)
		}
	}
	if got := ids("mistral", `[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{}`); fmt.Sprint(got) != "[abcdefghi]" {
		t.Errorf("mistral: %q", got)
	}
	one := `<|tool_call_begin|>functions.f:3<|tool_call_argument_begin|>{}<|tool_call_end|>`
	if got := ids("kimi_k2", one+one); len(got) != 2 || got[0] != "functions.f:3" || got[1] == got[0] {
		t.Errorf("kimi_k2: %q", got)
	}
}

// TestOneCall: calls behind the first are dropped.
func TestOneCall(t *testing.T) {
	text := `<tool_call>{"name":"f","arguments":{"a":1}}</tool_call><tool_call>{"name":"g","arguments":{"a":1}}</tool_call> so`
	if got, want := read(t, Options{Tools: "hermes", OneCall: true}, false, text), `0 f {"a":1}.|C so`; got != want {
		t.Errorf("%s", got)
	}
}
