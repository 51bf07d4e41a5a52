package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/engine/serve"
)

// prefillTries is how many prefill instances are asked before decode computes the prompt.
const prefillTries = 2

// outcome is what prefill said.
type outcome struct {
	handoff *llm.HandOff
	deltas  []llm.TokensDelta // copies
	over    bool              // the answer is complete: there is nothing to decode
	prompt  []llm.Logprob
	cached  int
	err     error
}

// add copies what a delta says; deltas live until the next turn only.
func (o *outcome) add(d *llm.TokensDelta) {
	c := *d
	c.Tokens, c.Logprobs, c.Prompt = slices.Clone(d.Tokens), slices.Clone(d.Logprobs), slices.Clone(d.Prompt)
	o.deltas = append(o.deltas, c)
	if len(c.Prompt) > 0 {
		o.prompt = c.Prompt
	}
	if d.Usage != nil {
		o.cached = d.Usage.Cached
	}
	switch {
	case d.HandOff != nil:
		h := *d.HandOff
		o.handoff = &h
	case d.Finish != "" && d.Finish != llm.FinishAbort:
		o.over = true
	}
}

// disaggregated computes the prompt on a prefill instance and continues on a decode instance. Where prefill fails, decode does both.
func (r *Router) disaggregated(ctx context.Context, q *llm.TokensRequest, out *output) error {
	exclude := slices.Clone(q.Routing.Exclude)
	why := "no_instance"
	var failed error
	for range prefillTries {
		b, err := r.acquire(ctx, ask{role: prefill, exclude: exclude, strict: true}, q, 0)
		if err != nil {
			return err
		}
		if b == nil {
			break
		}
		if !out.give(&llm.TokensDelta{Instance: b.i.id}) {
			b.end()
			return nil
		}
		if beside(b.peer) {
			done, err := r.beside(ctx, b, q, out)
			if done {
				return err
			}
			failed = err
		} else {
			o := r.prefill(ctx, b, q)
			b.end()
			switch {
			case o.err == nil:
				return r.proceed(ctx, q, o, out)
			case final(ctx, o.err):
				return o.err
			}
			failed = o.err
		}
		why = flow.AsError(failed).Reason
		exclude = append(exclude, b.i.id)
	}
	r.fallbacks(why)(1)
	r.tellFallback(ctx, q, why, failed)
	d := *q
	d.Phase, d.HandOff = llm.PhaseAll, nil
	return r.dispatch(ctx, decode, &d, out)
}

// tellFallback logs that decode computes a prompt. Where prefill is full that is right: decode has room, and the queue only grows. Where
// no instance is there, the router's state says so all the while.
func (r *Router) tellFallback(ctx context.Context, q *llm.TokensRequest, why string, err error) {
	level := slog.LevelWarn
	if err == nil {
		level = slog.LevelInfo
	}
	if suppressed, ok := r.throttle.Pass("fallback " + why); ok {
		r.host.Log().Log(ctx, level, "decode computes the prompt", "request", q.ID, "tokens", len(q.Tokens), "why", why,
			"suppressed", suppressed, "error", err)
	}
}

// prefill runs the prompt phase.
func (r *Router) prefill(ctx context.Context, b *booking, q *llm.TokensRequest) outcome {
	var o outcome
	p := *q
	p.Phase, p.HandOff = llm.PhasePrefill, nil
	o.err = r.call(ctx, b, &p, func(d *llm.TokensDelta) bool { o.add(d); return true })
	if o.err == nil && o.handoff != nil && o.handoff.Peer == "" {
		o.handoff.Peer = b.i.id
	}
	return o
}

// proceed continues after prefill: with decode, or with nothing where the answer is complete.
func (r *Router) proceed(ctx context.Context, q *llm.TokensRequest, o outcome, out *output) error {
	if o.over {
		for i := range o.deltas {
			out.tokens = true
			if !out.give(&o.deltas[i]) {
				return nil
			}
		}
		return nil
	}
	d := *q
	if o.prompt != nil { // decode does not see the prompt's logits
		d.PromptLogprobs = false
		if !out.give(&llm.TokensDelta{Prompt: o.prompt}) {
			return nil
		}
	}
	d.Phase, d.HandOff = llm.PhaseDecode, o.handoff
	give := out.yield
	out.yield = func(x *llm.TokensDelta, err error) bool {
		if x != nil && x.Usage != nil { // what prefill found is what the client is told
			x.Usage.Cached = o.cached
		}
		return give(x, err)
	}
	defer func() { out.yield = give }()
	return r.dispatch(ctx, decode, &d, out)
}

// beside reports whether an instance hands off in mode beside only.
func beside(p peer) bool {
	modes := strings.Split(p.Info[serve.InfoHandOff], ",")
	return slices.Contains(modes, string(llm.ModeBeside)) && !slices.Contains(modes, string(llm.ModeAfter))
}

var errPrefill = errors.New("prefill did not hand off")

// beside starts both sides at once on an agreed id. It is not done where prefill failed before anything was said: err is prefill's then,
// and else the caller's. It ends b.
func (r *Router) beside(ctx context.Context, b *booking, q *llm.TokensRequest, out *output) (done bool, err error) {
	allow := r.c.Stall.Std() + time.Duration(b.busy)*perToken
	h := llm.HandOff{
		ID: fmt.Sprintf("%s/%d", q.ID, r.serial.Add(1)), Mode: llm.ModeBeside, Peer: b.i.id, Deadline: time.Now().Add(max(allow, time.Second)),
	}
	both, cancel := context.WithCancelCause(ctx)
	result := make(chan outcome, 1)
	var begun atomic.Bool
	var side sync.WaitGroup
	defer side.Wait()
	defer cancel(nil) // before that
	side.Go(func() {
		defer b.end()
		var o outcome
		p := *q
		p.Phase, p.HandOff = llm.PhasePrefill, &h
		o.err = r.call(both, b, &p, func(d *llm.TokensDelta) bool { o.add(d); return true })
		result <- o
		if (o.err != nil || o.over) && !begun.Load() { // decode has what it needs once it gives tokens
			cancel(errPrefill)
		}
	})
	give := out.yield
	out.yield = func(x *llm.TokensDelta, err error) bool {
		if x != nil && len(x.Tokens) > 0 {
			begun.Store(true)
		}
		return give(x, err)
	}
	d := *q
	d.Phase, d.HandOff, d.PromptLogprobs = llm.PhaseDecode, &h, q.PromptLogprobs
	err = r.dispatch(both, decode, &d, out)
	out.yield = give
	if err == nil || ctx.Err() != nil || !errors.Is(context.Cause(both), errPrefill) {
		return true, err
	}
	o := <-result
	switch {
	case out.tokens: // it began in the moment in which it was given up
		return true, &flow.Error{Class: flow.Unavailable, Reason: "router.prefill_lost", Instance: b.i.id, Retry: true, Msg: "prefill was lost", Err: o.err}
	case o.over:
		return true, r.proceed(ctx, q, o, out)
	case final(ctx, o.err):
		return true, o.err
	}
	return false, o.err
}

// final reports whether no other instance can do better: the request itself is at fault, or nobody waits any more.
func final(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	switch flow.AsError(err).Class {
	case flow.InvalidRequest, flow.NotFound, flow.PayloadTooLarge, flow.Cancelled, flow.DeadlineExceeded, flow.NotImplemented:
		return true
	}
	return false
}
