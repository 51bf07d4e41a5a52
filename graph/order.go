package graph

import (
	"github.com/dynamograph/dynamo/graph/internal/dag"
)

// IsCall reports whether edges of type typ carry requests ("chat", "tokens"). Others carry data that the To side asks for, and may close
// loops; see package kind.
func IsCall(typ string) bool { return typ == "chat" || typ == "tokens" }

// IsStream reports whether edges of type typ are subscriptions ("events", "load", "scale"): they may close loops.
func IsStream(typ string) bool { return typ == "events" || typ == "load" || typ == "scale" }

// sub is the part of g whose edges pass keep; nil keeps all. Edges to nodes that g lacks are left out.
func (g *Graph) sub(keep func(*Edge) bool) *dag.Graph {
	d := &dag.Graph{}
	for n := range g.Nodes {
		d.Vertex(n)
	}
	for _, e := range g.Edges {
		if g.Nodes[e.From.Node] != nil && g.Nodes[e.To.Node] != nil && (keep == nil || keep(e)) {
			d.Edge(e.From.Node, e.To.Node)
		}
	}
	return d
}

// Order returns the names of all nodes, callers before callees, by name where the call edges leave a choice. Edges must be resolved. A
// cycle of call edges is an error; see Cycles.
func (g *Graph) Order() ([]string, error) {
	return g.sub(func(e *Edge) bool { return IsCall(e.Type) }).Sort()
}
