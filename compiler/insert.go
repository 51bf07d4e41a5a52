package compiler

import (
	"fmt"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// insert adds the stages that nobody needs to write: what converts between the ends of an edge, and what wraps the path below that.
func insert(s *state) diag.List {
	var list diag.List
	var edges []*graph.Edge
	for _, e := range s.g.Edges {
		chain := s.missing(e)
		if len(chain) == 0 {
			edges = append(edges, e)
			continue
		}
		made, found := s.splice(e, chain)
		edges = append(edges, made...)
		list = append(list, found...)
	}
	s.g.Edges = edges
	s.index = nil
	return list
}

// missing returns the kinds to insert on e, from top to bottom.
func (s *state) missing(e *graph.Edge) []*kind.Entry {
	from, to := s.kinds[e.From.Node], s.kinds[e.To.Node]
	if s.bad[e] || from == nil || to == nil {
		return nil
	}
	out, _ := s.port(e.From, kind.Out)
	var chain []*kind.Entry
	if c := s.converter(out.Type, e.Type); c != nil {
		chain = append(chain, c)
	} else if from.Converts[1] != e.Type {
		return nil // not the top of a path
	}
	have := s.wrapped(e)
	for _, k := range s.o.Registry.All() {
		if k.Wraps == e.Type && !have[k.Name] {
			chain = append(chain, k)
		}
	}
	return chain
}

// wrapped returns the kinds of the stages that the author wrote at the top of the path below e.
func (s *state) wrapped(e *graph.Edge) map[string]bool {
	have := map[string]bool{}
	for at := e.To.Node; ; {
		k := s.kinds[at]
		if k == nil || k.Wraps != e.Type || have[k.Name] {
			return have
		}
		have[k.Name] = true
		for _, f := range s.joined().out[at] {
			if f.Type == e.Type {
				at = f.To.Node
				break
			}
		}
	}
}

// splice replaces e by a chain of edges through new nodes. Their model is that of what they lead to.
func (s *state) splice(e *graph.Edge, chain []*kind.Entry) ([]*graph.Edge, diag.List) {
	var list diag.List
	models := s.below(e.To.Node)
	var edges []*graph.Edge
	at := e.From
	join := func(to graph.End, typ string) {
		f := &graph.Edge{From: at, To: to, Type: typ, Pos: e.Pos, Len: e.Len, Fields: e.Fields, Inserted: true}
		s.labels[f] = s.labels[e]
		edges = append(edges, f)
	}
	for _, k := range chain {
		n := &graph.Node{Name: s.freeName(e.From.Node, k.Name), Kind: k.Name, Pos: e.Pos, Inserted: true}
		var err error
		if n.Config, err = k.Config(nil); err != nil {
			list.Add(s.edgeAt(e, whole, "internal", err.Error()))
			return []*graph.Edge{e}, list
		}
		ps, err := k.Ports(n.Config)
		if err != nil {
			list.Add(s.edgeAt(e, whole, "internal", err.Error()))
			return []*graph.Edge{e}, list
		}
		if len(models) == 1 { // of several, Check tells
			n.Model = models[0]
		}
		s.g.Nodes[n.Name], s.kinds[n.Name], s.ports[n.Name] = n, k, ps
		in, out := s.callPorts(n.Name)
		join(graph.End{Node: n.Name, Port: in.Name}, in.Type)
		at = graph.End{Node: n.Name, Port: out.Name}
	}
	join(e.To, e.Type)
	last := edges[len(edges)-1]
	last.Transport = e.Transport // what the author set concerns the lower end: the stages run beside the caller
	return edges, list
}

// callPorts returns the one port in and the one out that requests take through an inserted stage.
func (s *state) callPorts(node string) (in, out kind.Port) {
	for _, p := range s.ports[node] {
		switch {
		case !graph.IsCall(p.Type):
		case p.Dir == kind.In:
			in = p
		default:
			out = p
		}
	}
	return in, out
}

// freeName makes a DNS label that no node has: "api-preprocess".
func (s *state) freeName(base, suffix string) string {
	for i := 1; ; i++ {
		tail := "-" + suffix
		if i > 1 {
			tail = fmt.Sprintf("-%s-%d", suffix, i)
		}
		name := base
		if over := len(base) + len(tail) - maxName; over > 0 {
			name = strings.TrimRight(base[:len(base)-over], "-")
		}
		if s.g.Nodes[name+tail] == nil {
			return name + tail
		}
	}
}

// maxName is the longest DNS label, in bytes.
const maxName = 63
