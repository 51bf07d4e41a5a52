package compiler

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
)

// terms returns what both ends of a data edge say of it; nil for edges that carry requests.
func (s *state) terms(e *graph.Edge) (from, to []kind.Term) {
	a, b := s.kinds[e.From.Node], s.kinds[e.To.Node]
	if graph.IsCall(e.Type) || a == nil || b == nil {
		return nil, nil
	}
	return a.Contract(s.g.Nodes[e.From.Node].Config, e.From.Port), b.Contract(s.g.Nodes[e.To.Node].Config, e.To.Port)
}

// term returns the one with a name; ok false where it is not said, though it may have a field.
func term(ts []kind.Term, name string) (t kind.Term, ok bool) {
	for _, t := range ts {
		if t.Name == name {
			return t, len(t.Values) > 0
		}
	}
	return kind.Term{}, false
}

// fill completes what one end of a data edge leaves open from what the other says. What is filled at one edge may fill the next.
func (s *state) fill() {
	for again := true; again; {
		again = false
		for _, e := range s.good() {
			from, to := s.terms(e)
			for _, x := range from {
				if y, said := term(to, x.Name); !said && s.follow(e.To.Node, y, e.From.Node, x) {
					again = true
				}
			}
			for _, y := range to {
				if x, said := term(from, y.Name); !said && s.follow(e.From.Node, x, e.To.Node, y) {
					again = true
				}
			}
		}
	}
}

// follow sets the open field of a node to what another says, and reports whether it did.
func (s *state) follow(node string, open kind.Term, other string, says kind.Term) bool {
	if open.Field == "" || open.Rule != kind.Same || says.Rule != kind.Same || len(says.Values) != 1 {
		return false
	}
	n, k := s.g.Nodes[node], s.kinds[node]
	text, err := json.Marshal(says.Values[0])
	if err != nil {
		return false
	}
	for _, v := range []json.RawMessage{text, json.RawMessage(says.Values[0])} { // a text field, or one of a number
		raw, err := withJSON(n.Config, strings.Split(open.Field, "."), v)
		if err != nil {
			continue
		}
		if c, err := k.Config(raw); err == nil {
			n.Config = c
			s.filled[node+"."+open.Field] = origin{other, says}
			return true
		}
	}
	return false
}

// origin is who said what was filled in elsewhere.
type origin struct {
	node string
	term kind.Term
}

// saidBy returns who set the field of a node's term: the node, or the one that it follows.
func (s *state) saidBy(node string, t kind.Term) (string, kind.Term) {
	for range s.g.Nodes { // a chain of nodes is no longer
		o, ok := s.filled[node+"."+t.Field]
		if !ok {
			break
		}
		node, t = o.node, o.term
	}
	return node, t
}

// withJSON returns a config with one field set.
func withJSON(raw json.RawMessage, path []string, v json.RawMessage) (json.RawMessage, error) {
	if len(path) == 0 {
		return v, nil
	}
	m := map[string]json.RawMessage{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, err
		}
	}
	below, err := withJSON(m[path[0]], path[1:], v)
	if err != nil {
		return nil, err
	}
	m[path[0]] = below
	return json.Marshal(m)
}

// fastest orders transports of data edges. Those of one machine come first: where nodes are placed apart, a target chooses another.
var fastest = []string{"shm", "ipc", "nvlink", "rdma", "tcp"}

// ours are the transports of nodes that do not say theirs.
var ours = []string{"shm", "tcp"}

// transportsOf returns the transports that an edge may have, the fastest first, and what both ends say.
func (s *state) transportsOf(e *graph.Edge) (may []string, from, to kind.Term) {
	a, b := s.terms(e)
	from, saysA := term(a, kind.Transport)
	to, saysB := term(b, kind.Transport)
	switch {
	case saysA && saysB:
		for _, v := range from.Values {
			if slices.Contains(to.Values, v) {
				may = append(may, v)
			}
		}
	case saysA:
		may = slices.Clone(from.Values)
	case saysB:
		may = slices.Clone(to.Values)
	default:
		may = slices.Clone(ours)
	}
	rank := func(t string) int {
		if i := slices.Index(fastest, t); i >= 0 {
			return i
		}
		return len(fastest)
	}
	slices.SortStableFunc(may, func(x, y string) int { return rank(x) - rank(y) })
	return may, from, to
}

// apart reports whether two nodes certainly have no machine in common: one replica of each would take more accelerators than it has.
func (s *state) apart(a, b string) bool {
	g, h := s.home[a], s.home[b]
	if g == nil || h == nil || g == h || g.Needs.DeviceClass == "" || g.Needs.DeviceClass != h.Needs.DeviceClass {
		return false
	}
	d := s.g.Devices[g.Needs.DeviceClass]
	return d != nil && d.Count > 0 && together(g.Needs)+together(h.Needs) > d.Count
}

// together is how many accelerators of a replica are on one machine, at least.
func together(n plan.Needs) int { return max(n.DeviceGroup, min(n.Devices, 1)) }

// spread reports whether the replicas of two nodes are certainly on more than one machine: then one of the first has to reach one of the
// other elsewhere.
func (s *state) spread(a, b string) bool {
	g, h := s.home[a], s.home[b]
	if g == nil || h == nil || g == h || g.Needs.DeviceClass == "" || g.Needs.DeviceClass != h.Needs.DeviceClass {
		return false
	}
	d := s.g.Devices[g.Needs.DeviceClass]
	return d != nil && d.Count > 0 && g.Replicas.Want > 0 && h.Replicas.Want > 0 &&
		g.Needs.Devices*g.Replicas.Want+h.Needs.Devices*h.Replicas.Want > d.Count
}

// between is what an edge moves data by from machine to machine: the fastest that the author says both ends have, else what every network
// has; where there is none, what was chosen.
func (s *state) between(e *graph.Edge) string {
	may, from, to := s.transportsOf(e)
	may = slices.DeleteFunc(may, oneMachine)
	_, saysA := s.g.Nodes[e.From.Node].Fields[from.Field]
	_, saysB := s.g.Nodes[e.To.Node].Fields[to.Field]
	switch {
	case len(may) == 0:
		return e.Transport
	case !saysA && !saysB && slices.Contains(may, "tcp"):
		return "tcp"
	}
	return may[0]
}
