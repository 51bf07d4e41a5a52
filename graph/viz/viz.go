// Package viz draws plans: as text for a terminal, for Graphviz, for Mermaid and as a page of HTML. It does no I/O; equal plans give equal bytes.
package viz

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/internal/dag"
	"github.com/dynamograph/dynamo/graph/plan"
)

// drawing is a plan in the order in which it is drawn.
type drawing struct {
	p      *plan.Plan
	groups []*plan.Group // callers before callees, senders of data before those who take it
	home   map[string]*plan.Group
}

func newDrawing(p *plan.Plan) drawing {
	d := drawing{p: p, home: map[string]*plan.Group{}}
	var order dag.Graph
	byName := map[string]*plan.Group{}
	for _, g := range p.Groups {
		order.Vertex(g.Name)
		byName[g.Name] = g
		for _, u := range g.Units {
			d.home[u.Node] = g
		}
	}
	for _, e := range p.Edges {
		from, to := d.home[e.From], d.home[e.To]
		if from != nil && to != nil && from != to && !graph.IsStream(e.Type) {
			order.Edge(from.Name, to.Name)
		}
	}
	names, err := order.Sort()
	if err != nil { // no order: as the plan lists them
		d.groups = p.Groups
		return d
	}
	for _, n := range names {
		d.groups = append(d.groups, byName[n])
	}
	return d
}

// crosses reports whether e leaves its process.
func (d drawing) crosses(e *plan.Edge) bool { return d.home[e.From] != d.home[e.To] }

// title is a group's heading: "decode ×2".
func title(g *plan.Group) string {
	if g.Replicas.Want == 1 {
		return g.Name
	}
	return fmt.Sprintf("%s ×%d", g.Name, g.Replicas.Want)
}

// unit is what a node's box says.
func unit(u *plan.Unit) string {
	s := u.Node
	if u.Node != u.Kind {
		s += " (" + u.Kind + ")"
	}
	for _, field := range sorted(u.Listen) {
		s += " on " + u.Listen[field]
	}
	return s
}

// edge is what stands at an arrow; how calls travel is seen from the boxes.
func edge(e *plan.Edge) string {
	if e.Transport == "inproc" || e.Transport == "grpc" || e.Transport == "" {
		return e.Type
	}
	return e.Type + ", " + e.Transport
}

func sorted(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// id makes a name that both Graphviz and Mermaid take without quotes and that is no word of theirs.
func id(name string) string { return "n_" + strings.ReplaceAll(name, "-", "_") }
