package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"cuelang.org/go/cue"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// graph makes the Graph of a spec that passed every check.
func (l *loader) graph(v values, r *kind.Registry) *graph.Graph {
	c := &checker{loader: l, v: v}
	g := &graph.Graph{Models: map[string]*graph.Model{}, Nodes: map[string]*graph.Node{}}
	get := func(v cue.Value, name string) cue.Value { return v.LookupPath(cue.MakePath(cue.Str(name))) }
	g.Name, _ = get(v.spec, "name").String()
	g.Pos, _ = c.labelAt([]string{"name"}, get(v.spec, "name"))
	slo := get(v.spec, "slo")
	c.decode([]string{"slo", "ttft"}, get(slo, "ttft"), &g.SLO.TTFT)
	c.decode([]string{"slo", "itl"}, get(slo, "itl"), &g.SLO.ITL)
	if m := get(v.spec, "model"); m.Exists() {
		g.Models["default"] = c.model("default", []string{"model"}, m)
	}
	for _, f := range c.fields(get(v.spec, "models")) {
		g.Models[f.name] = c.model(f.name, []string{"models", f.name}, f.v)
	}
	for _, f := range c.fields(get(v.spec, "nodes")) {
		g.Nodes[f.name] = c.node(f, r)
	}
	for _, f := range c.fields(get(v.spec, "edges")) {
		path := []string{"edges", f.name}
		e := &graph.Edge{Fields: map[string]diag.Pos{}}
		e.From, e.To, _ = parseEdge(f.name)
		e.Pos, e.Len = c.labelAt(path, f.v)
		c.decode(append(path, "transport"), get(f.v, "transport"), &e.Transport)
		c.fieldPlaces(path, f.v, e.Fields)
		g.Edges = append(g.Edges, e)
	}
	return g
}

func (c *checker) model(name string, path []string, v cue.Value) *graph.Model {
	m := &graph.Model{Name: name}
	m.Pos, _ = c.labelAt(path, v)
	get := func(n string) cue.Value { return v.LookupPath(cue.MakePath(cue.Str(n))) }
	src := get("source")
	if one, err := src.String(); err == nil {
		m.Sources = []string{one}
	} else {
		c.decode(append(path, "source"), src, &m.Sources)
	}
	c.decode(append(path, "sha256"), get("sha256"), &m.SHA256)
	c.decode(append(path, "context"), get("context"), &m.Context)
	c.decode(append(path, "names"), get("names"), &m.Names)
	return m
}

func (c *checker) node(f field, r *kind.Registry) *graph.Node {
	path := []string{"nodes", f.name}
	n := &graph.Node{Name: f.name, Fields: map[string]diag.Pos{}}
	n.Pos, _ = c.labelAt(path, f.v)
	own := map[string]json.RawMessage{}
	for _, x := range c.fields(f.v) {
		p := append(path[:2:2], x.name)
		switch x.name {
		case "kind":
			c.decode(p, x.v, &n.Kind)
		case "model":
			c.decode(p, x.v, &n.Model)
		case "replicas":
			n.Replicas = new(int)
			c.decode(p, x.v, n.Replicas)
		default:
			var raw json.RawMessage
			c.decode(p, x.v, &raw)
			own[x.name] = raw
		}
	}
	raw, err := json.Marshal(own)
	if err != nil {
		panic(err)
	}
	n.Config = raw
	c.fieldPlaces(path, f.v, n.Fields)
	if _, err := r.Lookup(n.Kind).Config(raw); err != nil {
		c.list.Add(diag.Diagnostic{Code: "bad-value", Pos: n.Pos, Len: len(n.Name), Path: strings.Join(path, "."), Msg: fmt.Sprintf("%s: %v", place(path), err)})
	}
	return n
}

// decode reads a value that passed its check; what Go cannot hold is a finding. A value that does not exist leaves into as it is.
func (c *checker) decode(path []string, v cue.Value, into any) {
	if !v.Exists() {
		return
	}
	b, err := v.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		pos, n := c.valueAt(path, v)
		msg := err.Error()
		if te := (*json.UnmarshalTypeError)(nil); errors.As(err, &te) {
			msg = show(v) + " is out of range"
		} else if i := strings.LastIndex(msg, ": "); i >= 0 {
			msg = msg[i+2:]
		}
		c.list.Add(diag.Diagnostic{Code: "bad-value", Pos: pos, Len: n, Path: strings.Join(path, "."), Msg: fmt.Sprintf("%s: %s", place(path), msg)})
	}
}

// fieldPlaces notes where each field below path is set, by its path from there.
func (c *checker) fieldPlaces(path []string, v cue.Value, into map[string]diag.Pos) {
	var visit func(below []string, v cue.Value)
	visit = func(below []string, v cue.Value) {
		for _, f := range c.fields(v) {
			p := append(below[:len(below):len(below)], f.name)
			if pos, _ := c.ownLabel(append(path[:len(path):len(path)], p...), f.v); pos.IsValid() {
				into[strings.Join(p, ".")] = pos
			}
			if f.v.IncompleteKind() == cue.StructKind {
				visit(p, f.v)
			}
		}
	}
	visit(nil, v)
}
