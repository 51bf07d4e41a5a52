package node

import (
	"slices"
	"strings"
	"sync"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/runtime/discovery"
	"github.com/dynamograph/dynamo/runtime/transport"
)

// peers is the live set of engines behind a port.
type peers[Req, Resp any] struct {
	mu      sync.Mutex
	list    []flow.Peer[Req, Resp]
	keys    []key // of list
	changed chan struct{}
}

func (s *peers[Req, Resp]) List() []flow.Peer[Req, Resp] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

func (s *peers[Req, Resp]) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// set replaces the list where it has other engines.
func (s *peers[Req, Resp]) set(list []flow.Peer[Req, Resp], keys []key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Equal(s.keys, keys) {
		return
	}
	s.list, s.keys = list, keys
	close(s.changed)
	s.changed = make(chan struct{})
}

// key identifies an engine: while the key is listed, the engine is the same. addr is empty in this process.
// A restarted instance is another engine, even at the same address.
type key struct {
	id, addr string
	started  int64 // Unix ns
	at       transport.Address
}

func keyOf(in discovery.Instance, at transport.Address) key {
	return key{in.ID, in.Addr, in.Started.UnixNano(), at}
}

// dial makes the set of engines at the addresses to, and keeps it up to date.
func dial[Req, Resp any](p *process, port flow.Port[Req, Resp], to []transport.Address) *peers[Req, Resp] {
	s := &peers[Req, Resp]{changed: make(chan struct{})}
	known := map[key]flow.AsyncEngine[Req, Resp]{}
	update := func() {
		var list []flow.Peer[Req, Resp]
		var keys []key
		for _, a := range to {
			if l, ok := p.local[a]; ok {
				if e, ok := l.engine.(flow.AsyncEngine[Req, Resp]); ok {
					list = append(list, flow.Peer[Req, Resp]{ID: p.instanceID(a.Node), Node: a.Node, Info: l.info, AsyncEngine: e})
					keys = append(keys, key{id: p.instanceID(a.Node), at: a})
				}
				continue
			}
			for _, in := range p.table {
				served, ok := in.Ports[a.Port]
				if in.Node != a.Node || !ok || served.Type != port.Type {
					continue
				}
				k := keyOf(in, a)
				e, ok := known[k]
				if !ok {
					v, err := p.conn(in.Addr, in.ID).Engine(a, port.Type)
					if err != nil {
						p.Log.Error("cannot call a peer", "instance", in.ID, "err", err)
						continue
					}
					if e, ok = v.(flow.AsyncEngine[Req, Resp]); !ok {
						p.Log.Error("cannot call a peer: wrong engine type", "instance", in.ID, "type", port.Type)
						continue
					}
					known[k] = e
				}
				list = append(list, flow.Peer[Req, Resp]{ID: in.ID, Node: in.Node, Info: served.Info, AsyncEngine: e})
				keys = append(keys, k)
			}
		}
		for k := range known { // forget engines whose connection may be dropped
			if !slices.ContainsFunc(p.table, func(in discovery.Instance) bool { return keyOf(in, k.at) == k }) {
				delete(known, k)
			}
		}
		byID := func(a, b flow.Peer[Req, Resp]) int { return strings.Compare(a.ID, b.ID) }
		slices.SortStableFunc(list, byID)
		slices.SortStableFunc(keys, func(a, b key) int { return strings.Compare(a.id, b.id) })
		s.set(list, keys)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh = append(p.refresh, update)
	update()
	return s
}
