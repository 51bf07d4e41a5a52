package router

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
)

// perToken is what we allow an instance to take for each prompt token that it has in flight, above Config.Stall, before we call it
// stalled: 40 tokens a second.
const perToken = 25 * time.Millisecond

// dispatch sends q to an instance of a pool and passes on what comes.
func (r *Router) dispatch(ctx context.Context, p role, q *llm.TokensRequest, out *output) error {
	b, err := r.acquire(ctx, ask{role: p, exclude: q.Routing.Exclude}, q, r.c.Wait.Std())
	if err != nil {
		return err
	}
	defer b.end()
	// Whoever watches the stream learns from an empty delta who works on it: migrate needs the name if nothing else ever comes.
	if !out.give(&llm.TokensDelta{Instance: b.i.id}) {
		return nil
	}
	return r.call(ctx, b, q, func(d *llm.TokensDelta) bool {
		out.tokens = true
		return out.give(d)
	})
}

// call runs q on a booked instance until the stream ends, give returns false, or the instance fails. An instance that does not give a
// first delta in time is failed.
func (r *Router) call(ctx context.Context, b *booking, q *llm.TokensRequest, give func(*llm.TokensDelta) bool) (err error) {
	ctx, span := kind.StartSpan(ctx, r.host, q.Trace, "dispatch")
	if span.On() {
		c := *q
		c.Trace, q = span.Traceparent(), &c
		span.Str("dynamo.request.id", q.ID)
		span.Str("dynamo.peer", b.i.id)
		span.Str("dynamo.phase", q.Phase.String())
		span.Int("dynamo.peer.prompt_tokens", b.busy)
	}
	defer func() { span.End(err) }()
	attempt, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watch *time.Timer
	if s := r.c.Stall.Std(); s > 0 {
		allow := s + time.Duration(b.busy)*perToken
		watch = time.AfterFunc(allow, func() { cancel(stalled(b.i.id, allow)) })
		defer watch.Stop()
	}
	finished := false
	for d, err := range b.peer.Generate(attempt, q) {
		if err != nil {
			if finished {
				return nil // all was said before the stream broke
			}
			return r.failed(ctx, attempt, b, err)
		}
		if d == nil {
			continue
		}
		if watch != nil {
			watch.Stop()
			watch = nil
			r.answered(b)
		}
		if d.Instance == "" {
			d.Instance = b.i.id
		}
		finished = d.Finish != "" && d.Finish != llm.FinishAbort || d.HandOff != nil
		if !give(d) {
			r.left(ctx, b)
			return nil
		}
	}
	if !finished {
		return r.failed(ctx, attempt, b, &flow.Error{
			Class: flow.BackendProtocol, Reason: "router.incomplete", Msg: "the stream ended without a reason", Retry: true,
		})
	}
	return nil
}

func stalled(instance string, after time.Duration) error {
	return &flow.Error{
		Class: flow.Unavailable, Reason: "router.stalled", Instance: instance, Retry: true,
		Msg: fmt.Sprintf("no answer within %v", after),
	}
}

func (r *Router) answered(b *booking) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.core.answered(b.i)
}

// failed decides what an error says about the instance, and returns what the caller gets.
func (r *Router) failed(ctx, attempt context.Context, b *booking, err error) error {
	if ctx.Err() != nil { // the caller left, or found the instance stalled
		r.left(ctx, b)
		return cause(ctx)
	}
	if attempt.Err() != nil {
		err = context.Cause(attempt)
	}
	e := *flow.AsError(err)
	if e.Instance == "" {
		e.Instance = b.i.id
	}
	if unreachable(&e) {
		r.inhibit(b, &e)
	}
	return &e
}

// left looks at why the caller gave up: another node that found the instance stalled says so in the cause.
func (r *Router) left(ctx context.Context, b *booking) {
	var e *flow.Error
	if ctx.Err() != nil && errors.As(context.Cause(ctx), &e) && e.Instance == b.i.id && unreachable(e) {
		r.inhibit(b, e)
	}
}

func (r *Router) inhibit(b *booking, e *flow.Error) {
	r.mu.Lock()
	r.core.failed(time.Now(), b.i)
	r.mu.Unlock()
	r.failures(b.i.id, e.Reason)(1)
	if suppressed, ok := r.throttle.Pass("inhibit " + b.i.id + " " + e.Reason); ok { // each of its requests comes here
		r.host.Log().Warn("instance failed: it gets no requests for a while", "instance", b.i.id, "for", r.c.Inhibit.Std(),
			"suppressed", suppressed, "error", e)
	}
}

// unreachable reports whether an error is about the instance, not about the request: only those keep others from it.
func unreachable(e *flow.Error) bool {
	switch e.Reason {
	case "transport.draining", "transport.busy", "transport.panic":
		return false
	case "engine.closed", "router.stalled", "migrate.stalled":
		return true
	}
	return strings.HasPrefix(e.Reason, "transport.")
}
