package grpc

import (
	"context"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	dynamov1 "github.com/dynamograph/dynamo/runtime/api/dynamo/v1"
	"github.com/dynamograph/dynamo/runtime/transport"
)

// The engines of the port types that this transport carries.
type (
	tokensEngine = flow.AsyncEngine[*llm.TokensRequest, *llm.TokensDelta]
	kvEngine     = flow.AsyncEngine[*llm.KVFetch, *llm.KVBlock]
	eventsEngine = flow.AsyncEngine[*llm.Subscribe, *llm.EventBatch]
	loadEngine   = flow.AsyncEngine[*llm.Subscribe, *llm.Load]
)

// Server is a transport.Server for peers that Dial it.
type Server struct {
	dynamov1.UnimplementedWorkerServer
	opt     Options
	grpc    *gogrpc.Server
	ctx     context.Context // ends with Close, and with it every handler
	cancel  context.CancelFunc
	readers sync.WaitGroup // of Generate streams

	mu       sync.Mutex
	engines  map[transport.Address]served
	draining bool
	active   int           // requests of the tokens type
	idle     chan struct{} // closed when draining and active is 0
}

type served struct {
	typ    string
	engine any
}

var _ transport.Server = (*Server)(nil)

// NewServer makes a Server that answers nothing until Serve.
func NewServer(o Options) *Server {
	o = o.withDefaults()
	opts := []gogrpc.ServerOption{
		gogrpc.ForceServerCodecV2(newCodec()),
		gogrpc.MaxRecvMsgSize(o.MaxMessage), gogrpc.MaxSendMsgSize(o.MaxMessage),
		gogrpc.InitialWindowSize(1 << 20), gogrpc.InitialConnWindowSize(4 << 20),
		gogrpc.WaitForHandlers(true),
		gogrpc.ConnectionTimeout(o.ConnectTimeout),
		gogrpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 500 * time.Millisecond, PermitWithoutStream: true}),
		// A caller that is stopped must not hold its requests' places for ever.
		gogrpc.KeepaliveParams(keepalive.ServerParameters{Time: max(5*o.PingEvery, time.Second), Timeout: 2 * o.PingTimeout}),
	}
	if o.TLS != nil {
		opts = append(opts, gogrpc.Creds(credentials.NewTLS(o.TLS)))
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		opt: o, grpc: gogrpc.NewServer(opts...), ctx: ctx, cancel: cancel, idle: make(chan struct{}), engines: map[transport.Address]served{},
	}
	dynamov1.RegisterWorkerServer(s.grpc, s)
	return s
}

// Serve answers peers on l until Close, then returns nil. It may be called for several listeners.
func (s *Server) Serve(l net.Listener) error {
	err := s.grpc.Serve(l)
	if s.ctx.Err() != nil {
		return nil //nolint:nilerr // Close ended it
	}
	return err
}

// Handle implements transport.Server.
func (s *Server) Handle(a transport.Address, typ string, engine any) error {
	ok := false
	switch typ {
	case llm.Tokens.Type:
		_, ok = engine.(tokensEngine)
	case llm.KV.Type:
		_, ok = engine.(kvEngine)
	case llm.Events.Type:
		_, ok = engine.(eventsEngine)
	case llm.Loads.Type:
		_, ok = engine.(loadEngine)
	default:
		return fmt.Errorf("port %s: type %q does not cross processes", a, typ)
	}
	if !ok {
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

// Drain implements transport.Server.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	if !s.draining {
		s.draining = true
		if s.active == 0 {
			close(s.idle)
		}
	}
	s.mu.Unlock()
	select {
	case <-s.idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close implements transport.Server. What calls have said is sent before, as far as peers take it within two seconds.
func (s *Server) Close() error {
	s.cancel()
	late := time.AfterFunc(closeTimeout, s.grpc.Stop)
	defer late.Stop()
	s.grpc.GracefulStop()
	s.readers.Wait()
	return nil
}

// Describe implements the Worker service.
func (s *Server) Describe(context.Context, *dynamov1.DescribeRequest) (*dynamov1.DescribeResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &dynamov1.DescribeResponse{Instance: text(s.opt.Instance)}
	for a, e := range s.engines {
		r.Ports = append(r.Ports, &dynamov1.Served{Address: &dynamov1.Address{Node: a.Node, Port: a.Port}, Type: e.typ})
	}
	slices.SortFunc(r.Ports, func(x, y *dynamov1.Served) int {
		if c := strings.Compare(x.Address.Node, y.Address.Node); c != 0 {
			return c
		}
		return strings.Compare(x.Address.Port, y.Address.Port)
	})
	return r, nil
}

// lookup finds the engine behind to and holds its type to typ.
func (s *Server) lookup(to *dynamov1.Address, typ string) (any, *flow.Error) {
	a := transport.Address{Node: to.GetNode(), Port: to.GetPort()}
	s.mu.Lock()
	e, ok := s.engines[a]
	s.mu.Unlock()
	switch {
	case !ok:
		return nil, unavailable(s.opt.Instance, "transport.no_port", fmt.Sprintf("port %s is not served here", a), nil)
	case e.typ != typ:
		return nil, protocol(s.opt.Instance, fmt.Sprintf("port %s is of type %q, called as %q", a, e.typ, typ))
	}
	return e.engine, nil
}

// admit counts a tokens request, or refuses it while draining.
func (s *Server) admit() *flow.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return unavailable(s.opt.Instance, "transport.draining", "the instance is shutting down", nil)
	}
	s.active++
	return nil
}

func (s *Server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active--; s.active == 0 && s.draining {
		close(s.idle)
	}
}

// contain turns a panic of an engine into an error: it costs one request, not the process.
func (s *Server) contain(port string, err *error) {
	if p := recover(); p != nil {
		s.opt.Log.Error("an engine panicked", "port", port, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		*err = &flow.Error{Class: flow.Internal, Reason: "transport.panic", Msg: "internal error", Instance: s.opt.Instance}
	}
}
