// Package profiler registers the kind of node "profiler": it measures the nodes that it calls. It is checked, but not run yet.
package profiler

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

const schema = `
// #Profiler sends made-up requests of many lengths to the node that its edge leads to, and says which of them meet the graph's slo. It is
// checked, but not run yet.
#Profiler: {
	kind: "profiler"

	// prompts are the lengths of prompts to try, in tokens; each above 0. Default: [128, 1024].
	prompts?: [int & >0, ...int & >0]

	// outputs are the lengths of answers to try, in tokens; each above 0. Default: [128].
	outputs?: [int & >0, ...int & >0]

	// concurrency is how many requests are in progress at once; each above 0. Default: [1, 8].
	concurrency?: [int & >0, ...int & >0]

	// requests is how many requests each combination takes; above 0. Default: 32.
	requests?: int & >0
}
`

// Config is what a spec may set.
type Config struct {
	Prompts     []int `json:"prompts"` // tokens
	Outputs     []int `json:"outputs"` // tokens
	Concurrency []int `json:"concurrency"`
	Requests    int   `json:"requests"`
}

func init() {
	kind.Register(kind.Kind[Config]{
		Name:    "profiler",
		Summary: "Measures the nodes that it calls against the graph's targets.",
		Schema:  schema,
		Default: func() Config {
			return Config{Prompts: []int{128, 1024}, Outputs: []int{128}, Concurrency: []int{1, 8}, Requests: 32}
		},
		Ports: func(Config) []kind.Port {
			return []kind.Port{
				{Name: "out", Type: "tokens", Dir: kind.Out, Need: true},
				{Name: "load", Type: "load", Dir: kind.In, Many: true},
			}
		},
		Check: check,
	})
}

func check(c Config, s kind.Site) diag.List {
	var l diag.List
	add := func(code, field, hint, format string, args ...any) *diag.Diagnostic {
		l.Add(s.Finding(code, field, hint, format, args...))
		return &l[len(l)-1]
	}
	if len(c.Prompts) == 0 || len(c.Outputs) == 0 || len(c.Concurrency) == 0 {
		add("bad-value", "prompts", "leave a list out for its default", "prompts, outputs and concurrency need one value each at least")
		return l
	}
	if most := slices.Max(c.Concurrency); c.Requests < most {
		add("bad-value", "requests", fmt.Sprintf("write %d or more", most), "%d requests are never %d at once", c.Requests, most)
	}
	longest := slices.Max(c.Prompts) + slices.Max(c.Outputs)
	below := s.Graph.Reach(func(e *graph.Edge) bool { return graph.IsCall(e.Type) }, s.Node.Name)
	for _, name := range slices.Sorted(maps.Keys(below)) {
		m := s.Graph.Models[s.Graph.Nodes[name].Model]
		if m == nil || m.Context == 0 || longest <= m.Context {
			continue
		}
		d := add("bad-value", "prompts", "use shorter ones, or a longer context",
			"prompt and answer have up to %d tokens, but models.%s.context allows %d", longest, m.Name, m.Context)
		if pos, ok := s.Graph.Fields["models."+m.Name+".context"]; ok {
			d.Related = []diag.Related{{Pos: pos, Msg: fmt.Sprintf("models.%s.context is %d", m.Name, m.Context)}}
		}
		break
	}
	return l
}
