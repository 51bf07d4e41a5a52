package external

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// gather writes an answer as R(reasoning) T(text) name#id(arguments), in its order.
func gather(t *testing.T, n *Node, q *llm.ChatRequest) (out string, last llm.ChatDelta, err error) {
	t.Helper()
	for d, err := range n.Generate(t.Context(), q) {
		if err != nil {
			return out, last, err
		}
		if d.Reasoning != "" {
			out += "R(" + d.Reasoning + ")"
		}
		if d.Text != "" {
			out += "T(" + d.Text + ")"
		}
		for _, c := range d.Calls {
			out += fmt.Sprintf("%d:%s#%s(%s)", c.Index, c.Name, c.ID, c.Arguments)
		}
		last = *d
	}
	return out, last, nil
}

func TestCalls(t *testing.T) {
	call := func(fields ...string) string {
		return `data: {"choices":[{"delta":{"tool_calls":[` + strings.Join(fields, ",") + "]}}]}\n\n"
	}
	const end = `data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n" +
		`data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":4}}}` + "\n\ndata: [DONE]\n\n"
	for _, c := range []struct{ name, body, want string }{
		{"OpenAI's", call(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`) + call(`{"index":0,"function":{"arguments":"{}"}}`), "0:f#a()0:#({})"},
		{"two that take turns", call(`{"index":0,"id":"a","function":{"name":"f"}}`, `{"index":1,"id":"b","function":{"name":"g"}}`) +
			call(`{"index":0,"function":{"arguments":"1"}}`) + call(`{"index":1,"function":{"arguments":"2"}}`), "0:f#a()1:g#b()0:#(1)1:#(2)"},
		{"numbers that begin late", call(`{"index":3,"id":"a","function":{"name":"f"}}`) + call(`{"index":3,"function":{"arguments":"1"}}`), "0:f#a()0:#(1)"},
		{"no numbers", call(`{"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"id":"b","function":{"name":"f","arguments":"{}"}}`), "0:f#a({})1:f#b({})"},
		{"all the first", call(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`) + call(`{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}`), "0:f#a({})1:f#b({})"},
		{"the id again", call(`{"index":0,"id":"a","function":{"name":"f"}}`) + call(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), "0:f#a()0:#({})"},
		{"reasoning", `data: {"choices":[{"delta":{"reasoning_content":"x","content":null}}]}` + "\n\n" + `data: {"choices":[{"delta":{"reasoning":"y","content":"z"}}]}` + "\n\n", "R(x)R(y)T(z)"},
		{"both names", `data: {"choices":[{"delta":{"reasoning_content":"x","reasoning":"x"}}]}` + "\n\n", "R(x)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := far(t, Config{}, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, c.body+end) })
			got, last, err := gather(t, n, chat())
			if err != nil || got != c.want || last.Finish != llm.FinishStop || *last.Usage != (llm.Usage{Prompt: 1, Completion: 9, Reasoning: 4}) {
				t.Errorf("%v %s, want %s; %+v", err, got, c.want, last)
			}
		})
	}
	n := far(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, call(`{"index":0,"function":{"name":"f","arguments":"{}"}}`)+end)
	})
	if got, _, err := gather(t, n, chat()); err != nil || !strings.HasPrefix(got, "0:f#call_") || len(got) < 30 {
		t.Errorf("a call without an id: %q %v", got, err)
	}
	for _, body := range []string{call(`{"index":0,"id":"a"}`), call(`{"index":0,"function":{"arguments":"1"}}`)} {
		n := far(t, Config{}, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body+end) })
		if _, _, err := gather(t, n, chat()); err == nil || flow.AsError(err).Class != flow.BackendProtocol {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// What a client says of tools and of the answer's form reaches the server.
func TestToolsSent(t *testing.T) {
	tools := json.RawMessage(`[{"function":{"name":"f"},"type":"function"}]`)
	for _, c := range []struct {
		set  func(q *llm.ChatRequest)
		want string
	}{
		{func(q *llm.ChatRequest) { q.Tools = tools }, `"tools":[{"function":{"name":"f"},"type":"function"}]`},
		{func(q *llm.ChatRequest) { q.Tools, q.ToolChoice.Mode = tools, llm.ToolNone }, `"tool_choice":"none"`},
		{func(q *llm.ChatRequest) { q.Tools, q.ToolChoice.Mode = tools, llm.ToolRequired }, `"tool_choice":"required"`},
		{func(q *llm.ChatRequest) {
			q.Tools, q.ToolChoice = tools, llm.ToolChoice{Mode: llm.ToolNamed, Name: "f"}
		},
			`"tool_choice":{"function":{"name":"f"},"type":"function"}`},
		{func(q *llm.ChatRequest) { q.Tools, q.OneCall = tools, true }, `"parallel_tool_calls":false`},
		{func(q *llm.ChatRequest) { q.Effort = "low" }, `"reasoning_effort":"low"`},
		{func(q *llm.ChatRequest) { q.Constraint = &llm.Constraint{JSONSchema: `{"type":"object"}`} }, `"response_format":{"type":"json_object"}`},
		{func(q *llm.ChatRequest) { q.Constraint = &llm.Constraint{JSONSchema: `{"type":"string"}`} },
			`"response_format":{"json_schema":{"name":"answer","schema":{"type":"string"},"strict":true},"type":"json_schema"}`},
		{func(q *llm.ChatRequest) { q.Constraint = &llm.Constraint{Tags: `{"type":"structural_tag"}`} }, `"response_format":{"type":"structural_tag"}`},
		{func(q *llm.ChatRequest) { q.Constraint = &llm.Constraint{Regex: "a+"} }, `"structured_outputs":{"regex":"a+"}`},
		{func(q *llm.ChatRequest) { q.Constraint = &llm.Constraint{Grammar: "g"} }, `"structured_outputs":{"grammar":"g"}`},
		{func(q *llm.ChatRequest) { q.Constraint = &llm.Constraint{Choice: []string{"a"}} }, `"structured_outputs":{"choice":["a"]}`},
	} {
		q := chat()
		c.set(q)
		b, _, err := (&Node{}).request(q)
		if err != nil || !strings.Contains(string(b), c.want) {
			t.Errorf("%v %s, want %s", err, b, c.want)
		}
	}
}
