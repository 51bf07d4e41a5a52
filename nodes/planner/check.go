package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

type checker struct {
	c    Config
	s    kind.Site
	list diag.List
	// unknown says that scale has a name that no node has.
	unknown bool
}

// add appends a finding at a field, which the next call may move.
func (k *checker) add(code, field, hint, format string, args ...any) *diag.Diagnostic {
	k.list.Add(k.s.Finding(code, field, hint, format, args...))
	return &k.list[len(k.list)-1]
}

func check(c Config, s kind.Site) diag.List {
	k := &checker{c: c, s: s}
	switch {
	case c.Every <= 0:
		k.add("bad-value", "every", "", "%q is not above zero", c.Every.Std())
	case c.Window != 0 && c.Window < c.Every:
		k.add("bad-value", "window", "make it a few times every", "%q is below every, %q: no value would be looked at twice", c.Window.Std(), c.Every.Std())
	}
	if len(c.Scale) == 0 {
		k.add("missing-field", "scale", "name a node and its max", "it scales nothing")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Scale)) {
		k.node(name, c.Scale[name])
	}
	for _, e := range s.Graph.Edges {
		if k.unknown {
			break // that name may be meant
		}
		if _, ok := c.Scale[e.To.Node]; e.Type == "scale" && e.From.Node == s.Node.Name && !ok {
			k.list.Add(diag.Diagnostic{
				Code: "no-effect", Pos: e.Pos, Len: e.Len, Path: fmt.Sprintf("edges.%q", e),
				Msg:  fmt.Sprintf("edge %q: nodes.%s.scale says nothing of %q", e, s.Node.Name, e.To.Node),
				Hint: fmt.Sprintf("add nodes.%s.scale.%s, or remove the edge", s.Node.Name, e.To.Node),
			})
		}
	}
	return k.list
}

// node checks what is said of one node that is scaled.
func (k *checker) node(name string, c Scale) {
	at := "scale." + name
	n := k.s.Graph.Nodes[name]
	if n == nil {
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(k.s.Graph.Nodes)), func(n string) bool { return k.s.Graph.Nodes[n].Inserted })
		d := k.add("unknown-node", at, diag.Suggest(name, names), "no node %q", name)
		d.Notes = []string{"nodes: " + strings.Join(names, ", ")}
		k.unknown = true
		return
	}
	if !k.joined("scale", k.s.Node.Name, name) {
		k.add("missing-edge", at, fmt.Sprintf(`add "%s -> %s"`, k.s.Node.Name, name), "no edge of type scale leads to %q: its replicas would stay as they are", name)
	}
	least := c.least()
	if least > c.Max {
		k.add("bad-value", at+".max", "", "%d is below min, %d", c.Max, least)
	} else if r := n.Replicas; r != nil && (*r < least || *r > c.Max) {
		d := k.add("bad-value", at+".max", fmt.Sprintf("start with %d to %d replicas, or widen the bounds", least, c.Max),
			"%d to %d replicas, but nodes.%s.replicas begins with %d", least, c.Max, name, *r)
		if pos, ok := n.Fields["replicas"]; ok {
			d.Related = []diag.Related{{Pos: pos, Len: len("replicas"), Msg: fmt.Sprintf("nodes.%s.replicas is %d", name, *r)}}
		}
	}
	if up := c.Up; up != nil {
		k.signal(name, at+".up.signal", up.Signal)
		k.above(name, at+".up.above", up)
	}
	if down := c.Down; down != nil {
		k.signal(name, at+".down.signal", down.Signal)
		if down.Below == 0 {
			k.add("dead-threshold", at+".down.below", "raise it", "no signal is ever below 0: %q is never scaled down", name)
		}
	}
	if up, down := c.Up, c.Down; up != nil && down != nil && up.Signal == down.Signal && down.Below >= up.Above {
		d := k.add("crossed-thresholds", at+".down.below", fmt.Sprintf("choose a value well below %v", up.Above),
			"%s below %v removes a replica, and above %v adds one: it would do so in turn", up.Signal, down.Below, up.Above)
		d.Related = []diag.Related{{Pos: k.s.Field(at + ".up.above"), Msg: fmt.Sprintf("it adds one above %v", up.Above)}}
	}
	slo := k.s.Graph.SLO
	if c.Up == nil && slo.TTFT == 0 && slo.ITL == 0 && least < c.Max {
		k.add("no-effect", at, "add up, or the graph's slo", "nothing ever adds a replica of %q: there is neither up nor a target in slo", name)
	}
	if c.Up == nil && c.Down == nil && !k.joined("load", name, k.s.Node.Name) {
		k.add("missing-edge", at, fmt.Sprintf(`add "%s.load -> %s"`, name, k.s.Node.Name), "no edge of type load comes from %q: nothing is known of it", name)
	}
}

// everybody are signals that tell of requests as a whole: any node on the way may give them.
var everybody = []string{"ttft", "itl", "requests"}

// signal finds signals that nobody gives: the node that is scaled, or for what concerns requests as a whole any that is joined.
func (k *checker) signal(name, field, signal string) {
	if kind.Signals[signal] == "" || k.s.Gives == nil {
		return // the schema tells
	}
	var others []string
	for _, e := range k.s.Graph.Edges {
		if e.Type != "load" || e.To.Node != k.s.Node.Name {
			continue
		}
		gives := slices.Contains(k.s.Gives(e.From.Node), signal)
		if gives && (e.From.Node == name || slices.Contains(everybody, signal)) {
			return
		}
		others = append(others, e.From.Node)
	}
	gives := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(k.s.Gives(name)))), func(g string) bool { return !slices.Contains(signals(), g) })
	if slices.Contains(gives, signal) {
		k.add("missing-edge", field, fmt.Sprintf(`add "%s.load -> %s"`, name, k.s.Node.Name), "%q gives %q, but no edge of type load leads from it to %q", name, signal, k.s.Node.Name)
		return
	}
	n := k.s.Graph.Nodes[name]
	d := k.add("missing-signal", field, "", "%q does not give %q: %s", name, signal, kind.Signals[signal])
	if len(gives) > 0 {
		d.Hint = "use what it gives: " + strings.Join(gives, ", ")
	}
	d.Related = []diag.Related{{Pos: n.Pos, Len: len(n.Name), Msg: fmt.Sprintf("%s %q is here", n.Kind, n.Name)}}
	if len(others) > 0 {
		d.Notes = []string{"joined: " + strings.Join(others, ", ")}
	}
}

// above finds thresholds that are never passed.
func (k *checker) above(name, field string, up *Up) {
	why, at := "", ""
	var most float64
	switch up.Signal {
	case "blocksUsed", "blocksCached":
		why, most = "it is a share, from 0 to 1", 1
	case "waiting", "running":
		if k.s.Limits == nil {
			return
		}
		bound := map[string]kind.Bound{"waiting": kind.Wait, "running": kind.Run}[up.Signal]
		for _, l := range k.s.Limits(name) {
			if l.Bound == bound && l.Value > 0 {
				most, at = float64(l.Value), l.Field
				why = fmt.Sprintf("nodes.%s.%s allows %d", name, l.Field, l.Value)
			}
		}
	}
	if why == "" || up.Above < most {
		return
	}
	hint := fmt.Sprintf("choose a value below %v", most)
	if most == 1 && up.Above > 1 && up.Above <= 100 {
		hint = fmt.Sprintf("did you mean %v?", up.Above/100)
	}
	d := k.add("dead-threshold", field, hint, "%s is never above %v: %s", up.Signal, up.Above, why)
	if n := k.s.Graph.Nodes[name]; at != "" {
		if pos, ok := n.Fields[at]; ok {
			d.Related = []diag.Related{{Pos: pos, Msg: fmt.Sprintf("nodes.%s.%s is %v", name, at, most)}}
		}
	}
}

func (k *checker) joined(typ, from, to string) bool {
	return slices.ContainsFunc(k.s.Graph.Edges, func(e *graph.Edge) bool {
		return e.Type == typ && e.From.Node == from && e.To.Node == to
	})
}
