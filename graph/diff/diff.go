// Package diff compares two plans: which processes are added, removed, replaced, wired anew or kept, why, and what that means for requests in
// progress. It does no I/O; equal plans give equal results.
package diff

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/plan"
)

// Version is the version of the JSON form of Diff.
const Version = 1

// Action is what happens to a part of a deployment.
type Action string

// The actions.
const (
	Add     Action = "add"
	Remove  Action = "remove"
	Replace Action = "replace" // it starts again, because what it is has changed
	Rewire  Action = "rewire"  // it is what it was, but joined differently
	Keep    Action = "keep"
)

// Diff is what changes from one plan to another. Its JSON is a stable form.
type Diff struct {
	Version int      `json:"version"` // 1
	From    string   `json:"from"`    // name of the old graph
	To      string   `json:"to"`      // name of the new graph
	Changed bool     `json:"changed"`
	Fields  []Field  `json:"fields,omitempty"` // of the plan as a whole: store, times, name
	Models  []Model  `json:"models"`           // never null, nor are the following; sorted by name
	Groups  []Group  `json:"groups"`
	Edges   []Edge   `json:"edges"`
	Streams []Stream `json:"streams"`
	Totals  Totals   `json:"totals"`
}

// Model is a model of one or both plans.
type Model struct {
	Name   string  `json:"name"`
	Action Action  `json:"action"` // Add, Remove, Replace, Keep
	Fields []Field `json:"fields,omitempty"`
}

// Group is a group of one or both plans.
type Group struct {
	Name     string `json:"name"`
	Action   Action `json:"action"`
	Replicas Count  `json:"replicas"` // wanted
	Memory   Count  `json:"memory"`   // bytes of all replicas, without what they share
	Devices  Count  `json:"devices"`  // of all replicas
	Nodes    []Node `json:"nodes"`    // sorted by name; never null
	Why      string `json:"why,omitempty"`
}

// Node is a node of a group.
type Node struct {
	Name     string  `json:"name"`
	Kind     string  `json:"kind"`
	Action   Action  `json:"action"` // Add, Remove, Replace, Keep
	Inserted bool    `json:"inserted,omitempty"`
	Fields   []Field `json:"fields,omitempty"`
}

// Edge is an edge of one or both plans.
type Edge struct {
	Edge   string  `json:"edge"` // "a.out -> b.in"
	Type   string  `json:"type"`
	Action Action  `json:"action"` // Add, Remove, Rewire, Keep
	Fields []Field `json:"fields,omitempty"`
}

// Field is one value that differs. A side that does not have it is null.
type Field struct {
	Path    string          `json:"path"` // "nodes.decode.batch.seqs"
	From    json.RawMessage `json:"from"`
	To      json.RawMessage `json:"to"`
	FromPos diag.Pos        `json:"fromPos,omitzero"` // where it is set, or the part that it is of; zero where that is not known
	ToPos   diag.Pos        `json:"toPos,omitzero"`
}

// Count is a number before and after.
type Count struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Totals are sums over all groups.
type Totals struct {
	Processes Count `json:"processes"`
	Memory    Count `json:"memory"` // bytes, without what is shared
	Shared    Count `json:"shared"` // bytes that replicas map together
	Devices   Count `json:"devices"`
}

// Options is what is known beside the plans.
type Options struct {
	// From and To return where a path ("nodes.decode.replicas", `edges."a -> b"`) is set in the author's files, or the zero Pos; nil: not known.
	From, To func(path string) diag.Pos
	// Migrates reports whether nodes of a kind continue a request elsewhere when what is below them is gone; nil: none does.
	Migrates func(kind string) bool
}

// Compare returns what changes from one plan to another. It changes neither and is safe for concurrent use.
func Compare(from, to *plan.Plan, o Options) *Diff {
	nowhere := func(string) diag.Pos { return diag.Pos{} }
	if o.From == nil {
		o.From = nowhere
	}
	if o.To == nil {
		o.To = nowhere
	}
	if o.Migrates == nil {
		o.Migrates = func(string) bool { return false }
	}
	c := &comparer{o: o, from: from, to: to, d: &Diff{
		Version: Version, From: from.Graph, To: to.Graph, Models: []Model{}, Groups: []Group{}, Edges: []Edge{}, Streams: []Stream{},
	}}
	c.whole()
	c.models()
	c.edges()
	c.groups()
	c.streams()
	d := c.d
	d.Changed = len(d.Fields) > 0
	for _, m := range d.Models {
		d.Changed = d.Changed || m.Action != Keep
	}
	for _, g := range d.Groups {
		d.Changed = d.Changed || g.Action != Keep || g.Replicas.From != g.Replicas.To
	}
	for _, e := range d.Edges {
		d.Changed = d.Changed || e.Action != Keep
	}
	return d
}

type comparer struct {
	o        Options
	from, to *plan.Plan
	d        *Diff
}

// field notes a value that differs.
func (c *comparer) field(into *[]Field, path string, a, b any) {
	x, y := raw(a), raw(b)
	if bytes.Equal(x, y) {
		return
	}
	f := Field{Path: path, From: x, To: y}
	f.FromPos, f.ToPos = c.o.From(path), c.o.To(path)
	*into = append(*into, f)
}

// raw is a value as JSON; what is not there is null.
func raw(v any) json.RawMessage {
	if r, ok := v.(json.RawMessage); ok && len(r) > 0 {
		return r
	}
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(`null`) // not of a plan
	}
	return b
}

// whole compares what is of no group.
func (c *comparer) whole() {
	f := &c.d.Fields
	c.field(f, "name", c.from.Graph, c.to.Graph)
	c.field(f, "store", c.from.Store.Kind, c.to.Store.Kind)
	c.field(f, "store.endpoints", c.from.Store.Endpoints, c.to.Store.Endpoints)
	c.field(f, "timeouts.drain", c.from.DrainSeconds, c.to.DrainSeconds)
	c.field(f, "timeouts.grace", c.from.GraceSeconds, c.to.GraceSeconds)
	c.field(f, "status", c.from.Status, c.to.Status)
}

func (c *comparer) models() {
	for _, name := range names(c.from.Models, c.to.Models) {
		a, b := c.from.Models[name], c.to.Models[name]
		m := Model{Name: name, Action: action(a != nil, b != nil)}
		if a != nil && b != nil {
			p := "models." + name + "."
			c.field(&m.Fields, p+"source", a.Sources, b.Sources)
			c.field(&m.Fields, p+"sha256", a.SHA256, b.SHA256)
			c.field(&m.Fields, p+"context", a.Context, b.Context)
			c.field(&m.Fields, p+"names", a.Names, b.Names)
			if len(m.Fields) > 0 {
				m.Action = Replace
			}
		}
		c.d.Models = append(c.d.Models, m)
	}
}

// action of a part by where it is.
func action(before, after bool) Action {
	switch {
	case !before:
		return Add
	case !after:
		return Remove
	}
	return Keep
}

func names[V any](a, b map[string]V) []string {
	return slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for _, m := range []map[string]V{a, b} {
			for k := range m {
				if !yield(k) {
					return
				}
			}
		}
	}))
}

func edgeName(e *plan.Edge) string {
	return fmt.Sprintf("%s.%s -> %s.%s", e.From, e.FromPort, e.To, e.ToPort)
}

func edgesOf(p *plan.Plan) map[string]*plan.Edge {
	out := map[string]*plan.Edge{}
	for _, e := range p.Edges {
		out[edgeName(e)] = e
	}
	return out
}

func (c *comparer) edges() {
	from, to := edgesOf(c.from), edgesOf(c.to)
	for _, name := range names(from, to) {
		a, b := from[name], to[name]
		e := Edge{Edge: name, Action: action(a != nil, b != nil), Type: cmp.Or(b, a).Type}
		if a != nil && b != nil {
			p := fmt.Sprintf("edges.%q.", name)
			c.field(&e.Fields, p+"type", a.Type, b.Type)
			c.field(&e.Fields, p+"transport", a.Transport, b.Transport)
			if len(e.Fields) > 0 {
				e.Action = Rewire
			}
		}
		c.d.Edges = append(c.d.Edges, e)
	}
}

func groupsOf(p *plan.Plan) map[string]*plan.Group {
	out := map[string]*plan.Group{}
	for _, g := range p.Groups {
		out[g.Name] = g
	}
	return out
}

// shared sums up what replicas map together: groups of one model map the same bytes.
func shared(p *plan.Plan) (sum int64) {
	of := map[string]int64{}
	for _, g := range p.Groups {
		var models []string
		for _, u := range g.Units {
			models = append(models, u.Model)
		}
		slices.Sort(models)
		key := fmt.Sprint(slices.Compact(models))
		of[key] = max(of[key], g.Needs.SharedBytes)
	}
	for _, n := range of {
		sum += n
	}
	return sum
}

func (c *comparer) groups() {
	c.d.Totals.Shared = Count{shared(c.from), shared(c.to)}
	from, to := groupsOf(c.from), groupsOf(c.to)
	for _, name := range names(from, to) {
		a, b := from[name], to[name]
		g := Group{Name: name, Action: action(a != nil, b != nil), Nodes: []Node{}}
		if a != nil {
			n := int64(a.Replicas.Want)
			g.Replicas.From, g.Memory.From, g.Devices.From = n, n*a.Needs.MemoryBytes, n*int64(a.Needs.Devices)
		}
		if b != nil {
			n := int64(b.Replicas.Want)
			g.Replicas.To, g.Memory.To, g.Devices.To = n, n*b.Needs.MemoryBytes, n*int64(b.Needs.Devices)
		}
		t := &c.d.Totals
		for _, s := range []struct{ into, of *Count }{{&t.Processes, &g.Replicas}, {&t.Memory, &g.Memory}, {&t.Devices, &g.Devices}} {
			s.into.From += s.of.From
			s.into.To += s.of.To
		}
		c.nodes(&g, units(a), units(b))
		if g.Action == Keep {
			g.Action, g.Why = c.kept(g)
		}
		c.d.Groups = append(c.d.Groups, g)
	}
}

func units(g *plan.Group) map[string]*plan.Unit {
	out := map[string]*plan.Unit{}
	if g != nil {
		for _, u := range g.Units {
			out[u.Node] = u
		}
	}
	return out
}

func (c *comparer) nodes(g *Group, from, to map[string]*plan.Unit) {
	for _, name := range names(from, to) {
		a, b := from[name], to[name]
		u := cmp.Or(b, a)
		n := Node{Name: name, Kind: u.Kind, Inserted: u.Inserted, Action: action(a != nil, b != nil)}
		if a != nil && b != nil {
			p := "nodes." + name + "."
			c.field(&n.Fields, p+"kind", a.Kind, b.Kind)
			c.field(&n.Fields, p+"model", a.Model, b.Model)
			x, y := leaves(a.Config), leaves(b.Config)
			for _, f := range names(x, y) {
				c.field(&n.Fields, p+f, x[f], y[f])
			}
			if len(n.Fields) > 0 {
				n.Action = Replace
			}
		}
		g.Nodes = append(g.Nodes, n)
	}
}

// leaves lists the values of a config that are no maps, by their paths.
func leaves(config json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	var walk func(prefix string, r json.RawMessage)
	walk = func(prefix string, r json.RawMessage) {
		var m map[string]json.RawMessage
		if json.Unmarshal(r, &m) != nil || m == nil {
			var b bytes.Buffer
			if json.Compact(&b, r) == nil {
				out[prefix] = b.Bytes()
			}
			return
		}
		for k, v := range m {
			if prefix != "" {
				k = prefix + "." + k
			}
			walk(k, v)
		}
	}
	walk("", config)
	return out
}

// kept says what happens to a group that is in both plans, and why.
func (c *comparer) kept(g Group) (Action, string) {
	for _, n := range g.Nodes {
		switch n.Action {
		case Add:
			return Replace, fmt.Sprintf("it gets node %q", n.Name)
		case Remove:
			return Replace, fmt.Sprintf("it loses node %q", n.Name)
		case Replace:
			return Replace, fmt.Sprintf("%s differs", n.Fields[0].Path)
		}
	}
	after := units(groupsOf(c.to)[g.Name])
	for _, m := range c.d.Models {
		if m.Action != Replace {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(after)) {
			if after[name].Model == m.Name {
				return Replace, fmt.Sprintf("%s differs", m.Fields[0].Path)
			}
		}
	}
	for _, f := range c.d.Fields {
		if f.Path == "name" || f.Path == "store" || f.Path == "store.endpoints" {
			return Rewire, fmt.Sprintf("%s differs: processes find each other by it", f.Path)
		}
	}
	from, to := edgesOf(c.from), edgesOf(c.to)
	for _, e := range c.d.Edges {
		p := cmp.Or(to[e.Edge], from[e.Edge])
		if e.Action != Keep && (after[p.From] != nil || after[p.To] != nil) {
			return Rewire, fmt.Sprintf("edge %q: %s", e.Edge, e.Action)
		}
	}
	return Keep, ""
}
