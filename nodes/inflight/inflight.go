// Package inflight counts the calls that a node answers, so that a drain can wait for them and a close can end them. It holds no queue
// and refuses nothing but calls that come too late.
package inflight

import (
	"context"
	"fmt"
	"sync"

	"github.com/dynamograph/dynamo/graph/flow"
)

// Group is the calls of one node. It is safe for concurrent use. Make one with New.
type Group struct {
	node string
	life context.Context
	end  context.CancelCauseFunc

	mu   sync.Mutex
	n    int
	shut bool
	idle chan struct{} // closed when n is 0; nil while nobody waits
}

// New returns a group that accepts calls. node is named in errors.
func New(node string) *Group {
	g := &Group{node: node}
	g.life, g.end = context.WithCancelCause(context.Background())
	return g
}

// Begin admits a call: its context ends with ctx, or with flow.Unavailable, reason "node.closed", Retry set, when the group closes. The
// caller must call done. After Drain or Close it is an error of reason "node.draining".
func (g *Group) Begin(ctx context.Context) (call context.Context, done func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return nil, nil, &flow.Error{
			Class: flow.Unavailable, Reason: "node.draining", Msg: fmt.Sprintf("node %s takes no new requests", g.node), Retry: true,
		}
	}
	g.n++
	call, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(g.life, func() { cancel(context.Cause(g.life)) })
	return call, func() { stop(); cancel(nil); g.done() }, nil
}

func (g *Group) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n--
	if g.n == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// wait returns a channel that is closed when no call is left.
func (g *Group) wait() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	if g.idle != nil {
		return g.idle
	}
	c := make(chan struct{})
	if g.n == 0 {
		close(c)
		return c
	}
	g.idle = c
	return c
}

// Shut reports whether Drain or Close was called.
func (g *Group) Shut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

// Drain refuses new calls and returns when those in flight have ended, or with ctx's error.
func (g *Group) Drain(ctx context.Context) error {
	select {
	case <-g.wait():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("node %s: drain: %w", g.node, context.Cause(ctx))
	}
}

// Close ends the calls in flight and waits for them. A second Close does nothing.
func (g *Group) Close() {
	idle := g.wait()
	g.end(&flow.Error{Class: flow.Unavailable, Reason: "node.closed", Msg: fmt.Sprintf("node %s was closed", g.node), Retry: true})
	<-idle
}
