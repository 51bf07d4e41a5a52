package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
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
	g.Fields = map[string]diag.Pos{}
	c.top(g, v.spec)
	if m := get(v.spec, "model"); m.Exists() {
		g.Models["default"] = c.model("default", []string{"model"}, m, g.Fields)
		g.Fields["model"] = g.Models["default"].Pos
	}
	for _, f := range c.fields(get(v.spec, "models")) {
		g.Models[f.name] = c.model(f.name, []string{"models", f.name}, f.v, g.Fields)
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

// top reads what is said of the graph as a whole, and notes the places of its fields.
func (c *checker) top(g *graph.Graph, spec cue.Value) {
	at := func(path ...string) cue.Value { return lookup(spec, path...) }
	c.decode([]string{"schema"}, at("schema"), &g.Schema)
	c.decode([]string{"status"}, at("status"), &g.Status)
	for _, d := range []struct {
		in, name string
		into     *graph.Duration
	}{
		{"slo", "ttft", &g.SLO.TTFT},
		{"slo", "itl", &g.SLO.ITL},
		{"timeouts", "client", &g.Timeouts.Client},
		{"timeouts", "drain", &g.Timeouts.Drain},
		{"timeouts", "grace", &g.Timeouts.Grace},
	} {
		c.decode([]string{d.in, d.name}, at(d.in, d.name), d.into)
	}
	c.size([]string{"machine", "memory"}, at("machine", "memory"), &g.Machine.MemoryBytes)
	c.size([]string{"machine", "disk"}, at("machine", "disk"), &g.Machine.DiskBytes)
	c.decode([]string{"machine", "cores"}, at("machine", "cores"), &g.Machine.Cores)
	for _, f := range c.fields(at("devices")) {
		path := []string{"devices", f.name}
		d := &graph.Device{Name: f.name, Count: 1}
		d.Pos, _ = c.labelAt(path, f.v)
		c.size(append(path, "memory"), lookup(f.v, "memory"), &d.MemoryBytes)
		c.decode(append(path, "count"), lookup(f.v, "count"), &d.Count)
		if g.Devices == nil {
			g.Devices = map[string]*graph.Device{}
		}
		g.Devices[f.name] = d
	}
	for _, name := range []string{"schema", "status"} {
		if pos, _ := c.ownLabel([]string{name}, at(name)); pos.IsValid() {
			g.Fields[name] = pos
		}
	}
	for _, name := range []string{"slo", "timeouts", "machine", "devices"} {
		c.fieldsBelow([]string{name}, name, at(name), g.Fields)
	}
}

// fieldsBelow notes the places of the fields below v, which is at path in the spec, under another path of the graph.
func (c *checker) fieldsBelow(path []string, as string, v cue.Value, into map[string]diag.Pos) {
	places := map[string]diag.Pos{}
	c.fieldPlaces(path, v, places)
	for p, pos := range places {
		into[as+"."+p] = pos
	}
}

func lookup(v cue.Value, path ...string) cue.Value {
	sel := make([]cue.Selector, len(path))
	for i, p := range path {
		sel[i] = cue.Str(p)
	}
	return v.LookupPath(cue.MakePath(sel...))
}

// size reads a number of bytes with a binary suffix.
func (c *checker) size(path []string, v cue.Value, into *int64) {
	if !v.Exists() {
		return
	}
	var text string
	c.decode(path, v, &text)
	n, err := graph.ParseSize(text)
	if err != nil {
		pos, l := c.valueAt(path, v)
		c.list.Add(diag.Diagnostic{Code: "bad-size", Pos: pos, Len: l, Path: strings.Join(path, "."), Msg: fmt.Sprintf("%s: %v", place(path), err)})
	}
	*into = n
}

func (c *checker) model(name string, path []string, v cue.Value, places map[string]diag.Pos) *graph.Model {
	m := &graph.Model{Name: name}
	m.Pos, _ = c.labelAt(path, v)
	m.Sources = c.sources(path, v)
	for _, f := range []struct {
		name string
		into any
	}{
		{"sha256", &m.SHA256},
		{"context", &m.Context},
		{"names", &m.Names},
		{"revision", &m.Revision},
		{"family", &m.Family},
		{"tools", &m.Tools},
		{"reasoning", &m.Reasoning},
		{"features", &m.Features},
		{"facts", &m.Stated},
	} {
		c.decode(append(path, f.name), lookup(v, f.name), f.into)
	}
	for _, f := range c.fields(lookup(v, "adapters")) {
		at := append(path[:len(path):len(path)], "adapters", f.name)
		a := &graph.Adapter{Name: f.name, Sources: c.sources(at, f.v)}
		a.Pos, _ = c.labelAt(at, f.v)
		c.decode(append(at, "sha256"), lookup(f.v, "sha256"), &a.SHA256)
		c.decode(append(at, "rank"), lookup(f.v, "rank"), &a.Rank)
		c.decode(append(at, "names"), lookup(f.v, "names"), &a.Names)
		if m.Adapters == nil {
			m.Adapters = map[string]*graph.Adapter{}
		}
		m.Adapters[f.name] = a
	}
	c.fieldsBelow(path, "models."+name, v, places)
	return m
}

// sources reads a field that is one source or a list of them.
func (c *checker) sources(path []string, v cue.Value) (out []string) {
	src := lookup(v, "source")
	if one, err := src.String(); err == nil {
		return []string{one}
	}
	c.decode(append(path, "source"), src, &out)
	return out
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

// fieldPlaces notes where each field below path is set, by its path from there: "policy", "kv.block", and of lists "tiers.0.size".
func (c *checker) fieldPlaces(path []string, v cue.Value, into map[string]diag.Pos) {
	var visit func(below []string, v cue.Value)
	note := func(p []string, v cue.Value) {
		if pos, _ := c.setAt(append(path[:len(path):len(path)], p...), v); pos.IsValid() {
			into[strings.Join(p, ".")] = pos
		}
		visit(p, v)
	}
	visit = func(below []string, v cue.Value) {
		switch v.IncompleteKind() {
		case cue.StructKind:
			for _, f := range c.fields(v) {
				note(append(below[:len(below):len(below)], f.name), f.v)
			}
		case cue.ListKind:
			it, err := v.List()
			for i := 0; err == nil && it.Next(); i++ {
				note(append(below[:len(below):len(below)], strconv.Itoa(i)), it.Value())
			}
		}
	}
	visit(nil, v)
}
