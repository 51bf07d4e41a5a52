package frontend

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
)

func TestChat(t *testing.T) {
	s := serve(t, words("Hel", "lo \"you\"\n", "🙄"))
	status, header, body := s.get("POST", pathChat, hello+"}", "X-Request-Id", "mine-1")
	want := `{"id":"ID","object":"chat.completion","created":1,"model":"tiny","choices":[{"index":0,"message":{"role":"assistant",` +
		`"content":"Hello \"you\"\n🙄","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":7,` +
		`"completion_tokens":3,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":4}}}` + "\n"
	if status != 200 || stable(body) != want || header.Get("X-Request-Id") != "mine-1" {
		t.Errorf("status %d, id %q:\n%s\n%s", status, header.Get("X-Request-Id"), stable(body), want)
	}
	if q := s.e.requests()[0]; string(q.Messages) != `[{"role":"user","content":"hi"}]` || q.Logprobs != -1 || q.Sampling.Temperature != 1 || q.Sampling.Seed == 0 {
		t.Errorf("request %+v", q)
	}
}

func TestChatStream(t *testing.T) {
	s := serve(t, words("Hel", "", "lo"))
	status, header, body := s.get("POST", pathChat, hello+`,"stream":true,"stream_options":{"include_usage":true}}`)
	chunk := func(rest string) string {
		return `data: {"id":"ID","object":"chat.completion.chunk","created":1,"model":"tiny","choices":[` + rest + "}\n\n"
	}
	want := chunk(`{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null`) +
		chunk(`{"index":0,"delta":{"content":"Hel"},"logprobs":null,"finish_reason":null}],"usage":null`) +
		chunk(`{"index":0,"delta":{"content":"lo"},"logprobs":null,"finish_reason":null}],"usage":null`) +
		chunk(`{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null`) +
		chunk(`],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":4}}`) +
		"data: [DONE]\n\n"
	if status != 200 || stable(body) != want || header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
		t.Errorf("status %d, %q:\n%s\n%s", status, header.Get("Content-Type"), stable(body), want)
	}
	if _, _, body := s.get("POST", pathChat, hello+`,"stream":true}`); strings.Contains(body, "usage") {
		t.Errorf("usage that nobody asked for: %s", body)
	}
}

func TestCompletions(t *testing.T) {
	s := serve(t, words("a", "b"))
	for _, c := range []struct {
		name, body string
		choices    int
		prompts    []string // or
		tokens     [][]uint32
	}{
		{"string", `"prompt":"x"`, 1, []string{"x"}, nil},
		{"strings", `"prompt":["x","y"]`, 2, []string{"x", "y"}, nil},
		{"ids", `"prompt":[1,2,3]`, 1, nil, [][]uint32{{1, 2, 3}}},
		{"lists of ids", `"prompt":[[1],[2,3e0]]`, 2, nil, [][]uint32{{1}, {2, 3}}},
		{"n of each", `"prompt":["x","y"],"n":2`, 4, []string{"x", "x", "y", "y"}, nil},
		{"best_of n", `"prompt":"x","n":2,"best_of":2`, 2, []string{"x", "x"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(s.e.requests())
			status, _, body := s.get("POST", pathCompletions, `{"model":"tiny",`+c.body+`}`)
			prompt := 7 * max(len(slices.Compact(slices.Clone(c.prompts))), len(c.tokens))
			usage := fmt.Sprintf(`"prompt_tokens":%d,"completion_tokens":%d,`, prompt, 2*c.choices)
			if status != 200 || strings.Count(body, `"text":"ab","logprobs":null,"finish_reason":"stop"`) != c.choices || !strings.Contains(body, usage) {
				t.Errorf("status %d, want usage %s: %s", status, usage, body)
			}
			got := slices.Clone(s.e.requests()[before:])
			slices.SortFunc(got, func(a, b *llm.ChatRequest) int { return strings.Compare(a.ID, b.ID) })
			ids := map[string]bool{}
			for i, q := range got {
				ids[q.ID] = true
				if c.prompts != nil && q.Prompt != c.prompts[i] || c.tokens != nil && !slices.Equal(q.Tokens, c.tokens[i]) {
					t.Errorf("request %d: %q %v", i, q.Prompt, q.Tokens)
				}
				if q.Stop.MaxTokens != 0 || q.Limit != 16 || q.Logprobs != -1 {
					t.Errorf("max tokens %d, limit %d, logprobs %d", q.Stop.MaxTokens, q.Limit, q.Logprobs)
				}
			}
			if len(ids) != c.choices {
				t.Errorf("%d different ids for %d choices", len(ids), c.choices)
			}
		})
	}
	_, _, body := s.get("POST", pathCompletions, `{"model":"tiny","prompt":"x","stream":true}`)
	want := `data: {"id":"ID","object":"text_completion","created":1,"model":"tiny","choices":[{"index":0,"text":"a","logprobs":null,"finish_reason":null}]}` + "\n\n" +
		`data: {"id":"ID","object":"text_completion","created":1,"model":"tiny","choices":[{"index":0,"text":"b","logprobs":null,"finish_reason":"stop"}]}` + "\n\n" +
		"data: [DONE]\n\n"
	if stable(body) != want {
		t.Errorf("%s\nwant\n%s", stable(body), want)
	}
}

// TestParameters checks that every parameter arrives.
func TestParameters(t *testing.T) {
	s := serve(t, words("x"))
	status, _, body := s.get("POST", pathChat, `{"model":"org/tiny","messages":[{"role":"developer","content":"a"},{"role":"assistant","content":[{"type":"text","text":"b"}]}],
		"temperature":0.5,"top_p":0,"top_k":7,"min_p":0.25,"frequency_penalty":-1,"presence_penalty":2,"repetition_penalty":1.5,
		"logit_bias":{"3":-100,"999":1},"seed":-1,"stop":["a","b"],"stop_token_ids":[5],"max_completion_tokens":1e2,"max_tokens":null,"min_tokens":3,
		"ignore_eos":true,"include_stop_str_in_output":true,"skip_special_tokens":false,"logprobs":true,"top_logprobs":2,"n":2,
		"chat_template_kwargs":{"x":1},"continue_final_message":true,"add_generation_prompt":false,"cache_salt":"s","priority":-3,
		"user":"u","metadata":{"a":"b"},"store":false,"service_tier":"auto","parallel_tool_calls":false,"response_format":{"type":"text"},
		"safety_identifier":"i","prompt_cache_key":"k","modalities":["text"],"tools":null}`,
		"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "X-Dynamo-Session-Id", "sess")
	if status != 200 {
		t.Fatalf("status %d: %s", status, body)
	}
	got := slices.Clone(s.e.requests())
	slices.SortFunc(got, func(a, b *llm.ChatRequest) int { return strings.Compare(a.ID, b.ID) })
	q := got[0]
	if got[1].Sampling.Seed == q.Sampling.Seed || q.Sampling.Seed != ^uint64(0) {
		t.Errorf("seeds %d and %d", q.Sampling.Seed, got[1].Sampling.Seed)
	}
	smp := fmt.Sprintf("%v %v %v %v %v %v %v %v", q.Sampling.Temperature, q.Sampling.TopP > 0 && q.Sampling.TopP < 1e-6, q.Sampling.TopK, q.Sampling.MinP,
		q.Sampling.FrequencyPenalty, q.Sampling.PresencePenalty, q.Sampling.RepetitionPenalty, q.Sampling.LogitBias)
	if want := "0.5 true 7 0.25 -1 2 1.5 map[3:-100 999:1]"; smp != want {
		t.Errorf("sampling %s, want %s", smp, want)
	}
	if st := fmt.Sprintf("%+v %v %v %v", q.Stop, q.StopStrings, q.IncludeStop, q.KeepSpecial); st != "{MaxTokens:100 MinTokens:3 IDs:[5] IgnoreEOS:true} [a b] true true" {
		t.Errorf("stop %s", st)
	}
	if q.Logprobs != 2 || string(q.TemplateArgs) != `{"x":1}` || !q.Continue || !q.NoGenerationPrompt || q.Salt != "s" || q.Priority != -3 ||
		q.Session != "sess" || !strings.HasPrefix(q.Trace, "00-0af7651916cd43dd") || q.Model != "org/tiny" {
		t.Errorf("%+v", q)
	}
}

func TestLogprobs(t *testing.T) {
	s := serve(t, func(_ context.Context, _ *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) {
		yield(&llm.ChatDelta{
			Text: "hé", Tokens: []uint32{1, 2}, Finish: llm.FinishLength, Usage: &llm.Usage{Prompt: 1, Completion: 2},
			Logprobs: []llm.TextLogprob{
				{Text: "h", Bytes: []byte("h"), Logprob: -0.5, Top: []llm.TextLogprob{{Text: "h", Bytes: []byte("h"), Logprob: -0.5}}},
				{Text: "é", Bytes: []byte("é"), Logprob: -1e30, Offset: 1},
			},
		}, nil)
	})
	chat := `"logprobs":{"content":[{"token":"h","logprob":-0.5,"bytes":[104],"top_logprobs":[{"token":"h","logprob":-0.5,"bytes":[104]}]},` +
		`{"token":"é","logprob":-9999,"bytes":[195,169],"top_logprobs":[]}],"refusal":null}`
	classic := `"logprobs":{"tokens":["h","é"],"token_logprobs":[-0.5,-9999],"top_logprobs":[{"h":-0.5},{"é":-9999}],"text_offset":[0,1]}`
	for _, c := range []struct{ path, body, want string }{
		{pathChat, hello + `,"logprobs":true,"top_logprobs":1}`, chat},
		{pathChat, hello + `,"logprobs":true,"stream":true}`, chat},
		{pathCompletions, `{"model":"tiny","prompt":"x","logprobs":1}`, classic},
		{pathCompletions, `{"model":"tiny","prompt":"x","logprobs":1,"stream":true}`, classic},
	} {
		if _, _, body := s.get("POST", c.path, c.body); !strings.Contains(body, c.want) {
			t.Errorf("%s: %s\nwant %s", c.path, body, c.want)
		}
	}
}

// TestChoices checks that n choices of a stream are told apart and each is whole.
func TestChoices(t *testing.T) {
	s := serve(t, words("a", "b", "c"))
	_, _, body := s.get("POST", pathChat, hello+`,"stream":true,"n":3,"temperature":0,"stream_options":{"include_usage":true}}`)
	for i := range 3 {
		var text string
		roles, ends := 0, 0
		for line := range strings.Lines(body) {
			if !strings.Contains(line, fmt.Sprintf(`"index":%d,`, i)) {
				continue
			}
			if strings.Contains(line, `"role"`) {
				roles++
				if text != "" {
					t.Error("role after text")
				}
			}
			if _, after, ok := strings.Cut(line, `"delta":{"content":"`); ok {
				text += after[:1]
			}
			if strings.Contains(line, `"finish_reason":"stop"`) {
				ends++
			}
		}
		if text != "abc" || roles != 1 || ends != 1 {
			t.Errorf("choice %d: %q, %d roles, %d ends: %s", i, text, roles, ends, body)
		}
	}
	if !strings.Contains(body, `"prompt_tokens":7,"completion_tokens":9,`) || !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Error(body)
	}
}

func TestEngineErrors(t *testing.T) {
	for _, c := range []struct {
		err                 error
		status              int
		typ, code, want, ra string
	}{
		{flow.Errorf(flow.InvalidRequest, "engine.context_length", "too long"), 400, "invalid_request_error", "context_length_exceeded", "too long", ""},
		{flow.Errorf(flow.NotFound, "model_not_found", "no model"), 404, "invalid_request_error", "model_not_found", "no model", ""},
		{flow.Errorf(flow.PayloadTooLarge, "x.y", "big"), 413, "invalid_request_error", "x.y", "big", ""},
		{&flow.Error{Class: flow.CapacityExhausted, Reason: "engine.queue_full", Msg: "busy", RetryAfter: 2500 * time.Millisecond}, 429, "rate_limit_error", "engine.queue_full", "busy", "3"},
		{flow.Errorf(flow.Unavailable, "router.no_instance", "nobody"), 503, "server_error", "router.no_instance", "nobody", "1"},
		{flow.Errorf(flow.BackendProtocol, "x.y", "odd"), 502, "server_error", "x.y", "odd", ""},
		{flow.Errorf(flow.DeadlineExceeded, "x.y", "late"), 504, "server_error", "x.y", "late", ""},
		{flow.Errorf(flow.NotImplemented, "x.y", "no such thing"), 501, "server_error", "x.y", "no such thing", ""},
		{&flow.Error{Class: flow.Internal, Reason: "x.y", Msg: "broken", Err: errors.New("secret path")}, 500, "server_error", "x.y", "broken", ""},
		{errors.New("secret"), 500, "server_error", "internal.untyped", "internal error", ""},
	} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			s := serve(t, func(_ context.Context, _ *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) { yield(nil, c.err) })
			for _, stream := range []string{"", `,"stream":true`, `,"n":2`} {
				status, header, body := s.get("POST", pathChat, hello+stream+"}")
				e := decodeError(t, body)
				if status != c.status || e.Error.Type != c.typ || str(e.Error.Code) != c.code || e.Error.Message != c.want ||
					header.Get("Retry-After") != c.ra || header.Get("Content-Type") != "application/json" || strings.Contains(body, "secret") {
					t.Errorf("status %d, header %v: %s", status, header, body)
				}
			}
		})
	}
}

// TestBrokenStream checks that an error after the first byte is told and the stream does not end as if it were whole.
func TestBrokenStream(t *testing.T) {
	for name, answer := range map[string]func(context.Context, *llm.ChatRequest, func(*llm.ChatDelta, error) bool){
		"error": func(_ context.Context, _ *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) {
			_ = yield(&llm.ChatDelta{Text: "a", Tokens: []uint32{1}}, nil) && yield(nil, flow.Errorf(flow.Unavailable, "x.y", "gone"))
		},
		"no finish": func(_ context.Context, _ *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) {
			yield(&llm.ChatDelta{Text: "a", Tokens: []uint32{1}}, nil)
		},
		"panic": func(_ context.Context, _ *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) {
			yield(&llm.ChatDelta{Text: "a", Tokens: []uint32{1}}, nil)
			panic("boom")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answer)
			b, err := io.ReadAll(s.do(t.Context(), "POST", pathChat, hello+`,"stream":true}`).Body)
			if !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(string(b), "[DONE]") || !strings.Contains(string(b), `"content":"a"`) {
				t.Errorf("%v after %s", err, b)
			}
			if name != "panic" && !strings.Contains(string(b), `data: {"error":{"message":`) {
				t.Errorf("no error frame: %s", b)
			}
		})
	}
}

func TestPanicCostsOneRequest(t *testing.T) {
	var n atomic.Int32
	s := serve(t, func(ctx context.Context, q *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) {
		if n.Add(1) == 1 {
			panic("boom")
		}
		words("fine")(ctx, q, yield)
	})
	if status, _, body := s.get("POST", pathChat, hello+"}"); status != 500 || strings.Contains(body, "boom") {
		t.Errorf("status %d: %s", status, body)
	}
	if status, _, body := s.get("POST", pathChat, hello+"}"); status != 200 {
		t.Errorf("status %d: %s", status, body)
	}
}

// block answers with one delta and then waits for the end of its context, which it reports.
func block(ended chan<- error) func(context.Context, *llm.ChatRequest, func(*llm.ChatDelta, error) bool) {
	return func(ctx context.Context, _ *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) {
		if yield(&llm.ChatDelta{Text: "a", Tokens: []uint32{1}}, nil) {
			<-ctx.Done()
			yield(nil, flow.AsError(context.Cause(ctx)))
		}
		ended <- ctx.Err()
	}
}

func TestDisconnect(t *testing.T) {
	ended := make(chan error, 4)
	s := serve(t, block(ended))
	for _, more := range []string{"", `,"stream":true`, `,"stream":true,"n":2`} {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "POST", s.url+pathChat, strings.NewReader(hello+more+"}"))
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(50*time.Millisecond, cancel)
		if resp, err := http.DefaultClient.Do(r); err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if err == nil {
				t.Error("the stream ended well")
			}
		}
		for range max(strings.Count(more, "2"), 0) + 1 {
			select {
			case err := <-ended:
				if err == nil {
					t.Error("the engine's context did not end")
				}
			case <-time.After(2 * time.Second):
				t.Fatalf("%q: the engine goes on", more)
			}
		}
	}
}

func TestTimeout(t *testing.T) {
	ended := make(chan error, 1)
	s := serve(t, block(ended), func(f *Frontend) { f.c.Timeout = graph.Duration(30 * time.Millisecond) })
	if status, _, body := s.get("POST", pathChat, hello+"}"); status != 504 || !strings.Contains(body, "deadline") {
		t.Errorf("status %d: %s", status, body)
	}
	if s.e.requests()[0].Deadline.IsZero() {
		t.Error("the deadline is not passed on")
	}
	<-ended
}

func TestTooMany(t *testing.T) {
	ended := make(chan error, 1)
	s := serve(t, block(ended), func(f *Frontend) { f.slots = make(chan struct{}, 1); f.c.Requests = 1 })
	ctx, cancel := context.WithCancel(t.Context())
	resp := s.do(ctx, "POST", pathChat, hello+`,"stream":true}`)
	if status, header, body := s.get("POST", pathChat, hello+"}"); status != 429 || header.Get("Retry-After") != "1" || !strings.Contains(body, "1 requests are in progress") {
		t.Errorf("status %d: %s", status, body)
	}
	cancel()
	resp.Body.Close()
	<-ended
}

// TestBodiesTogether checks that memory does not grow with the number of clients that send long bodies, and that their room comes back.
func TestBodiesTogether(t *testing.T) {
	ended := make(chan error, bodies)
	s := serve(t, func(ctx context.Context, q *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) {
		if q.Salt == "" {
			words("quick")(ctx, q, yield)
			return
		}
		block(ended)(ctx, q, yield)
	}, func(f *Frontend) { f.c.Body = 1000 })
	ctx, cancel := context.WithCancel(t.Context())
	long := hello + `,"stream":true,"cache_salt":"` + strings.Repeat("x", 850) + `"}`
	for range bodies {
		if resp := s.do(ctx, "POST", pathChat, long); resp.StatusCode != 200 {
			t.Fatalf("status %d", resp.StatusCode)
		}
	}
	mid := hello + `,"user":"` + strings.Repeat("x", 500) + `"}`
	if status, header, body := s.get("POST", pathChat, mid); status != 429 || header.Get("Retry-After") == "" || str(decodeError(t, body).Error.Code) != "frontend.too_many_bytes" {
		t.Errorf("status %d: %s", status, body)
	}
	if status, _, body := s.get("POST", pathChat, hello+"}"); status != 200 { // short ones have room yet
		t.Errorf("status %d: %s", status, body)
	}
	cancel()
	for range bodies {
		<-ended
	}
	for deadline := time.Now().Add(5 * time.Second); s.f.held.Load() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are still held", s.f.held.Load())
		}
	}
	if status, _, body := s.get("POST", pathChat, mid); status != 200 {
		t.Errorf("afterwards: status %d: %s", status, body)
	}
}

func TestDrainFinishesStreams(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	s := serve(t, func(_ context.Context, _ *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) {
		if yield(&llm.ChatDelta{Text: "a", Tokens: []uint32{1}}, nil) {
			close(begun)
			<-finish
			yield(&llm.ChatDelta{Text: "b", Tokens: []uint32{1}, Finish: llm.FinishStop, Usage: &llm.Usage{Prompt: 1, Completion: 2}}, nil)
		}
	})
	resp := s.do(t.Context(), "POST", pathChat, hello+`,"stream":true}`)
	<-begun
	drained := make(chan error, 1)
	go func() { drained <- s.f.Drain(t.Context()) }()
	for !s.f.draining.Load() {
		time.Sleep(time.Millisecond)
	}
	select {
	case err := <-drained:
		t.Fatalf("drained with a stream in flight: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(finish)
	b, err := io.ReadAll(resp.Body)
	if err != nil || !strings.HasSuffix(string(b), "data: [DONE]\n\n") {
		t.Errorf("%v: %s", err, b)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", s.f.Addr()); err == nil {
		t.Error("still listening")
	}
}

// TestSlowClient checks that a client that does not read is cut off and costs nobody else.
func TestSlowClient(t *testing.T) {
	ended := make(chan struct{})
	s := serve(t, func(ctx context.Context, q *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) {
		if q.Salt == "" {
			words("quick")(ctx, q, yield)
			return
		}
		defer close(ended)
		d := &llm.ChatDelta{Text: strings.Repeat("x", 1<<16), Tokens: []uint32{1}}
		for yield(d, nil) { // far more than sockets buffer
		}
	}, func(f *Frontend) { f.c.SlowClient = graph.Duration(200 * time.Millisecond) })
	conn, err := net.Dial("tcp", s.f.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := hello + `,"stream":true,"cache_salt":"slow"}`
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", pathChat, len(body), body)
	if status, _, body := s.get("POST", pathChat, hello+"}"); status != 200 {
		t.Errorf("status %d: %s", status, body)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the engine goes on for a client that does not read")
	}
}

func TestHalfSentHeaders(t *testing.T) {
	s := serve(t, words("x"), func(f *Frontend) { f.headerTime = 50 * time.Millisecond })
	conn, err := net.Dial("tcp", s.f.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHos", pathChat)
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("the connection stays open: %v", err)
	}
}

func TestKeepAlive(t *testing.T) {
	ended := make(chan error, 1)
	s := serve(t, block(ended), func(f *Frontend) { f.c.KeepAlive = graph.Duration(20 * time.Millisecond) })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := bufio.NewReader(s.do(ctx, "POST", pathChat, hello+`,"stream":true}`).Body)
	for seen := 0; seen < 2; {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == ": keep-alive\n" {
			seen++
		}
	}
	cancel()
	<-ended
}

func TestUnmet(t *testing.T) {
	s := serve(t, words("x"))
	s.f.out = flow.Static[*llm.ChatRequest, *llm.ChatDelta]{}
	if status, _, body := s.get("GET", "/ready", ""); status != 503 || !strings.Contains(body, `no instance behind port \"out\"`) {
		t.Errorf("status %d: %s", status, body)
	}
	if status, header, _ := s.get("POST", pathChat, hello+"}"); status != 503 || header.Get("Retry-After") == "" {
		t.Errorf("status %d", status)
	}
	if status, _, _ := s.get("GET", "/live", ""); status != 200 {
		t.Errorf("live: status %d", status)
	}
}

// discard is a ResponseWriter that costs nothing.
type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Flush()                      {}

// TestTokenAllocations holds the frontend's share of the budget of two allocations a token: none.
func TestTokenAllocations(t *testing.T) {
	s := serve(t, words("x"))
	x := &exchange{f: s.f, w: &discard{http.Header{}}, r: &http.Request{Header: http.Header{}}}
	st := newStream(x, &call{chat: true, model: "tiny", id: "chatcmpl-1", requests: make([]*llm.ChatRequest, 1), n: 1})
	defer st.stop()
	for _, d := range []*llm.ChatDelta{
		{Text: " token \"quoted\"\n", Tokens: []uint32{1}},
		{Reasoning: " so", Tokens: []uint32{1}},
		{Calls: []llm.CallDelta{{Arguments: `{"a":`}}, Tokens: []uint32{1}},
	} {
		st.delta(0, d, "")
		if n := testing.AllocsPerRun(1000, func() { st.delta(0, d, "") }); n != 0 {
			t.Errorf("%+v: %v allocations a token", d, n)
		}
	}
}
