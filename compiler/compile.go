// Package compiler lowers a graph to a plan: it fills what the author left out, inserts the stages that nobody writes, places nodes in
// processes, and refuses what cannot work. It does no I/O, and names no kind of node: all that it knows of one is its kind.Entry.
package compiler

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
)

// Options is what a compilation knows beside the graph.
type Options struct {
	Registry *kind.Registry // nil: kind.Default
	// Facts holds what the weights say, by key of Graph.Models. What is missing or nil is unknown: checks that need it are left out.
	Facts map[string]*model.Facts
	// MemoryBytes is what the machine offers to all processes together; 0: unknown.
	MemoryBytes int64
	// Run says that the plan is for running: what this build cannot run is then an error. Else it is a note.
	Run bool
	// Trace, where set, is called after each pass that changed the graph or the plan. It must not change them; p is nil before Size.
	Trace func(pass string, g *graph.Graph, p *plan.Plan)
}

// Compile lowers g, which it does not change. The list is sorted and may hold warnings beside a plan; with an error in it the plan is
// nil. It is safe for concurrent use if the registry is not changed meanwhile.
func Compile(g *graph.Graph, o Options) (*plan.Plan, diag.List) {
	if o.Registry == nil {
		o.Registry = kind.Default
	}
	s := newState(g, o)
	var list diag.List
	last := s.fingerprint()
	for _, p := range passes {
		if p.needsSound && list.Failed() {
			break
		}
		list = append(list, p.run(s)...)
		if o.Trace != nil {
			if now := s.fingerprint(); !bytes.Equal(last, now) {
				last = now
				o.Trace(p.name, s.g, s.p)
			}
		}
	}
	asWritten(g, list)
	list.Sort()
	if list.Failed() {
		return nil, list
	}
	return s.p, list
}

// asWritten names the fields of the model as the author does: those of the shorthand are "model.context", not "models.default.context".
func asWritten(g *graph.Graph, list diag.List) {
	if _, short := g.Fields["model"]; !short {
		return
	}
	words := strings.NewReplacer("models.default.", "model.", "models.default:", "model:", "models.default has", "model has")
	for i := range list {
		d := &list[i]
		if d.Msg, d.Hint = words.Replace(d.Msg), words.Replace(d.Hint); d.Path == "models.default" {
			d.Path = "model"
		}
		d.Path = words.Replace(d.Path)
		d.Notes, d.Related = slices.Clone(d.Notes), slices.Clone(d.Related)
		for k, n := range d.Notes {
			d.Notes[k] = words.Replace(n)
		}
		for k := range d.Related {
			d.Related[k].Msg = words.Replace(d.Related[k].Msg)
		}
	}
}

// pass changes the state, or tells why it cannot. A pass meets what an earlier one found wrong and passes over it, so that all mistakes
// are reported at once.
type pass struct {
	name       string
	run        func(*state) diag.List
	needsSound bool // stop before it if anything failed
}

// passes is the compiler. The first four work on the graph, the others on the plan.
var passes = []pass{
	{name: "resolve", run: resolve}, // first: nothing can be said about an edge without its ports
	{name: "default", run: defaults},
	{name: "infer", run: infer},   // models, and what follows from there being one
	{name: "insert", run: insert}, // after infer: an inserted stage takes the model of what it leads to
	{name: "size", run: size},     // what one replica takes
	{name: "place", run: place},   // nodes into processes; transports follow
	{name: "check", run: check},   // on what will run, inserted stages included
	{name: "lower", run: lower, needsSound: true},
}

// state is what passes hand on.
type state struct {
	o Options
	g *graph.Graph // a copy
	p *plan.Plan   // from Size on

	kinds  map[string]*kind.Entry  // by node; unknown kinds are missing
	ports  map[string][]kind.Port  // by node
	labels map[*graph.Edge]string  // as the author wrote them
	bad    map[*graph.Edge]bool    // found wrong: ports are not resolved
	needs  map[string]plan.Needs   // by node
	known  map[string]*model.Facts // by model

	// proposed holds the nodes to which an edge was proposed that another node lacks: what their kind says of it is not told again.
	proposed map[string]bool
	index    *edgeIndex      // see joined
	lacking  map[string]bool // nodes whose edges were found wrong, so that what follows from it is not told again
	// told holds the codes of what kinds found, by node: where a kind knows more, the compiler says nothing.
	told map[string]map[string]bool
	// filled says who set a field ("node.field") that the author left open, chosen which transports the compiler chose.
	filled map[string]origin
	chosen map[*graph.Edge]bool

	bounded  map[string][]kind.Limit // see limits
	defaults map[string][]kind.Limit // see usual, by kind
	home     map[string]*plan.Group  // by node, from Place on
}

func newState(g *graph.Graph, o Options) *state {
	s := &state{
		o: o, g: g.Clone(),
		kinds: map[string]*kind.Entry{}, ports: map[string][]kind.Port{},
		labels: map[*graph.Edge]string{}, bad: map[*graph.Edge]bool{}, needs: map[string]plan.Needs{},
		lacking: map[string]bool{}, proposed: map[string]bool{}, told: map[string]map[string]bool{}, known: known(g, o.Facts),
		filled: map[string]origin{}, chosen: map[*graph.Edge]bool{}, bounded: map[string][]kind.Limit{}, defaults: map[string][]kind.Limit{}, home: map[string]*plan.Group{},
	}
	for _, e := range s.g.Edges {
		s.labels[e] = e.String()
	}
	return s
}

// fingerprint tells states apart, for Trace.
func (s *state) fingerprint() []byte {
	if s.o.Trace == nil {
		return nil
	}
	b, err := json.Marshal(struct {
		G *graph.Graph
		P *plan.Plan
	}{s.g, s.p})
	if err != nil { // configurations that are no JSON: Default reports them
		return nil
	}
	return b
}

// good returns the edges whose ports are resolved.
func (s *state) good() []*graph.Edge {
	out := make([]*graph.Edge, 0, len(s.g.Edges))
	for _, e := range s.g.Edges {
		if !s.bad[e] {
			out = append(out, e)
		}
	}
	return out
}

// edgeIndex holds the good edges at each node. It is made anew when the edges have changed.
type edgeIndex struct{ in, out map[string][]*graph.Edge }

func (s *state) joined() *edgeIndex {
	if s.index == nil {
		s.index = &edgeIndex{map[string][]*graph.Edge{}, map[string][]*graph.Edge{}}
		for _, e := range s.good() {
			s.index.out[e.From.Node] = append(s.index.out[e.From.Node], e)
			s.index.in[e.To.Node] = append(s.index.in[e.To.Node], e)
		}
	}
	return s.index
}
