package preprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
	"github.com/dynamograph/dynamo/nodes/text/constrain"
)

// toolChat shows tools, calls and results, and opens a turn that thinks where thinking is set.
const toolChat = `{% if tools %}tools:{% for t in tools %}{{ t.function.name }} {% endfor %}{% endif %}` +
	`{% for m in messages %}<|im_start|>{{ m['role'] }}` + "\n" + `{{ m['content'] }}{{ m.reasoning_content }}<|im_end|>` + "\n" + `{% endfor %}` +
	`{% if add_generation_prompt %}<|im_start|>assistant` + "\n" + `{% if enable_thinking %}<think>{% endif %}{% endif %}`

// model is a served model whose parsers the graph names.
func modelOf(t testing.TB, tmpl, tools, reasoning string, e *engine) *Node {
	t.Helper()
	h := kindtest.NewHost(t, "preprocess", "preprocess-1", nil)
	h.AllModels = []*kind.Model{{Name: "m", Names: []string{"tiny"}, Path: modelFile(t, tmpl), Context: 400, Tools: tools, Reasoning: reasoning}}
	h.Dialled = map[string]any{"out": flow.Static[*llm.TokensRequest, *llm.TokensDelta]{{ID: "w-1", Node: "w", AsyncEngine: e}}}
	n := New(Config{}, h)
	if err := n.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

const someTools = `[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}},` +
	`{"type":"function","function":{"name":"g"}}]`

func withTools(mode llm.ToolMode) *llm.ChatRequest {
	r := chat("hi")
	r.Tools, r.ToolChoice.Mode = json.RawMessage(someTools), mode
	return r
}

// told writes an answer as |R:reasoning|T:text|0:name=arguments, in its order.
func told(n *Node, r *llm.ChatRequest) (out string, last llm.ChatDelta, err error) {
	var kind string
	for d, err := range n.Generate(context.Background(), r) {
		if err != nil {
			return out, last, err
		}
		add := func(k, text string) {
			if kind != k {
				out += "|" + k + ":"
			}
			kind = k
			out += text
		}
		if d.Reasoning != "" {
			add("R", d.Reasoning)
		}
		if d.Text != "" {
			add("T", d.Text)
		}
		for _, c := range d.Calls {
			if (c.ID == "") != (c.Name == "") {
				out += "half a begin"
			}
			if c.Name != "" {
				add(fmt.Sprint(c.Index), c.Name+"=")
			}
			add(fmt.Sprint(c.Index), c.Arguments)
		}
		last = *d
	}
	return out, last, nil
}

// wrote plays text in deltas of size tokens, of a byte each.
func wrote(text string, size int, finish llm.FinishReason) []*llm.TokensDelta {
	var out []*llm.TokensDelta
	ids := tokens(text)
	all := len(ids)
	for len(ids) > 0 {
		k := min(size, len(ids))
		out = append(out, &llm.TokensDelta{Tokens: ids[:k]})
		ids = ids[k:]
	}
	return append(out, &llm.TokensDelta{Finish: finish, Usage: &llm.Usage{Prompt: 7, Completion: all}})
}

const hermesCall = `<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>`

// What a model writes is told apart the same way however it is cut, and its tokens are counted once.
func TestReads(t *testing.T) {
	for _, c := range []struct {
		name, text      string
		finish          llm.FinishReason
		mode            llm.ToolMode
		stop            string
		want            string
		thought, tokens int
	}{
		{"content", "Hello", llm.FinishStop, llm.ToolAuto, "", "|T:Hello", 0, 5},
		{"a call", hermesCall, llm.FinishStop, llm.ToolAuto, "", `|0:f={"a":1}`, 0, len(hermesCall)},
		{"B-071", hermesCall, llm.FinishStop, llm.ToolNone, "", "|T:" + hermesCall, 0, len(hermesCall)},
		{"thought", "<think>so</think>yes", llm.FinishStop, llm.ToolNone, "", "|R:so|T:yes", 17, 20},
		{"cut in a call", `<tool_call>{"name":"f","arguments":{"a":`, llm.FinishLength, llm.ToolAuto, "", `|0:f={"a":`, 0, 40},
		{"cut in thought", "<think>so", llm.FinishLength, llm.ToolAuto, "", "|R:so", 9, 9},
		{"C-012", "<think>compare 9.11 and 9.8 or", llm.FinishLength, llm.ToolAuto, "9.8", "|R:compare 9.11 and ", 27, 27},
	} {
		for _, size := range []int{1, 3, 1000} {
			e := &engine{deltas: wrote(c.text, size, c.finish)}
			n := modelOf(t, toolChat, "hermes", "qwen3", e)
			r := withTools(c.mode)
			if c.stop != "" {
				r.StopStrings, c.finish = []string{c.stop}, llm.FinishStop
			}
			got, last, err := told(n, r)
			if err != nil || got != c.want || last.Finish != c.finish || last.Usage == nil ||
				last.Usage.Completion != c.tokens || last.Usage.Reasoning != c.thought {
				t.Errorf("%s by %d: %v %s, want %s; %+v %+v", c.name, size, err, got, c.want, last.Finish, last.Usage)
			}
		}
	}
}

// Case D-026 (ai-dynamo/dynamo#7391): tools that may not be called are not shown. Case D-027 (ai-dynamo/dynamo#13396, #13431): others are.
func TestCaseD026D027(t *testing.T) {
	e := &engine{deltas: each(llm.FinishStop)}
	n := modelOf(t, toolChat, "hermes", "", e)
	prompt := func(r *llm.ChatRequest) string {
		if g := ask(n, r); g.err != nil {
			t.Fatal(g.err)
		}
		return n.models["tiny"].tok.Decode(e.got.Tokens, true)
	}
	plain, none, auto := prompt(chat("hi")), prompt(withTools(llm.ToolNone)), prompt(withTools(llm.ToolAuto))
	if none != plain || auto != "tools:f g "+plain {
		t.Errorf("without %q, none %q, auto %q", plain, none, auto)
	}
}

// The start state comes from the prompt: a template that opened the reasoning, and one that did not.
func TestThinkingPrompt(t *testing.T) {
	for _, c := range []struct{ args, effort, want string }{
		{"", "", "|T:so"}, {`{"enable_thinking":true}`, "", "|R:so"}, {"", "low", "|R:so"}, {"", "none", "|T:so"},
	} {
		n := modelOf(t, toolChat, "", "qwen3", &engine{deltas: wrote("so", 1, llm.FinishLength)})
		r := chat("hi")
		r.TemplateArgs, r.Effort = json.RawMessage(c.args), c.effort
		if got, _, err := told(n, r); err != nil || got != c.want {
			t.Errorf("%s %s: %v %s, want %s", c.args, c.effort, err, got, c.want)
		}
	}
}

// Case C-021: a template finds earlier reasoning under its own name for it, whatever the client's.
func TestCaseC021(t *testing.T) {
	e := &engine{deltas: each(llm.FinishStop)}
	n := modelOf(t, toolChat, "", "qwen3", e)
	for _, name := range []string{"reasoning", "reasoning_content"} {
		r := chat("")
		r.Messages = json.RawMessage(`[{"role":"assistant","content":"a","` + name + `":"so"},{"role":"user","content":"b"}]`)
		if g := ask(n, r); g.err != nil || !strings.Contains(n.models["tiny"].tok.Decode(e.got.Tokens, true), "aso<|im_end|>") {
			t.Errorf("%s: %v %q", name, g.err, n.models["tiny"].tok.Decode(e.got.Tokens, true))
		}
	}
}

// What cannot be done is refused before any engine sees it, with the field and the way out.
func TestToolsRefused(t *testing.T) {
	named := withTools(llm.ToolNamed)
	named.ToolChoice.Name = "nope"
	bare := chat("hi")
	bare.ToolChoice.Mode = llm.ToolRequired
	effort := chat("hi")
	effort.Effort = "high"
	odd := withTools(llm.ToolAuto)
	odd.Tools = json.RawMessage(`{"a":1}`)
	nameless := withTools(llm.ToolAuto)
	nameless.Tools = json.RawMessage(`[{}]`)
	completion := withTools(llm.ToolAuto)
	completion.Messages, completion.Prompt = nil, "a"
	for _, c := range []struct {
		name, tmpl, tools string
		r                 *llm.ChatRequest
		param, msg        string
	}{
		{"no format", toolChat, "", withTools(llm.ToolAuto), "tools", "set models.m.tools of the graph to one of"},
		{"a template without tools", chatML, "hermes", withTools(llm.ToolAuto), "tools", "does not show them"},
		{"B-072 unknown", toolChat, "hermes", named, "tool_choice", `"nope" is none of tools`},
		{"B-072 none", toolChat, "hermes", bare, "tool_choice", "no tools"},
		{"effort", chatML, "", effort, "reasoning_effort", "nothing tells the model"},
		{"no array", toolChat, "hermes", odd, "tools", "tools: "},
		{"no name", toolChat, "hermes", nameless, "tools", "no name"},
		{"completion", toolChat, "hermes", completion, "tools", "only chats"},
	} {
		e := &engine{}
		_, _, err := told(modelOf(t, c.tmpl, c.tools, "", e), c.r)
		var f *flow.Error
		if !errors.As(err, &f) || f.Class != flow.InvalidRequest || f.Param != c.param || !strings.Contains(f.Msg, c.msg) || e.got != nil {
			t.Errorf("%s: %#v", c.name, err)
		}
	}
}

// A format that nobody reads ends the start, where it came past the compiler.
func TestUnknownFormat(t *testing.T) {
	h := kindtest.NewHost(t, "preprocess", "preprocess-1", nil)
	h.AllModels = []*kind.Model{{Name: "m", Names: []string{"tiny"}, Path: modelFile(t, toolChat), Tools: "klingon"}}
	if err := New(Config{}, h).Start(context.Background()); err == nil || !strings.Contains(err.Error(), `models.m.tools: "klingon" is not read`) {
		t.Error(err)
	}
	if !parses("tools", "hermes") || !parses("tools", "qwen25") || parses("tools", "klingon") || !parses("reasoning", "qwen3") || parses("reasoning", "hermes") {
		t.Error("formats that are read")
	}
}

// TestBound checks what engines are told about the output.
func TestBound(t *testing.T) {
	form := &llm.Constraint{Regex: "a+"}
	strict := `[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}},` +
		`{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{"b":{"type":"integer"}}}}}]`
	for _, c := range []struct {
		name, tools, reasoning string
		set                    func(r *llm.ChatRequest)
		want, not, after       string // in and not in the structural tag; "": no constraint
	}{
		{"nothing", "hermes", "qwen3", func(*llm.ChatRequest) {}, "", "", ""},
		{"auto", "hermes", "qwen3", func(r *llm.ChatRequest) { r.Tools = json.RawMessage(someTools) }, "", "", ""},
		{"auto, strict", "hermes", "qwen3", func(r *llm.ChatRequest) { r.Tools = json.RawMessage(strict) }, `"triggers":["<tool_call>"]`, `"b":`, ""},
		{"required", "hermes", "", func(r *llm.ChatRequest) { r.Tools, r.ToolChoice.Mode = json.RawMessage(strict), llm.ToolRequired }, `"b":`, "triggers", ""},
		{"named", "hermes", "", func(r *llm.ChatRequest) {
			r.Tools, r.ToolChoice = json.RawMessage(strict), llm.ToolChoice{Mode: llm.ToolNamed, Name: "g"}
		}, `"b":`, `"a":`, ""},
		{"required, may think", "hermes", "qwen3", func(r *llm.ChatRequest) { r.Tools, r.ToolChoice.Mode = json.RawMessage(strict), llm.ToolRequired },
			`{"begin":"<think>","content":{"type":"any_text"},"end":"</think>","type":"tag"}`, "", ""},
		{"required, thinks", "hermes", "qwen3", func(r *llm.ChatRequest) {
			r.Tools, r.ToolChoice.Mode, r.Effort = json.RawMessage(strict), llm.ToolRequired, "high"
		}, `"b":`, "<think>", "</think>"},
		{"required, no format", "", "", func(r *llm.ChatRequest) { r.Tools, r.ToolChoice.Mode = json.RawMessage(strict), llm.ToolRequired },
			`"begin":"{\"name\": \"g\", \"parameters\": "`, "", ""},
		{"required, one", "", "", func(r *llm.ChatRequest) {
			r.Tools, r.ToolChoice.Mode, r.OneCall = json.RawMessage(strict), llm.ToolRequired, true
		},
			`"stop_after_first":true`, "", ""},
		{"auto or a form", "hermes", "", func(r *llm.ChatRequest) { r.Tools, r.Constraint = json.RawMessage(someTools), form },
			`{"pattern":"a+","type":"regex"}],"type":"or"}`, "", ""},
		{"a form, may think", "", "qwen3", func(r *llm.ChatRequest) { r.Constraint = &llm.Constraint{Choice: []string{"x", "y"}} }, `{"type":"const_string","value":"y"}`, "", ""},
		{"a grammar, may think", "", "qwen3", func(r *llm.ChatRequest) { r.Constraint = &llm.Constraint{Grammar: "g"} }, `{"grammar":"g","type":"grammar"}`, "", ""},
		{"a tag, may think", "", "qwen3", func(r *llm.ChatRequest) { r.Constraint = &llm.Constraint{Tags: `{"format":{"type":"any_text"}}`} }, `"type":"tag"},{"type":"any_text"}],"type":"sequence"}`, "", ""},
	} {
		e := &engine{deltas: each(llm.FinishStop)}
		r := chat("hi")
		c.set(r)
		g := ask(modelOf(t, toolChat, c.tools, c.reasoning, e), r)
		if g.err != nil {
			t.Errorf("%s: %v", c.name, g.err)
			continue
		}
		if c.want == "" {
			if e.got.Constraint != nil {
				t.Errorf("%s: %+v", c.name, e.got.Constraint)
			}
			continue
		}
		got := llm.Constraint{}
		if e.got.Constraint != nil {
			got = *e.got.Constraint
		}
		tags := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(got.Tags)
		if !json.Valid([]byte(got.Tags)) || !strings.Contains(tags, c.want) || c.not != "" && strings.Contains(tags, c.not) || got.After != c.after {
			t.Errorf("%s: after %q %s", c.name, got.After, tags)
		}
	}
	// A form alone stays as it came, behind thoughts.
	e := &engine{deltas: each(llm.FinishStop)}
	r := chat("hi")
	r.Constraint, r.Effort = form, "low"
	if g := ask(modelOf(t, toolChat, "", "qwen3", e), r); g.err != nil || e.got.Constraint.Regex != "a+" || e.got.Constraint.After != "</think>" || form.After != "" {
		t.Errorf("%v %+v", g.err, e.got.Constraint)
	}
	r.Constraint, r.Effort = form, ""
	if g := ask(modelOf(t, toolChat, "", "", e), r); g.err != nil || e.got.Constraint != form {
		t.Errorf("%v %+v", g.err, e.got.Constraint)
	}
}

// One call is wanted: the work below ends behind it, and what it says further is not given.
func TestOneCall(t *testing.T) {
	for _, size := range []int{1, 1000} {
		e := &engine{deltas: wrote(hermesCall+hermesCall+" more", size, llm.FinishLength)}
		r := withTools(llm.ToolAuto)
		r.OneCall = true
		got, last, err := told(modelOf(t, toolChat, "hermes", "", e), r)
		if err != nil || !strings.HasPrefix(got, `|0:f={"a":1}`) || strings.Contains(got, "|1:") || strings.Contains(got, "|T:") || last.Finish != llm.FinishStop || !e.left && size == 1 {
			t.Errorf("%v %s %+v", err, got, last)
		}
	}
}

// What was held back is given where an answer breaks off, and nothing is invented.
func TestBrokenOff(t *testing.T) {
	for text, want := range map[string]string{"a<tool_c": "|T:a<tool_c", `<tool_call>{"name":"f","arguments":{"a`: `|0:f={"a`, "<think>b </thi": "|R:b </thi"} {
		deltas := wrote(text, 1, llm.FinishStop)
		e := &engine{deltas: deltas[:len(deltas)-1], err: errors.New("gone")}
		n := modelOf(t, toolChat, "hermes", "qwen3", e)
		got, _, err := told(n, withTools(llm.ToolAuto))
		if err == nil || got != want {
			t.Errorf("%q: %v %s", text, err, got)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	e := &engine{}
	n := modelOf(b, toolChat, "hermes", "qwen3", e)
	for range b.N {
		e.deltas = append(e.deltas, &llm.TokensDelta{Tokens: []uint32{word}})
	}
	r := withTools(llm.ToolAuto)
	b.ReportAllocs()
	b.ResetTimer()
	for range n.Generate(context.Background(), r) { //nolint:revive // the loop is what is measured
	}
}

// Whatever form is made for a call that must come, or may and is strict, the constraints of our engines take it.
func TestFormsCompile(t *testing.T) {
	strict := `[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}},` +
		`{"type":"function","function":{"name":"g"}}]`
	for _, format := range append(toolFormats(), "") {
		for _, reasoning := range []string{"", "qwen3", "gpt_oss"} {
			if (format == "harmony") != (reasoning == "gpt_oss") {
				continue
			}
			e := &engine{deltas: each(llm.FinishStop)}
			n := modelOf(t, toolChat, format, reasoning, e)
			tokens := constrain.NewTokens(n.models["tiny"].tok, []uint32{end})
			for _, mode := range []llm.ToolMode{llm.ToolRequired, llm.ToolAuto} {
				r := withTools(mode)
				r.Tools = json.RawMessage(strict)
				_, _, err := told(n, r)
				if f := flow.AsError(err); err != nil && mode == llm.ToolAuto && (f.Reason == "tools.strict" || f.Reason == "tools.format") {
					continue
				}
				if err != nil || e.got.Constraint == nil {
					t.Errorf("%q %q mode %d: %v", format, reasoning, mode, err)
					continue
				}
				c := e.got.Constraint
				if _, err := constrain.Compile(t.Context(), constrain.Spec{Tags: c.Tags, After: c.After}, tokens); err != nil {
					t.Errorf("%q %q mode %d: %v\n%s", format, reasoning, mode, err, c.Tags)
				}
			}
		}
	}
}

// A model without a template of its own has its family's, where there is one.
func TestFamilyTemplate(t *testing.T) {
	e := &engine{deltas: each(llm.FinishStop)}
	h := kindtest.NewHost(t, "preprocess", "preprocess-1", nil)
	h.AllModels = []*kind.Model{{Name: "m", Names: []string{"tiny"}, Path: modelFile(t, ""), Context: 4000, Family: "deepseek-v3.2"}}
	h.Dialled = map[string]any{"out": flow.Static[*llm.TokensRequest, *llm.TokensDelta]{{ID: "w-1", Node: "w", AsyncEngine: e}}}
	n := New(Config{}, h)
	if err := n.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if g := ask(n, chat("hello")); g.err != nil {
		t.Fatal(g.err)
	}
	if got := n.models["tiny"].tok.Decode(e.got.Tokens, true); !strings.Contains(got, "<｜User｜>hello<｜Assistant｜>") || h.State() != kind.Ready {
		t.Errorf("%s %q", h.State(), got)
	}
}
