package grpc

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	dynamov1 "github.com/dynamograph/dynamo/runtime/api/dynamo/v1"
	"github.com/dynamograph/dynamo/runtime/transport"
)

// remoteTokens is the tokens engine behind an address of the peer.
type remoteTokens struct {
	c *Conn
	a transport.Address
}

// Generate implements flow.AsyncEngine.
func (r *remoteTokens) Generate(ctx context.Context, req *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
	return func(yield func(*llm.TokensDelta, error) bool) {
		c, fe := r.open(ctx, req)
		if fe != nil {
			yield(nil, fe)
			return
		}
		defer c.s.forget(c.id, true) // a call that has ended is forgotten already
		for {
			d, fe := c.next(ctx)
			if fe != nil {
				yield(nil, fe)
				return
			}
			if d == nil || !yield(d, nil) {
				return
			}
			c.pop()
		}
	}
}

func (r *remoteTokens) open(ctx context.Context, req *llm.TokensRequest) (*call, *flow.Error) {
	if err := ctx.Err(); err != nil {
		return nil, flow.AsError(err)
	}
	s, fe := r.c.get(ctx)
	if fe != nil {
		return nil, fe
	}
	o := &dynamov1.Open{
		To: &dynamov1.Address{Node: text(r.a.Node), Port: text(r.a.Port)}, Request: requestToWire(req), Credit: uint32(r.c.opt.Window),
		Traceparent: traceparent(ctx),
	}
	if t, ok := ctx.Deadline(); ok {
		left := time.Until(t)
		if left <= 0 {
			return nil, flow.AsError(context.DeadlineExceeded)
		}
		o.TimeoutNano = int64(left)
	}
	return s.open(o)
}

// call is one request at the caller: a ring of deltas between the session's reader and the range loop. Its slots are reused; it grows to
// the window only where the loop is slow.
type call struct {
	s      *session
	id     uint64
	window int
	wake   chan struct{}
	seen   int // deltas since the last credit; only the loop uses it

	mu    sync.Mutex
	ring  []*llm.TokensDelta
	head  int
	n     int
	seq   uint64
	ended bool
	err   *flow.Error
}

// push decodes a delta into the next slot.
func (c *call) push(seq uint64, b []byte) *flow.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seq++; seq != c.seq {
		return protocol(c.s.opt.Instance, "a delta is missing or came twice")
	}
	if c.n == c.window {
		return protocol(c.s.opt.Instance, "the peer sent more than it may")
	}
	if c.n == len(c.ring) {
		c.grow()
	}
	if err := decodeDelta(b, c.ring[(c.head+c.n)%len(c.ring)]); err != nil {
		return protocol(c.s.opt.Instance, "the peer sent what is no delta: "+err.Error())
	}
	c.n++
	c.signal()
	return nil
}

func (c *call) grow() {
	size := min(max(4, 2*len(c.ring)), c.window)
	ring := make([]*llm.TokensDelta, size)
	for i := range c.n {
		ring[i] = c.ring[(c.head+i)%len(c.ring)]
	}
	slots := make([]llm.TokensDelta, size-c.n)
	tokens := make([]uint32, 4*len(slots))
	for i := range slots {
		slots[i].Tokens = tokens[4*i : 4*i : 4*i+4]
		ring[c.n+i] = &slots[i]
	}
	c.ring, c.head = ring, 0
}

// finish ends the call; nil is success.
func (c *call) finish(e *flow.Error) {
	c.mu.Lock()
	if !c.ended {
		c.ended, c.err = true, e
	}
	c.signal()
	c.mu.Unlock()
}

func (c *call) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// next waits for a delta; both results are nil at the end. What came before a failure is given first.
func (c *call) next(ctx context.Context) (*llm.TokensDelta, *flow.Error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, flow.AsError(err)
		}
		c.mu.Lock()
		if c.n > 0 {
			d := c.ring[c.head]
			c.mu.Unlock()
			return d, nil
		}
		ended, err := c.ended, c.err
		c.mu.Unlock()
		if ended {
			return nil, err
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
		}
	}
}

// pop gives the slot of the delta that next returned back, and grants credit for half a window at once.
func (c *call) pop() {
	c.mu.Lock()
	c.head = (c.head + 1) % len(c.ring)
	c.n--
	ended := c.ended
	c.mu.Unlock()
	if c.seen++; c.seen >= (c.window+1)/2 && !ended {
		c.s.credit(c.id, c.seen)
		c.seen = 0
	}
}
