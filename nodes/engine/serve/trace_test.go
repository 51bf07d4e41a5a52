package serve

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/inflight"
)

// stream is an engine that gives n tokens, or err.
type stream struct {
	engine.Engine
	n     int
	err   error
	trace string // of the last request
}

func (s *stream) Generate(_ context.Context, r *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
	s.trace = r.Trace
	return func(yield func(*llm.TokensDelta, error) bool) {
		d := llm.TokensDelta{Tokens: []uint32{1}, Instance: "decode-0"}
		for i := range s.n {
			if i == s.n-1 {
				d.Finish, d.Usage = llm.FinishStop, &llm.Usage{Prompt: 3, Completion: s.n, Cached: 2}
			}
			if !yield(&d, nil) {
				return
			}
		}
		if s.err != nil {
			yield(nil, s.err)
		}
	}
}

// quiet is a host without debug lines; its tracer may be nil.
type quiet struct {
	*kindtest.Host
	t kind.Tracer
}

var silent = slog.New(slog.DiscardHandler)

func (quiet) Log() *slog.Logger     { return silent }
func (q quiet) Tracer() kind.Tracer { return q.t }

// Where nobody asks for traces, they cost nothing: neither a token nor a request.
func TestTraceOff(t *testing.T) {
	var h kind.Host = quiet{kindtest.NewHost(t, "decode", "decode-0", nil), nil}
	ctx, r := t.Context(), &llm.TokensRequest{ID: "r"}
	if n := testing.AllocsPerRun(100, func() {
		c, w := watch(ctx, h, r)
		if w.saw(nil, nil); c != ctx || w != nil {
			t.Fatal("a span is on")
		}
	}); n > 0 {
		t.Errorf("%v allocations a request", n)
	}
	allocs := func(tokens int) float64 {
		e := guard(inflight.New("decode"), h, &stream{n: tokens})
		return testing.AllocsPerRun(20, func() {
			for range e.Generate(ctx, r) { //nolint:revive // the loop is what is measured
			}
		})
	}
	if few, many := allocs(2), allocs(2000); few != many {
		t.Errorf("%v allocations for 2 tokens, %v for 2000", few, many)
	}
}

type span struct {
	strs   map[string]string
	ints   map[string]int64
	events []string
	err    error
	ended  int
}

func (s *span) Start(ctx context.Context, parent, name string) (context.Context, kind.Recording) {
	s.strs, s.ints = map[string]string{"name": name, "parent": parent}, map[string]int64{}
	return ctx, s
}
func (s *span) Traceparent() string         { return "00-t-s-01" }
func (s *span) TraceID() string             { return "t" }
func (s *span) Str(key, value string)       { s.strs[key] = value }
func (s *span) Int(key string, value int64) { s.ints[key] = value }
func (s *span) Event(name string)           { s.events = append(s.events, name) }
func (s *span) End(err error)               { s.err = err; s.ended++ }

func TestTraceEngine(t *testing.T) {
	s := &span{}
	h := quiet{kindtest.NewHost(t, "decode", "decode-0", nil), s}
	e := &stream{n: 5}
	r := &llm.TokensRequest{ID: "r", Trace: "00-p", Tokens: []uint32{1, 2, 3, 4}, Generated: 1, Phase: llm.PhaseDecode, HandOff: &llm.HandOff{Peer: "prefill-0", Tokens: 3}}
	for range guard(inflight.New("decode"), h, e).Generate(t.Context(), r) { //nolint:revive // nothing to look at
	}
	if e.trace != "00-t-s-01" || r.Trace != "00-p" {
		t.Errorf("the engine got parent %q; the caller's request now has %q", e.trace, r.Trace)
	}
	if s.strs["parent"] != "00-p" || s.strs["dynamo.request.id"] != "r" || s.strs["dynamo.phase"] != "decode" || s.strs["dynamo.finish"] != "stop" ||
		s.strs["dynamo.handoff.peer"] != "prefill-0" || s.ints["gen_ai.usage.input_tokens"] != 3 || s.ints["gen_ai.usage.output_tokens"] != 5 ||
		s.ints["dynamo.cached_tokens"] != 2 || !slices.Equal(s.events, []string{"first token"}) || s.err != nil || s.ended != 1 {
		t.Errorf("%+v", s)
	}
	lost := errors.New("lost")
	e.err, e.n = lost, 1
	for range guard(inflight.New("decode"), h, e).Generate(t.Context(), r) { //nolint:revive // nothing to look at
	}
	if !errors.Is(s.err, lost) || s.ended != 2 {
		t.Errorf("%+v", s)
	}
}

func TestTraceFetch(t *testing.T) {
	s := &span{}
	h := quiet{kindtest.NewHost(t, "decode", "decode-0", nil), s}
	lost := errors.New("lost")
	for _, tt := range []struct {
		name   string
		blocks int // given
		fail   error
		leave  int // after so many
		want   error
	}{
		{"whole", 3, nil, 9, nil},
		{"fails", 1, lost, 9, lost},
		{"left", 3, nil, 2, errLeftFetch},
	} {
		given := func(context.Context, *llm.KVFetch) iter.Seq2[*llm.KVBlock, error] {
			return func(yield func(*llm.KVBlock, error) bool) {
				for i := range tt.blocks {
					if !yield(&llm.KVBlock{Index: i, Length: 10, Region: "r"}, nil) {
						return
					}
				}
				if tt.fail != nil {
					yield(nil, tt.fail)
				}
			}
		}
		p := flow.Peer[*llm.KVFetch, *llm.KVBlock]{ID: "prefill-0", AsyncEngine: flow.EngineFunc[*llm.KVFetch, *llm.KVBlock](given)}
		ended, n := s.ended, 0
		for range fetches(h, p).Generate(kind.WithTrace(t.Context(), "00-q"), &llm.KVFetch{HandOff: "h", To: 3}) {
			if n++; n == tt.leave {
				break
			}
		}
		blocks := int64(min(tt.blocks, tt.leave))
		if s.strs["parent"] != "00-q" || s.strs["dynamo.peer"] != "prefill-0" || s.ints["dynamo.handoff.blocks"] != blocks || s.ints["dynamo.handoff.bytes"] != 10*blocks ||
			s.ints["dynamo.handoff.shared_memory_blocks"] != blocks || !errors.Is(s.err, tt.want) || s.ended != ended+1 {
			t.Errorf("%s: %+v", tt.name, s)
		}
		for range fetches(h, p).Generate(t.Context(), &llm.KVFetch{HandOff: "h", Release: true}) { //nolint:revive // nothing to look at
		}
		if s.ended != ended+1 {
			t.Errorf("%s: a release is a span", tt.name)
		}
	}
}
