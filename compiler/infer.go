package compiler

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
)

// infer gives each node the model that it must mean, what the other end of an edge says and it does not, and each kv edge the fastest
// transport that both ends have.
func infer(s *state) diag.List {
	var list diag.List
	known := slices.Sorted(maps.Keys(s.g.Models))
	for _, name := range s.names() {
		n := s.g.Nodes[name]
		k := s.kinds[name]
		switch {
		case k == nil:
		case n.Model != "" && s.g.Models[n.Model] == nil:
			d := nodeAt(n, "model", "unknown-model", fmt.Sprintf("no model %q", n.Model))
			d.Hint = diag.Suggest(n.Model, known)
			d.Notes = []string{"models: " + orNone(known)}
			list.Add(d)
		case n.Model == "" && k.NeedsModel && len(known) == 1:
			n.Model = known[0]
		case n.Model == "" && k.NeedsModel && len(known) > 1:
			d := nodeAt(n, "", "missing-model", fmt.Sprintf("the graph has %d models: say which one", len(known)))
			d.Hint = fmt.Sprintf("model: %q", known[0])
			d.Notes = []string{"models: " + orNone(known)}
			list.Add(d)
		}
	}
	s.fill()
	for _, e := range s.good() {
		if isKV(e.Type) && e.Transport == "" {
			if may, _, _ := s.transportsOf(e); len(may) > 0 {
				e.Transport = may[0]
				s.chosen[e] = true
			}
		}
	}
	return list
}

// below returns the models of the nodes that calls through node reach, node included; sorted.
func (s *state) below(node string) []string {
	set, seen := map[string]bool{}, map[string]bool{}
	for todo := []string{node}; len(todo) > 0; todo = todo[1:] {
		n := todo[0]
		if seen[n] {
			continue
		}
		seen[n] = true
		if m := s.g.Nodes[n].Model; m != "" {
			set[m] = true
		}
		for _, e := range s.joined().out[n] {
			if graph.IsCall(e.Type) {
				todo = append(todo, e.To.Node)
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func orNone(s []string) string {
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, ", ")
}
