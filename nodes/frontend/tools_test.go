package frontend

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// says answers with the deltas, a token each, and ends with finish.
func says(finish llm.FinishReason, deltas ...llm.ChatDelta) func(context.Context, *llm.ChatRequest, func(*llm.ChatDelta, error) bool) {
	return func(_ context.Context, _ *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) {
		for i := range deltas {
			d := deltas[i]
			if d.Tokens = []uint32{1}; !yield(&d, nil) {
				return
			}
		}
		yield(&llm.ChatDelta{Finish: finish, Usage: &llm.Usage{Prompt: 7, Completion: len(deltas), Reasoning: 2}}, nil)
	}
}

func begin(i int, id, name string) llm.ChatDelta {
	return llm.ChatDelta{Calls: []llm.CallDelta{{Index: i, ID: id, Name: name}}}
}

func args(i int, s string) llm.ChatDelta {
	return llm.ChatDelta{Calls: []llm.CallDelta{{Index: i, Arguments: s}}}
}

// streamed is what a client of a stream gathers for a choice, as OpenAI's do.
type streamed struct {
	roles     int
	content   string
	reasoning string
	calls     []string // NAME(ARGUMENTS)#ID
	pieces    int      // of arguments
	finish    []string
	behind    int // chunks behind the finish
}

func gather(t *testing.T, body, field string, choice int) (s streamed) {
	t.Helper()
	type call struct{ id, name, args string }
	calls := map[int]*call{}
	for _, c := range chunks(t, body) {
		list, _ := c["choices"].([]any)
		for _, e := range list {
			ch := e.(map[string]any)
			if int(ch["index"].(float64)) != choice {
				continue
			}
			if len(s.finish) > 0 {
				s.behind++
			}
			d := ch["delta"].(map[string]any)
			if d["role"] != nil {
				s.roles++
			}
			text, _ := d["content"].(string)
			s.content += text
			text, _ = d[field].(string)
			s.reasoning += text
			list, _ := d["tool_calls"].([]any)
			for _, e := range list {
				f := e.(map[string]any)
				index, ok := f["index"].(float64)
				fn := f["function"].(map[string]any)
				piece, _ := fn["arguments"].(string)
				if !ok {
					t.Fatalf("a fragment without index: %v", f)
				}
				o := calls[int(index)]
				if o == nil {
					id, _ := f["id"].(string)
					name, _ := fn["name"].(string)
					if int(index) != len(calls) || id == "" || name == "" || f["type"] != "function" {
						t.Fatalf("call %v begins with %v", index, f)
					}
					o = &call{id: id, name: name}
					calls[int(index)] = o
				} else if f["id"] != nil || f["type"] != nil || fn["name"] != nil {
					t.Fatalf("a call begins again: %v", f)
				}
				if o.args += piece; piece != "" {
					s.pieces++
				}
			}
			if r, ok := ch["finish_reason"].(string); ok {
				s.finish = append(s.finish, r)
			}
		}
	}
	for i := range len(calls) {
		s.calls = append(s.calls, fmt.Sprintf("%s(%s)#%s", calls[i].name, calls[i].args, calls[i].id))
	}
	return s
}

// messageOf is the message of an answer that does not stream.
func messageOf(t *testing.T, body string, choice int) (message map[string]any, finish string) {
	t.Helper()
	var v struct {
		Choices []struct {
			Message map[string]any
			Finish  string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil || len(v.Choices) <= choice {
		t.Fatalf("%v: %s", err, body)
	}
	return v.Choices[choice].Message, v.Choices[choice].Finish
}

func TestCalls(t *testing.T) {
	s := serve(t, says(llm.FinishStop, llm.ChatDelta{Reasoning: "hm"}, llm.ChatDelta{Text: "Let me look. "}, begin(0, "call_1", "find"), args(0, `{"a":`),
		args(0, `"\"1"}`), llm.ChatDelta{Calls: []llm.CallDelta{{Index: 1, ID: "call_2", Name: "g", Arguments: "{}"}}}))
	_, _, body := s.get("POST", pathChat, hello+","+someTools+"}")
	want := `{"id":"ID","object":"chat.completion","created":1,"model":"tiny","choices":[{"index":0,"message":{"role":"assistant","content":"Let me look. ",` +
		`"reasoning_content":"hm","tool_calls":[{"id":"call_1","type":"function","function":{"name":"find","arguments":"{\"a\":\"\\\"1\"}"}},` +
		`{"id":"call_2","type":"function","function":{"name":"g","arguments":"{}"}}],"refusal":null},"logprobs":null,"finish_reason":"tool_calls"}],` +
		`"usage":{"prompt_tokens":7,"completion_tokens":6,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":2}}}` + "\n"
	if stable(body) != want {
		t.Errorf("%s\n%s", stable(body), want)
	}
	_, _, body = s.get("POST", pathChat, hello+`,"stream":true,`+someTools+"}")
	chunk := func(delta string) string {
		return `data: {"id":"ID","object":"chat.completion.chunk","created":1,"model":"tiny","choices":[{"index":0,"delta":` + delta + "}]}\n\n"
	}
	piece := func(delta string) string { return chunk(delta + `,"logprobs":null,"finish_reason":null`) }
	want = piece(`{"role":"assistant","content":""}`) + piece(`{"reasoning_content":"hm"}`) + piece(`{"content":"Let me look. "}`) +
		piece(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"find","arguments":""}}]}`) +
		piece(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}`) + piece(`{"tool_calls":[{"index":0,"function":{"arguments":"\"\\\"1\"}"}}]}`) +
		piece(`{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"g","arguments":"{}"}}]}`) +
		chunk(`{},"logprobs":null,"finish_reason":"tool_calls"`) + "data: [DONE]\n\n"
	if stable(body) != want {
		t.Errorf("%s\n%s", stable(body), want)
	}
}

// Cases B-057, B-060 and B-061: what ends an answer with calls is the same however it is sent, and is said once, last.
func TestCaseFinish(t *testing.T) {
	named := `"tool_choice":{"type":"function","function":{"name":"f"}}`
	for _, c := range []struct {
		id, choice string
		finish     llm.FinishReason
		calls      bool
		want       string
	}{
		{"B-061 auto", `"tool_choice":"auto"`, llm.FinishStop, true, "tool_calls"},
		{"B-057 required", `"tool_choice":"required"`, llm.FinishStop, true, "tool_calls"},
		{"B-057 named", named, llm.FinishStop, true, "stop"},
		{"auto without a call", `"tool_choice":"auto"`, llm.FinishStop, false, "stop"},
		{"cut", `"tool_choice":"auto"`, llm.FinishLength, true, "length"},
		{"named, cut", named, llm.FinishLength, true, "length"},
	} {
		t.Run(c.id, func(t *testing.T) {
			deltas := []llm.ChatDelta{{Text: "a"}}
			if c.calls {
				deltas = []llm.ChatDelta{begin(0, "call_1", "f"), args(0, `{"a":1}`)}
			}
			s := serve(t, says(c.finish, deltas...))
			_, _, body := s.get("POST", pathChat, hello+","+someTools+","+c.choice+"}")
			message, finish := messageOf(t, body, 0)
			if _, called := message["tool_calls"]; finish != c.want || called != c.calls || (message["content"] == nil) != c.calls {
				t.Errorf("%s", body)
			}
			_, _, body = s.get("POST", pathChat, hello+","+someTools+","+c.choice+`,"stream":true}`)
			if g := gather(t, body, "reasoning_content", 0); !slices.Equal(g.finish, []string{c.want}) || g.behind != 0 || g.roles != 1 {
				t.Errorf("%+v", g)
			}
		})
	}
}

// Case B-063: a long argument comes in pieces, not at its end.
func TestCaseB063(t *testing.T) {
	deltas := []llm.ChatDelta{begin(0, "call_1", "f"), args(0, `{"a":"`)}
	for range 200 {
		deltas = append(deltas, args(0, strings.Repeat("x", 40)))
	}
	s := serve(t, says(llm.FinishStop, append(deltas, args(0, `"}`))...))
	_, _, body := s.get("POST", pathChat, hello+","+someTools+`,"stream":true}`)
	g := gather(t, body, "reasoning_content", 0)
	if want := `f({"a":"` + strings.Repeat("x", 8000) + `"})#call_1`; g.pieces != 202 || !slices.Equal(g.calls, []string{want}) {
		t.Errorf("%d pieces of %.100q", g.pieces, g.calls)
	}
}

// Cases B-062 and B-064: fragments of two calls that take turns belong together by their index, the last may come with the end.
func TestCaseB064(t *testing.T) {
	s := serve(t, func(_ context.Context, _ *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) {
		for _, d := range []llm.ChatDelta{begin(0, "x", "f"), begin(1, "y", "g"), args(0, `{"a":1}`)} {
			if !yield(&d, nil) {
				return
			}
		}
		last := args(1, `{"b":2}`)
		last.Finish, last.Usage = llm.FinishStop, &llm.Usage{}
		yield(&last, nil)
	})
	want := []string{`f({"a":1})#x`, `g({"b":2})#y`}
	_, _, body := s.get("POST", pathChat, hello+","+someTools+`,"stream":true,"n":2}`)
	for i := range 2 {
		if g := gather(t, body, "reasoning_content", i); !slices.Equal(g.calls, want) || !slices.Equal(g.finish, []string{"tool_calls"}) || g.behind != 0 {
			t.Errorf("choice %d: %+v", i, g)
		}
	}
	_, _, body = s.get("POST", pathChat, hello+","+someTools+`,"n":2}`)
	for i := range 2 {
		m, _ := messageOf(t, body, i)
		if b, _ := json.Marshal(m["tool_calls"]); string(b) != `[{"function":{"arguments":"{\"a\":1}","name":"f"},"id":"x","type":"function"},`+
			`{"function":{"arguments":"{\"b\":2}","name":"g"},"id":"y","type":"function"}]` {
			t.Errorf("choice %d: %s", i, b)
		}
	}
}

// Case C-021: what reasoning is called is the operator's choice; a client may ask not to see it.
func TestCaseC021(t *testing.T) {
	for _, field := range []string{"reasoning_content", "reasoning"} {
		s := serve(t, says(llm.FinishStop, llm.ChatDelta{Reasoning: "so"}, llm.ChatDelta{Text: "yes"}), func(f *Frontend) { f.c.ReasoningField = field })
		_, _, body := s.get("POST", pathChat, hello+"}")
		if m, _ := messageOf(t, body, 0); m[field] != "so" || m["content"] != "yes" || len(m) != 4 {
			t.Errorf("%v", m)
		}
		_, _, body = s.get("POST", pathChat, hello+`,"stream":true}`)
		if g := gather(t, body, field, 0); g.reasoning != "so" || g.content != "yes" {
			t.Errorf("%+v", g)
		}
		for _, more := range []string{`,"include_reasoning":false}`, `,"include_reasoning":false,"stream":true}`} {
			if _, _, body := s.get("POST", pathChat, hello+more); strings.Contains(body, `so"`) || !strings.Contains(body, `"content":"yes"`) {
				t.Errorf("%s: %s", more, body)
			}
		}
	}
}

// Case C-022: reasoning is part of the completion's tokens, and counted beside. Case C-012: content is null where there is reasoning alone.
func TestCaseC022(t *testing.T) {
	s := serve(t, says(llm.FinishLength, llm.ChatDelta{Reasoning: "a"}, llm.ChatDelta{Reasoning: "b"}))
	want := `"completion_tokens":2,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":2}}`
	_, _, body := s.get("POST", pathChat, hello+"}")
	if m, finish := messageOf(t, body, 0); m["content"] != nil || m["reasoning_content"] != "ab" || finish != "length" || !strings.Contains(body, want) {
		t.Errorf("%s", body)
	}
	if _, _, body = s.get("POST", pathChat, hello+`,"stream":true,"stream_options":{"include_usage":true}}`); !strings.Contains(body, want) {
		t.Errorf("%s", body)
	}
}

// Log-probabilities are those of content.
func TestLogprobsOfContent(t *testing.T) {
	lp := func(d llm.ChatDelta, s string) llm.ChatDelta {
		d.Logprobs = []llm.TextLogprob{{Text: s, Bytes: []byte(s)}}
		return d
	}
	s := serve(t, says(llm.FinishStop, lp(llm.ChatDelta{Reasoning: "r"}, "r"), lp(llm.ChatDelta{Text: "c"}, "c"), lp(begin(0, "x", "f"), "f")))
	for _, more := range []string{"}", `,"stream":true}`} {
		_, _, body := s.get("POST", pathChat, hello+`,"logprobs":true`+more)
		if strings.Count(body, `"token":`) != 1 || !strings.Contains(body, `"token":"c"`) {
			t.Errorf("%s", body)
		}
	}
}

// TestToolRequests checks what of tools arrives.
func TestToolRequests(t *testing.T) {
	s := serve(t, words("x"))
	for _, c := range []struct {
		more, tools string
		choice      llm.ToolChoice
		one         bool
		effort      string
	}{
		{"", "", llm.ToolChoice{}, false, ""},
		{`,"tools":[],"reasoning_effort":"low"`, "", llm.ToolChoice{}, false, "low"},
		{"," + someTools, someTools, llm.ToolChoice{}, false, ""},
		{"," + someTools + `,"tool_choice":"none","parallel_tool_calls":true`, someTools, llm.ToolChoice{Mode: llm.ToolNone}, false, ""},
		{"," + someTools + `,"tool_choice":"required","parallel_tool_calls":false`, someTools, llm.ToolChoice{Mode: llm.ToolRequired}, true, ""},
		{"," + someTools + `,"tool_choice":{"type":"function","function":{"name":"g"}}`, someTools, llm.ToolChoice{Mode: llm.ToolNamed, Name: "g"}, false, ""},
		{"," + someTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"g"}}]}}`,
			`"tools":[` + tool("g") + `]`, llm.ToolChoice{Mode: llm.ToolRequired}, false, ""},
	} {
		status, _, body := s.get("POST", pathChat, hello+c.more+"}")
		all := s.e.requests()
		q := all[len(all)-1]
		if status != 200 || string(q.Tools) != strings.TrimPrefix(c.tools, `"tools":`) || q.ToolChoice != c.choice || q.OneCall != c.one || q.Effort != c.effort {
			t.Errorf("%s: %d %s: %s %+v", c.more, status, body, q.Tools, q.ToolChoice)
		}
	}
}

// TestConstraints checks what arrives of each way to say what form the output has.
func TestConstraints(t *testing.T) {
	s := serve(t, words("x"))
	schema := `{"type":"object","properties":{"a":{}}}`
	tag := `{"type":"structural_tag","format":{"type":"any_text"}}`
	for _, c := range []struct {
		more string
		want *llm.Constraint
	}{
		{`"response_format":{"type":"text"}`, nil},
		{`"response_format":{"type":"json_object"}`, &llm.Constraint{JSONSchema: anyObject}},
		{`"response_format":{"type":"json_schema","json_schema":{"name":"n","description":"d","strict":true,"schema":` + schema + `}}`, &llm.Constraint{JSONSchema: schema}},
		{`"response_format":` + tag, &llm.Constraint{Tags: tag}},
		{`"structured_outputs":{"json":` + schema + `}`, &llm.Constraint{JSONSchema: schema}},
		{`"structured_outputs":{"json":"{\"type\":\"string\"}","regex":null}`, &llm.Constraint{JSONSchema: `{"type":"string"}`}},
		{`"structured_outputs":{"regex":"a+"}`, &llm.Constraint{Regex: "a+"}},
		{`"structured_outputs":{"choice":["a","b"]}`, &llm.Constraint{Choice: []string{"a", "b"}}},
		{`"structured_outputs":{"grammar":"root ::= \"a\""}`, &llm.Constraint{Grammar: `root ::= "a"`}},
		{`"structured_outputs":{"json_object":true}`, &llm.Constraint{JSONSchema: anyObject}},
		{`"structured_outputs":{"json_object":false,"regex":"a"}`, &llm.Constraint{Regex: "a"}},
		{`"structured_outputs":{"structural_tag":"{\"type\":\"structural_tag\"}"}`, &llm.Constraint{Tags: `{"type":"structural_tag"}`}},
		{`"guided_json":` + schema, &llm.Constraint{JSONSchema: schema}},
		{`"guided_regex":"a"`, &llm.Constraint{Regex: "a"}},
		{`"guided_choice":["a"]`, &llm.Constraint{Choice: []string{"a"}}},
		{`"guided_grammar":"g","guided_json":null`, &llm.Constraint{Grammar: "g"}},
	} {
		for path, begin := range map[string]string{pathChat: hello + ",", pathCompletions: `{"model":"tiny","prompt":"a",`} {
			status, _, body := s.get("POST", path, begin+c.more+"}")
			all := s.e.requests()
			if got := all[len(all)-1].Constraint; status != 200 || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
				t.Errorf("%s %s: %d %s: %+v", path, c.more, status, body, got)
			}
		}
	}
}

// An engine refuses a form without knowing in which field it came.
func TestBlame(t *testing.T) {
	s := serve(t, func(_ context.Context, _ *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) {
		yield(nil, &flow.Error{Class: flow.InvalidRequest, Reason: "constraint.invalid", Param: "regex", Msg: "regex: no"})
	})
	for more, want := range map[string]string{
		`"response_format":{"type":"json_object"}`: "response_format", `"guided_regex":"a"`: "guided_regex", `"structured_outputs":{"regex":"a"}`: "structured_outputs",
		someTools: "tools",
	} {
		if status, _, body := s.get("POST", pathChat, hello+","+more+"}"); status != 400 || str(decodeError(t, body).Error.Param) != want {
			t.Errorf("%s: %d %s", more, status, body)
		}
	}
}
