// Package migrate continues a request elsewhere when the instance that works on it fails: the tokens that the client has are given to
// another instance as the beginning of its answer, and the client sees no seam. It stands above a router, which chooses that instance; it
// knows an instance itself only where no router is below it. An answer depends on (seed, position) alone (see llm.Sampling.Seed), so the tokens are those of an
// undisturbed run.
package migrate

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/inflight"
	"github.com/dynamograph/dynamo/nodes/throttle"
)

// Node is the component. Its methods are safe for concurrent use.
type Node struct {
	c    Config
	host kind.Host
	out  flow.Peers[*llm.TokensRequest, *llm.TokensDelta]
	turn atomic.Uint64

	calls *inflight.Group

	throttle throttle.Throttle // of warnings about requests

	mu       sync.Mutex
	began    bool
	stop     context.CancelFunc // of follow; nil before Start
	follower sync.WaitGroup

	moved func(...string) func(float64)
}

// New returns a node that is not started yet.
func New(c Config, h kind.Host) (*Node, error) {
	return &Node{c: c, host: h, calls: inflight.New(h.Node()), moved: h.Metrics().Counter("dynamo_migrations_total",
		"Attempts to continue a request elsewhere, by what had been said and by outcome.", "said", "result")}, nil
}

// Start dials port "out" and serves port "in".
func (n *Node) Start(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.began || n.calls.Shut() {
		return fmt.Errorf("node %s: cannot be started again", n.host.Node())
	}
	out, err := kind.Dial(n.host, llm.Tokens, "out")
	if err != nil {
		return err
	}
	n.out, n.began = out, true
	if err := kind.Serve(n.host, llm.Tokens, "in", flow.EngineFunc[*llm.TokensRequest, *llm.TokensDelta](n.Generate), nil); err != nil {
		return err
	}
	ctx, n.stop = context.WithCancel(context.WithoutCancel(ctx))
	n.follower.Go(func() { n.follow(ctx) })
	return nil
}

// Drain refuses new requests and waits for those in flight.
func (n *Node) Drain(ctx context.Context) error {
	n.unfollow()
	n.host.Report(kind.Draining, "")
	return n.calls.Drain(ctx)
}

// unfollow ends the reports of who is there, and waits for their goroutine.
func (n *Node) unfollow() {
	n.mu.Lock()
	stop := n.stop
	n.mu.Unlock()
	if stop != nil {
		stop()
	}
	n.follower.Wait()
}

// Close ends what is in flight and waits for it.
func (n *Node) Close() error {
	n.unfollow()
	n.calls.Close()
	return nil
}

// Generate answers a request, over several attempts where needed.
func (n *Node) Generate(ctx context.Context, q *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
	return func(yield func(*llm.TokensDelta, error) bool) {
		ctx, done, err := n.calls.Begin(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		defer done()
		m := newState(n.c.Limit, q)
		for {
			attempt := m.request()
			to, err := n.pick(ctx, attempt.Routing.Exclude)
			if err != nil {
				yield(nil, err)
				return
			}
			m.instance = to.ID
			over, err := n.traced(ctx, to, m, attempt, yield)
			if over {
				return
			}
			again, out := m.failed(flow.AsError(err), ctx.Err() != nil)
			if out != nil { // everything was said but the reason
				yield(out, nil)
				return
			}
			if !again {
				if m.attempts > 1 {
					n.moved(m.broke, "failure")(1)
				}
				yield(nil, err)
				return
			}
			if suppressed, ok := n.throttle.Pass(flow.AsError(err).Reason); ok {
				n.host.Log().Warn("request continues elsewhere", "request", q.ID, "attempt", m.attempts, "tokens", len(m.tokens),
					"suppressed", suppressed, "error", err)
			}
			if err := pause(ctx, m.wait); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return flow.AsError(context.Cause(ctx))
	}
}

// traced is attempt as a span.
func (n *Node) traced(ctx context.Context, to peer, m *state, q *llm.TokensRequest, yield func(*llm.TokensDelta, error) bool) (bool, error) {
	ctx, span := kind.StartSpan(ctx, n.host, q.Trace, "attempt")
	if span.On() {
		q.Trace = span.Traceparent() // q is ours
		span.Str("dynamo.request.id", q.ID)
		span.Int("dynamo.attempt", m.attempts)
		span.Int("dynamo.generated_tokens", q.Generated)
	}
	over, err := n.attempt(ctx, to, m, q, yield)
	span.Str("dynamo.peer", m.instance)
	span.End(err)
	return over, err
}

// attempt runs one attempt. It is over when the answer is complete or the caller left; else err says why the attempt failed.
func (n *Node) attempt(ctx context.Context, to peer, m *state, q *llm.TokensRequest, yield func(*llm.TokensDelta, error) bool) (bool, error) {
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := n.watch(cancel)
	defer w.stop()
	for d, err := range to.Generate(run, q) {
		if err != nil {
			if run.Err() != nil && ctx.Err() == nil {
				err = context.Cause(run) // the watch's finding
			}
			return false, err
		}
		if d == nil {
			continue
		}
		w.saw(d)
		if !m.took(d) {
			continue
		}
		if d.Finish != "" && m.attempts > 1 {
			n.moved(m.broke, "success")(1)
		}
		w.pause() // how long the client takes is not the instance's fault
		if !yield(d, nil) || d.Finish != "" {
			return true, nil
		}
		w.resume()
	}
	if run.Err() != nil && ctx.Err() == nil {
		return false, context.Cause(run)
	}
	if ctx.Err() != nil {
		return false, flow.AsError(context.Cause(ctx))
	}
	return false, &flow.Error{Class: flow.BackendProtocol, Reason: "migrate.incomplete", Msg: "the answer ended without a reason", Instance: m.instance, Retry: true}
}

// watch ends an attempt that stops giving tokens. Before the first token it is the router's to say how long that may take: it knows how
// much work waits.
type watch struct {
	after  time.Duration
	timer  *time.Timer // nil until the first token
	cancel context.CancelCauseFunc
	// instance is read by the timer's goroutine.
	instance atomic.Pointer[string]
	name     string
}

func (n *Node) watch(cancel context.CancelCauseFunc) *watch {
	return &watch{after: n.c.Stall.Std(), cancel: cancel}
}

func (w *watch) saw(d *llm.TokensDelta) {
	if w.after <= 0 {
		return
	}
	if d.Instance != "" && d.Instance != w.name {
		w.name = d.Instance
		name := d.Instance
		w.instance.Store(&name)
	}
	if w.timer == nil && len(d.Tokens) > 0 {
		w.timer = time.AfterFunc(w.after, w.fire)
	}
}

func (w *watch) fire() {
	e := &flow.Error{Class: flow.Unavailable, Reason: "migrate.stalled", Msg: fmt.Sprintf("no token for %v", w.after), Retry: true}
	if p := w.instance.Load(); p != nil {
		e.Instance = *p
	}
	w.cancel(e)
}

func (w *watch) pause() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *watch) resume() {
	if w.timer != nil {
		w.timer.Reset(w.after)
	}
}

func (w *watch) stop() { w.pause() }

// state is what a request has come to. It decides alone: no clock, no I/O. It is not safe for concurrent use.
type state struct {
	q        *llm.TokensRequest
	limit    int
	attempts int
	tokens   []uint32 // given to the client by us
	exclude  []string
	instance string        // of the present attempt
	prompt   bool          // the prompt's logprobs were given
	broke    string        // what had been said when an attempt last failed: "new" or "ongoing"
	cached   int           // of the first attempt that said it; -1: none has
	waits    int           // attempts that were refused while something had been said: they do not count
	rounds   int           // waits so far
	wait     time.Duration // before the next attempt
}

// What has begun is not given up where nobody takes it at the moment, as when the others are full of what a lost instance leaves: it waits,
// in pauses that grow, about a minute in all.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = time.Second
	maxWaits    = 60
)

// refused reports whether an instance did not begin with a request at all: another moment may be better.
func refused(err *flow.Error) bool {
	switch err.Reason {
	case "transport.cannot_connect", "transport.draining", "node.draining", "engine.draining":
		return true
	}
	return err.Class == flow.CapacityExhausted
}

func newState(limit int, q *llm.TokensRequest) *state { return &state{q: q, limit: limit, cached: -1} }

// request is what the next attempt asks for.
func (s *state) request() *llm.TokensRequest {
	s.attempts++
	s.instance = ""
	r := *s.q
	if s.attempts == 1 {
		return &r
	}
	r.Tokens = append(slices.Clone(s.q.Tokens), s.tokens...)
	r.Generated = s.q.Generated + len(s.tokens)
	r.Routing.Exclude = append(slices.Clone(s.q.Routing.Exclude), s.exclude...)
	r.PromptLogprobs = s.q.PromptLogprobs && !s.prompt
	return &r
}

// took notes a delta and reports whether the caller should see it.
func (s *state) took(d *llm.TokensDelta) bool {
	if d.Instance != "" {
		s.instance = d.Instance
	}
	if d.Finish == llm.FinishAbort && len(d.Tokens) == 0 {
		return false // an error follows
	}
	s.tokens = append(s.tokens, d.Tokens...)
	if len(d.Prompt) > 0 {
		s.prompt = true
	}
	if d.Usage != nil {
		if s.cached < 0 {
			s.cached = d.Usage.Cached
		}
		// What a later attempt finds cached may hold tokens of the answer.
		d.Usage.Cached = min(s.cached, d.Usage.Prompt)
	}
	return len(d.Tokens) > 0 || len(d.Prompt) > 0 || d.Finish != "" || d.Usage != nil
}

// failed decides what follows an error: another attempt, or the end. The end may be a good one: then last is what is still to be said.
func (s *state) failed(err *flow.Error, left bool) (again bool, last *llm.TokensDelta) {
	if left {
		return false, nil
	}
	s.broke = "new"
	if len(s.tokens) > 0 {
		s.broke = "ongoing"
	}
	if limit := s.q.Stop.MaxTokens; limit > 0 && s.q.Generated+len(s.tokens) >= limit {
		return false, &llm.TokensDelta{Finish: llm.FinishLength, Instance: s.instance, Usage: &llm.Usage{
			Prompt: len(s.q.Tokens) - s.q.Generated, Completion: s.q.Generated + len(s.tokens), Cached: max(s.cached, 0),
		}}
	}
	who := err.Instance
	if who == "" {
		who = s.instance
	}
	been, limit := slices.Contains(s.exclude, who), s.limit+s.waits
	switch s.wait = 0; {
	case refused(err) && len(s.tokens) > 0 && s.limit > 0:
		s.waits++
		limit = s.limit + maxWaits
		if been { // it went round: there is nobody else to ask at once
			s.wait = min(firstWait<<min(s.rounds, 10), longestWait)
			s.rounds++
		}
	case err.Class == flow.CapacityExhausted && been:
		return false, nil // all who are there are full: to ask on would keep them so
	}
	if !err.Retry || s.q.Routing.Pin != "" || s.attempts > limit {
		return false, nil
	}
	if who != "" && !slices.Contains(s.exclude, who) {
		s.exclude = append(s.exclude, who)
	}
	return true, nil
}
