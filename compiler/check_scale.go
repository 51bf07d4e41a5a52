package compiler

import (
	"fmt"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// scaleWithoutEffect finds edges that scale a node which lives in another one's process.
func scaleWithoutEffect(s *state) diag.List {
	var list diag.List
	for _, e := range s.good() {
		g := s.home[e.To.Node]
		if e.Type != "scale" || g == nil || g.Name == e.To.Node {
			continue
		}
		d := s.edgeAt(e, toHalf, "no-effect", fmt.Sprintf("%s runs in the process of %q and has no replicas of its own", e.To.Node, g.Name))
		if d.Hint = "remove it"; s.has(g.Name, kind.In, func(typ string) bool { return typ == "scale" }) {
			d.Hint = fmt.Sprintf("lead it to %q", g.Name)
		}
		list.Add(d)
	}
	return list
}
