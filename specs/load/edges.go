package load

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
)

var (
	edgeForm = regexp.MustCompile(`^([a-z][-a-z0-9]*)(?:[.]([a-z]+))? -> ([a-z][-a-z0-9]*)(?:[.]([a-z]+))?$`)
	arrow    = regexp.MustCompile(`\s*(<?[-=~]+>?|→|⇒|\bto\b|<-)\s*`)
)

// parseEdge reads "node.port -> node.port".
func parseEdge(s string) (from, to graph.End, ok bool) {
	m := edgeForm.FindStringSubmatch(s)
	if m == nil {
		return from, to, false
	}
	return graph.End{Node: m[1], Port: m[2]}, graph.End{Node: m[3], Port: m[4]}, true
}

// edges checks the keys of edges: their form, and that their nodes exist.
func (c *checker) edges() {
	for _, f := range c.fields(c.v.spec.LookupPath(cue.MakePath(cue.Str("edges")))) {
		path := []string{"edges", f.name}
		pos, n := c.labelAt(path, f.v)
		from, to, ok := parseEdge(f.name)
		if !ok {
			d := diag.Diagnostic{Code: "bad-edge", Pos: pos, Len: n, Path: strings.Join(path, "."),
				Msg: fmt.Sprintf("edge %q: want \"node.port -> node.port\"", f.name)}
			if fixed := fixEdge(f.name, c.nodes); fixed != "" {
				d.Hint = fmt.Sprintf("did you mean %q?", fixed)
			}
			if !c.badNodes(f.name) {
				c.list.Add(d)
			}
			continue
		}
		quoted := 0
		if s, ok := c.srcs[pos.File]; ok {
			if o := s.offset(pos); o >= 0 && o < len(s.data) && (s.data[o] == '"' || s.data[o] == '\'') {
				quoted = 1
			}
		}
		for i, e := range []graph.End{from, to} {
			if slices.Contains(c.nodes, e.Node) || len(c.nodes) == 0 { // no nodes at all: reported already
				continue
			}
			d := diag.Diagnostic{Code: "unknown-node", Pos: pos, Len: len(e.Node), Path: strings.Join(path, "."),
				Msg: fmt.Sprintf("edge %q: no node %q", f.name, e.Node), Hint: diag.Suggest(e.Node, c.nodes)}
			if d.Pos.IsValid() {
				d.Pos.Col += quoted
				if i == 1 {
					d.Pos.Col += strings.Index(f.name, " -> ") + len(" -> ")
				}
			}
			if d.Hint == "" && len(c.nodes) > 0 {
				d.Notes = []string{"nodes: " + strings.Join(c.nodes, ", ")}
			}
			c.list.Add(d)
		}
	}
}

// badNodes reports whether an edge is malformed only because the nodes that it joins are called what no node may be called.
func (c *checker) badNodes(edge string) bool {
	a, b, ok := strings.Cut(edge, " -> ")
	a, _, _ = strings.Cut(a, ".")
	b, _, _ = strings.Cut(b, ".")
	return ok && slices.Contains(c.nodes, a) && slices.Contains(c.nodes, b)
}

// fixEdge writes an edge as it should be, or "" where that is not clear.
func fixEdge(s string, nodes []string) string {
	t := arrow.ReplaceAllString(strings.TrimSpace(s), " -> ")
	if strings.Contains(s, "<-") && !strings.Contains(s, "->") {
		a, b, _ := strings.Cut(t, " -> ")
		t = b + " -> " + a
	}
	from, to, ok := parseEdge(t)
	if !ok {
		return ""
	}
	for _, e := range []*graph.End{&from, &to} {
		if n := diag.Nearest(e.Node, nodes); n != "" && !slices.Contains(nodes, e.Node) {
			e.Node = n
		}
	}
	return from.String() + " -> " + to.String()
}

// models checks that the models which nodes name exist.
func (c *checker) models() {
	var have []string
	for _, f := range c.fields(c.v.spec.LookupPath(cue.MakePath(cue.Str("models")))) {
		have = append(have, f.name)
	}
	if short := c.v.spec.LookupPath(cue.MakePath(cue.Str("model"))); short.Exists() {
		if slices.Contains(have, "default") {
			pos, n := c.labelAt([]string{"model"}, short)
			q, m := c.labelAt([]string{"models", "default"}, cue.Value{})
			c.list.Add(diag.Diagnostic{Code: "conflict", Pos: pos, Len: n, Path: "model", Msg: "model conflicts with models.default: they are the same",
				Hint: "keep one of them", Related: []diag.Related{{Pos: q, Len: m, Msg: "models.default is set here"}}})
		}
		have = append(have, "default")
	}
	for _, f := range c.fields(c.v.spec.LookupPath(cue.MakePath(cue.Str("nodes")))) {
		mv := f.v.LookupPath(cue.MakePath(cue.Str("model")))
		if d, ok := mv.Default(); ok {
			mv = d
		}
		name, err := mv.String()
		if err != nil || slices.Contains(have, name) {
			continue
		}
		path := []string{"nodes", f.name, "model"}
		pos, n := c.valueAt(path, mv)
		d := diag.Diagnostic{Code: "unknown-model", Pos: pos, Len: n, Path: strings.Join(path, "."),
			Msg: fmt.Sprintf("%s: no model %q", place(path), name), Hint: diag.Suggest(name, have), Notes: []string{"models: " + strings.Join(have, ", ")}}
		if len(have) == 0 {
			d.Notes = []string{"the graph has no models"}
		}
		c.list.Add(d)
	}
}
