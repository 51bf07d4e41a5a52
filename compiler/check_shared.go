package compiler

import (
	"fmt"
	"slices"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// sharedMismatch finds nodes that lead data of one model to one port and say different things of it: a store of KV would give one what is
// another's, and who counts blocks would count two sorts as one. Ends of a kv edge are compared there.
func sharedMismatch(s *state) diag.List {
	var list diag.List
	first := map[graph.End]map[string]*graph.Edge{} // by port and model
	for _, e := range s.good() {
		in, _ := s.port(e.To, kind.In)
		a := s.g.Nodes[e.From.Node]
		if e.Type != "tier" && (e.Type != "events" || len(in.Signals) == 0) || s.kinds[e.From.Node] == nil {
			continue
		}
		if first[e.To] == nil {
			first[e.To] = map[string]*graph.Edge{}
		}
		f := first[e.To][a.Model]
		if f == nil {
			first[e.To][a.Model] = e
			continue
		}
		b := s.g.Nodes[f.From.Node]
		if slices.ContainsFunc(s.edges(isKV), func(e *graph.Edge) bool {
			return e.From.Node == a.Name && e.To.Node == b.Name || e.From.Node == b.Name && e.To.Node == a.Name
		}) {
			continue
		}
		mine, _ := s.terms(e)
		theirs, _ := s.terms(f)
		for _, x := range mine {
			y, ok := term(theirs, x.Name)
			if !ok || len(x.Values) == 0 || x.Fits(y) {
				continue
			}
			d := s.edgeAt(e, whole, "contract-mismatch",
				fmt.Sprintf("%s of %s is %s, but that of %s is %s, and both lead to %s", x.Name, a.Name, said(x), b.Name, said(y), e.To))
			d.Hint = x.Rule.Remedy()
			d.Related = append(append(s.related(a, x), s.related(b, y)...), diag.Related{Pos: f.Pos, Len: f.Len, Msg: fmt.Sprintf("%s leads there, too", b.Name)})
			list.Add(d)
		}
	}
	return list
}
