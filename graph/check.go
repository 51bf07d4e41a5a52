package graph

import "maps"

// Cycles returns one shortest cycle in each knot of edges that may not close a loop: all but subscriptions. Each begins at its smallest
// name, the list is sorted. Edges without a type are not resolved and do not count.
func (g *Graph) Cycles() [][]string {
	return g.sub(func(e *Edge) bool { return e.Type != "" && !IsStream(e.Type) }).Cycles()
}

// Reach returns the nodes that edges passing keep lead to from roots, roots included; nil keeps all edges.
func (g *Graph) Reach(keep func(*Edge) bool, roots ...string) map[string]bool {
	return g.sub(keep).Reach(roots...)
}

// Clone returns a deep copy.
func (g *Graph) Clone() *Graph {
	c := *g
	c.Models = make(map[string]*Model, len(g.Models))
	for k, m := range g.Models {
		n := *m
		n.Sources = append([]string(nil), m.Sources...)
		n.Names = append([]string(nil), m.Names...)
		n.Features = append([]string(nil), m.Features...)
		n.Adapters = maps.Clone(m.Adapters) // adapters themselves do not change
		c.Models[k] = &n
	}
	c.Nodes = make(map[string]*Node, len(g.Nodes))
	for k, n := range g.Nodes {
		d := *n
		d.Config = append([]byte(nil), n.Config...)
		if n.Replicas != nil {
			r := *n.Replicas
			d.Replicas = &r
		}
		c.Nodes[k] = &d // Fields is shared: places do not change
	}
	c.Edges = make([]*Edge, len(g.Edges))
	for i, e := range g.Edges {
		f := *e
		c.Edges[i] = &f
	}
	return &c
}
