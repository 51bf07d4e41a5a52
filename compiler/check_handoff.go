package compiler

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// A pair is split over two sorts of nodes that answer calls: one leaves the KV of a prompt (kv out, none in), the other takes it (kv in).
// Whoever calls the first must call the second, and a kv edge must lead from one to the other. Three gateways accept a pair without any
// KV connector and answer 200 (lessons of the field); here it is refused.

func (s *state) leaves(node string) bool {
	return s.has(node, kind.In, graph.IsCall) && s.has(node, kind.Out, isKV) && !s.has(node, kind.In, isKV)
}

func (s *state) takes(node string) bool {
	return s.has(node, kind.In, graph.IsCall) && s.has(node, kind.In, isKV)
}

// callers and callees return the neighbours of node over call edges, sorted.
func (s *state) callers(node string) []string {
	set := map[string]bool{}
	for _, e := range s.joined().in[node] {
		if graph.IsCall(e.Type) {
			set[e.From.Node] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func (s *state) callees(node string, is func(string) bool) []string {
	set := map[string]bool{}
	for _, e := range s.joined().out[node] {
		if graph.IsCall(e.Type) && is(e.To.Node) {
			set[e.To.Node] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// near returns the nodes of a sort that somebody who calls node calls too.
func (s *state) near(node string, is func(string) bool) []string {
	set := map[string]bool{}
	for _, c := range s.callers(node) {
		for _, n := range s.callees(c, is) {
			set[n] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// partners returns the other ends of node's kv edges that answer calls, sorted.
func (s *state) partners(node string) []string {
	set := map[string]bool{}
	for _, e := range s.joined().out[node] {
		if isKV(e.Type) && s.takes(e.To.Node) {
			set[e.To.Node] = true
		}
	}
	for _, e := range s.joined().in[node] {
		if isKV(e.Type) && s.leaves(e.From.Node) {
			set[e.From.Node] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func (s *state) kvPort(node string, dir kind.Dir) string {
	for _, p := range s.ports[node] {
		if p.Dir == dir && p.Type == "kv" {
			return node + "." + p.Name
		}
	}
	return node
}

// pairTold reports whether the checks of this file tell what a node without a kv edge lacks, better than that a port needs an edge.
func (s *state) pairTold(node string) bool {
	return len(s.callers(node)) > 0 && (s.leaves(node) || s.takes(node))
}

// missingKV finds pairs without a kv edge: first from the side that leaves KV, then takers beside pairs that are joined.
func missingKV(s *state) diag.List {
	var list diag.List
	told := map[string]bool{}
	for _, name := range s.names() {
		if !s.leaves(name) || len(s.partners(name)) > 0 {
			continue
		}
		near := s.near(name, s.takes)
		if len(near) == 0 {
			continue
		}
		n := s.g.Nodes[name]
		d := nodeAt(n, "", "missing-kv", fmt.Sprintf("%s hands its KV to nobody: %s would compute every prompt again", n.Kind, diag.And(diag.Quote(near))))
		var edges []string
		for _, to := range near {
			told[to] = true
			edges = append(edges, quote(s.kvPort(name, kind.Out)+" -> "+s.kvPort(to, kind.In)))
		}
		d.Hint = "add " + diag.And(edges)
		list.Add(d)
	}
	for _, name := range s.names() {
		if !s.takes(name) || told[name] || len(s.partners(name)) > 0 {
			continue
		}
		near := s.near(name, s.leaves)
		if len(near) == 0 {
			continue
		}
		n := s.g.Nodes[name]
		d := nodeAt(n, "", "missing-kv", fmt.Sprintf("%s takes KV from nobody, though prompts are computed by %s", n.Kind, diag.And(diag.Quote(near))))
		d.Hint = fmt.Sprintf("add %q", s.kvPort(near[0], kind.Out)+" -> "+s.kvPort(name, kind.In))
		list.Add(d)
	}
	return list
}

// lonePrefill finds callers that have prompts computed and nobody to continue them.
func lonePrefill(s *state) diag.List {
	var list diag.List
	for _, e := range s.calls() {
		from, to := e.From.Node, e.To.Node
		if !s.leaves(to) || len(s.callees(from, s.takes)) > 0 || len(s.partners(to)) > 0 || s.lacking[from] || s.proposed[from] {
			continue // with partners elsewhere it is a split pair
		}
		d := s.edgeAt(e, toHalf, "lone-prefill", fmt.Sprintf("%s computes prompts, and %s calls no node that continues them", to, from))
		if k := s.kindsThat(func(ps []kind.Port) bool {
			return hasPort(ps, kind.In, graph.IsCall) && hasPort(ps, kind.In, isKV)
		}); len(k) > 0 {
			d.Hint = fmt.Sprintf("add a node of kind %s, and edges from %s and from %s to it", diag.Or(k), from, s.kvPort(to, kind.Out))
		}
		list.Add(d)
	}
	return list
}

// loneDecode finds nodes that could take KV where nothing leaves any: they work, but compute prompts themselves. Where the kind needs the
// edge it is an error.
func loneDecode(s *state) diag.List {
	var list diag.List
	for _, name := range s.names() {
		callers := s.callers(name)
		if !s.takes(name) || len(s.partners(name)) > 0 || s.lacking[name] || len(callers) == 0 || len(s.near(name, s.leaves)) > 0 {
			continue
		}
		if slices.ContainsFunc(callers, func(c string) bool { return s.lacking[c] }) {
			continue
		}
		n := s.g.Nodes[name]
		d := nodeAt(n, "", "lone-decode", fmt.Sprintf("no node leaves KV for this %s: it computes every prompt itself", n.Kind))
		if !slices.ContainsFunc(s.ports[name], func(p kind.Port) bool { return isKV(p.Type) && p.Dir == kind.In && p.Need }) {
			d.Severity = diag.Warning
		}
		list.Add(d)
	}
	return list
}

// splitPair finds kv edges between nodes that nobody calls both.
func splitPair(s *state) diag.List {
	var list diag.List
	for _, e := range s.edges(isKV) {
		from, to := e.From.Node, e.To.Node
		if !s.leaves(from) || !s.takes(to) || slices.Contains(s.near(from, s.takes), to) {
			continue
		}
		a, b := s.callers(from), s.callers(to)
		if len(a) == 0 || len(b) == 0 || slices.ContainsFunc(append(a, b...), func(n string) bool { return s.lacking[n] }) {
			continue // unreachable, or told
		}
		a, b = s.written(a), s.written(b)
		if slices.Equal(a, b) { // each of its edges leads on by itself
			d := s.edgeAt(e, whole, "split-pair", fmt.Sprintf("%s sends a request either to %s or to %s, so nothing is ever handed over", diag.And(diag.Quote(a)), from, to))
			leads := func(ps []kind.Port, to string) bool {
				return slices.ContainsFunc(ps, func(p kind.Port) bool { return p.Dir == kind.Out && p.Name == s.g.Nodes[to].Kind })
			}
			if k := s.kindsThat(func(ps []kind.Port) bool { return leads(ps, from) && leads(ps, to) }); len(k) > 0 {
				d.Hint = fmt.Sprintf("put a node of kind %s before both: it calls the one and then the other", diag.Or(k))
			}
			list.Add(d)
			continue
		}
		d := s.edgeAt(e, whole, "split-pair", fmt.Sprintf("nobody calls both ends, so nothing is ever handed over: %s is called by %s, %s by %s", from, diag.And(diag.Quote(a)), to, diag.And(diag.Quote(b))))
		d.Hint = fmt.Sprintf("call both from one node: add an edge from %s to %s", a[0], to)
		list.Add(d)
	}
	return list
}

// written returns nodes with those that were inserted replaced by who calls them, sorted.
func (s *state) written(nodes []string) []string {
	set := map[string]bool{}
	for todo := slices.Clone(nodes); len(todo) > 0; todo = todo[1:] {
		if s.g.Nodes[todo[0]].Inserted {
			todo = append(todo, s.callers(todo[0])...)
		} else {
			set[todo[0]] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// kindsThat returns the names of the kinds whose default ports are so.
func (s *state) kindsThat(is func([]kind.Port) bool) []string {
	var out []string
	for _, k := range s.o.Registry.All() {
		if ps, err := k.Ports(nil); err == nil && is(ps) {
			out = append(out, k.Name)
		}
	}
	return out
}
