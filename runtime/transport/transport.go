// Package transport carries the calls of a graph's edges between processes (package grpc) or inside one (package inproc). Both pass one
// suite, package transporttest. It does not find peers (runtime/discovery does) and does not choose among them (a router does).
//
// Engines are untyped here and typed at the ends: a Server takes, and a Conn gives, the flow.AsyncEngine of the port's type, for example
// flow.AsyncEngine[*llm.TokensRequest, *llm.TokensDelta] for "tokens".
package transport

import "context"

// Address names a served port: it is unique in a process.
type Address struct{ Node, Port string }

// String returns "node.port", as in a spec.
func (a Address) String() string { return a.Node + "." + a.Port }

// Server answers calls to the ports of one process. It is safe for concurrent use.
type Server interface {
	// Handle answers calls to a with engine, whose type must be that of port type typ. A second engine for one address is an error.
	Handle(a Address, typ string, engine any) error
	// Drain refuses new calls of the tokens and chat types with flow.Unavailable, reason "transport.draining", Retry set, and returns
	// when those in flight have ended, or with ctx's error. Data ports (kv, events, load) go on until Close: what was handed off must
	// stay readable.
	Drain(ctx context.Context) error
	// Close ends every call and waits until their goroutines are gone. A second Close does nothing.
	Close() error
}

// Conn reaches one peer process. It connects by itself when first used, and again whenever the connection is lost. It is safe for
// concurrent use.
//
// Calls end with *flow.Error. Those of the transport itself are of class Unavailable with Retry set and name the peer as Instance:
//
//	transport.cannot_connect  nothing was sent
//	transport.disconnected    the connection was lost, or the peer did not answer for too long
//	transport.draining        the peer takes no new calls
//	transport.no_port         the peer does not serve the address (yet)
//	transport.closed          this end was closed
//
// and transport.busy (CapacityExhausted, Retry) where the peer's bound of concurrent calls is reached, transport.protocol
// (BackendProtocol, Retry) where the peer broke the protocol, transport.panic (Internal) where the peer's engine did.
// A stream that is cut is never a success.
type Conn interface {
	// Engine returns the engine behind a, without asking the peer: whether it is there shows when it is called. It is an error where
	// this transport cannot carry typ.
	Engine(a Address, typ string) (any, error)
	// Healthy reports whether the peer answers now. It is false before the first use.
	Healthy() bool
	// Close ends every call. A second Close does nothing.
	Close() error
}
