package compiler

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

var dnsLabel = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// badName finds names that are no DNS labels. The schema refuses them in specs; graphs built in Go meet this.
func badName(s *state) diag.List {
	var list diag.List
	const want = "want a DNS label: at most 63 lower-case letters, digits and hyphens, the first a letter, the last no hyphen"
	if len(s.g.Name) > maxName || !dnsLabel.MatchString(s.g.Name) {
		list.Add(diag.Diagnostic{Code: "bad-name", Pos: s.g.Pos, Path: "name", Msg: fmt.Sprintf("name: %q: %s", s.g.Name, want)})
	}
	for _, name := range s.names() {
		if len(name) > maxName || !dnsLabel.MatchString(name) {
			list.Add(nodeAt(s.g.Nodes[name], "", "bad-name", want))
		}
	}
	return list
}

// revisionSuffix is what Kubernetes adds to the name of a StatefulSet in a label value of its pods: a hyphen and up to ten characters.
const revisionSuffix = 11

// longName finds groups whose Kubernetes names would be cut or refused. The plan is the same for all targets, so it is checked for all.
func longName(s *state) diag.List {
	var list diag.List
	for _, g := range s.p.Groups {
		full := s.g.Name + "-" + g.Name
		over := len(full) + revisionSuffix - maxName
		if over <= 0 || len(s.g.Name) > maxName || len(g.Name) > maxName {
			continue // of what is too long by itself bad-name tells
		}
		d := nodeAt(s.g.Nodes[g.Name], "", "long-name",
			fmt.Sprintf("Kubernetes would know it as %q: %d bytes too long, suffixes included", full, over))
		d.Hint = fmt.Sprintf("graph and node may have %d bytes together", maxName-revisionSuffix-1)
		list.Add(d)
	}
	return list
}

// cycle finds requests, or data that they wait for, going round in circles.
func cycle(s *state) diag.List {
	var list diag.List
	for _, c := range s.g.Cycles() {
		path := strings.Join(append(c, c[0]), " -> ")
		var on []*graph.Edge
		for i, n := range c {
			for _, e := range s.g.Edges {
				if e.From.Node == n && e.To.Node == c[(i+1)%len(c)] && e.Type != "" && !graph.IsStream(e.Type) {
					on = append(on, e)
					break
				}
			}
		}
		if len(on) == 0 {
			continue
		}
		d := s.edgeAt(on[0], whole, "cycle", fmt.Sprintf("a request would never end: %s", path))
		d.Hint = "remove one of these edges"
		for _, e := range on[1:] {
			d.Related = append(d.Related, diag.Related{Pos: e.Pos, Len: e.Len, Msg: "and on from here"})
		}
		list.Add(d)
	}
	return list
}

// entries returns the nodes that take requests from outside: they call, and are not called.
func (s *state) entries() []string {
	var out []string
	for _, name := range s.names() {
		if s.has(name, kind.Out, graph.IsCall) && !s.has(name, kind.In, graph.IsCall) {
			out = append(out, name)
		}
	}
	return out
}

func noEntry(s *state) diag.List {
	if len(s.kinds) < len(s.g.Nodes) || len(s.entries()) > 0 {
		return nil
	}
	var kinds []string
	for _, k := range s.o.Registry.All() {
		if ps, err := k.Ports(nil); err == nil && hasPort(ps, kind.Out, graph.IsCall) && !hasPort(ps, kind.In, graph.IsCall) {
			kinds = append(kinds, k.Name)
		}
	}
	d := diag.Diagnostic{Code: "no-entry", Pos: s.g.Pos, Path: "nodes", Msg: "nodes: no node takes requests from outside"}
	if len(kinds) > 0 {
		d.Hint = "add a node of kind " + diag.Or(kinds)
	}
	return diag.List{d}
}

// unreachable finds nodes that no request and no edge concerns. What follows from another finding is not told again.
func unreachable(s *state) diag.List {
	roots := s.entries()
	if len(roots) == 0 {
		return nil
	}
	for n := range s.lacking {
		roots = append(roots, n)
	}
	for _, c := range s.g.Cycles() {
		roots = append(roots, c...)
	}
	reached := s.g.Reach(func(e *graph.Edge) bool { return graph.IsCall(e.Type) }, roots...)
	joined := map[string]bool{}
	for _, e := range s.g.Edges {
		joined[e.From.Node], joined[e.To.Node] = true, true
	}
	var list diag.List
	for _, name := range s.names() {
		n, in := s.g.Nodes[name], s.directed(name, kind.In)
		i := slices.IndexFunc(in, func(p kind.Port) bool { return graph.IsCall(p.Type) })
		if s.kinds[name] == nil || reached[name] || i < 0 && joined[name] || len(s.callers(name)) > 0 {
			continue // of those below it, the topmost is told
		}
		what := "no request reaches it"
		if !joined[name] {
			what = n.Kind + " is joined to nothing"
		}
		d := nodeAt(n, "", "unreachable", what)
		if i >= 0 {
			d.Notes = []string{"requests enter at " + strings.Join(s.entries(), ", ")}
			if fix, _ := s.partner(name, in[i]); fix != "" {
				d.Hint = fmt.Sprintf("add %q", fix)
			}
		}
		list.Add(d)
	}
	return list
}

// unusedModel warns of models that would be downloaded by nobody.
func unusedModel(s *state) diag.List {
	used := map[string]bool{}
	for name, n := range s.g.Nodes {
		used[n.Model] = true
		if k := s.kinds[name]; k == nil || k.NeedsModel && s.g.Models[n.Model] == nil {
			return nil // that one may be meant
		}
	}
	var list diag.List
	for name, m := range s.g.Models {
		if !used[name] {
			list.Add(diag.Diagnostic{Code: "unused-model", Severity: diag.Warning, Pos: m.Pos, Path: "models." + name,
				Msg: fmt.Sprintf("models.%s: no node uses it", name)})
		}
	}
	return list
}
