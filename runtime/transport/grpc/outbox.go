package grpc

import (
	"context"
	"runtime"
	"sync"
)

// outbox gathers frames of many requests and sends them as few messages. put never blocks: what may be in it is bounded by the requests'
// credits. The frames of one request stay in order.
type outbox struct {
	mu   sync.Mutex
	full []*[]byte // closed messages
	cur  *[]byte   // open message, or nil
	wake chan struct{}
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

// begin locks the outbox and returns the open message; the caller appends one frame and calls commit.
func (o *outbox) begin() *[]byte {
	o.mu.Lock()
	if o.cur == nil {
		o.cur = buffers.Get(0)
	}
	return o.cur
}

// commit unlocks the outbox and wakes the sender.
func (o *outbox) commit() {
	if len(*o.cur) >= batchBytes {
		o.full = append(o.full, o.cur)
		o.cur = nil
	}
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) take() *[]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.full) > 0 {
		b := o.full[0]
		o.full[0] = nil
		o.full = o.full[1:]
		return b
	}
	if o.cur == nil || len(*o.cur) == 0 {
		return nil
	}
	b := o.cur
	o.cur = nil
	return b
}

// run sends until ctx ends, then what is left, or until send fails.
func (o *outbox) run(ctx context.Context, send func(m any) error) error {
	m := raw{pool: buffers}
	for more := true; more; {
		select {
		case <-ctx.Done():
			more = false
		case <-o.wake:
			// An engine step wakes many requests: let those that are ready add their frames first.
			runtime.Gosched()
		}
		for b := o.take(); b != nil; b = o.take() {
			m.buf = b
			if err := send(&m); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}
