package load

import (
	"strings"

	"cuelang.org/go/cue"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// sketch makes what can be made of a spec that failed: the nodes in which nothing was found, and the edges between them. So a mistake in
// one node does not hide a wrong edge between two others. It finds nothing by itself.
func (l *loader) sketch(v values, r *kind.Registry) *graph.Graph {
	found := l.list
	defer func() { l.list = found }()
	c := &checker{loader: l, v: v}
	g := &graph.Graph{Models: map[string]*graph.Model{}, Nodes: map[string]*graph.Node{}}
	for _, f := range c.fields(lookup(v.spec, "nodes")) {
		l.list = nil
		if k, err := lookup(f.v, "kind").String(); err != nil || r.Lookup(k) == nil || faulty(found, "nodes."+f.name) || f.v.Validate(cue.Concrete(true)) != nil {
			continue
		}
		if n := c.node(f, r); len(l.list) == 0 {
			g.Nodes[f.name] = n
		}
	}
	for _, f := range c.fields(lookup(v.spec, "edges")) {
		e := &graph.Edge{Fields: map[string]diag.Pos{}}
		var ok bool
		if e.From, e.To, ok = parseEdge(f.name); !ok || g.Nodes[e.From.Node] == nil || g.Nodes[e.To.Node] == nil {
			continue
		}
		e.Pos, e.Len = c.labelAt([]string{"edges", f.name}, f.v)
		g.Edges = append(g.Edges, e)
	}
	return g
}

// faulty reports whether an error was found at path or below.
func faulty(found diag.List, path string) bool {
	for _, d := range found {
		if d.Severity == diag.Error && (d.Path == path || strings.HasPrefix(d.Path, path+".")) {
			return true
		}
	}
	return false
}
