package compiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// missingSignal finds edges at whose lower end a node waits for what the upper one never tells.
func missingSignal(s *state) diag.List {
	var list diag.List
	for _, e := range s.good() {
		in, ok := s.port(e.To, kind.In)
		out, ok2 := s.port(e.From, kind.Out)
		if !ok || !ok2 {
			continue
		}
		lacks := slices.DeleteFunc(slices.Clone(in.Signals), func(name string) bool { return slices.Contains(out.Signals, name) })
		if len(lacks) == 0 {
			continue
		}
		from, to := s.g.Nodes[e.From.Node], s.g.Nodes[e.To.Node]
		what := make([]string, len(lacks))
		for i, name := range lacks {
			what[i] = quote(name)
			if doc := kind.Signals[name]; doc != "" {
				what[i] += " (" + doc + ")"
			}
		}
		tells := "it tells nothing there"
		if out.Doc != "" {
			tells += ", as " + out.Doc
		}
		if len(out.Signals) > 0 {
			tells = "it tells " + strings.Join(out.Signals, ", ")
		}
		d := s.edgeAt(e, fromHalf, "missing-signal", fmt.Sprintf("%s needs %s, which %s %q never tells: %s",
			e.To, diag.And(what), from.Kind, from.Name, tells))
		d.Hint = fmt.Sprintf("set up %s so that it tells it, or %s so that it does not need it", from.Name, to.Name)
		if others := s.tellers(to.Name, lacks); len(others) > 0 {
			d.Hint = "lead it from a node that does: " + strings.Join(others, ", ")
		}
		for _, n := range []struct {
			name, msg string
		}{{from.Name, "it is set up here"}, {to.Name, "it needs it"}} {
			x := s.g.Nodes[n.name]
			d.Related = append(d.Related, diag.Related{Pos: x.Pos, Len: len(x.Name), Msg: fmt.Sprintf("%s %q: %s", x.Kind, x.Name, n.msg)})
		}
		list.Add(d)
	}
	return list
}

// tellers returns the nodes without an edge to a node that tell all of what, at one port.
func (s *state) tellers(to string, what []string) []string {
	joined := map[string]bool{to: true}
	for _, e := range s.joined().in[to] {
		joined[e.From.Node] = true
	}
	var out []string
	for _, name := range s.names() {
		if !joined[name] && slices.ContainsFunc(s.ports[name], func(p kind.Port) bool {
			return p.Dir == kind.Out && !slices.ContainsFunc(what, func(w string) bool { return !slices.Contains(p.Signals, w) })
		}) {
			out = append(out, name)
		}
	}
	return out
}
