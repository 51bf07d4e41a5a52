package node

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/runtime/transfer"
	"github.com/dynamograph/dynamo/runtime/transport"
)

// host is kind.Host for one unit.
type host struct {
	p    *process
	unit *plan.Unit
	log  *slog.Logger
}

var (
	_ kind.Host   = (*host)(nil)
	_ kind.Traced = (*host)(nil)
)

func (p *process) host(u *plan.Unit) *host {
	return &host{p: p, unit: u, log: p.Log.With("node", u.Node)}
}

func (h *host) Graph() string         { return h.p.Plan.Graph }
func (h *host) Node() string          { return h.unit.Node }
func (h *host) Instance() string      { return h.p.instanceID(h.unit.Node) }
func (h *host) Log() *slog.Logger     { return h.log }
func (h *host) Metrics() kind.Metrics { return h.p.Metrics }
func (h *host) Models() []*kind.Model { return h.p.Models }
func (h *host) CacheDir() string      { return h.p.CacheDir }

func (h *host) Secret(ref string) ([]byte, error) { return readSecret(ref, h.p.Getenv) }

func (h *host) Tracer() kind.Tracer { return h.p.Tracer }

func (h *host) Model() *kind.Model {
	i := slices.IndexFunc(h.p.Models, func(m *kind.Model) bool { return m.Name == h.unit.Model })
	if i < 0 {
		return nil
	}
	return h.p.Models[i]
}

func (h *host) Memory(name string, size int64) (kind.Memory, error) {
	dir := transfer.Dir(h.p.RunDir, size)
	m, err := transfer.Create(dir, h.p.Plan.Graph+"-"+name, size)
	if err != nil && dir != h.p.RunDir { // others were faster
		m, err = transfer.Create(h.p.RunDir, h.p.Plan.Graph+"-"+name, size)
	}
	if err != nil {
		return nil, fmt.Errorf("node %s: shared memory %q of %d bytes: %w", h.unit.Node, name, size, err)
	}
	return m, nil
}

// errOtherTransport is what OpenMemory says where the graph moves KV by other means.
var errOtherTransport = errors.New(`the kv edges of this graph do not use transport "shm"`)

func (h *host) OpenMemory(region string) (kind.Memory, error) {
	if !slices.ContainsFunc(h.p.Plan.Edges, func(e *plan.Edge) bool { return e.To == h.unit.Node && e.Type == llm.KV.Type && e.Transport == "shm" }) {
		return nil, fmt.Errorf("node %s: shared memory %q: %w", h.unit.Node, region, errOtherTransport)
	}
	m, err := transfer.Open(region)
	if err != nil {
		return nil, fmt.Errorf("node %s: shared memory: %w", h.unit.Node, err)
	}
	return m, nil
}

func (h *host) Report(s kind.State, reason string) { h.p.report(h.unit.Node, s, reason) }

// Announce tells people where the node can be reached.
func (h *host) Announce(addr string) {
	h.p.mu.Lock()
	h.p.addrs[h.unit.Node] = addr
	h.p.mu.Unlock()
}

func (h *host) ServePort(port, typ string, engine any, info map[string]string) error {
	return h.p.serve(h.unit.Node, port, typ, engine, info)
}

func (h *host) DialPort(port, typ string) (any, error) {
	var to []transport.Address
	for _, e := range h.p.Plan.Edges {
		switch {
		case e.From == h.unit.Node && e.FromPort == port:
			to = append(to, transport.Address{Node: e.To, Port: e.ToPort})
		case e.To == h.unit.Node && e.ToPort == port:
			to = append(to, transport.Address{Node: e.From, Port: e.FromPort})
		}
	}
	if len(to) == 0 {
		return nil, fmt.Errorf("node %s: port %q: %w", h.unit.Node, port, kind.ErrNoEdge)
	}
	switch typ {
	case llm.Chat.Type:
		return dial(h.p, llm.Chat, to), nil
	case llm.Tokens.Type:
		return dial(h.p, llm.Tokens, to), nil
	case llm.KV.Type:
		return dial(h.p, llm.KV, to), nil
	case llm.Events.Type:
		return dial(h.p, llm.Events, to), nil
	case llm.Loads.Type:
		return dial(h.p, llm.Loads, to), nil
	}
	return nil, fmt.Errorf("node %s: port %q: no port type %q", h.unit.Node, port, typ)
}
