// Package inproc connects the nodes of one process: a call is a function call, with the same errors as between processes and nothing
// copied. It carries every port type.
package inproc

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/runtime/transport"
)

// Server is a transport.Server for the Conns that it makes.
type Server struct {
	instance string
	log      *slog.Logger
	ctx      context.Context
	cancel   context.CancelCauseFunc

	mu       sync.Mutex
	engines  map[transport.Address]served
	draining bool
	closed   bool
	calls    int           // of every type
	active   int           // of the types that Drain waits for
	changed  chan struct{} // closed and replaced whenever a count falls to 0
}

type served struct {
	typ    string
	engine any
}

var _ transport.Server = (*Server)(nil)

// NewServer makes a Server. instance is named in errors; log may be nil.
func NewServer(instance string, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Server{
		instance: instance, log: log, ctx: ctx, cancel: cancel, engines: map[transport.Address]served{}, changed: make(chan struct{}),
	}
}

func (s *Server) fail(reason, msg string) *flow.Error {
	return &flow.Error{Class: flow.Unavailable, Reason: reason, Msg: msg, Instance: s.instance, Retry: true}
}

// Handle implements transport.Server.
func (s *Server) Handle(a transport.Address, typ string, engine any) error {
	if !fits(typ, engine) {
		return fmt.Errorf("port %s: %T is no engine of type %q", a, engine, typ)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.engines[a]; ok {
		return fmt.Errorf("port %s: served twice", a)
	}
	s.engines[a] = served{typ, engine}
	return nil
}

func fits(typ string, engine any) (ok bool) {
	switch typ {
	case llm.Chat.Type:
		_, ok = engine.(flow.AsyncEngine[*llm.ChatRequest, *llm.ChatDelta])
	case llm.Tokens.Type:
		_, ok = engine.(flow.AsyncEngine[*llm.TokensRequest, *llm.TokensDelta])
	case llm.KV.Type:
		_, ok = engine.(flow.AsyncEngine[*llm.KVFetch, *llm.KVBlock])
	case llm.Events.Type:
		_, ok = engine.(flow.AsyncEngine[*llm.Subscribe, *llm.EventBatch])
	case llm.Loads.Type:
		_, ok = engine.(flow.AsyncEngine[*llm.Subscribe, *llm.Load])
	}
	return ok
}

// Drain implements transport.Server.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	return s.wait(ctx, func() bool { return s.active == 0 })
}

// Close implements transport.Server. It waits for the callers' loops to end, since these are the engines' goroutines; it must not be
// called from one of them.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel(s.fail("transport.disconnected", "the instance was closed"))
	return s.wait(context.Background(), func() bool { return s.calls == 0 })
}

func (s *Server) wait(ctx context.Context, done func() bool) error {
	for {
		s.mu.Lock()
		ok, changed := done(), s.changed
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// isCall tells the types that Drain refuses and waits for.
func isCall(typ string) bool { return typ == llm.Tokens.Type || typ == llm.Chat.Type }

func (s *Server) begin(a transport.Address, typ string) (any, *flow.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.engines[a]
	switch {
	case s.closed:
		return nil, s.fail("transport.cannot_connect", "the instance is closed")
	case !ok:
		return nil, s.fail("transport.no_port", fmt.Sprintf("port %s is not served here", a))
	case e.typ != typ:
		return nil, &flow.Error{
			Class: flow.BackendProtocol, Reason: "transport.protocol", Retry: true, Instance: s.instance,
			Msg: fmt.Sprintf("port %s is of type %q, called as %q", a, e.typ, typ),
		}
	case isCall(typ):
		if s.draining {
			return nil, s.fail("transport.draining", "the instance is shutting down")
		}
		s.active++
	}
	s.calls++
	return e.engine, nil
}

func (s *Server) end(typ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls--
	if isCall(typ) {
		s.active--
	}
	if s.calls == 0 || s.active == 0 {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// Conn returns a connection to s. Any number may be made.
func (s *Server) Conn() *Conn {
	ctx, cancel := context.WithCancelCause(s.ctx)
	return &Conn{s: s, ctx: ctx, cancel: cancel}
}

// Conn is a transport.Conn into the same process.
type Conn struct {
	s      *Server
	ctx    context.Context
	cancel context.CancelCauseFunc
}

var _ transport.Conn = (*Conn)(nil)

// Engine implements transport.Conn.
func (c *Conn) Engine(a transport.Address, typ string) (any, error) {
	switch typ {
	case llm.Chat.Type:
		return engineOf(c, a, llm.Chat), nil
	case llm.Tokens.Type:
		return engineOf(c, a, llm.Tokens), nil
	case llm.KV.Type:
		return engineOf(c, a, llm.KV), nil
	case llm.Events.Type:
		return engineOf(c, a, llm.Events), nil
	case llm.Loads.Type:
		return engineOf(c, a, llm.Loads), nil
	}
	return nil, fmt.Errorf("port %s: unknown type %q", a, typ)
}

// Healthy implements transport.Conn.
func (c *Conn) Healthy() bool { return c.ctx.Err() == nil }

// Close implements transport.Conn.
func (c *Conn) Close() error {
	c.cancel(&flow.Error{
		Class: flow.Unavailable, Reason: "transport.closed", Msg: "the connection was closed on this side", Instance: c.s.instance, Retry: true,
	})
	return nil
}

// engineOf is the engine behind a, looked up at each call.
func engineOf[Req, Resp any](c *Conn, a transport.Address, p flow.Port[Req, Resp]) flow.AsyncEngine[Req, Resp] {
	return flow.EngineFunc[Req, Resp](func(ctx context.Context, req Req) iter.Seq2[Resp, error] {
		return func(yield func(Resp, error) bool) {
			if err := c.run(ctx, a, p.Type, func(ctx context.Context, e any) error {
				for r, err := range e.(flow.AsyncEngine[Req, Resp]).Generate(ctx, req) {
					if err != nil {
						return err
					}
					if !leave(yield, r) {
						return errLeft
					}
				}
				return nil
			}); err != nil && !errors.Is(err, errLeft) {
				var zero Resp
				yield(zero, err)
			}
		}
	})
}

// errLeft says that the caller left its loop.
var errLeft = errors.New("the caller left")

// callerPanic carries a panic of the caller's loop past the engine.
type callerPanic struct{ value any }

// leave calls yield and marks a panic in it as the caller's own.
func leave[Resp any](yield func(Resp, error) bool, r Resp) (more bool) {
	done := false
	defer func() {
		if !done {
			if p := recover(); p != nil {
				panic(callerPanic{p})
			}
		}
	}()
	more = yield(r, nil)
	done = true
	return more
}

// run is one call: it counts it, ends it with the connection, and contains a panic of the engine.
func (c *Conn) run(ctx context.Context, a transport.Address, typ string, f func(context.Context, any) error) (err error) {
	if err := ctx.Err(); err != nil {
		return flow.AsError(err)
	}
	if c.ctx.Err() != nil && c.s.ctx.Err() == nil {
		return context.Cause(c.ctx)
	}
	e, fe := c.s.begin(a, typ)
	if fe != nil {
		return fe
	}
	defer c.s.end(typ)
	caller := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(c.ctx, cancel)
	defer stop()
	defer func() {
		if p := recover(); p != nil {
			if cp, ok := p.(callerPanic); ok {
				panic(cp.value)
			}
			c.s.log.Error("an engine panicked", "port", a.String(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = &flow.Error{Class: flow.Internal, Reason: "transport.panic", Msg: "internal error", Instance: c.s.instance}
		}
	}()
	err = f(ctx, e)
	switch {
	case errors.Is(err, errLeft):
		return err
	case err != nil && c.ctx.Err() != nil && caller.Err() == nil:
		return context.Cause(c.ctx)
	case err != nil:
		return named(flow.AsError(err), c.s.instance)
	case caller.Err() != nil: // an engine that just stops when it is cancelled did not succeed
		return flow.AsError(caller.Err())
	case ctx.Err() != nil:
		return context.Cause(c.ctx)
	}
	return nil
}

// named returns e with the instance set.
func named(e *flow.Error, instance string) *flow.Error {
	if e.Instance != "" || instance == "" {
		return e
	}
	n := *e
	n.Instance = instance
	return &n
}
