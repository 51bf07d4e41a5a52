package kind_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
)

// traced is a host that records what spans are told.
type traced struct {
	*kindtest.Host
	t kind.Tracer
}

func (h traced) Tracer() kind.Tracer { return h.t }

type recorder struct{ said []string }

func (r *recorder) Start(ctx context.Context, parent, name string) (context.Context, kind.Recording) {
	r.said = append(r.said, "start "+name+" below "+parent)
	return ctx, r
}
func (r *recorder) Traceparent() string     { return "00-a-b-01" }
func (r *recorder) TraceID() string         { return "a" }
func (r *recorder) Str(key, value string)   { r.said = append(r.said, key+"="+value) }
func (r *recorder) Int(key string, v int64) { r.said = append(r.said, key) }
func (r *recorder) Event(name string)       { r.said = append(r.said, "event "+name) }
func (r *recorder) End(err error)           { r.said = append(r.said, "end "+err.Error()) }

func TestSpan(t *testing.T) {
	rec := &recorder{}
	h := traced{kindtest.NewHost(t, "decode", "decode-1", nil), rec}
	ctx := kind.WithTrace(t.Context(), "00-x")
	_, s := kind.StartSpan(ctx, h, "", "fetch")
	s.Str("k", "v")
	s.Int("n", 1)
	s.Event("first token")
	s.End(errors.New("lost"))
	if !s.On() || s.Traceparent() != "00-a-b-01" || s.TraceID() != "a" {
		t.Errorf("span %v %q %q", s.On(), s.Traceparent(), s.TraceID())
	}
	want := []string{"start fetch below 00-x", "dynamo.instance=decode-1", "k=v", "n", "event first token", "end lost"}
	if !slices.Equal(rec.said, want) {
		t.Errorf("got %q, want %q", rec.said, want)
	}
	if kind.StartSpan(ctx, h, "00-y", "b"); rec.said[6] != "start b below 00-y" {
		t.Errorf("the request's parent does not count: %q", rec.said[6:])
	}
}

// Nobody pays for traces that nobody asked for.
func TestSpanOff(t *testing.T) {
	plain := kindtest.NewHost(t, "decode", "decode-1", nil)
	for name, h := range map[string]kind.Host{"host without": plain, "no tracer": traced{plain, nil}} {
		ctx := t.Context()
		if n := testing.AllocsPerRun(100, func() {
			c, s := kind.StartSpan(kind.WithTrace(ctx, ""), h, "", "x")
			s.Str("k", "v")
			s.Int("n", 1)
			s.Event("e")
			s.End(nil)
			if c != ctx || s.On() || s.Traceparent() != "" || s.TraceID() != "" {
				t.Fatal("the span is on")
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
