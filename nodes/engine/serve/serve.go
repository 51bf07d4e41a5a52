// Package serve is the component shared by the kinds worker, prefill and decode: it opens an engine in the background, serves the node's
// ports when the engine is there, and drains it. What differs between the kinds is which ports they have; the graph says that. It knows
// no engine by name.
package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/inflight"
)

// Options says what to serve.
type Options struct {
	Config  engine.Config
	Host    kind.Host
	ServeKV bool // the node has an out port "kv"
	FetchKV bool // the node has an in port "kv"
}

// The keys of the info that a node tells with its port "in".
const (
	InfoEngine  = "engine"  // name of the engine
	InfoModel   = "model"   // content id of the weights
	InfoContext = "context" // longest sequence, in tokens
	InfoHandOff = "handoff" // modes that the engine takes part in, separated by commas
	InfoKV      = "kv"      // llm.Contract as JSON
)

// Dier is implemented by a Host that can end the process at once, as a crash would: the mock engine's failure "die" uses it.
type Dier interface{ Die() }

// Node is a kind.Component around one engine.
type Node struct {
	o      Options
	cancel context.CancelFunc
	opened sync.WaitGroup // the opening goroutine
	calls  *inflight.Group

	mu     sync.Mutex
	engine engine.Engine
	closed bool
}

var _ kind.Component = (*Node)(nil)

// New returns a node that is not started yet.
func New(o Options) (*Node, error) {
	if o.Host == nil {
		return nil, errors.New("serve: no host")
	}
	return &Node{o: o, calls: inflight.New(o.Host.Node())}, nil
}

// Start begins to open the engine and returns at once; the outcome is reported through the host.
func (n *Node) Start(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return fmt.Errorf("node %s: start after close", n.o.Host.Node())
	}
	if n.cancel != nil {
		return fmt.Errorf("node %s: started twice", n.o.Host.Node())
	}
	var open context.Context
	open, n.cancel = context.WithCancel(context.WithoutCancel(ctx))
	n.o.Host.Report(kind.Starting, "opening engine "+n.o.Config.Engine)
	n.opened.Go(func() {
		if err := n.open(open); err != nil && open.Err() == nil {
			n.o.Host.Report(kind.Failed, err.Error())
		}
	})
	return nil
}

func (n *Node) open(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("engine %s: panic while opening: %v", n.o.Config.Engine, r)
		}
	}()
	h := n.o.Host
	eo := engine.Options{Config: n.o.Config, Host: h, Model: h.Model()}
	if d, ok := h.(Dier); ok {
		eo.Die = d.Die
	}
	if n.o.FetchKV {
		fetch, err := fetcher(h)
		if err != nil {
			return err
		}
		eo.Fetch = fetch
	}
	e, err := engine.Open(eo)
	if err != nil {
		return err
	}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return errors.Join(context.Canceled, e.Close())
	}
	n.engine = e
	n.mu.Unlock()
	if err := n.serve(e); err != nil {
		return err
	}
	i := e.Info()
	h.Log().Info("engine ready", "engine", i.Engine, "context", i.Context, "seqs", i.MaxSeqs, "blocks", i.Blocks, "note", i.Note)
	if ctx.Err() == nil && !n.calls.Shut() {
		h.Report(kind.Ready, i.Note)
	}
	return nil
}

// serve opens the ports, the one that takes requests last: whoever sees it may rely on the others.
func (n *Node) serve(e engine.Engine) error {
	h, info := n.o.Host, Describe(e.Info())
	if x, ok := e.(engine.KVExporter); ok && n.o.ServeKV {
		if err := kind.Serve(h, llm.KV, "kv", flow.EngineFunc[*llm.KVFetch, *llm.KVBlock](x.Export), info); err != nil {
			return err
		}
	} else if n.o.ServeKV {
		return fmt.Errorf("engine %s: cannot export KV: it cannot serve node %s's port \"kv\"", e.Info().Engine, h.Node())
	}
	if x, ok := e.(engine.EventSource); ok {
		if err := kind.Serve(h, llm.Events, "events", flow.EngineFunc[*llm.Subscribe, *llm.EventBatch](x.Events), info); err != nil {
			return err
		}
	}
	if x, ok := e.(engine.LoadSource); ok {
		if err := kind.Serve(h, llm.Loads, "load", flow.EngineFunc[*llm.Subscribe, *llm.Load](x.Loads), info); err != nil {
			return err
		}
	}
	return kind.Serve(h, llm.Tokens, "in", guard(n.calls, h, e), info)
}

// Stuck implements kind.Progress for engines that do.
func (n *Node) Stuck() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p, ok := n.engine.(kind.Progress); ok {
		return p.Stuck()
	}
	return 0
}

// Describe returns what a node tells about its engine to whoever dials its ports.
func Describe(i engine.Info) map[string]string {
	modes := make([]string, len(i.HandOff))
	for k, m := range i.HandOff {
		modes[k] = string(m)
	}
	kv, err := json.Marshal(i.Contract)
	if err != nil {
		kv = nil // a struct of strings and numbers: cannot fail
	}
	return map[string]string{
		InfoEngine: i.Engine, InfoModel: i.ModelID, InfoContext: strconv.Itoa(i.Context), InfoHandOff: strings.Join(modes, ","),
		InfoKV: string(kv),
	}
}

// fetcher finds the instance that holds a hand-off among those behind port "kv".
func fetcher(h kind.Host) (func(string) (flow.AsyncEngine[*llm.KVFetch, *llm.KVBlock], error), error) {
	peers, err := kind.Dial(h, llm.KV, "kv")
	if err != nil {
		return nil, err
	}
	return func(id string) (flow.AsyncEngine[*llm.KVFetch, *llm.KVBlock], error) {
		for _, p := range peers.List() {
			if p.ID == id {
				return fetches(h, p), nil
			}
		}
		return nil, &flow.Error{
			Class: flow.Unavailable, Reason: "handoff.no_peer", Retry: true,
			Msg: fmt.Sprintf("node %s: port \"kv\": no instance %q", h.Node(), id),
		}
	}, nil
}

// Drain refuses new requests and returns when those in flight have ended, or with ctx's error.
func (n *Node) Drain(ctx context.Context) error {
	n.o.Host.Report(kind.Draining, "")
	return n.calls.Drain(ctx)
}

// Close ends what is in flight and waits for the engine.
func (n *Node) Close() error {
	n.mu.Lock()
	n.closed = true
	e := n.engine
	n.engine = nil
	if n.cancel != nil {
		n.cancel()
	}
	n.mu.Unlock()
	var err error
	if e != nil {
		err = e.Close() // first: what is in flight ends with the engine's own error
	}
	n.calls.Close()
	n.opened.Wait()
	return err
}
