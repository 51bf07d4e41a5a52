package compiler

import (
	"fmt"
	"slices"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// repeated finds edges that are written twice, and ports with more edges than they take.
func (s *state) repeated() diag.List {
	var list diag.List
	seen := map[[2]graph.End]*graph.Edge{}
	used := map[kind.Dir]map[graph.End]*graph.Edge{kind.Out: {}, kind.In: {}}
	for _, e := range s.good() {
		key := [2]graph.End{e.From, e.To}
		if first := seen[key]; first != nil {
			d := s.edgeAt(e, whole, "duplicate-edge", "it is there already")
			d.Hint = "remove one of the two"
			d.Related = []diag.Related{{Pos: first.Pos, Len: first.Len, Msg: "the first"}}
			list.Add(d)
			s.bad[e] = true
			continue
		}
		seen[key] = e
		for _, side := range []struct {
			end graph.End
			dir kind.Dir
			at  part
		}{{e.From, kind.Out, fromHalf}, {e.To, kind.In, toHalf}} {
			p, ok := s.port(side.end, side.dir)
			first := used[side.dir][side.end]
			used[side.dir][side.end] = e
			if !ok || first == nil || p.Many {
				continue
			}
			d := s.edgeAt(e, side.at, "too-many-edges", fmt.Sprintf("%s %s takes one edge", side.dir.Word(), side.end))
			if p.Type == "scale" && side.dir == kind.In {
				d = s.edgeAt(e, fromHalf, "two-writers", fmt.Sprintf("%s would set the replicas of %s, and so does %s", e.From.Node, e.To.Node, first.From.Node))
				d.Hint = "remove one of the two edges"
			}
			d.Related = append(d.Related, diag.Related{Pos: first.Pos, Len: first.Len, Msg: fmt.Sprintf("it has %q", s.labels[first])})
			list.Add(d)
			s.bad[e] = true
		}
	}
	return list
}

// needed finds ports that need an edge and have none.
func (s *state) needed() diag.List {
	var list diag.List
	has := map[kind.Dir]map[graph.End]bool{kind.Out: {}, kind.In: {}}
	broken := map[string]bool{} // a node at a broken edge may be meant there
	for _, e := range s.g.Edges {
		if s.bad[e] {
			for _, n := range []string{e.From.Node, e.To.Node} {
				broken[n] = true
				if s.g.Nodes[n] == nil { // "prefil": prefill is meant
					broken[diag.Nearest(n, s.names())] = true
				}
			}
			continue
		}
		has[kind.Out][e.From], has[kind.In][e.To] = true, true
	}
	sound := len(s.bad) == 0 && len(s.kinds) == len(s.g.Nodes)
	calls := map[string]bool{}
	for _, e := range s.calls() {
		calls[e.From.Node] = true
	}
	for _, name := range s.names() {
		for _, p := range s.ports[name] {
			end := graph.End{Node: name, Port: p.Name}
			if !p.Need || has[p.Dir][end] || broken[name] || isKV(p.Type) && s.pairTold(name) || p.Dir == kind.In && graph.IsCall(p.Type) && sound && calls[name] {
				continue // of the top of what no request reaches no-entry or unreachable tells
			}
			verb := "sends"
			if p.Dir == kind.In {
				verb = "takes"
			}
			d := nodeAt(s.g.Nodes[name], "", "missing-edge", fmt.Sprintf("%s %q needs an edge: it %s %q", p.Dir.Word(), p.Name, verb, p.Type))
			if fix, other := s.partner(name, p); fix != "" {
				d.Hint = fmt.Sprintf("add %q", fix)
				s.proposed[other] = true
			}
			list.Add(d)
			s.lacking[name] = true
		}
	}
	return list
}

// partner proposes an edge for a port of node: to the port that fits best, by its type, then by a name that says what it is for, then by
// having no edge yet and by being joined otherwise; of equals the first by name of the node.
func (s *state) partner(node string, p kind.Port) (edge, with string) {
	used := map[graph.End]bool{} // a port name may be in and out: then its edge counts for both
	for _, e := range s.good() {
		used[e.From], used[e.To] = true, true
	}
	best := 0
	for _, other := range s.names() {
		for _, q := range s.ports[other] {
			o, i, from, to := p, q, graph.End{Node: node, Port: p.Name}, graph.End{Node: other, Port: q.Name}
			if p.Dir == kind.In {
				o, i, from, to = q, p, to, from
			}
			taken := used[graph.End{Node: other, Port: q.Name}]
			if other == node || o.Dir != kind.Out || i.Dir != kind.In || taken && !q.Many || len(s.pairs([]kind.Port{o}, []kind.Port{i})) == 0 {
				continue
			}
			score := 1
			if o.Type == i.Type {
				score += 4
			}
			if o.Name == s.g.Nodes[to.Node].Kind || o.Name == to.Node {
				score += 2
			}
			if !taken {
				score++
			}
			if slices.ContainsFunc(s.good(), func(e *graph.Edge) bool {
				return !graph.IsCall(e.Type) && (e.From.Node == node && e.To.Node == other || e.From.Node == other && e.To.Node == node)
			}) {
				score++ // what is scaled tells of its load
			}
			if score > best {
				best, edge, with = score, from.String()+" -> "+to.String(), other
			}
		}
	}
	return edge, with
}
