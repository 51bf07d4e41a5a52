// Package flow is what moves along the edges of a graph: engines that turn one request into a stream of responses, the stages that wrap
// them, and the ports by which they are named. It holds no payload types (package llm) and no transport.
package flow

import (
	"context"
	"iter"
)

// AsyncEngine turns one request into a stream of responses. The stream ends after the last response or the first error; leaving the
// range loop, like cancelling ctx, stops the work. Generate is safe for concurrent use. A response, and the slices in it, are valid
// until the loop's next turn unless its type says otherwise.
type AsyncEngine[Req, Resp any] interface {
	Generate(ctx context.Context, req Req) iter.Seq2[Resp, error]
}

// EngineFunc is an AsyncEngine made of a function.
type EngineFunc[Req, Resp any] func(ctx context.Context, req Req) iter.Seq2[Resp, error]

// Generate calls f.
func (f EngineFunc[Req, Resp]) Generate(ctx context.Context, req Req) iter.Seq2[Resp, error] {
	return f(ctx, req)
}

// Fail is a stream that ends with err at once.
func Fail[Resp any](err error) iter.Seq2[Resp, error] {
	return func(yield func(Resp, error) bool) {
		var zero Resp
		yield(zero, err)
	}
}

// Port is a protocol: its name in specs ("tokens") and the Go types that it carries.
type Port[Req, Resp any] struct{ Type string }

// Peer is one instance behind a port.
type Peer[Req, Resp any] struct {
	ID   string            // instance, unique in the graph and stable over a reconnect: "decode-1"
	Node string            // node of the graph: "decode"
	Info map[string]string // what the instance told when it began to serve
	AsyncEngine[Req, Resp]
}

// Peers is the live set of instances behind a port. It is safe for concurrent use. An instance that cannot be reached may still be
// listed: the last known table is kept while the store is away.
type Peers[Req, Resp any] interface {
	// List returns the present set, sorted by ID. The caller must not change it.
	List() []Peer[Req, Resp]
	// Changed returns a channel that is closed when List has something new. Take it before List.
	Changed() <-chan struct{}
}

// Static is a Peers that never changes.
type Static[Req, Resp any] []Peer[Req, Resp]

// List returns s.
func (s Static[Req, Resp]) List() []Peer[Req, Resp] { return s }

// Changed returns nil: a channel that is never closed.
func (s Static[Req, Resp]) Changed() <-chan struct{} { return nil }
