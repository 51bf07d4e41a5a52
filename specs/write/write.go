// Package write turns a graph.Graph into a spec: CUE through its syntax tree, YAML or JSON. It is the way back of package load: what it
// writes loads as the same graph. It does no I/O.
package write

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/kind"
)

// Options says how a spec is written. The zero Options writes what the graph says, with the definitions of kind.Default.
type Options struct {
	Registry *kind.Registry // nil: kind.Default
	Defaults bool           // write the fields that the graph leaves to the defaults of its kinds, too
	Comment  string         // at the top of the file; CUE and YAML only
}

// Formats lists what Spec takes, in the order in which it is told.
var Formats = []string{"cue", "yaml", "json"}

// Spec writes g in a format of Formats, with a final newline. Equal graphs give equal bytes. The error is an unknown format, or a config
// that is not of its kind. It does not change g and is safe for concurrent use.
func Spec(g *graph.Graph, format string, o Options) ([]byte, error) {
	if o.Registry == nil {
		o.Registry = kind.Default
	}
	t, err := tree(g, o)
	if err != nil {
		return nil, err
	}
	switch format {
	case "cue":
		return cueFile(g, t, o)
	case "yaml":
		return yamlFile(t, o)
	case "json":
		return jsonFile(t)
	}
	return nil, fmt.Errorf("format %q: want one of %s", format, strings.Join(Formats, ", "))
}

// fields is a map in order. Values are string, bool, json.Number, int, int64, float64, nil, []any or fields.
type fields []field

type field struct {
	name  string
	value any
}

// set appends a field, unless its value is the zero of its type.
func (f *fields) set(name string, v any) {
	switch x := v.(type) {
	case string:
		if x == "" {
			return
		}
	case int:
		if x == 0 {
			return
		}
	case time.Duration:
		if x == 0 {
			return
		}
		v = graph.Duration(x).String()
	case []string:
		if len(x) == 0 {
			return
		}
		v = list(x)
	case fields:
		if len(x) == 0 {
			return
		}
	}
	*f = append(*f, field{name, v})
}

// has reports whether a field is there.
func (f fields) has(name string) bool {
	return slices.ContainsFunc(f, func(x field) bool { return x.name == name })
}

func list(s []string) []any {
	out := make([]any, len(s))
	for i, x := range s {
		out[i] = x
	}
	return out
}

// tree is the graph as its spec says it.
func tree(g *graph.Graph, o Options) (fields, error) {
	var t, slo, timeouts, machine, devices, nodes, edges fields
	t.set("name", g.Name)
	t.set("schema", g.Schema)
	t.set("status", g.Status)
	models, err := models(g)
	if err != nil {
		return nil, err
	}
	t = append(t, models...)
	slo.set("ttft", g.SLO.TTFT.Std())
	slo.set("itl", g.SLO.ITL.Std())
	t.set("slo", slo)
	timeouts.set("client", g.Timeouts.Client.Std())
	timeouts.set("drain", g.Timeouts.Drain.Std())
	timeouts.set("grace", g.Timeouts.Grace.Std())
	t.set("timeouts", timeouts)
	machine.set("memory", size(g.Machine.MemoryBytes))
	machine.set("disk", size(g.Machine.DiskBytes))
	machine.set("cores", g.Machine.Cores)
	t.set("machine", machine)
	for _, name := range slices.Sorted(maps.Keys(g.Devices)) {
		d := g.Devices[name]
		f := fields{{"memory", size(d.MemoryBytes)}}
		if d.Count != 1 || o.Defaults {
			f.set("count", d.Count)
		}
		devices.set(name, f)
	}
	t.set("devices", devices)
	for _, n := range inOrder(g) {
		f, err := node(n, o)
		if err != nil {
			return nil, err
		}
		nodes.set(n.Name, f)
	}
	t = append(t, field{"nodes", nodes})
	for _, e := range g.Edges {
		var f fields
		f.set("transport", e.Transport)
		edges = append(edges, field{e.String(), f})
	}
	t.set("edges", edges)
	return t, nil
}

// size writes bytes with the largest suffix that leaves a whole number; less than a KiB is rounded down.
func size(n int64) string {
	if n == 0 {
		return ""
	}
	return graph.FormatSize(n)
}

// inOrder returns the nodes as the author wrote them, those without a place after them by name.
func inOrder(g *graph.Graph) []*graph.Node {
	return slices.SortedFunc(maps.Values(g.Nodes), func(a, b *graph.Node) int {
		return cmp.Or(-cmp.Compare(min(a.Pos.Line, 1), min(b.Pos.Line, 1)), cmp.Compare(a.Pos.File, b.Pos.File),
			cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col), cmp.Compare(a.Name, b.Name))
	})
}

func node(n *graph.Node, o Options) (fields, error) {
	f := fields{{"kind", n.Kind}}
	f.set("model", n.Model)
	if n.Replicas != nil {
		f = append(f, field{"replicas", *n.Replicas})
	}
	k := o.Registry.Lookup(n.Kind)
	if k == nil {
		return nil, fmt.Errorf("nodes.%s: no kind %q", n.Name, n.Kind)
	}
	own, err := parse(n.Config)
	if err != nil {
		return nil, fmt.Errorf("nodes.%s: config: %w", n.Name, err)
	}
	if o.Defaults {
		said := own
		raw, err := k.Config(n.Config)
		if err != nil {
			return nil, fmt.Errorf("nodes.%s: %w", n.Name, err)
		}
		if own, err = parse(raw); err != nil {
			return nil, fmt.Errorf("nodes.%s: config: %w", n.Name, err)
		}
		for _, l := range k.Limits(raw) { // a stop waits as long as a request may take, but only where an author says that
			if l.Bound == kind.Total && !said.has(l.Field) {
				own = slices.DeleteFunc(own, func(f field) bool { return f.name == l.Field })
			}
		}
	}
	slices.SortStableFunc(own, func(a, b field) int { return cmp.Compare(depth(a), depth(b)) }) // maps last
	for _, x := range own {
		if e, ok := x.value.(fields); ok && len(e) == 0 && o.Defaults {
			continue // a map of which nothing is said
		}
		f = append(f, x)
	}
	return f, nil
}

// depth is 1 for maps, 0 for other values.
func depth(f field) int {
	if _, ok := f.value.(fields); ok {
		return 1
	}
	return 0
}

// models writes the one model of a graph in the short form.
func models(g *graph.Graph) (fields, error) {
	if len(g.Models) == 0 {
		return nil, nil
	}
	var all fields
	for _, name := range slices.Sorted(maps.Keys(g.Models)) {
		m := g.Models[name]
		var f, adapters fields
		f.set("source", oneOrMore(m.Sources))
		f.set("sha256", m.SHA256)
		f.set("context", m.Context)
		f.set("names", m.Names)
		f.set("revision", m.Revision)
		f.set("family", m.Family)
		f.set("tools", m.Tools)
		f.set("reasoning", m.Reasoning)
		f.set("features", m.Features)
		for _, name := range slices.Sorted(maps.Keys(m.Adapters)) {
			a := m.Adapters[name]
			var f fields
			f.set("source", oneOrMore(a.Sources))
			f.set("sha256", a.SHA256)
			f.set("rank", a.Rank)
			f.set("names", a.Names)
			adapters.set(name, f)
		}
		f.set("adapters", adapters)
		if m.Stated != nil {
			b, err := json.Marshal(m.Stated)
			if err != nil {
				return nil, fmt.Errorf("models.%s: %w", name, err)
			}
			facts, err := parse(b)
			if err != nil {
				return nil, fmt.Errorf("models.%s: %w", name, err)
			}
			f.set("facts", facts)
		}
		all.set(name, f)
	}
	if len(all) == 1 && all[0].name == "default" {
		return fields{{"model", all[0].value}}, nil
	}
	return fields{{"models", all}}, nil
}

func oneOrMore(s []string) any {
	if len(s) == 1 {
		return s[0]
	}
	return s
}

// parse reads a JSON object and keeps the order of its fields. Empty input is an empty object.
func parse(b []byte) (fields, error) {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	v, err := value(d)
	if err != nil {
		return nil, err
	}
	f, ok := v.(fields)
	if !ok {
		return nil, errors.New("want an object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return f, nil
}

func value(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		f := fields{}
		for d.More() {
			k, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := value(d)
			if err != nil {
				return nil, err
			}
			f = append(f, field{k.(string), v}) // what stands before a value in an object is a string
		}
		_, err := d.Token()
		return f, err
	case json.Delim('['):
		l := []any{}
		for d.More() {
			v, err := value(d)
			if err != nil {
				return nil, err
			}
			l = append(l, v)
		}
		_, err := d.Token()
		return l, err
	}
	return t, nil
}
