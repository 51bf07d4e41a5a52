package frontend

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
)

// traced is a host that keeps the last span.
type traced struct {
	kind.Host
	s *span
}

func (h traced) Tracer() kind.Tracer { return h.s }

type span struct {
	mu     sync.Mutex
	parent string
	strs   map[string]string
	ints   map[string]int64
	err    error
	ended  chan struct{}
}

func (s *span) Start(ctx context.Context, parent, _ string) (context.Context, kind.Recording) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parent, s.strs, s.ints = parent, map[string]string{}, map[string]int64{}
	return ctx, s
}
func (s *span) Traceparent() string { return "00-t-s-01" }
func (s *span) TraceID() string     { return "t" }
func (s *span) Str(key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strs[key] = value
}
func (s *span) Int(key string, value int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ints[key] = value
}
func (s *span) Event(string) {}
func (s *span) End(err error) {
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	s.ended <- struct{}{}
}

func TestSpan(t *testing.T) {
	lost := &flow.Error{Class: flow.Unavailable, Reason: "transport.lost", Msg: "lost"}
	const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, tt := range []struct {
		name, body string
		answer     func(context.Context, *llm.ChatRequest, func(*llm.ChatDelta, error) bool)
		status     int64
		failed     bool
		typ        string
	}{
		{"answered", hello + "}", words("a", "b"), 200, false, ""},
		{"client's fault", `{"model":"tiny"}`, words("a"), 400, false, "request.missing"},
		{"nobody there", hello + "}", func(_ context.Context, _ *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) { yield(nil, lost) }, 503, true, ""},
		{"broken stream", hello + `,"stream":true}`, func(_ context.Context, _ *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) {
			if yield(&llm.ChatDelta{Text: "a", Tokens: []uint32{1}}, nil) {
				yield(nil, lost)
			}
		}, 200, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sp := &span{ended: make(chan struct{}, 1)}
			s := serve(t, tt.answer, func(f *Frontend) { f.host = traced{f.host, sp} })
			resp := s.do(t.Context(), "POST", pathChat, tt.body, "traceparent", caller, "X-Request-Id", "mine")
			resp.Body.Close()
			<-sp.ended
			sp.mu.Lock()
			defer sp.mu.Unlock()
			if sp.parent != caller || sp.ints["http.response.status_code"] != tt.status || (sp.err != nil) != tt.failed || sp.strs["http.route"] != pathChat {
				t.Errorf("parent %q, %v %v, error %v", sp.parent, sp.strs, sp.ints, sp.err)
			}
			if got := sp.strs["error.type"]; (got != "") != (tt.typ != "") {
				t.Errorf("error.type %q, want %q", got, tt.typ)
			}
			id := sp.strs["dynamo.request.id"]
			if !strings.HasPrefix(id, "mine~") {
				t.Errorf("request id %q", id)
			}
			for _, q := range s.e.requests() {
				if q.ID != id || q.Trace != "00-t-s-01" {
					t.Errorf("the next stage got id %q, trace %q", q.ID, q.Trace)
				}
			}
			if logs := s.host.Logs(); !strings.Contains(logs, "request="+id) || !strings.Contains(logs, "trace=t") {
				t.Errorf("logs:\n%s", logs)
			}
		})
	}
}
