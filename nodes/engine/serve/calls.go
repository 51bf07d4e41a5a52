package serve

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"sync"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine"
)

// calls counts the requests in flight, so that a drain can wait for them.
type calls struct {
	node string

	mu    sync.Mutex
	n     int
	shut  bool
	empty chan struct{} // closed when n reaches 0; nil while nobody waits
}

func (c *calls) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shut {
		return &flow.Error{Class: flow.Unavailable, Reason: "engine.draining", Msg: fmt.Sprintf("node %s is draining", c.node), Retry: true}
	}
	c.n++
	return nil
}

func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	if c.n == 0 && c.empty != nil {
		close(c.empty)
		c.empty = nil
	}
}

func (c *calls) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shut = true
}

func (c *calls) draining() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shut
}

func (c *calls) drain(ctx context.Context) error {
	c.mu.Lock()
	c.shut = true
	if c.n == 0 {
		c.mu.Unlock()
		return nil
	}
	if c.empty == nil {
		c.empty = make(chan struct{})
	}
	empty := c.empty
	c.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("node %s: drain: %w", c.node, context.Cause(ctx))
	}
}

// guard counts calls of e and turns a panic of the engine into the failure of one request.
func (c *calls) guard(h kind.Host, e engine.Engine) flow.EngineFunc[*llm.TokensRequest, *llm.TokensDelta] {
	instance := h.Instance()
	return func(ctx context.Context, r *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
		return func(yield func(*llm.TokensDelta, error) bool) {
			if err := c.begin(); err != nil {
				yield(nil, err)
				return
			}
			defer c.end()
			outside := false // the consumer runs: its panic is not ours
			defer func() {
				p := recover()
				if p == nil {
					return
				}
				if outside {
					panic(p)
				}
				h.Log().Error("engine panicked", "request", r.ID, "panic", p, "stack", string(debug.Stack()))
				yield(nil, &flow.Error{Class: flow.Internal, Reason: "engine.panic", Msg: "internal error in the engine", Instance: instance})
			}()
			for d, err := range e.Generate(ctx, r) {
				if d != nil && d.Instance == "" {
					d.Instance = instance
				}
				outside = true
				ok := yield(d, err)
				outside = false
				if !ok || err != nil {
					return
				}
			}
		}
	}
}
