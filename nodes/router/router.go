// Package router sends each request to an instance: to one worker, or to a prefill and then to a decode instance. It chooses by load and
// health (core.go); it does not retry what has begun (package migrate does) and does not look at text.
package router

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/inflight"
	"github.com/dynamograph/dynamo/nodes/throttle"
)

type (
	peers = flow.Peers[*llm.TokensRequest, *llm.TokensDelta]
	peer  = flow.Peer[*llm.TokensRequest, *llm.TokensDelta]
)

// Router is the component. Its methods are safe for concurrent use.
type Router struct {
	c    Config
	host kind.Host

	cancel  context.CancelFunc
	watches sync.WaitGroup
	calls   *inflight.Group
	serial  atomic.Uint64 // of hand-offs

	throttle throttle.Throttle // of warnings about requests

	mu      sync.Mutex
	core    core
	dialled [roles]peers // nil: no edge
	peers   [roles]map[string]peer
	node    [roles]string // of the instances behind a port, once one was seen
	changed chan struct{} // closed and replaced when a pool changes
	started bool

	routed    func(...string) func(float64)
	fallbacks func(...string) func(float64)
	failures  func(...string) func(float64)
}

// New returns a router that is not started yet.
func New(c Config, h kind.Host) (*Router, error) {
	m := h.Metrics()
	return &Router{
		c: c, host: h, changed: make(chan struct{}), calls: inflight.New(h.Node()),
		core:      core{policy: c.Policy, inhibit: c.Inhibit.Std(), random: rand.Uint64() | 1},
		routed:    m.Counter("dynamo_routed_requests_total", "Requests sent to an instance.", "role", "instance"),
		fallbacks: m.Counter("dynamo_prefill_fallbacks_total", "Prompts that decode computed because prefill did not.", "reason"),
		failures:  m.Counter("dynamo_instance_failures_total", "Calls that an instance failed or did not answer.", "instance", "reason"),
	}, nil
}

// Start dials the pools and serves port "in". Pools may be empty: requests wait for them.
func (r *Router) Start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls.Shut() || r.started {
		return fmt.Errorf("node %s: cannot be started again", r.host.Node())
	}
	var errs []error
	for p := range roles {
		d, err := kind.Dial(r.host, llm.Tokens, p.String())
		if errors.Is(err, kind.ErrNoEdge) {
			errs = append(errs, err)
			continue
		}
		if err != nil {
			return err
		}
		r.dialled[p] = d
	}
	if r.dialled[worker] == nil && r.dialled[decode] == nil {
		return fmt.Errorf("node %s: neither workers nor decode instances to send to: %w", r.host.Node(), errors.Join(errs...))
	}
	watch, cancel := context.WithCancel(context.WithoutCancel(ctx))
	for p, d := range r.dialled {
		if d != nil {
			changed := d.Changed()
			r.take(time.Now(), role(p), d.List())
			r.watches.Go(func() { r.watch(watch, role(p), d, changed) })
		}
	}
	if err := kind.Serve(r.host, llm.Tokens, "in", flow.EngineFunc[*llm.TokensRequest, *llm.TokensDelta](r.Generate), nil); err != nil {
		cancel()
		return err
	}
	r.cancel, r.started = cancel, true
	r.report()
	return nil
}

func (r *Router) watch(ctx context.Context, p role, d peers, changed <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		changed = d.Changed()
		list := d.List()
		r.mu.Lock()
		r.take(time.Now(), p, list)
		r.report()
		r.mu.Unlock()
	}
}

// take stores a pool's instances; r.mu is held.
func (r *Router) take(now time.Time, p role, list []peer) {
	ids := make([]string, len(list))
	old := r.peers[p]
	r.peers[p] = make(map[string]peer, len(list))
	for i, x := range list {
		ids[i] = x.ID
		if y, ok := old[x.ID]; ok && !same(x, y) {
			r.core.forget(p, x.ID)
		}
		r.peers[p][x.ID] = x
		r.node[p] = x.Node
	}
	r.core.update(now, p, ids)
	close(r.changed)
	r.changed = make(chan struct{})
}

// same reports whether two peers of one name are one process. Engines that cannot be compared count as the same.
func same(a, b peer) bool {
	t := reflect.TypeOf(a.AsyncEngine)
	return t == nil || !t.Comparable() || a.AsyncEngine == b.AsyncEngine
}

// report says what is missing; r.mu is held.
func (r *Router) report() {
	for _, p := range []role{worker, decode, prefill} {
		if r.dialled[p] == nil || len(r.core.pools[p].list) > 0 {
			continue
		}
		if p == prefill {
			r.host.Report(kind.Degraded, "no instance of "+r.name(p)+": decode computes the prompts")
		} else {
			r.host.Report(kind.Starting, "waits for an instance of "+r.name(p))
		}
		return
	}
	r.host.Report(kind.Ready, "")
}

// name is what a pool is called in messages; r.mu is held.
func (r *Router) name(p role) string {
	if r.node[p] != "" {
		return fmt.Sprintf("node %q", r.node[p])
	}
	return fmt.Sprintf("the node behind port %q", p)
}

// Drain waits for what is in flight.
func (r *Router) Drain(ctx context.Context) error {
	r.host.Report(kind.Draining, "")
	return r.calls.Drain(ctx)
}

// Close ends the watches and the calls in flight.
func (r *Router) Close() error {
	r.mu.Lock()
	if r.cancel != nil {
		r.cancel()
	}
	r.mu.Unlock()
	r.calls.Close()
	r.watches.Wait()
	return nil
}

// Generate routes one request.
func (r *Router) Generate(ctx context.Context, q *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
	return func(yield func(*llm.TokensDelta, error) bool) {
		ctx, done, err := r.calls.Begin(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		defer done()
		ctx, span := kind.StartSpan(ctx, r.host, q.Trace, "route")
		yield, end := kind.Follow(span, yield)
		defer end()
		span.Str("dynamo.request.id", q.ID)
		span.Str("dynamo.policy", r.c.Policy)
		if err := r.checkPin(q); err != nil {
			yield(nil, err)
			return
		}
		out := &output{yield: yield}
		if r.dialled[worker] != nil { // set by Start, never changed
			err = r.dispatch(ctx, worker, q, out)
		} else {
			err = r.disaggregated(ctx, q, out)
		}
		if err != nil && !out.gone {
			yield(nil, err)
		}
	}
}

// output is the caller's end of a stream.
type output struct {
	yield  func(*llm.TokensDelta, error) bool
	tokens bool // something was given
	gone   bool // the caller left
}

func (o *output) give(d *llm.TokensDelta) bool {
	if !o.yield(d, nil) {
		o.gone = true
	}
	return !o.gone
}

func (r *Router) checkPin(q *llm.TokensRequest) error {
	if q.Routing.Pin == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range roles {
		if r.core.has(p, q.Routing.Pin) {
			return nil
		}
	}
	return &flow.Error{
		Class: flow.NotFound, Reason: "router.unknown_instance", Param: "routing.pin",
		Msg: fmt.Sprintf("no instance is called %q", q.Routing.Pin),
	}
}

// booking is a call that the core counts.
type booking struct {
	r      *Router
	peer   peer
	i      *instance
	tokens int
	busy   int // prompt tokens in flight there, these included
}

func (b *booking) end() {
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	b.r.core.end(b.i, b.tokens)
}

// acquire books an instance, waiting for one as long as wait says. It returns nil and no error where wait is 0 and none is there.
func (r *Router) acquire(ctx context.Context, a ask, q *llm.TokensRequest, wait time.Duration) (*booking, error) {
	begin := time.Now()
	for {
		now := time.Now()
		r.mu.Lock()
		if a.pin = q.Routing.Pin; a.pin != "" && !r.core.has(a.role, a.pin) {
			a.pin = "" // of the other pool
		}
		c := r.core.pick(now, a)
		if c.instance != nil {
			b := &booking{r: r, i: c.instance, peer: r.peers[a.role][c.instance.id], tokens: len(q.Tokens)}
			r.core.begin(b.i, b.tokens)
			b.busy = b.i.tokens
			requests := b.i.requests
			r.mu.Unlock()
			r.routed(a.role.String(), b.i.id)(1)
			if r.host.Log().Enabled(ctx, slog.LevelDebug) {
				r.host.Log().Debug("routed", "request", q.ID, "role", a.role.String(), "instance", b.i.id, "policy", r.c.Policy, "of", c.of,
					"requests", requests, "tokens", b.busy)
			}
			return b, nil
		}
		status, name, changed := r.core.status(now, a.role), r.name(a.role), r.changed
		r.mu.Unlock()
		left := wait - now.Sub(begin)
		if left <= 0 {
			if wait == 0 {
				return nil, nil
			}
			return nil, &flow.Error{
				Class: flow.Unavailable, Reason: "router.no_instance", RetryAfter: time.Second,
				Msg: fmt.Sprintf("%s: %s (waited %v)", name, status, wait),
			}
		}
		if !c.wake.IsZero() {
			left = min(left, c.wake.Sub(now))
		}
		if err := pause(ctx, left, changed); err != nil {
			return nil, err
		}
	}
}

func pause(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	t := time.NewTimer(max(d, time.Millisecond))
	defer t.Stop()
	select {
	case <-t.C:
	case <-changed:
	case <-ctx.Done():
		return cause(ctx)
	}
	return nil
}

// cause is why ctx ended, as an error for the caller.
func cause(ctx context.Context) error { return flow.AsError(context.Cause(ctx)) }
