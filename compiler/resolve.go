package compiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// resolve names both ports of every edge, where exactly one pair fits.
func resolve(s *state) diag.List {
	return append(s.join(), s.needed()...)
}

// Edges returns what is wrong with the edges of a graph that is not whole: ports that do not fit, edges that are written twice. What
// more nodes and edges would put right it does not look for. A nil registry is kind.Default. The list is sorted; g is not changed.
func Edges(g *graph.Graph, r *kind.Registry) diag.List {
	if r == nil {
		r = kind.Default
	}
	list := newState(g, Options{Registry: r}).join()
	list.Sort()
	return list
}

// join looks up kinds and ports, and names the ports of edges.
func (s *state) join() diag.List {
	var list diag.List
	for _, name := range s.names() {
		n := s.g.Nodes[name]
		k := s.o.Registry.Lookup(n.Kind)
		if k == nil {
			d := nodeAt(n, "kind", "unknown-kind", fmt.Sprintf("no kind %q", n.Kind))
			var known []string
			for _, k := range s.o.Registry.All() {
				known = append(known, k.Name)
			}
			d.Hint = diag.Suggest(n.Kind, known)
			d.Notes = []string{"kinds: " + strings.Join(known, ", ")}
			list.Add(d)
			continue
		}
		s.kinds[name] = k
		ports, err := k.Ports(n.Config)
		if err != nil { // Default reports it
			delete(s.kinds, name)
			continue
		}
		s.ports[name] = ports
	}
	for _, e := range s.g.Edges {
		if found := s.resolveEdge(e); len(found) > 0 {
			s.bad[e] = true
			list = append(list, found...)
		}
	}
	list = append(list, s.repeated()...)
	s.index = nil
	return list
}

// pair is a way to read an edge.
type pair struct{ out, in kind.Port }

func (s *state) resolveEdge(e *graph.Edge) diag.List {
	var list diag.List
	for _, end := range []struct {
		node string
		p    part
	}{{e.From.Node, fromHalf}, {e.To.Node, toHalf}} {
		if s.g.Nodes[end.node] == nil {
			d := s.edgeAt(e, end.p, "unknown-node", fmt.Sprintf("no node %q", end.node))
			d.Hint = diag.Suggest(end.node, s.names())
			if d.Hint == "" {
				d.Notes = []string{"nodes: " + strings.Join(s.names(), ", ")}
			}
			list.Add(d)
		}
	}
	if len(list) > 0 {
		return list
	}
	if s.kinds[e.From.Node] == nil || s.kinds[e.To.Node] == nil {
		s.bad[e] = true // the kind or the config is reported already
		return nil
	}
	if d, ok := s.reversed(e); ok {
		return diag.List{d}
	}
	outs, found := s.end(e, e.From, kind.Out, fromPort)
	list = append(list, found...)
	ins, found := s.end(e, e.To, kind.In, toPort)
	list = append(list, found...)
	if len(list) > 0 {
		return list
	}
	pairs := s.pairs(outs, ins)
	switch len(pairs) {
	case 1:
		e.From.Port, e.To.Port, e.Type = pairs[0].out.Name, pairs[0].in.Name, pairs[0].in.Type
		return s.crossed(e, pairs[0])
	case 0:
		return diag.List{s.mismatch(e, outs, ins)}
	default:
		return diag.List{s.ambiguous(e, pairs)}
	}
}

// reversed finds an edge both of whose ports are named, and would fit the other way round.
func (s *state) reversed(e *graph.Edge) (d diag.Diagnostic, ok bool) {
	out, isOut := s.port(e.To, kind.Out)
	in, isIn := s.port(e.From, kind.In)
	if !isOut || !isIn || out.Type != in.Type {
		return d, false
	}
	if _, ok := s.port(e.From, kind.Out); ok {
		return d, false
	}
	if _, ok := s.port(e.To, kind.In); ok {
		return d, false
	}
	d = s.edgeAt(e, whole, "unknown-port", fmt.Sprintf("it leads the wrong way: %s is an output, and %s an input", e.To, e.From))
	d.Hint = fmt.Sprintf(`write "%s -> %s"`, e.To, e.From)
	return d, true
}

// crossed finds an edge from a port that is named after another kind than the one at its end, which has a port of its own beside it:
// prompts that are led to who continues them.
func (s *state) crossed(e *graph.Edge, p pair) diag.List {
	to := s.g.Nodes[e.To.Node]
	if p.out.Name == to.Kind || s.o.Registry.Lookup(p.out.Name) == nil {
		return nil
	}
	own, ok := s.port(graph.End{Node: e.From.Node, Port: to.Kind}, kind.Out)
	if !ok || own.Type != p.out.Type {
		return nil
	}
	d := s.edgeAt(e, whole, "port-mismatch", fmt.Sprintf("%s leads to a %s, but %s is a %s", e.From, p.out.Name, to.Name, to.Kind))
	d.Hint = fmt.Sprintf("write %q", graph.End{Node: e.From.Node, Port: own.Name}.String()+" -> "+to.Name)
	return diag.List{d}
}

// end returns the ports that one side of e may mean.
func (s *state) end(e *graph.Edge, end graph.End, dir kind.Dir, p part) ([]kind.Port, diag.List) {
	n := s.g.Nodes[end.Node]
	word, other := "output", "input"
	if dir == kind.In {
		word, other = other, word
	}
	var mine, names []string
	var match []kind.Port
	opposite := false
	for _, port := range s.ports[end.Node] {
		if port.Dir != dir {
			opposite = opposite || port.Name == end.Port
			continue
		}
		names = append(names, port.Name)
		mine = append(mine, describe(port))
		if end.Port == "" || end.Port == port.Name {
			match = append(match, port)
		}
	}
	if len(match) > 0 {
		return match, nil
	}
	if end.Port == "" {
		half := fromHalf
		if dir == kind.In {
			half = toHalf
		}
		d := s.edgeAt(e, half, "port-mismatch", fmt.Sprintf("%s %q has no %s", n.Kind, n.Name, word))
		return nil, diag.List{d}
	}
	d := s.edgeAt(e, p, "unknown-port", fmt.Sprintf("%s %q has no %s %q", n.Kind, n.Name, word, end.Port))
	if d.Hint = diag.Suggest(end.Port, names); opposite {
		d.Hint = fmt.Sprintf("%q is an %s of %q", end.Port, other, n.Name)
	}
	if len(mine) == 0 {
		d.Notes = []string{fmt.Sprintf("%s has no %s", n.Kind, word)}
	} else {
		d.Notes = []string{word + "s: " + strings.Join(mine, ", ")}
	}
	return nil, diag.List{d}
}

// pairs returns the pairs of ports that fit: those for requests, or where there are none those that an inserted node can convert, or else
// those for data. So "api -> route" means the requests, though the one may tell of its load and the other listen.
func (s *state) pairs(outs, ins []kind.Port) []pair {
	var calls, converted, data []pair
	for _, o := range outs {
		for _, i := range ins {
			switch {
			case o.Type == i.Type && graph.IsCall(o.Type):
				calls = append(calls, pair{o, i})
			case o.Type == i.Type:
				data = append(data, pair{o, i})
			case s.converter(o.Type, i.Type) != nil:
				converted = append(converted, pair{o, i})
			}
		}
	}
	switch {
	case len(calls) > 0:
		return calls
	case len(converted) > 0:
		return converted
	}
	return data
}

// converter returns the kind that turns calls of type from into calls of type to, or nil.
func (s *state) converter(from, to string) *kind.Entry {
	if from == to || from == "" || to == "" {
		return nil
	}
	for _, k := range s.o.Registry.All() {
		if k.Converts == [2]string{from, to} {
			return k
		}
	}
	return nil
}

// mismatch says why no pair fits, and what would.
func (s *state) mismatch(e *graph.Edge, outs, ins []kind.Port) diag.Diagnostic {
	from, to := s.g.Nodes[e.From.Node], s.g.Nodes[e.To.Node]
	allOut, allIn := s.directed(from.Name, kind.Out), s.directed(to.Name, kind.In)
	at, fix := whole, ""
	if f, keep := s.fix(e, allOut, allIn); keep != whole {
		fix = graph.End{Node: from.Name, Port: f.out.Name}.String() + " -> " + graph.End{Node: to.Name, Port: f.in.Name}.String()
		if at = toHalf; keep == toHalf {
			at = fromHalf
		}
	}
	msg := fmt.Sprintf("no output of %s %q fits an input of %s %q", from.Kind, from.Name, to.Kind, to.Name)
	switch {
	case len(outs) == 1 && len(ins) == 1:
		o, i := graph.End{Node: from.Name, Port: outs[0].Name}, graph.End{Node: to.Name, Port: ins[0].Name}
		msg = fmt.Sprintf("%s sends %q, but %s takes %q", o, outs[0].Type, i, ins[0].Type)
	case len(outs) == 1:
		msg = fmt.Sprintf("%s sends %q, which no input of %s %q takes", graph.End{Node: from.Name, Port: outs[0].Name}, outs[0].Type, to.Kind, to.Name)
	case len(ins) == 1:
		msg = fmt.Sprintf("%s takes %q, which no output of %s %q sends", graph.End{Node: to.Name, Port: ins[0].Name}, ins[0].Type, from.Kind, from.Name)
	}
	d := s.edgeAt(e, at, "port-mismatch", msg)
	for _, side := range []struct {
		node  string
		ports []kind.Port
	}{{from.Name, outs}, {to.Name, ins}} {
		if len(side.ports) == 1 && side.ports[0].Doc != "" {
			d.Notes = append(d.Notes, fmt.Sprintf("%s: %s", graph.End{Node: side.node, Port: side.ports[0].Name}, side.ports[0].Doc))
		}
	}
	if fix != "" {
		d.Hint = fmt.Sprintf("write %q", fix)
		return d
	}
	if r := s.pairs(s.directed(to.Name, kind.Out), s.directed(from.Name, kind.In)); len(r) > 0 {
		d.Hint = fmt.Sprintf("the other way round it fits: \"%s -> %s\"", to.Name, from.Name)
	}
	d.Notes = append(d.Notes, ports("outputs", from.Name, allOut), ports("inputs", to.Name, allIn))
	return d
}

// fix finds the one pair that leaves one half of e as it is written, and says which half it leaves.
func (s *state) fix(e *graph.Edge, outs, ins []kind.Port) (pair, part) {
	for _, keep := range []part{fromHalf, toHalf} {
		var fit []pair
		for _, p := range s.pairs(outs, ins) {
			if keep == fromHalf && p.out.Name == e.From.Port || keep == toHalf && p.in.Name == e.To.Port {
				fit = append(fit, p)
			}
		}
		if len(fit) == 1 {
			return fit[0], keep
		}
	}
	return pair{}, whole
}

// ambiguous asks to name a port.
func (s *state) ambiguous(e *graph.Edge, pairs []pair) diag.Diagnostic {
	to := s.g.Nodes[e.To.Node]
	var ways []string
	best := ""
	outs, ins := map[string]bool{}, map[string]bool{}
	for _, p := range pairs {
		outs[p.out.Name], ins[p.in.Name] = true, true
	}
	for _, p := range pairs {
		f, t := graph.End{Node: e.From.Node}, graph.End{Node: e.To.Node}
		if len(outs) > 1 {
			f.Port = p.out.Name
		}
		if len(ins) > 1 {
			t.Port = p.in.Name
		}
		way := fmt.Sprintf("%q", f.String()+" -> "+t.String())
		ways = append(ways, way)
		if p.out.Name == to.Kind || p.out.Name == to.Name {
			best = way
		}
	}
	at := whole
	switch {
	case len(ins) == 1:
		at = fromHalf
	case len(outs) == 1:
		at = toHalf
	}
	d := s.edgeAt(e, at, "ambiguous-port", fmt.Sprintf("%d pairs of ports fit", len(pairs)))
	if best != "" {
		d.Hint = "name the port: " + best
		d.Notes = []string{"choices: " + strings.Join(ways, ", ")}
	} else {
		d.Hint = "name the port: one of " + strings.Join(ways, ", ")
	}
	return d
}

// directed returns the ports of a node in one direction.
func (s *state) directed(node string, dir kind.Dir) []kind.Port {
	return slices.DeleteFunc(slices.Clone(s.ports[node]), func(p kind.Port) bool { return p.Dir != dir })
}

func (s *state) port(end graph.End, dir kind.Dir) (kind.Port, bool) {
	for _, p := range s.ports[end.Node] {
		if p.Dir == dir && p.Name == end.Port {
			return p, true
		}
	}
	return kind.Port{}, false
}

// names returns the nodes, sorted.
func (s *state) names() []string {
	out := make([]string, 0, len(s.g.Nodes))
	for n := range s.g.Nodes {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func describe(p kind.Port) string { return p.Name + " (" + p.Type + ")" }

func ports(what, node string, ps []kind.Port) string {
	all := make([]string, len(ps))
	for i, p := range ps {
		all[i] = describe(p)
	}
	if len(all) == 0 {
		all = []string{"none"}
	}
	return fmt.Sprintf("%s of %s: %s", what, node, strings.Join(all, ", "))
}
