package node

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/runtime/discovery"
	"github.com/dynamograph/dynamo/runtime/transport"
)

// process is what the hosts of one process share.
type process struct {
	Options
	group *plan.Group
	wg    sync.WaitGroup
	stop  context.CancelFunc

	mu      sync.Mutex // guards all below; refreshers run under it
	local   map[transport.Address]served
	table   []discovery.Instance // of other processes
	conns   map[string]transport.Conn
	entries map[string]*entry // by node
	refresh []func()
	closed  bool
	states  map[string]state // by node: its last report
	addrs   map[string]string
	parts   []piece // components, callees first

	failed chan error // the first kind.Failed that a node reports
}

// served is an engine of this process.
type served struct {
	engine any
	typ    string
	info   map[string]string
}

// entry is a node's row in the table of instances.
type entry struct {
	instance discovery.Instance
	lease    discovery.Lease
}

func newProcess(o Options, g *plan.Group) *process {
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{Options: o, group: g, stop: cancel, local: map[transport.Address]served{}, conns: map[string]transport.Conn{},
		entries: map[string]*entry{}, states: map[string]state{}, addrs: map[string]string{}, failed: make(chan error, 1)}
	if o.Discovery != nil {
		p.wg.Go(func() { p.watch(ctx) })
	}
	return p
}

// watch keeps the table until ctx ends.
func (p *process) watch(ctx context.Context) {
	for table, err := range p.Discovery.Watch(ctx) {
		if err != nil {
			if ctx.Err() == nil {
				p.Log.Error("the table of instances is not followed any more", "err", err)
			}
			return
		}
		p.mu.Lock()
		p.table = table
		p.refreshAll()
		p.dropConns()
		p.mu.Unlock()
	}
}

// refreshAll brings every set of peers up to date. p.mu is held.
func (p *process) refreshAll() {
	for _, f := range p.refresh {
		f()
	}
}

// dropConns closes connections to processes that are neither listed nor there: one that has only left the table still ends its streams.
// p.mu is held.
func (p *process) dropConns() {
	for addr, c := range p.conns {
		listed := slices.ContainsFunc(p.table, func(in discovery.Instance) bool { return in.Addr == addr })
		if !listed && !c.Healthy() {
			delete(p.conns, addr)
			p.wg.Go(func() { _ = c.Close() })
		}
	}
}

// conn returns the connection to addr. p.mu is held.
func (p *process) conn(addr, instance string) transport.Conn {
	c, ok := p.conns[addr]
	if !ok {
		c = p.Dial(addr, instance)
		p.conns[addr] = c
	}
	return c
}

func (p *process) instanceID(node string) string { return fmt.Sprintf("%s-%d", node, p.Replica) }

// serve makes engine known inside this process and, where there are others, to them.
func (p *process) serve(node, port, typ string, engine any, info map[string]string) error {
	a := transport.Address{Node: node, Port: port}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("node %s: port %q: the process is closing", node, port)
	}
	if _, ok := p.local[a]; ok {
		return fmt.Errorf("node %s: port %q: served twice", node, port)
	}
	p.local[a] = served{engine, typ, info}
	p.refreshAll()
	if p.Discovery == nil || !p.crosses(a) {
		return nil
	}
	if err := p.Server.Handle(a, typ, engine); err != nil {
		return fmt.Errorf("node %s: port %q: %w", node, port, err)
	}
	e, ok := p.entries[node]
	if !ok {
		e = &entry{instance: discovery.Instance{ID: p.instanceID(node), Node: node, Addr: p.Addr, Ports: map[string]discovery.Port{},
			Started: time.Now(), Machine: p.Machine}}
		p.entries[node] = e
	}
	ports := map[string]discovery.Port{port: {Type: typ, Info: info}}
	for k, v := range e.instance.Ports { // the old map may be in use by the registry
		ports[k] = v
	}
	e.instance.Ports = ports
	if e.lease == nil {
		lease, err := p.Discovery.Register(context.Background(), e.instance)
		if err != nil {
			return fmt.Errorf("node %s: register: %w", node, err)
		}
		e.lease = lease
		return nil
	}
	return e.lease.Update(e.instance)
}

// crosses reports whether an edge at a leads to another group.
func (p *process) crosses(a transport.Address) bool {
	for _, e := range p.Plan.Edges {
		var other string
		switch {
		case e.From == a.Node && e.FromPort == a.Port:
			other = e.To
		case e.To == a.Node && e.ToPort == a.Port:
			other = e.From
		default:
			continue
		}
		if p.Plan.GroupOf(other) != p.group {
			return true
		}
	}
	return false
}

// leave takes this process out of the table: the first step of a drain.
func (p *process) leave(ctx context.Context) {
	p.mu.Lock()
	var leases []discovery.Lease
	for _, e := range p.entries {
		if e.lease != nil {
			leases = append(leases, e.lease)
		}
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // the store may be away: the entry then ends with its time to live
	defer cancel()
	for _, l := range leases {
		if err := l.Close(ctx); err != nil {
			p.Log.Warn("could not leave the table of instances", "err", err)
		}
	}
}

// report keeps a node's state and tells it; one that has failed stays so, with its first reason.
func (p *process) report(node string, s kind.State, reason string) {
	p.mu.Lock()
	if p.states[node].state == kind.Failed {
		p.mu.Unlock()
		return
	}
	p.states[node] = state{s, reason}
	addr := p.addrs[node]
	p.mu.Unlock()
	if p.Tell != nil {
		p.Tell(node, s, reason, addr)
	}
	if s == kind.Failed {
		select {
		case p.failed <- fmt.Errorf("node %s: %s", node, reason):
		default: // one is enough to end the process
		}
	}
}

// piece is a component of this process.
type piece struct {
	node string
	kind.Component
}

func (p *process) made(node string, c kind.Component) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parts = append(p.parts, piece{node, c})
}

// hungAfter is how long a component may take over one piece of work before the process counts as hung. Steps take seconds.
const hungAfter = 2 * time.Minute

// hung says which component makes no progress, or "". A process whose state cannot be asked for does not answer at all.
func (p *process) hung() string {
	p.mu.Lock()
	parts := p.parts
	p.mu.Unlock()
	for _, c := range parts {
		if w, ok := c.Component.(kind.Progress); ok {
			if d := w.Stuck(); d > hungAfter {
				return fmt.Sprintf("node %s has made no progress for %v", c.node, d.Round(time.Second))
			}
		}
	}
	return ""
}

// close ends connections and goroutines.
func (p *process) close() {
	p.mu.Lock()
	p.closed = true
	conns := p.conns
	p.conns = map[string]transport.Conn{}
	p.mu.Unlock()
	p.stop()
	for _, c := range conns {
		_ = c.Close()
	}
	p.wg.Wait()
}
