package frontend

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// taken is who has a name that clients use.
type taken struct {
	what, there string // there is what a server calls it; "" for a model of the graph
	pos         diag.Pos
}

// clashes finds models of servers outside of the graph that are called as another model is, of the graph or of another server. Where a route
// takes the name, the author says which is meant; two servers that have the model under one name are two ways to it.
func clashes(c Config, s kind.Site) diag.List {
	if s.Names == nil {
		return nil
	}
	var l diag.List
	first := map[string]taken{}
	below := targets(s)
	for _, node := range slices.Sorted(maps.Keys(below)) {
		if len(s.Names(node)) > 0 {
			continue
		}
		for _, n := range below[node] {
			first[n] = taken{what: node + " serves a model of the graph so", pos: modelPos(s.Graph, n)}
		}
	}
	for _, node := range slices.Sorted(maps.Keys(below)) {
		names := s.Names(node)
		at := kind.Site{Graph: s.Graph, Node: s.Graph.Nodes[node]}
		for _, n := range slices.Sorted(maps.Keys(names)) {
			f, ok := first[n]
			switch {
			case !ok:
				first[n] = taken{node + " serves a model so", names[n], at.Field("models." + n)}
			case f.there == names[n] || slices.ContainsFunc(c.Routes, func(r Route) bool { return matches(r.Model, n) }):
			default:
				d := at.Finding("duplicate-name", "models."+n, "give one of them another name, or say in routes where requests for it go",
					"clients of %s call two models %q", s.Node.Name, n)
				d.Related = []diag.Related{{Pos: f.pos, Msg: f.what + ", too"}}
				l.Add(d)
			}
		}
	}
	return l
}

// modelPos is where the graph names a model as clients do.
func modelPos(g *graph.Graph, name string) diag.Pos {
	for _, key := range slices.Sorted(maps.Keys(g.Models)) {
		m := g.Models[key]
		if slices.Contains(m.Names, name) {
			return g.Place(fmt.Sprintf("models.%s.names", key))
		}
		for a, ad := range m.Adapters {
			if a == name || slices.Contains(ad.Names, name) {
				return g.Place(fmt.Sprintf("models.%s.adapters.%s", key, a))
			}
		}
	}
	return g.Pos
}
