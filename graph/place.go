package graph

import (
	"strings"

	"github.com/dynamograph/dynamo/graph/diag"
)

// Place returns where an author set what a path names ("nodes.decode.kv.block", `edges."a -> b".transport`, "models.default.sha256"): the
// field, else what is nearest above it, else the part that it is of. The zero Pos says that the graph has no such part. Edges are also found
// by their resolved names, where the author left out ports.
func (g *Graph) Place(path string) diag.Pos {
	if name, ok := strings.CutPrefix(path, "edges."); ok {
		return g.edgePlace(name)
	}
	top, rest, _ := strings.Cut(path, ".")
	name, field, _ := strings.Cut(rest, ".")
	if n := g.Nodes[name]; top == "nodes" && n != nil {
		if at, ok := nearest(n.Fields, field); ok {
			return at
		}
		return n.Pos
	}
	if at, ok := nearest(g.Fields, path); ok {
		return at
	}
	switch m, d := g.Models[name], g.Devices[name]; {
	case top == "models" && m != nil:
		return m.Pos
	case top == "model" && g.Models["default"] != nil:
		return g.Models["default"].Pos
	case top == "devices" && d != nil:
		return d.Pos
	case path == "name":
		return g.Pos
	}
	return diag.Pos{}
}

// nearest finds the place of a path, or of one above it.
func nearest(fields map[string]diag.Pos, path string) (diag.Pos, bool) {
	for path != "" {
		if at, ok := fields[path]; ok {
			return at, true
		}
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
	}
	return diag.Pos{}, false
}

func (g *Graph) edgePlace(path string) diag.Pos {
	label, field, ok := strings.Cut(strings.TrimPrefix(path, `"`), `".`)
	if !ok {
		label = strings.Trim(path, `"`)
	}
	from, to, _ := strings.Cut(label, " -> ")
	fits := func(e End, s string) bool { return e.String() == s || e.Port == "" && strings.HasPrefix(s, e.Node+".") }
	for _, e := range g.Edges {
		if fits(e.From, from) && fits(e.To, to) {
			if at, ok := e.Fields[field]; ok {
				return at
			}
			return e.Pos
		}
	}
	return diag.Pos{}
}
