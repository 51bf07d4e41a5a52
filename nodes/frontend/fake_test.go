package frontend

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
	"github.com/dynamograph/dynamo/graph/model"
)

// fake is a chat engine that a test scripts.
type fake struct {
	answer func(ctx context.Context, q *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool)

	mu   sync.Mutex
	seen []*llm.ChatRequest
}

func (f *fake) Generate(ctx context.Context, q *llm.ChatRequest) iter.Seq2[*llm.ChatDelta, error] {
	return func(yield func(*llm.ChatDelta, error) bool) {
		f.mu.Lock()
		f.seen = append(f.seen, q)
		f.mu.Unlock()
		f.answer(ctx, q, yield)
	}
}

func (f *fake) requests() []*llm.ChatRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen
}

// words answers with a few deltas and usage of 7 prompt tokens, 4 of them cached.
func words(texts ...string) func(context.Context, *llm.ChatRequest, func(*llm.ChatDelta, error) bool) {
	return func(_ context.Context, _ *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) {
		if !yield(&llm.ChatDelta{Instance: "decode-0"}, nil) { // news for stages in between
			return
		}
		for i, t := range texts {
			d := &llm.ChatDelta{Text: t, Tokens: []uint32{uint32(i)}}
			if i == 0 {
				d.Usage = &llm.Usage{Prompt: 7}
			}
			if i == len(texts)-1 {
				d.Finish, d.Usage = llm.FinishStop, &llm.Usage{Prompt: 7, Completion: len(texts), Cached: 4}
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// server is a frontend on a free port.
type server struct {
	t    *testing.T
	f    *Frontend
	host *kindtest.Host
	e    *fake
	url  string
}

func serve(t *testing.T, answer func(context.Context, *llm.ChatRequest, func(*llm.ChatDelta, error) bool), change ...func(*Frontend)) *server {
	t.Helper()
	m := &kind.Model{Name: "default", Names: []string{"tiny", "org/tiny"}, Context: 64, Facts: model.Facts{Vocabulary: 1000, Context: 128}}
	h := kindtest.NewHost(t, "api", "api-0", m)
	e := &fake{answer: answer}
	h.Dialled["out"] = flow.Static[*llm.ChatRequest, *llm.ChatDelta]{{ID: "preprocess-0", AsyncEngine: e}}
	c := DefaultConfig()
	c.Listen = "127.0.0.1:0"
	f, err := New(c, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(f)
	}
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return &server{t, f, h, e, "http://" + f.Addr()}
}

func (s *server) do(ctx context.Context, method, path, body string, header ...string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// get returns status, header and body.
func (s *server) get(method, path, body string, header ...string) (int, http.Header, string) {
	s.t.Helper()
	resp := s.do(s.t.Context(), method, path, body, header...)
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%v after %q", err, b)
	}
	return resp.StatusCode, resp.Header, string(b)
}

type errorObject struct {
	Error *struct {
		Message, Type string
		Param, Code   *string
	}
}

func decodeError(t *testing.T, body string) errorObject {
	t.Helper()
	var e errorObject
	d := json.NewDecoder(bytes.NewReader([]byte(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil || e.Error == nil || e.Error.Message == "" || e.Error.Type == "" {
		t.Fatalf("not an error object: %v: %s", err, body)
	}
	return e
}

func str(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

var varying = regexp.MustCompile(`"id":"(chatcmpl|cmpl)-[0-9a-f]{24}"|"created":[0-9]+`)

// stable replaces what differs from run to run.
func stable(s string) string {
	return varying.ReplaceAllStringFunc(s, func(m string) string {
		if strings.HasPrefix(m, `"id"`) {
			return `"id":"ID"`
		}
		return `"created":1`
	})
}

const hello = `{"model":"tiny","messages":[{"role":"user","content":"hi"}]`
