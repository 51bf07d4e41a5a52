package compiler

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/plan"
)

// place puts nodes into groups. A kind that colocates goes with the node that calls it; every other node owns a group of its own.
func place(s *state) diag.List {
	order, err := s.g.Order()
	if err != nil {
		return nil // a cycle: Check shows it
	}
	var list diag.List
	owner := map[string]string{}
	for _, name := range order {
		k := s.kinds[name]
		if k == nil {
			continue
		}
		owner[name] = name
		if !k.Colocate {
			continue
		}
		homes := map[string][]*graph.Edge{}
		for _, e := range s.joined().in[name] {
			if o := owner[e.From.Node]; graph.IsCall(e.Type) && o != "" {
				homes[o] = append(homes[o], e)
			}
		}
		names := slices.Sorted(maps.Keys(homes))
		switch len(names) {
		case 0: // nobody calls it: Check shows it
		case 1:
			owner[name] = names[0]
		default:
			d := nodeAt(s.g.Nodes[name], "", "two-homes", fmt.Sprintf("kind %s runs in the process that calls it, but %s call it", k.Name, diag.And(diag.Quote(names))))
			d.Hint = fmt.Sprintf("write one %s for each of them", k.Name)
			for _, h := range names {
				e := homes[h][0]
				d.Related = append(d.Related, diag.Related{Pos: e.Pos, Len: e.Len, Msg: "called from process " + quote(h)})
			}
			list.Add(d)
		}
	}
	s.group(order, owner)
	s.transports(owner)
	return list
}

// group makes the plan's groups; units keep the order of calls.
func (s *state) group(order []string, owner map[string]string) {
	groups := map[string]*plan.Group{}
	for _, name := range order {
		o := owner[name]
		if o == "" {
			continue
		}
		g := groups[o]
		if g == nil {
			want := 1
			if r := s.g.Nodes[o].Replicas; r != nil {
				want = *r
			}
			g = &plan.Group{Name: o, Replicas: plan.Replicas{Min: want, Want: want, Max: want}}
			groups[o] = g
			s.p.Groups = append(s.p.Groups, g)
		}
		n := s.g.Nodes[name]
		s.home[name] = g
		g.Units = append(g.Units, &plan.Unit{Node: name, Kind: n.Kind, Model: n.Model, Inserted: n.Inserted})
	}
	slices.SortFunc(s.p.Groups, func(a, b *plan.Group) int { return strings.Compare(a.Name, b.Name) })
	for _, name := range order {
		if k := s.kinds[name]; k != nil {
			for node, r := range k.Scales(s.g.Nodes[name].Config) { // bounds that the node begins outside of are the kind's to find
				if g := groups[node]; g != nil && r.Min <= g.Replicas.Want && g.Replicas.Want <= r.Max {
					g.Replicas.Min, g.Replicas.Max = r.Min, r.Max
				}
			}
		}
	}
	for _, g := range s.p.Groups {
		g.Needs = s.sum(g)
	}
	s.p.Store = plan.Store{Kind: "embedded", Replicas: 1}
	if len(s.p.Groups) == 1 && s.p.Groups[0].Replicas.Max == 1 {
		s.p.Store = plan.Store{Kind: "memory"}
	}
}

// sum adds up what the units of a group take; weights that several units map count once. Only one unit of a group computes on devices.
func (s *state) sum(g *plan.Group) plan.Needs {
	var total plan.Needs
	shared := map[string]int64{}
	whole := slices.ContainsFunc(g.Units, func(u *plan.Unit) bool { return len(s.needs[u.Node].Parts) > 0 }) // then of all
	for _, u := range g.Units {
		n := s.needs[u.Node]
		total.MemoryBytes += n.MemoryBytes
		total.DiskBytes += n.DiskBytes
		total.Threads += n.Threads
		if n.Devices > 0 {
			total.Devices, total.DeviceClass, total.DeviceBytes = n.Devices, n.DeviceClass, n.DeviceBytes
			total.DeviceGroup, total.DeviceShare = n.DeviceGroup, n.DeviceShare
		}
		parts := n.Parts
		if len(parts) == 0 && whole {
			var sums plan.Needs
			sums.Add(plan.Part{Name: "process", Place: plan.InMemory, Bytes: n.MemoryBytes}, plan.Part{Name: "disk", Place: plan.OnDisk, Bytes: n.DiskBytes})
			parts = sums.Parts
		}
		for _, p := range parts {
			p.Node = u.Node
			total.Parts = append(total.Parts, p)
		}
		shared[u.Model] = max(shared[u.Model], n.SharedBytes)
	}
	for _, b := range shared {
		total.SharedBytes += b
	}
	return total
}

// transports completes the edges: what stays in a process is a call of Go, what leaves it goes over gRPC.
func (s *state) transports(owner map[string]string) {
	for _, e := range s.good() {
		if s.chosen[e] && (s.apart(e.From.Node, e.To.Node) || s.spread(e.From.Node, e.To.Node)) { // infer knew no machines
			e.Transport = s.between(e)
		}
		if e.Transport != "" {
			continue // kv, or set by the author: Check compares
		}
		e.Transport = s.natural(e, owner)
	}
}

func (s *state) natural(e *graph.Edge, owner map[string]string) string {
	if owner[e.From.Node] == owner[e.To.Node] {
		return "inproc"
	}
	return "grpc"
}
