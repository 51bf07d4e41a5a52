package frontend

import (
	"context"
	"sync"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// How long a choice waits for room while the others of its answer are under way: in pauses that grow, about a minute in all.
const (
	firstRoomWait   = 100 * time.Millisecond
	longestRoomWait = time.Second
	maxRoomWaits    = 60
)

// all runs every choice and returns the first error.
func (t *tally) all(ctx context.Context, cancel context.CancelFunc, e chatEngine, c *call, out sink) error {
	if len(c.requests) == 1 {
		return t.one(ctx, e, 0, c.requests[0], out)
	}
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first error
	)
	for i, q := range c.requests {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					t.f.host.Log().Error("choice panicked", "request", q.ID, "panic", p)
					once.Do(func() { first = &flow.Error{Class: flow.Internal, Reason: "frontend.panic", Msg: "internal error"} })
					cancel()
				}
			}()
			if err := t.choice(ctx, e, i, q, out); err != nil {
				once.Do(func() { first = err })
				cancel()
			}
		})
	}
	wg.Wait()
	return first
}

// choice is one of several. Where nobody takes it at the moment and others of the answer are under way, it waits: to refuse it
// would break off an answer of which the client has a part.
func (t *tally) choice(ctx context.Context, e chatEngine, i int, q *llm.ChatRequest, out sink) error {
	wait := firstRoomWait
	for n := 0; ; n++ {
		err := t.one(ctx, e, i, q, out)
		if err == nil || t.choices[i].begun || n == maxRoomWaits || !later(flow.AsError(err).Class) || t.refuse() {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errLeft
		}
		wait = min(2*wait, longestRoomWait)
	}
}

// later reports whether a failure of class c may pass: all are full, or what is not is being started again.
func later(c flow.Class) bool { return c == flow.CapacityExhausted || c == flow.Unavailable }

// start notes that something is given; false where the answer was refused as a whole.
func (t *tally) start() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = t.begun || !t.refused
	return t.begun
}

// refuse refuses the answer as a whole, if nothing of it was given.
func (t *tally) refuse() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused = t.refused || !t.begun
	return t.refused
}
