// Package transporttest is the conformance suite of transports: what a caller may rely on, whatever carries its calls.
package transporttest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/otel/trace"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/runtime/transport"
)

// Instance is what the server of a Pair is called.
const Instance = "worker-1"

// Pair is a server and a connection to it, both made anew. The suite closes them.
type Pair struct {
	Server transport.Server
	Conn   transport.Conn
}

// patience bounds every wait of the suite.
const patience = 10 * time.Second

type suite struct {
	Pair
	t    *testing.T
	echo *Echo
	idle *Endless
	kv   *kv
}

// Run runs the suite; open makes a Pair whose server logs to log.
func Run(t *testing.T, open func(t *testing.T, log *slog.Logger) Pair) {
	for _, c := range []struct {
		name string
		f    func(*suite)
	}{
		{"Tokens", (*suite).tokens},
		{"RequestCrossesWhole", (*suite).request},
		{"ErrorCrossesWhole", (*suite).errors},
		{"Cancel", (*suite).cancel},
		{"LeaveLoop", (*suite).leave},
		{"Deadline", (*suite).deadline},
		{"Trace", (*suite).trace},
		{"PanicCostsOneRequest", (*suite).panics},
		{"UnknownPort", (*suite).unknown},
		{"HandleRefuses", (*suite).handle},
		{"SlowReader", (*suite).slow},
		{"Concurrent", (*suite).concurrent},
		{"KV", (*suite).fetch},
		{"Events", (*suite).events},
		{"Loads", (*suite).loads},
		{"Drain", (*suite).drain},
		{"DrainThenClose", (*suite).drainThenClose},
		{"ServerClose", (*suite).serverClose},
		{"ConnClose", (*suite).connClose},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &suite{
				Pair: open(t, slog.New(slog.DiscardHandler)), t: t, echo: &Echo{}, idle: &Endless{Pause: time.Millisecond}, kv: &kv{size: 300_000},
			}
			t.Cleanup(func() {
				s.check(s.Conn.Close())
				s.check(s.Server.Close())
				s.check(s.Conn.Close())
				s.check(s.Server.Close())
			})
			s.serve("echo", "tokens", s.echo)
			s.serve("endless", "tokens", s.idle)
			s.serve("kv", "kv", s.kv)
			s.serve("events", "events", flow.EngineFunc[*llm.Subscribe, *llm.EventBatch](events))
			s.serve("load", "load", flow.EngineFunc[*llm.Subscribe, *llm.Load](loads))
			c.f(s)
		})
	}
}

func (s *suite) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *suite) equal(got, want any) {
	s.t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		s.t.Fatalf("want(-) got(+):\n%s", d)
	}
}

func (s *suite) serve(port, typ string, e any) {
	s.t.Helper()
	s.check(s.Server.Handle(transport.Address{Node: "node", Port: port}, typ, e))
}

// engineOf returns the engine behind port, as its type.
func engineOf[Req, Resp any](s *suite, port string, p flow.Port[Req, Resp]) flow.AsyncEngine[Req, Resp] {
	s.t.Helper()
	v, err := s.Conn.Engine(transport.Address{Node: "node", Port: port}, p.Type)
	s.check(err)
	e, ok := v.(flow.AsyncEngine[Req, Resp])
	if !ok {
		s.t.Fatalf("%T is no engine of type %q", v, p.Type)
	}
	return e
}

func (s *suite) engine(port string) flow.AsyncEngine[*llm.TokensRequest, *llm.TokensDelta] {
	s.t.Helper()
	return engineOf(s, port, llm.Tokens)
}

func prompt(n int) *llm.TokensRequest {
	r := &llm.TokensRequest{ID: "r"}
	for i := range n {
		r.Tokens = append(r.Tokens, uint32(i*7919))
	}
	return r
}

// collect reads a stream to its end.
func collect(ctx context.Context, e flow.AsyncEngine[*llm.TokensRequest, *llm.TokensDelta], r *llm.TokensRequest) (tokens []uint32, last llm.TokensDelta, err error) {
	for d, err := range e.Generate(ctx, r) {
		if err != nil {
			return tokens, last, err
		}
		tokens = append(tokens, d.Tokens...)
		last = *d
		last.Tokens = append([]uint32(nil), d.Tokens...)
	}
	return tokens, last, nil
}

// fails reads a stream that must end with an error of the given class and reason, and returns it.
func (s *suite) fails(err error, class flow.Class, reason string, retry bool) *flow.Error {
	s.t.Helper()
	var e *flow.Error
	if !errors.As(err, &e) {
		s.t.Fatalf("got %T %v, want a *flow.Error %s", err, err, reason)
	}
	if e.Class != class || e.Reason != reason || e.Retry != retry {
		s.t.Fatalf("got %s %s retry=%t (%v), want %s %s retry=%t", e.Class, e.Reason, e.Retry, e, class, reason, retry)
	}
	return e
}

// eventually waits until f holds.
func (s *suite) eventually(what string, f func() bool) {
	s.t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("still not: %s", what)
		}
	}
}

func (s *suite) tokens() {
	r := prompt(300)
	tokens, last, err := collect(s.t.Context(), s.engine("echo"), r)
	s.check(err)
	s.equal(tokens, r.Tokens)
	t := r.Tokens[299]
	s.equal(last, llm.TokensDelta{
		Tokens: []uint32{t}, Finish: llm.FinishStop, StopID: 7, Instance: "echo-1", HandOff: handOff(),
		Usage:    &llm.Usage{Prompt: 3, Completion: 300, Cached: 1},
		Logprobs: []llm.Logprob{{Token: t, Logprob: -149.5, Top: []llm.TopLogprob{{Token: t, Logprob: -0.5}, {Token: t + 1, Logprob: -1.5}}}},
	})
	if !s.Conn.Healthy() {
		s.t.Error("not healthy after a call")
	}
}

func (s *suite) request() {
	r := fullRequest(s.t)
	_, _, err := collect(s.t.Context(), s.engine("echo"), r)
	s.check(err)
	got, _ := s.echo.last()
	s.equal(got, r)
}

func (s *suite) errors() {
	want := &flow.Error{
		Class: flow.CapacityExhausted, Reason: "engine.full", Param: "max_tokens", Msg: "no room", Instance: "inner-3",
		RetryAfter: 1500 * time.Millisecond, Retry: true,
	}
	s.serve("typed", "tokens", fail(want))
	tokens, _, err := collect(s.t.Context(), s.engine("typed"), prompt(1))
	s.equal(tokens, []uint32{1})
	s.equal(s.fails(err, want.Class, want.Reason, true), want)

	s.serve("untyped", "tokens", fail(errors.New("disk on fire")))
	_, _, err = collect(s.t.Context(), s.engine("untyped"), prompt(1))
	if e := s.fails(err, flow.Internal, "internal.untyped", false); e.Instance != Instance {
		s.t.Errorf("instance is %q", e.Instance)
	}
}

func (s *suite) cancel() {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	n := 0
	var last error
	for _, err := range s.engine("endless").Generate(ctx, prompt(1)) {
		if last = err; err == nil {
			if n++; n == 3 {
				cancel()
			}
		}
	}
	s.fails(last, flow.Cancelled, "cancelled", false)
	s.eventually("the engine stopped", func() bool { return s.idle.Stopped.Load() == 1 })

	_, _, err := collect(ctx, s.engine("endless"), prompt(1))
	s.fails(err, flow.Cancelled, "cancelled", false)
	if s.idle.Started.Load() != 1 {
		s.t.Error("a dead request reached the engine")
	}

	// A caller that waits for nothing in particular is woken.
	ctx, cancel = context.WithTimeout(s.t.Context(), 50*time.Millisecond)
	defer cancel()
	s.serve("mute", "tokens", &Endless{Pause: time.Hour})
	_, _, err = collect(ctx, s.engine("mute"), prompt(1))
	s.fails(err, flow.DeadlineExceeded, "deadline", false)
}

func (s *suite) leave() {
	for range s.engine("endless").Generate(s.t.Context(), prompt(1)) {
		break
	}
	s.eventually("the engine stopped", func() bool { return s.idle.Stopped.Load() == 1 })
	_, _, err := collect(s.t.Context(), s.engine("echo"), prompt(5))
	s.check(err)
}

func (s *suite) deadline() {
	want := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(s.t.Context(), want)
	defer cancel()
	_, _, err := collect(ctx, s.engine("echo"), prompt(1))
	s.check(err)
	_, seen := s.echo.last()
	if got, ok := seen.Deadline(); !ok || got.Sub(want).Abs() > time.Second {
		s.t.Errorf("the engine saw deadline %v %t, want %v", got, ok, want)
	}
	ctx, cancel = context.WithTimeout(s.t.Context(), 30*time.Millisecond)
	defer cancel()
	_, _, err = collect(ctx, s.engine("endless"), prompt(1))
	s.fails(err, flow.DeadlineExceeded, "deadline", false)
	s.eventually("the engine stopped", func() bool { return s.idle.Started.Load() == s.idle.Stopped.Load() })
}

func (s *suite) trace() {
	sc := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 2}, SpanID: trace.SpanID{3}, TraceFlags: trace.FlagsSampled})
	ctx := trace.ContextWithSpanContext(s.t.Context(), sc)
	_, _, err := collect(ctx, s.engine("echo"), prompt(1))
	s.check(err)
	_, seen := s.echo.last()
	got := trace.SpanContextFromContext(seen)
	if got.TraceID() != sc.TraceID() || got.SpanID() != sc.SpanID() || !got.IsSampled() {
		s.t.Errorf("the engine saw %v", got)
	}

	ids := make(chan trace.TraceID, 1)
	s.serve("load2", "load", flow.EngineFunc[*llm.Subscribe, *llm.Load](func(ctx context.Context, _ *llm.Subscribe) iterLoad {
		ids <- trace.SpanContextFromContext(ctx).TraceID()
		return func(func(*llm.Load, error) bool) {}
	}))
	for _, err := range engineOf(s, "load2", llm.Loads).Generate(ctx, &llm.Subscribe{}) {
		s.check(err)
	}
	if id := <-ids; id != sc.TraceID() {
		s.t.Errorf("the load engine saw trace %v", id)
	}
}

func (s *suite) panics() {
	s.serve("panics", "tokens", flow.EngineFunc[*llm.TokensRequest, *llm.TokensDelta](panics))
	var wg sync.WaitGroup
	good := make(chan error, 1)
	wg.Go(func() {
		n := 0
		for _, err := range s.engine("endless").Generate(s.t.Context(), prompt(1)) {
			if n++; err != nil || n == 50 {
				good <- err
				break
			}
		}
	})
	tokens, _, err := collect(s.t.Context(), s.engine("panics"), prompt(1))
	s.equal(tokens, []uint32{1})
	s.fails(err, flow.Internal, "transport.panic", false)
	wg.Wait()
	s.check(<-good)
}

func (s *suite) unknown() {
	_, _, err := collect(s.t.Context(), s.engine("nowhere"), prompt(1))
	if e := s.fails(err, flow.Unavailable, "transport.no_port", true); e.Instance != Instance {
		s.t.Errorf("instance is %q", e.Instance)
	}
	_, _, err = collect(s.t.Context(), s.engine("kv"), prompt(1))
	s.fails(err, flow.BackendProtocol, "transport.protocol", true)
	for _, err = range engineOf(s, "nowhere", llm.Events).Generate(s.t.Context(), &llm.Subscribe{}) {
	}
	s.fails(err, flow.Unavailable, "transport.no_port", true)
	if _, err := s.Conn.Engine(transport.Address{Node: "node", Port: "x"}, "telepathy"); err == nil {
		s.t.Error("an unknown type was dialled")
	}
}

func (s *suite) handle() {
	a := transport.Address{Node: "node", Port: "new"}
	for typ, e := range map[string]any{"tokens": &kv{}, "kv": s.echo, "events": s.echo, "load": s.echo, "telepathy": s.echo} {
		if err := s.Server.Handle(a, typ, e); err == nil {
			s.t.Errorf("type %q took %T", typ, e)
		}
	}
	if err := s.Server.Handle(transport.Address{Node: "node", Port: "echo"}, "tokens", s.echo); err == nil {
		s.t.Error("one address was served twice")
	}
}

// slow leaves one stream unread: its engine must be held back, and others must not notice.
func (s *suite) slow() {
	flood := &Endless{}
	s.serve("flood", "tokens", flood)
	for d, err := range s.engine("flood").Generate(s.t.Context(), prompt(1)) {
		s.check(err)
		s.equal(d.Tokens, []uint32{1})
		r := prompt(1000)
		for range 3 {
			tokens, _, err := collect(s.t.Context(), s.engine("echo"), r)
			s.check(err)
			s.equal(tokens, r.Tokens)
		}
		if n := flood.Given.Load(); n > 100 {
			s.t.Errorf("the engine of a reader that reads nothing gave %d deltas", n)
		}
		s.equal(d.Tokens, []uint32{1}) // still ours
		break
	}
	s.eventually("the engine stopped", func() bool { return flood.Stopped.Load() == 1 })

	// Read on after a pause: nothing is missing.
	want := uint32(1)
	for d, err := range s.engine("flood").Generate(s.t.Context(), prompt(1)) {
		s.check(err)
		s.equal(d.Tokens[0], want)
		if want == 10 {
			time.Sleep(20 * time.Millisecond)
		}
		if want++; want == 1000 {
			break
		}
	}
}

func (s *suite) concurrent() {
	var wg sync.WaitGroup
	errs := make(chan error, 64)
	for i := range 64 {
		wg.Go(func() {
			r := prompt(200 + i)
			r.Tokens[0] = uint32(i)
			tokens, _, err := collect(s.t.Context(), s.engine("echo"), r)
			if err == nil && !cmp.Equal(tokens, r.Tokens) {
				err = fmt.Errorf("request %d: answer of another, or not in order", i)
			}
			errs <- err
		})
	}
	wg.Wait()
	for range 64 {
		s.check(<-errs)
	}
}
