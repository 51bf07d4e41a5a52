package compiler

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
)

// openListener finds listeners beyond the machine that let anybody in. Of a loopback address nothing is said, though pods listen on all
// their interfaces: there the network policy of a target decides who comes.
func openListener(s *state) diag.List {
	var list diag.List
	for _, name := range s.names() {
		n, k := s.g.Nodes[name], s.kinds[name]
		if k == nil || k.Guard(n.Config) != "" {
			continue
		}
		on := k.Listen(n.Config)
		for _, field := range slices.Sorted(maps.Keys(on)) {
			host, port, err := net.SplitHostPort(on[field])
			if err != nil || local(host) {
				continue
			}
			d := nodeAt(n, field, "open-listener", fmt.Sprintf("%q: whoever reaches this address may use it: it asks for neither keys nor certificates", on[field]))
			d.Hint = fmt.Sprintf("ask for keys or clients' certificates, listen on %q, or say that it is meant so", net.JoinHostPort("127.0.0.1", port))
			list.Add(d)
		}
	}
	return list
}

// local reports whether a host is this machine only.
func local(host string) bool {
	ip := net.ParseIP(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return strings.HasPrefix(host, "localhost") || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// sharedKV finds KV of several tenants in one place: what one has asked would answer sooner to another, and could be guessed by it.
func sharedKV(s *state) diag.List {
	var list diag.List
	for _, top := range s.names() {
		n, k := s.g.Nodes[top], s.kinds[top]
		if k == nil {
			continue
		}
		does, field := k.Tenants(n.Config)
		if does != "tells" {
			continue
		}
		for _, name := range s.stores(top) {
			m, k := s.g.Nodes[name], s.kinds[name]
			if k == nil {
				continue
			}
			does, where := k.Tenants(m.Config)
			if does != "mixes" {
				continue
			}
			d := nodeAt(m, where, "shared-kv", fmt.Sprintf("it keeps the KV of all tenants together, but %s tells them apart", top))
			d.Hint = "keep tenants apart here too, or do not tell them apart there"
			if pos, ok := n.Fields[field]; ok {
				d.Related = []diag.Related{{Pos: pos, Msg: fmt.Sprintf("nodes.%s.%s tells tenants apart", top, field)}}
			}
			list.Add(d)
		}
	}
	return list
}

// stores returns the nodes that the requests of a node reach, and those to which these give KV.
func (s *state) stores(top string) []string {
	out := s.under(top)
	seen := map[string]bool{}
	for _, n := range out {
		seen[n] = true
	}
	for i := 0; i < len(out); i++ {
		for _, e := range s.joined().out[out[i]] {
			if !graph.IsStream(e.Type) && !seen[e.To.Node] {
				seen[e.To.Node] = true
				out = append(out, e.To.Node)
			}
		}
	}
	return out
}
