// Package frontend answers OpenAI's HTTP API: chat completions, completions and models, with health and metrics beside them. It knows
// neither templates nor tokens: it turns HTTP into chat requests and the answers into JSON and server-sent events.
package frontend

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
)

// Announcer is implemented by a Host that wants to know where clients reach the frontend: "http://127.0.0.1:8000".
type Announcer interface{ Announce(url string) }

// Overview is implemented by a Host that knows the other nodes of the process: Unmet says what the first of them that cannot serve waits
// for, or "".
type Overview interface{ Unmet() string }

// Frontend is the component. Its methods are safe for concurrent use.
type Frontend struct {
	c       Config
	host    kind.Host
	models  map[string]*kind.Model // by served name
	created int64                  // seconds since 1970: when the models began to be served
	out     flow.Peers[*llm.ChatRequest, *llm.ChatDelta]
	slots   chan struct{} // one a request in progress
	held    atomic.Int64  // bytes of their bodies
	// headerTime is how long a client may take for its headers: 10 s. Half-sent ones would hold a connection for ever.
	headerTime time.Duration
	turn       atomic.Uint64 // chooses among several instances behind port "out"
	metrics    metrics
	keys       *keys     // nil: requests need none
	shown      *identity // nil: plain HTTP

	mu       sync.Mutex
	server   *http.Server
	listener net.Listener
	serving  sync.WaitGroup
	draining atomic.Bool
	closed   bool
}

// New returns a frontend that does not listen yet.
func New(c Config, h kind.Host) (*Frontend, error) {
	f := &Frontend{
		c: c, host: h, models: map[string]*kind.Model{}, created: time.Now().Unix(), slots: make(chan struct{}, c.Requests),
		metrics: newMetrics(h.Metrics()), headerTime: 10 * time.Second,
	}
	for _, m := range h.Models() {
		for _, name := range m.Names {
			f.models[name] = m
		}
	}
	return f, nil
}

// Start listens and answers.
func (f *Frontend) Start(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.server != nil {
		return fmt.Errorf("node %s: cannot be started again", f.host.Node())
	}
	out, err := kind.Dial(f.host, llm.Chat, "out")
	if err != nil {
		return err
	}
	f.out = out
	if f.c.Keys != "" && f.keys == nil {
		if f.keys, err = newKeys(f.host, f.c.Keys); err != nil {
			return fmt.Errorf("node %s: %w", f.host.Node(), err)
		}
	}
	scheme := "http://"
	if f.c.TLS != nil {
		if f.shown, err = newIdentity(f.host, *f.c.TLS); err != nil {
			return fmt.Errorf("node %s: %w", f.host.Node(), err)
		}
		scheme = "https://"
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", f.c.Listen)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("node %s: listen %q: another program uses the port; end it, or set nodes.%s.listen", f.host.Node(), f.c.Listen, f.host.Node())
		}
		return fmt.Errorf("node %s: listen %q: %w; set nodes.%s.listen", f.host.Node(), f.c.Listen, err, f.host.Node())
	}
	f.listener = ln
	f.server = &http.Server{
		Handler:           f,
		ReadHeaderTimeout: f.headerTime,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(f.host.Log().Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	if f.shown != nil {
		ln = tls.NewListener(ln, f.shown.tls())
	}
	f.serving.Go(func() {
		if err := f.server.Serve(ln); err != nil && !errors.Is(err, http.ErrServerClosed) {
			f.host.Log().Error("stopped listening", "error", err)
			f.host.Report(kind.Failed, err.Error())
		}
	})
	url := scheme + f.addr()
	f.host.Log().Info("listening", "url", url)
	if a, ok := f.host.(Announcer); ok {
		a.Announce(url)
	}
	f.host.Report(kind.Ready, "")
	return nil
}

// Addr is the bound address, "" before Start.
func (f *Frontend) Addr() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.addr()
}

func (f *Frontend) addr() string {
	if f.listener == nil {
		return ""
	}
	return f.listener.Addr().String()
}

// Drain refuses new requests and returns when those in progress have ended, or with ctx's error.
func (f *Frontend) Drain(ctx context.Context) error {
	f.draining.Store(true)
	f.host.Report(kind.Draining, "")
	f.mu.Lock()
	s := f.server
	f.mu.Unlock()
	if s == nil {
		return nil
	}
	if err := s.Shutdown(ctx); err != nil {
		return fmt.Errorf("node %s: drain: %w", f.host.Node(), err)
	}
	return nil
}

// Close ends every connection and waits for the handlers.
func (f *Frontend) Close() error {
	f.draining.Store(true)
	f.mu.Lock()
	f.closed = true
	s := f.server
	f.mu.Unlock()
	if s == nil {
		return nil
	}
	err := s.Close()
	f.serving.Wait()
	for range cap(f.slots) { // the handlers are gone when every slot is ours
		f.slots <- struct{}{}
	}
	for range cap(f.slots) {
		<-f.slots
	}
	return err
}

// unmet is the first thing that is missing before requests can be answered, or "".
func (f *Frontend) unmet() string {
	if f.draining.Load() {
		return "the frontend is draining"
	}
	if f.out == nil || len(f.out.List()) == 0 {
		return `no instance behind port "out"`
	}
	if o, ok := f.host.(Overview); ok {
		return o.Unmet()
	}
	return ""
}

// InfoModels is the key under which a node tells, with its port of type chat, the names of the models that it serves, one a line. A node
// that tells nothing takes all of the graph's; one that tells "*" takes all that no other node tells.
const InfoModels = "models"

// engine is what the next request for a model goes to.
func (f *Frontend) engine(model string) (flow.AsyncEngine[*llm.ChatRequest, *llm.ChatDelta], error) {
	var fit, rest []flow.Peer[*llm.ChatRequest, *llm.ChatDelta]
	for _, p := range f.out.List() {
		switch names := p.Info[InfoModels]; {
		case names == "*":
			rest = append(rest, p)
		case names == "" || slices.Contains(strings.Split(names, "\n"), model):
			fit = append(fit, p)
		}
	}
	if _, ours := f.models[model]; len(fit) == 0 && !ours {
		fit = rest
	}
	if len(fit) == 0 {
		return nil, &flow.Error{Class: flow.Unavailable, Reason: "frontend.no_instance", Msg: "nothing can answer now", RetryAfter: time.Second}
	}
	return fit[f.turn.Add(1)%uint64(len(fit))].AsyncEngine, nil
}

// names returns what clients may call models, sorted, and whether any other name will do, too.
func (f *Frontend) names() (names []string, any bool) {
	all := map[string]bool{}
	for name := range f.models {
		all[name] = true
	}
	for _, p := range f.out.List() {
		told := p.Info[InfoModels]
		if told == "*" || told == "" && len(f.models) == 0 {
			any = true
			continue
		}
		for name := range strings.SplitSeq(told, "\n") {
			all[name] = name != "" || all[name]
		}
	}
	delete(all, "")
	return slices.Sorted(maps.Keys(all)), any
}
