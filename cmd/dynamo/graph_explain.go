package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/specs/load"
)

// explained is what graph explain --output json writes: what the spec says of a path, and what the compiler makes of it.
type explained struct {
	Version int `json:"version"` // 1
	load.Explanation
	// Effective is the value in the plan: after tags, overlays, defaults, and what the compiler fills in. Nil where the plan has none.
	Effective json.RawMessage `json:"effective,omitempty"`
	Node      *explainedNode  `json:"node,omitempty"`     // of a path that is a node
	Inserted  []stage         `json:"inserted,omitempty"` // by the compiler, below the node or on the edge that the path names
}

// explainedNode is a node of the plan.
type explainedNode struct {
	Kind     string          `json:"kind"`
	Summary  string          `json:"summary"`
	Inserted bool            `json:"inserted,omitempty"`
	Model    string          `json:"model,omitempty"`
	Process  string          `json:"process"` // name of its group
	Replicas int             `json:"replicas"`
	Config   json.RawMessage `json:"config"` // with every default
	Ports    []explainedPort `json:"ports"`
}

// stage is a node that the compiler inserted, and why.
type stage struct {
	Node string `json:"node"`
	Kind string `json:"kind"`
	Why  string `json:"why"`
}

func (p *program) explainGraph() *cli.Command {
	return &cli.Command{
		Name:  "explain",
		Usage: "say what a path of a graph is: type, meaning, value and who set it, ports, and what the compiler made of it",
		Description: "PATH is as in a spec: nodes.decode.replicas, nodes.api, models.default.context, 'edges.\"api -> route\"'. Nodes that the compiler\n" +
			"inserts have paths, too. What a code means says dynamo explain CODE.",
		ArgsUsage: "SPEC PATH",
		Flags:     specFlags(outputFlag("text or json")),
		Action:    p.runExplainGraph,
	}
}

func (p *program) runExplainGraph(c *cli.Context) error {
	if c.NArg() != 2 {
		return cli.Fail(cli.Usage, "want SPEC and PATH, got %d arguments; try: dynamo graph explain specs/llama-disagg.cue nodes.decode.replicas", c.NArg())
	}
	if err := textOrJSON(c); err != nil {
		return err
	}
	lo, err := p.specOptions(c)
	if err != nil {
		return err
	}
	cache, err := p.cache(c)
	if err != nil {
		return err
	}
	spec, path := c.Args().Get(0), c.Args().Get(1)
	f, err := p.build(c.Context, spec, lo, cache, compiler.Options{})
	if err != nil {
		return err
	}
	if f.graph == nil { // nothing is known of it; a graph that only the compiler refuses can be explained
		return p.passed(c, f.list, false)
	}
	out := explained{Version: 1}
	name, isNode := strings.CutPrefix(path, "nodes.")
	if u, g := unitOf(f.plan, name); isNode && u != nil && u.Inserted {
		out.Explanation = load.Explanation{Path: path, Type: "node", Doc: "the compiler inserted it"}
		out.Node = nodeOfPlan(f.plan, g, u)
		out.Inserted = []stage{{u.Node, u.Kind, why(u.Kind)}}
	} else {
		e, list, err := load.Explain(c.Context, spec, lo, path)
		if err != nil {
			return cli.Fail(cli.Unreachable, "%v", err)
		}
		if e == nil {
			return p.passed(c, list, false)
		}
		out.Explanation = *e
		out.compiled(f)
	}
	if c.String("output") == "json" {
		return p.encode(out)
	}
	_, err = fmt.Fprint(p.Stdout, out.text())
	return err
}

// compiled adds what the plan has of the path.
func (e *explained) compiled(f *front) {
	if f.plan == nil {
		return
	}
	if label, ok := strings.CutPrefix(e.Path, `edges."`); ok {
		label, _, _ = strings.Cut(label, `"`)
		for _, x := range f.graph.Edges {
			if x.String() == label {
				e.Inserted = stages(f.plan, x.From.Node, x.To.Node)
			}
		}
		return
	}
	rest, ok := strings.CutPrefix(e.Path, "nodes.")
	if !ok {
		return
	}
	name, field, deeper := strings.Cut(rest, ".")
	u, g := unitOf(f.plan, name)
	switch {
	case u == nil:
	case !deeper:
		e.Node = nodeOfPlan(f.plan, g, u)
		e.Inserted = stages(f.plan, name, "")
	case field == "replicas":
		e.Effective = json.RawMessage(fmt.Sprint(g.Replicas.Want))
	case field == "model" && u.Model != "":
		e.Effective, _ = json.Marshal(u.Model) // a string
	case field == "kind":
		e.Effective, _ = json.Marshal(u.Kind)
	default:
		e.Effective = below(u.Config, strings.Split(field, "."))
	}
}

// below returns the value at a path of JSON maps; nil where there is none.
func below(b json.RawMessage, path []string) json.RawMessage {
	for _, p := range path {
		var m map[string]json.RawMessage
		if json.Unmarshal(b, &m) != nil || m[p] == nil {
			return nil
		}
		b = m[p]
	}
	return b
}

func unitOf(pl *plan.Plan, node string) (*plan.Unit, *plan.Group) {
	if pl == nil {
		return nil, nil
	}
	for _, g := range pl.Groups {
		for _, u := range g.Units {
			if u.Node == node {
				return u, g
			}
		}
	}
	return nil, nil
}

func nodeOfPlan(pl *plan.Plan, g *plan.Group, u *plan.Unit) *explainedNode {
	n := &explainedNode{Kind: u.Kind, Inserted: u.Inserted, Model: u.Model, Process: g.Name, Replicas: g.Replicas.Want, Config: u.Config, Ports: []explainedPort{}}
	k := kind.Default.Lookup(u.Kind)
	if k == nil {
		return n
	}
	n.Summary = k.Summary
	ports, err := k.Ports(u.Config)
	if err != nil {
		return n
	}
	for _, x := range ports {
		e := explainedPort{Name: x.Name, Type: x.Type, Dir: x.Dir, Need: x.Need, Many: x.Many, Doc: x.Doc}
		for _, edge := range pl.Edges {
			switch {
			case x.Dir == kind.Out && edge.From == u.Node && edge.FromPort == x.Name:
				e.Edges = append(e.Edges, edge.To+"."+edge.ToPort)
			case x.Dir == kind.In && edge.To == u.Node && edge.ToPort == x.Name:
				e.Edges = append(e.Edges, edge.From+"."+edge.FromPort)
			}
		}
		n.Ports = append(n.Ports, e)
	}
	return n
}

// stages are the nodes that the compiler inserted below a node, on the way to another, or to any where to is "".
func stages(pl *plan.Plan, from, to string) (out []stage) {
	var walk func(at string, way []stage)
	walk = func(at string, way []stage) {
		for _, e := range pl.Edges {
			u, _ := unitOf(pl, e.To)
			switch {
			case e.From != at || !e.Inserted:
			case u != nil && u.Inserted && len(way) < 16:
				walk(e.To, append(way[:len(way):len(way)], stage{u.Node, u.Kind, why(u.Kind)}))
			case to == "" || e.To == to:
				for _, s := range way {
					if !slices.Contains(out, s) {
						out = append(out, s)
					}
				}
			}
		}
	}
	walk(from, nil)
	return out
}

// why says why the compiler inserts nodes of a kind.
func why(name string) string {
	k := kind.Default.Lookup(name)
	switch {
	case k == nil:
		return ""
	case k.Converts != [2]string{}:
		return fmt.Sprintf("the edge leads from %s to %s, and a %s makes one of the other", k.Converts[0], k.Converts[1], k.Name)
	case k.Wraps != "":
		return fmt.Sprintf("each path of %s has a %s at its top", k.Wraps, k.Name)
	}
	return ""
}

// text writes it for people.
func (e *explained) text() string {
	var b strings.Builder
	b.WriteString(e.Explanation.String())
	if e.Effective != nil && string(e.Effective) != string(e.Value) {
		fmt.Fprintf(&b, "  in the plan: %s\n", e.Effective)
	}
	if n := e.Node; n != nil {
		fmt.Fprintf(&b, "\nkind %s: %s\n", n.Kind, n.Summary)
		fmt.Fprintf(&b, "process %s, replicas: %d", n.Process, n.Replicas)
		if n.Model != "" {
			fmt.Fprintf(&b, ", model %s", n.Model)
		}
		fmt.Fprintf(&b, "\n\nports:\n%s\nconfig, with every default:\n  %s\n", portLines(n.Ports), n.Config)
	}
	if len(e.Inserted) > 0 {
		b.WriteString("\ninserted by the compiler:\n")
		for _, s := range e.Inserted {
			fmt.Fprintf(&b, "  %s (%s): %s\n", s.Node, s.Kind, s.Why)
		}
	}
	return b.String()
}
