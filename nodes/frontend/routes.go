package frontend

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// Route sends the requests for some models to one node.
type Route struct {
	Model     string   `json:"model"` // served name, or a pattern where * stands for any characters
	To        string   `json:"to"`    // node that an edge of the frontend leads to
	Fallbacks []string `json:"fallbacks,omitempty"`
}

// matches reports whether a pattern, where * stands for any characters, is s. A * in s is matched by a * alone: then a pattern that matches
// a pattern takes all that it takes.
func matches(pattern, s string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	if !strings.HasPrefix(s, head) {
		return false
	}
	for s = s[len(head):]; ; s = s[1:] {
		if matches(rest, s) {
			return true
		}
		if s == "" {
			return false
		}
	}
}

// routes finds routes that lead nowhere or that no request takes.
func routes(c Config, s kind.Site) diag.List {
	var l diag.List
	add := func(code, field, hint, format string, args ...any) *diag.Diagnostic {
		l.Add(s.Finding(code, field, hint, format, args...))
		return &l[len(l)-1]
	}
	below := targets(s)
	target := func(field, name string) {
		if _, ok := below[name]; ok {
			return
		}
		known := slices.Sorted(maps.Keys(below))
		if s.Graph.Nodes[name] != nil {
			add("missing-edge", field, fmt.Sprintf(`add "%s -> %s"`, s.Node.Name, name), "no edge leads from %s to %q", s.Node.Name, name)
			return
		}
		d := add("unknown-node", field, diag.Suggest(name, known), "no node %q", name)
		d.Notes = []string{fmt.Sprintf("%s leads to: %s", s.Node.Name, strings.Join(known, ", "))}
	}
	for i, r := range c.Routes {
		at := func(f string) string { return fmt.Sprintf("routes.%d.%s", i, f) }
		target(at("to"), r.To)
		for k, f := range r.Fallbacks {
			field := fmt.Sprintf("%s.%d", at("fallbacks"), k)
			switch {
			case f == r.To:
				add("shadowed-route", field, "remove it", "%q is where the route leads already", f)
			case slices.Contains(r.Fallbacks[:k], f):
				add("shadowed-route", field, "remove it", "%q is in the list already", f)
			default:
				target(field, f)
			}
		}
		if first := slices.IndexFunc(c.Routes[:i], func(q Route) bool { return matches(q.Model, r.Model) }); first >= 0 {
			d := add("shadowed-route", at("model"), "put it before that route, or remove it", "no request takes it: all for %q take the route for %q", r.Model, c.Routes[first].Model)
			d.Related = []diag.Related{{Pos: s.Field(fmt.Sprintf("routes.%d.model", first)), Msg: "the route that takes them"}}
			continue
		}
		if names := below[r.To]; len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return matches(r.Model, n) }) {
			d := add("unknown-model", at("model"), diag.Suggest(r.Model, names), "%s serves no model %q", r.To, r.Model)
			d.Notes = []string{"it serves: " + strings.Join(names, ", ")}
		}
	}
	return l
}

// targets returns the nodes that the frontend's edges lead to, as the author wrote them, with the names of the models that they serve; none
// where those are not known.
func targets(s kind.Site) map[string][]string {
	out := map[string][]string{}
	for todo := []string{s.Node.Name}; len(todo) > 0; todo = todo[1:] {
		for _, e := range s.Graph.Edges {
			n := s.Graph.Nodes[e.To.Node]
			switch {
			case e.From.Node != todo[0] || n == nil || !graph.IsCall(e.Type):
			case n.Inserted:
				todo = append(todo, n.Name)
			default:
				if out[n.Name] = served(s.Graph, n.Name); s.Names != nil {
					out[n.Name] = append(out[n.Name], slices.Sorted(maps.Keys(s.Names(n.Name)))...)
				}
			}
		}
	}
	return out
}

// served returns the names that clients use for the models of the nodes below node; none where one of them is not said.
func served(g *graph.Graph, node string) []string {
	var names []string
	below := g.Reach(func(e *graph.Edge) bool { return graph.IsCall(e.Type) }, node)
	for _, name := range slices.Sorted(maps.Keys(below)) {
		m := g.Models[g.Nodes[name].Model]
		if m == nil {
			continue
		}
		if len(m.Names) == 0 {
			return nil
		}
		names = append(names, m.Names...)
		for _, a := range slices.Sorted(maps.Keys(m.Adapters)) {
			if names = append(names, m.Adapters[a].Names...); len(m.Adapters[a].Names) == 0 {
				names = append(names, a)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
