// Package chat tests chats over HTTP: the frontend and preprocess as they are, in front of an engine that writes what a test says, token by
// token. What parsers do with texts is tested beside them; here it is whether requests and answers reach them and come back.
package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
	"github.com/dynamograph/dynamo/graph/model/gguf/gguftest"
	"github.com/dynamograph/dynamo/nodes/frontend"
	"github.com/dynamograph/dynamo/nodes/preprocess"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// vocabulary of the test's model: a token a byte, and those that are special.
var special = []string{
	"<|im_start|>", "<|im_end|>", "<|python_tag|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "[TOOL_CALLS]", "[ARGS]",
	"<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>", "<|constrain|>",
}

// template shows what the tests look for: tools, history, and a turn that thinks.
const template = `{% if tools %}tools:{% for t in tools %}{{ t.function.name }} {% endfor %}` + "\n" + `{% endif %}` +
	`{% for m in messages %}<|im_start|>{{ m.role }}` + "\n" + `{{ m.content }}{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}` +
	`{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}<|im_end|>` + "\n" + `{% endfor %}` +
	`{% if add_generation_prompt %}<|im_start|>assistant` + "\n" + `{% if enable_thinking %}<think>{% endif %}{% endif %}`

type setup struct {
	tools, reasoning, family, template string
	text                               string // what the model writes
	size                               int    // tokens a delta; 0: 1
	finish                             llm.FinishReason
	change                             func(*frontend.Config)
}

type server struct {
	t   *testing.T
	url string
	e   *engine
}

// engine writes its text, whatever it is asked.
type engine struct {
	ids    []uint32
	size   int
	finish llm.FinishReason
	got    []*llm.TokensRequest // as they came, which only one choice at a time does
	refuse error
}

func (e *engine) Generate(_ context.Context, q *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
	return func(yield func(*llm.TokensDelta, error) bool) {
		if q.ID == "" || !strings.Contains(q.ID, "-") {
			e.got = append(e.got, q)
		}
		if e.refuse != nil {
			yield(nil, e.refuse)
			return
		}
		for rest := e.ids; len(rest) > 0; {
			n := min(e.size, len(rest))
			d := &llm.TokensDelta{Tokens: rest[:n]}
			for _, id := range rest[:n] {
				d.Logprobs = append(d.Logprobs, llm.Logprob{Token: id})
			}
			if rest = rest[n:]; !yield(d, nil) {
				return
			}
		}
		yield(&llm.TokensDelta{Finish: e.finish, Usage: &llm.Usage{Prompt: len(q.Tokens), Completion: len(e.ids)}}, nil)
	}
}

// modelFile writes the test's model.
func modelFile(t *testing.T, source string) string {
	t.Helper()
	var tokens []string
	n := rune(256)
	for b := range 256 {
		r := rune(b)
		if b < '!' || b > '~' && b < 0xA1 || b == 0xAD {
			r, n = n, n+1
		}
		tokens = append(tokens, string(r))
	}
	types := slices.Repeat([]int32{1}, 256)
	for _, s := range special {
		tokens, types = append(tokens, s), append(types, 3)
	}
	kvs := []gguftest.KV{
		gguftest.K("tokenizer.ggml.model", "gpt2"), gguftest.K("tokenizer.ggml.pre", "gpt-2"), gguftest.K("tokenizer.ggml.tokens", tokens),
		gguftest.K("tokenizer.ggml.token_type", types), gguftest.K("tokenizer.ggml.eos_token_id", uint32(257)), gguftest.K("tokenizer.chat_template", source),
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(path, gguftest.Build(kvs, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serve starts a frontend over preprocess over an engine.
func serve(t *testing.T, s setup) *server {
	t.Helper()
	if s.template == "" {
		s.template = template
	}
	m := &kind.Model{Name: "m", Names: []string{"tiny"}, Path: modelFile(t, s.template), Context: 1 << 20, Tools: s.tools, Reasoning: s.reasoning, Family: s.family}
	e := &engine{ids: encode(s.text), size: max(s.size, 1), finish: s.finish}
	if e.finish == "" {
		e.finish = llm.FinishStop
	}
	ph := kindtest.NewHost(t, "preprocess", "preprocess-0", m)
	ph.Dialled["out"] = flow.Static[*llm.TokensRequest, *llm.TokensDelta]{{ID: "w-0", AsyncEngine: e}}
	p := preprocess.New(preprocess.Config{}, ph)
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	fh := kindtest.NewHost(t, "api", "api-0", m)
	fh.Dialled["out"] = flow.Static[*llm.ChatRequest, *llm.ChatDelta]{{ID: "preprocess-0", AsyncEngine: p}}
	c := frontend.DefaultConfig()
	c.Listen = "127.0.0.1:0"
	if s.change != nil {
		s.change(&c)
	}
	f, err := frontend.New(c, fh)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		for _, close := range []func() error{f.Close, p.Close} {
			if err := close(); err != nil {
				t.Error(err)
			}
		}
	})
	return &server{t: t, url: "http://" + f.Addr() + "/v1/chat/completions", e: e}
}

// encode is a token a special text, and one a byte else.
func encode(text string) (ids []uint32) {
	for len(text) > 0 {
		i := slices.IndexFunc(special, func(s string) bool { return strings.HasPrefix(text, s) })
		if i >= 0 {
			ids, text = append(ids, uint32(256+i)), text[len(special[i]):]
			continue
		}
		ids, text = append(ids, uint32(text[0])), text[1:]
	}
	return ids
}

// prompt is what the engine was asked last.
func (s *server) prompt() string {
	q := s.e.got[len(s.e.got)-1]
	var b []byte
	for _, id := range q.Tokens {
		if id < 256 {
			b = append(b, byte(id))
		} else {
			b = append(b, special[id-256]...)
		}
	}
	return string(b)
}

const tools = `"tools":[{"type":"function","function":{"name":"wx","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}},` +
	`{"type":"function","function":{"name":"f"}}]`

// post sends a chat with further fields.
func (s *server) post(fields string) (int, string) {
	s.t.Helper()
	if fields != "" {
		fields = "," + fields
	}
	body := `{"model":"tiny","messages":[{"role":"user","content":"hi"}]` + fields + `}`
	if strings.Contains(fields, `"messages":`) {
		body = `{"model":"tiny"` + fields + `}`
	}
	resp, err := http.Post(s.url, "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// answer is what a client gathers, by OpenAI's rules.
type answer struct {
	content   *string
	reasoning string
	calls     []string // NAME(ARGUMENTS)
	ids       []string
	finish    []string
	pieces    int // fragments of arguments
	logprobs  int
	usage     map[string]any
}

func (a answer) String() string {
	content := "null"
	if a.content != nil {
		content = fmt.Sprintf("%q", *a.content)
	}
	return fmt.Sprintf("%s %q %q %v", content, a.reasoning, a.calls, a.finish)
}

// ask asks without a stream and with one, holds the answers to be the same, and returns the stream's.
func (s *server) ask(fields string) answer {
	s.t.Helper()
	status, body := s.post(fields)
	if status != 200 {
		s.t.Fatalf("status %d: %s", status, body)
	}
	if fields != "" {
		fields += ","
	}
	whole := s.whole(body)
	status, body = s.post(fields + `"stream":true,"stream_options":{"include_usage":true}`)
	if status != 200 {
		s.t.Fatalf("status %d: %s", status, body)
	}
	stream := s.stream(body)
	if stream.content != nil && *stream.content == "" && whole.content == nil {
		stream.content = nil // a stream says so by saying nothing
	}
	if whole.String() != stream.String() || whole.logprobs != stream.logprobs || fmt.Sprint(whole.usage) != fmt.Sprint(stream.usage) {
		s.t.Errorf("whole  %v %d %v\nstream %v %d %v", whole, whole.logprobs, whole.usage, stream, stream.logprobs, stream.usage)
	}
	return stream
}

type message struct {
	Role      string
	Content   *string
	Reasoning string `json:"reasoning_content"`
	Calls     []struct {
		Index    *int
		ID, Type string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

type choice struct {
	Index    int
	Message  message
	Delta    message
	Finish   *string `json:"finish_reason"`
	Logprobs *struct{ Content []any }
}

func (s *server) whole(body string) (a answer) {
	s.t.Helper()
	var v struct {
		Choices []choice
		Usage   map[string]any
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil || len(v.Choices) != 1 {
		s.t.Fatalf("%v: %s", err, body)
	}
	m := v.Choices[0].Message
	a.content, a.reasoning, a.usage, a.finish = m.Content, m.Reasoning, v.Usage, []string{*v.Choices[0].Finish}
	for _, c := range m.Calls {
		a.calls = append(a.calls, c.Function.Name+"("+c.Function.Arguments+")")
		if a.ids = append(a.ids, c.ID); c.ID == "" || c.Type != "function" {
			s.t.Errorf("a call without id or type: %s", body)
		}
	}
	if l := v.Choices[0].Logprobs; l != nil {
		a.logprobs = len(l.Content)
	}
	return a
}

func (s *server) stream(body string) (a answer) {
	s.t.Helper()
	rest, ok := strings.CutSuffix(body, "data: [DONE]\n\n")
	if !ok {
		s.t.Fatalf("the stream does not end with [DONE]: %s", body)
	}
	type call struct{ name, args string }
	var calls []*call
	content := ""
	for event := range strings.SplitSeq(strings.TrimSuffix(rest, "\n\n"), "\n\n") {
		var v struct {
			Choices []choice
			Usage   map[string]any
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &v); err != nil {
			s.t.Fatalf("%v: %s", err, event)
		}
		if v.Usage != nil {
			a.usage = v.Usage
		}
		for _, c := range v.Choices {
			if len(a.finish) > 0 {
				s.t.Errorf("something behind the finish: %s", event)
			}
			if c.Delta.Content != nil {
				content += *c.Delta.Content
			}
			a.reasoning += c.Delta.Reasoning
			for _, f := range c.Delta.Calls {
				switch begins := f.ID != ""; {
				case f.Index == nil || *f.Index > len(calls) || begins != (*f.Index == len(calls)) || begins != (f.Function.Name != "") || begins != (f.Type == "function"):
					s.t.Fatalf("not a fragment: %s", event)
				case begins:
					calls = append(calls, &call{name: f.Function.Name})
					a.ids = append(a.ids, f.ID)
				}
				if f.Function.Arguments != "" {
					a.pieces++
				}
				calls[*f.Index].args += f.Function.Arguments
			}
			if c.Logprobs != nil {
				a.logprobs += len(c.Logprobs.Content)
			}
			if c.Finish != nil {
				a.finish = append(a.finish, *c.Finish)
			}
		}
	}
	for _, c := range calls {
		a.calls = append(a.calls, c.name+"("+c.args+")")
	}
	a.content = &content
	return a
}
