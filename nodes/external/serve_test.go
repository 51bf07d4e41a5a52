package external

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// far is a server that answers with h, and a node for it.
func far(t *testing.T, c Config, h http.HandlerFunc) *Node {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	host := kindtest.NewHost(t, "far", "far-0", nil)
	host.Secrets = map[string]string{"env:KEY": "the-key\n"}
	c.URL = s.URL + "/v1/"
	n := New(c, host)
	n.pause = time.Millisecond
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// ask collects an answer.
func ask(ctx context.Context, n *Node, q *llm.ChatRequest) (text string, last llm.ChatDelta, err error) {
	for d, err := range n.Generate(ctx, q) {
		if err != nil {
			return text, last, err
		}
		text += d.Text
		last = *d
	}
	return text, last, nil
}

func chat() *llm.ChatRequest {
	return &llm.ChatRequest{
		ID: "r-1", Model: "small", Messages: json.RawMessage(`[{"role":"user","content":"hi","x":1}]`), Logprobs: -1, Sampling: llm.Sampling{Temperature: 1},
	}
}

const stream = `: hello

data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"content":"Good "},"logprobs":{"content":[{"token":"Good ","bytes":[71,111,111,100,32],"logprob":-0.5,"top_logprobs":[{"token":"Bad","logprob":-2}]}]}}]}

data:{"choices":[{"index":0,"delta":{"content":"day"},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}

data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":4}}}

data: [DONE]

`

func TestAnswer(t *testing.T) {
	var got map[string]any
	var key, path, id string
	n := far(t, Config{Key: "env:KEY", Models: map[string]string{"small": "gpt-5-mini"}, Timeout: graph.Duration(time.Minute)}, func(w http.ResponseWriter, r *http.Request) {
		key, path, id = r.Header.Get("Authorization"), r.URL.Path, r.Header.Get("X-Request-Id")
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		io.WriteString(w, stream)
	})
	q := chat()
	q.Logprobs, q.Stop.MaxTokens, q.StopStrings = 1, 2, []string{"\n"}
	q.Sampling.Seed = 1<<64 - 1
	text, last, err := ask(t.Context(), n, q)
	if err != nil || text != "Good day" || last.Finish != llm.FinishLength || *last.Usage != (llm.Usage{Prompt: 7, Completion: 2, Cached: 4}) {
		t.Errorf("%q %+v %v", text, last, err)
	}
	if key != "Bearer the-key" || path != "/v1/chat/completions" || id != "r-1" {
		t.Errorf("key %q, path %q, id %q", key, path, id)
	}
	want := `map[logprobs:true max_completion_tokens:2 messages:[map[content:hi role:user x:1]] model:gpt-5-mini seed:9.223372036854776e+18 stop:[` + "\n" +
		`] stream:true stream_options:map[include_usage:true] top_logprobs:1]`
	if fmt.Sprint(got) != want {
		t.Errorf("sent %v\nwant %v", got, want)
	}
}

func TestCompletion(t *testing.T) {
	var got map[string]any
	n := far(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil || r.URL.Path != "/v1/completions" || r.Header.Get("Authorization") != "" {
			t.Errorf("%v %s", err, r.URL)
		}
		io.WriteString(w, "data: {\"choices\":[{\"text\":\"abc\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	})
	text, last, err := ask(t.Context(), n, &llm.ChatRequest{Model: "m", Prompt: "a", Logprobs: -1, Limit: 5})
	if err != nil || text != "abc" || last.Finish != llm.FinishStop || got["prompt"] != "a" || got["max_tokens"] != 5.0 || got["temperature"] != 0.0 || got["model"] != "m" {
		t.Errorf("%q %+v %v, sent %v", text, last, err, got)
	}
	for _, q := range []*llm.ChatRequest{{Prompt: "a", Logprobs: 1}} {
		if _, _, err := ask(t.Context(), n, q); err == nil || flow.AsError(err).Class != flow.NotImplemented {
			t.Errorf("%+v gave %v", q, err)
		}
	}
}

// What a server does wrong is an error of the right class, and never a shorter answer.
func TestFailures(t *testing.T) {
	const begun = "data: {\"choices\":[{\"delta\":{\"content\":\"Good\"}}]}\n\n"
	for _, c := range []struct {
		name   string
		status int
		body   string
		class  flow.Class
		msg    string
	}{
		{"their fault", 500, `{"error":{"message":"out of memory"}}`, flow.Unavailable, "out of memory"},
		{"overload", 429, `{"error":"slow down"}`, flow.CapacityExhausted, "slow down"},
		{"the client's fault", 400, `{"error":{"message":"bad temperature"}}`, flow.InvalidRequest, "bad temperature"},
		{"no such model", 404, `{"detail":"no model"}`, flow.NotFound, "no model"},
		{"too long", 413, ``, flow.PayloadTooLarge, "413"},
		{"our key", 401, `{"error":{"message":"bad key sk-123"}}`, flow.Unavailable, "refused our API key"},
		{"a redirect", 302, ``, flow.BackendProtocol, "302"},
		{"slow", 504, ``, flow.DeadlineExceeded, "504"},
		{"no JSON", 200, "data: {oops\n\n", flow.BackendProtocol, "not JSON"},
		{"half an answer", 200, begun, flow.BackendProtocol, "ended without a reason"},
		{"half an answer, and an end", 200, begun + "data: [DONE]\n\n", flow.BackendProtocol, "ended without a reason"},
		{"an error in it", 200, begun + "data: {\"error\":{\"message\":\"gone\"}}\n\n", flow.BackendProtocol, "gone"},
		{"more after the end", 200, "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n" + begun, flow.BackendProtocol, "went on"},
		{"an endless line", 200, "data: " + strings.Repeat("x", maxEvent), flow.BackendProtocol, "broke off"},
		{"nothing", 200, "", flow.BackendProtocol, "ended without a reason"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := far(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
				if c.status == 302 {
					w.Header().Set("Location", "https://example.com/")
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			_, _, err := ask(t.Context(), n, chat())
			e := flow.AsError(err)
			if err == nil || e.Class != c.class || !strings.Contains(e.Msg, c.msg) || e.Instance != "far-0" || strings.Contains(e.Msg, "sk-123") {
				t.Errorf("got %#v, want %s: %s", e, c.class, c.msg)
			}
		})
	}
}

// A request is sent again when it was not taken, so often as the config says, and never when it was.
func TestRetries(t *testing.T) {
	var calls atomic.Int32
	for _, c := range []struct {
		retries, failing int
		status           int
		want             int32 // calls
		ok               bool
	}{{2, 2, 503, 3, true}, {2, 3, 503, 3, false}, {0, 1, 503, 1, false}, {2, 1, 429, 2, true}, {2, 1, 400, 1, false}, {2, 1, 401, 1, false}} {
		calls.Store(0)
		n := far(t, Config{Retries: c.retries}, func(w http.ResponseWriter, _ *http.Request) {
			if int(calls.Add(1)) <= c.failing {
				w.WriteHeader(c.status)
				return
			}
			io.WriteString(w, stream)
		})
		_, _, err := ask(t.Context(), n, chat())
		if calls.Load() != c.want || (err == nil) != c.ok {
			t.Errorf("%+v: %d calls, %v", c, calls.Load(), err)
		}
	}
	calls.Store(0)
	n := far(t, Config{Retries: 5}, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(429)
	})
	_, _, err := ask(t.Context(), n, chat())
	if e := flow.AsError(err); calls.Load() != 1 || e == nil || e.RetryAfter != time.Minute {
		t.Errorf("a long wait: %d calls, %#v", calls.Load(), e)
	}
}

// Nobody at the address, a server that hangs, and a client that leaves.
func TestGone(t *testing.T) {
	n := far(t, Config{}, func(http.ResponseWriter, *http.Request) {})
	n.c.URL = "http://127.0.0.1:1/v1"
	if _, _, err := ask(t.Context(), n, chat()); err == nil || flow.AsError(err).Reason != "external.unreachable" {
		t.Errorf("got %v", err)
	}
	left := make(chan struct{})
	hang := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		left <- struct{}{}
	}
	n = far(t, Config{Timeout: graph.Duration(30 * time.Millisecond)}, hang)
	if _, _, err := ask(t.Context(), n, chat()); err == nil || flow.AsError(err).Reason != "external.timeout" {
		t.Errorf("got %v", err)
	}
	<-left
	n = far(t, Config{}, hang)
	for d, err := range n.Generate(t.Context(), chat()) {
		if err != nil || d.Text != "a" {
			t.Fatalf("%+v %v", d, err)
		}
		break
	}
	<-left // leaving the loop ends the request there
}
