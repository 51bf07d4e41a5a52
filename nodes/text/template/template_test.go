package template

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
)

const chatML = `{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are a test.<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}`

func mustCompile(t testing.TB, source string) *Template {
	t.Helper()
	tp, err := Compile(source, Options{Special: map[string]string{"bos_token": "<s>"}, Now: fixed})
	if err != nil {
		t.Fatal(err)
	}
	return tp
}

func msgs(s string) json.RawMessage { return json.RawMessage(s) }

func TestRender(t *testing.T) {
	const system, last = "<|im_start|>system\nYou are a test.<|im_end|>\n", "<|im_start|>assistant\n"
	user := msgs(`[{"role":"user","content":"a"}]`)
	for name, c := range map[string]struct {
		source string
		in     Input
		want   string
	}{
		"chat":          {chatML, Input{Messages: user, Generate: true}, system + "<|im_start|>user\na<|im_end|>\n" + last},
		"no generation": {chatML, Input{Messages: user}, system + "<|im_start|>user\na<|im_end|>\n"},
		"exact bytes":   {chatML, Input{Messages: msgs(`[{"role":"system","content":"  <b>&amp; \"q\"\n\ud83d\ude00 "}]`)}, "<|im_start|>system\n  <b>&amp; \"q\"\n😀 <|im_end|>\n"},
		"bos":           {"{{ bos_token }}{{ messages[0].content }}", Input{Messages: user}, "<s>a"},
		"arguments":     {"{{ x }} {{ y|tojson }}", Input{Messages: user, Args: msgs(`{"x":true,"y":{"b":1,"a":[1.0,null,9007199254740993]}}`)}, `True {"b": 1, "a": [1.0, null, 9007199254740993]}`},
		"tools":         {"{{ tools|tojson }}", Input{Messages: user, Tools: msgs(`[{"z":1,"a":"é<"}]`)}, `[{"z": 1, "a": "é<"}]`},
		"no tools":      {"{{ tools is none }}", Input{Messages: user, Tools: msgs(`[]`)}, "True"},
		"null tools":    {"{{ tools is none }}", Input{Messages: user, Tools: msgs(`null`)}, "True"},
		"parts joined":  {chatML, Input{Messages: msgs(`[{"role":"system","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`)}, "<|im_start|>system\na\nb<|im_end|>\n"},
		"parts taken": {"{% for p in messages[0].content %}{% if p is mapping %}[{{ p.text }}]{% else %}{{ p }}{% endif %}{% endfor %}",
			Input{Messages: msgs(`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`)}, "[a][b]"},
		"parts wanted": {"{% for p in messages[0].content %}{{ p.text }}{% endfor %}", Input{Messages: user}, "a"},
		"date":         {"{{ strftime_now('%d %B %Y, %-H:%M %p %j %q%%') }}", Input{Messages: user}, "15 June 2025, 10:20 AM 166 %q%"},
		"arguments as object": {"{{ messages[1].tool_calls[0].function.arguments|tojson }}",
			Input{Messages: msgs(`[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"k\":[1,2]}"}}]}]`)}, `{"k": [1, 2]}`},
		"arguments as text": {"{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments }}{% endfor %}{% endfor %}",
			Input{Messages: msgs(`[{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":"{\"k\":[1,2]}"}}]}]`)}, `{"k":[1,2]}`},
		"continue":            {chatML, Input{Messages: msgs(`[{"role":"system","content":"s"},{"role":"assistant","content":"so far "}]`), Continue: true}, "<|im_start|>system\ns<|im_end|>\n<|im_start|>assistant\nso far "},
		"continue a part":     {chatML, Input{Messages: msgs(`[{"role":"system","content":[{"type":"text","text":"x"}]}]`), Continue: true}, "<|im_start|>system\nx"},
		"continue where seen": {"{{ messages[0].content }} {{ messages[0].content }}!", Input{Messages: user, Continue: true}, "a a"},
	} {
		got, err := mustCompile(t, c.source).Render(context.Background(), c.in)
		if err != nil || got.Text != c.want || got.Mark != 0 {
			t.Errorf("%s: %q, %v\nwant %q", name, got.Text, err, c.want)
		}
	}
}

func TestGuard(t *testing.T) {
	tp := mustCompile(t, "<X>{% for m in messages %}{{ m.role }}{{ m.content|trim }}{{ m.x|tojson }}{% endfor %}{{ k }}")
	guard := func(s string, mark rune) string { return strings.ReplaceAll(s, "<X>", "<"+string(mark)+"X>") }
	in := Input{Messages: msgs(`[{"role":"<X>","content":" a<X> ","x":["<X>"]}]`), Args: msgs(`{"k":"<X>\ufdd0\uFDD1"}`), Guard: guard}
	got, err := tp.Render(context.Background(), in)
	if err != nil || got.Mark != 0xFDD2 {
		t.Fatalf("mark %U, %v", got.Mark, err)
	}
	if want := "<X><^X>a<^X>[\"<^X>\"]<^X>\uFDD0\uFDD1"; strings.ReplaceAll(got.Text, string(got.Mark), "^") != want {
		t.Errorf("got %q, want %q", got.Text, want)
	}
	var all strings.Builder
	for r := rune(0xFDD0); r < 0xFDEF; r++ {
		all.WriteRune(r)
	}
	in.Messages = msgs(`[{"role":"user","content":"` + all.String() + `"}]`)
	if _, err := tp.Render(context.Background(), in); err == nil || flow.AsError(err).Reason != "template.marks" {
		t.Errorf("no two marks are left: %v", err)
	}
}

// guardA marks texts that are "a".
func guardA(s string, mark rune) string {
	if s == "a" {
		return s + string(mark)
	}
	return s
}

func TestErrors(t *testing.T) {
	ok := msgs(`[{"role":"user","content":"a"}]`)
	for name, c := range map[string]struct {
		source string
		in     Input
		reason string
		param  string
		msg    string
	}{
		"raised":       {"{% if messages[0].content == 'a' %}{{ raise_exception('Only b, please: ' + messages[0].content) }}{% endif %}", Input{Messages: ok}, "template.raised", "messages", "Only b, please: a"},
		"raised marks": {"{{ raise_exception(messages[0].content|trim) }}", Input{Messages: ok, Continue: true, Guard: guardA}, "template.raised", "messages", "a"},
		"raised deep":  {"{% macro f() %}{{ raise_exception('no') }}{% endmacro %}{{ f()|trim }}", Input{Messages: ok}, "template.raised", "messages", "no"},
		"fails":        {"{{ messages[0].content.nothing() }}", Input{Messages: ok}, "template.failed", "messages", ""},
		"no JSON":      {chatML, Input{Messages: msgs(`[`)}, "template.messages", "messages", ""},
		"two values":   {chatML, Input{Messages: msgs(`[] []`)}, "template.messages", "messages", ""},
		"no array":     {chatML, Input{Messages: msgs(`{}`)}, "template.messages", "messages", ""},
		"no object":    {chatML, Input{Messages: msgs(`[1]`)}, "template.messages", "messages", "messages[0]: must be an object"},
		"no role":      {chatML, Input{Messages: msgs(`[{"content":"x"}]`)}, "template.messages", "messages", "messages[0]: role must be a string"},
		"content":      {chatML, Input{Messages: msgs(`[{"role":"user","content":1}]`)}, "template.messages", "messages", ""},
		"part":         {chatML, Input{Messages: msgs(`[{"role":"user","content":[{"type":"text"}]}]`)}, "template.messages", "messages", "messages[0].content[0].text: must be a string"},
		"image":        {chatML, Input{Messages: msgs(`[{"role":"user","content":[{"type":"image_url"}]}]`)}, "template.parts", "messages", ""},
		"deep":         {chatML, Input{Messages: msgs(strings.Repeat("[", 5000) + strings.Repeat("]", 5000))}, "template.messages", "messages", ""},
		"tools":        {chatML, Input{Messages: ok, Tools: msgs(`{}`)}, "template.tools", "tools", ""},
		"arguments":    {chatML, Input{Messages: ok, Args: msgs(`[]`)}, "template.args", "chat_template_kwargs", ""},
		"taken name":   {chatML, Input{Messages: ok, Args: msgs(`{"messages":[]}`)}, "template.args", "chat_template_kwargs", `chat_template_kwargs: "messages" cannot be set here`},
		"the meter":    {chatML, Input{Messages: ok, Args: msgs(`{"__dynamo_step":1}`)}, "template.args", "chat_template_kwargs", ""},
		"both":         {chatML, Input{Messages: ok, Continue: true, Generate: true}, "template.continue", "continue_final_message", ""},
		"nothing":      {chatML, Input{Messages: msgs(`[]`), Continue: true}, "template.continue", "continue_final_message", ""},
		"not shown":    {"x", Input{Messages: ok, Continue: true}, "template.continue", "continue_final_message", ""},
		"no text":      {"x", Input{Messages: msgs(`[{"role":"assistant","content":null}]`), Continue: true}, "template.continue", "continue_final_message", ""},
		"long":         {"{{ 'x' * 1000000 }}{{ 'x' * 1000000 }}", Input{Messages: ok}, "template.limit", "messages", ""},
		"range":        {"{% for i in range(1000000000000) %}{% endfor %}", Input{Messages: ok}, "template.limit", "messages", ""},
		"loops":        {"{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}", Input{Messages: ok}, "template.limit", "messages", ""},
		"recursion":    {"{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", Input{Messages: ok}, "template.limit", "messages", ""},
		"two macros":   {"{% macro f() %}{{ g() }}{% endmacro -%}\n{%- macro g() -%} {{ f() }} {%- endmacro %}{{ f() }}", Input{Messages: ok}, "template.limit", "messages", ""},
		"loop in loop": {"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", Input{Messages: ok}, "template.limit", "messages", ""},
		"by its caller": {"{% macro f() %}{{ caller() }}{% endmacro %}{% macro g() %}{% call f() %}{{ g() }}{% endcall %}{% endmacro %}{{ g() }}",
			Input{Messages: ok}, "template.limit", "messages", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tp, err := Compile(c.source, Options{MaxBytes: 1_500_000, MaxSteps: 100_000})
			if err != nil {
				t.Fatal(err)
			}
			_, err = tp.Render(context.Background(), c.in)
			var f *flow.Error
			if !errors.As(err, &f) || f.Class != flow.InvalidRequest || f.Reason != c.reason || f.Param != c.param {
				t.Fatalf("got %#v", err)
			}
			if c.msg != "" && f.Msg != c.msg {
				t.Errorf("message %q, want %q", f.Msg, c.msg)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	tp := mustCompile(t, "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	_, err := tp.Render(ctx, Input{Messages: msgs(`[]`)})
	if f := flow.AsError(err); f == nil || f.Class != flow.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
}

func TestCompileRefuses(t *testing.T) {
	for name, c := range map[string]struct{ source, msg string }{
		"empty":     {" \n", "empty"},
		"open":      {"{% for x in y %}", "Unexpected end of template. Jinja was looking for the following tags: 'endfor' or 'else'."},
		"large":     {strings.Repeat("x", 1<<17+1), "at most 131072 are taken"},
		"brackets":  {"{{ " + strings.Repeat("(", 101) + "1" + strings.Repeat(")", 101) + " }}", "nested more than 200 deep"},
		"nots":      {"{{ " + strings.Repeat("not ", 30000) + "1 }}", "nested more than 200 deep"},
		"tail":      {"{% set x = x" + strings.Repeat(".a", 60000) + " %}", "more than 200 subscripts in a row"},
		"ifs":       {strings.Repeat("{% if 1 %}", 5000) + strings.Repeat("{% endif %}", 5000), "nested more than 200 deep"},
		"all there": {"{{ a|nosuch }}\n{% frobnicate %}x{% endfrobnicate %}\n{% if b is odder %}{% endif %}{{ f() }}", "line 1: No filter named 'nosuch'.; line 2: Encountered unknown tag 'frobnicate'."},
		"a file":    {"\n{% include 'x' %}", "line 2: 'include' is not supported"},
	} {
		_, err := Compile(c.source, Options{})
		if err == nil || !strings.HasPrefix(err.Error(), "chat template: ") || !strings.Contains(err.Error(), c.msg) {
			t.Errorf("%s: %.300v", name, err)
		}
	}
	tp := mustCompile(t, "{% if tools %}\n{{ f(tools)|from_json }}{% endif %}")
	if w := tp.Warnings(); len(w) != 2 || w[0] != "line 2: No filter named 'from_json'." || w[1] != "line 2: No function named 'f'." {
		t.Errorf("%q", w)
	}
}

// FuzzCompile: templates of anybody end, with a text or an error.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{chatML, "{% macro f(x) %}{{ f(x)|trim }}{% endmacro %}{{ f(messages) }}", "{%- for a in messages -%}{% set ns.x = a %}{% endfor %}", "{{ 'a'*9 ~ [1][0] }}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		tp, err := Compile(source, Options{MaxSteps: 10_000, Now: fixed})
		if err != nil {
			return
		}
		_, err = tp.Render(context.Background(), Input{Messages: msgs(`[{"role":"user","content":"a"}]`), Generate: true})
		var e *flow.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%T: %v", err, err)
		}
	})
}
