package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/plan"
)

// passes prints what each pass of the compiler changed, a line a field.
type passes struct {
	w    io.Writer
	last map[string]string // the fields as they were, by their path
}

// trace is a compiler.Options.Trace. Its first call, for the graph as it was read, prints nothing.
func (t *passes) trace(pass string, g *graph.Graph, p *plan.Plan) {
	now := map[string]string{}
	for name, n := range g.Nodes {
		at := "nodes." + name
		now[at+".kind"] = fmt.Sprintf("%q", n.Kind)
		if n.Model != "" {
			now[at+".model"] = fmt.Sprintf("%q", n.Model)
		}
		if n.Replicas != nil {
			now[at+".replicas"] = fmt.Sprint(*n.Replicas)
		}
		flatten(now, at, n.Config)
	}
	for _, e := range g.Edges {
		at := fmt.Sprintf("edges.%q", e)
		now[at+".type"] = fmt.Sprintf("%q", e.Type)
		if e.Transport != "" {
			now[at+".transport"] = fmt.Sprintf("%q", e.Transport)
		}
	}
	if p != nil {
		if b, err := json.Marshal(p); err == nil {
			flatten(now, "plan", b)
		}
	}
	if t.last != nil {
		fmt.Fprintf(t.w, "%s:\n", pass)
		for _, path := range sortedKeys(now) {
			switch was, ok := t.last[path]; {
			case !ok:
				fmt.Fprintf(t.w, "  + %s: %s\n", path, now[path])
			case was != now[path]:
				fmt.Fprintf(t.w, "  ~ %s: %s → %s\n", path, was, now[path])
			}
		}
		for _, path := range sortedKeys(t.last) {
			if _, ok := now[path]; !ok {
				fmt.Fprintf(t.w, "  - %s\n", path)
			}
		}
	}
	t.last = now
}

// flatten adds the values of a JSON text by their paths. A unit's config is left out: it is its node's.
func flatten(to map[string]string, path string, raw json.RawMessage) {
	var fields map[string]json.RawMessage
	var items []json.RawMessage
	switch text := strings.TrimSpace(string(raw)); {
	case text == "":
	case json.Unmarshal(raw, &fields) == nil && text != "null":
		for k, v := range fields {
			if k != "config" {
				flatten(to, path+"."+k, v)
			}
		}
	case json.Unmarshal(raw, &items) == nil && text != "null":
		for i, v := range items {
			flatten(to, fmt.Sprintf("%s.%d", path, i), v)
		}
	default:
		to[path] = text
	}
}
