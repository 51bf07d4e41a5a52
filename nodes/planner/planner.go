// Package planner registers the kind of node "planner": it sets how many replicas of other nodes run. It is checked, but not run yet.
package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
)

var schema = fmt.Sprintf(`
// #Planner sets how many replicas of other nodes run, within bounds. It is checked, but not run yet.
#Planner: {
	kind: "planner"

	// every is how often it decides; above "0s". Default: "30s".
	every?: #Duration

	// window is how long signals are averaged; not below every. Default: three times every.
	window?: #Duration

	// scale maps the nodes that it scales to how. Each needs an edge of type scale from the planner, and one of type load to it.
	scale!: [#Name]: #Scale
}

// #Scale bounds the replicas of one node, and says when there are more or fewer.
#Scale: {
	// min is the fewest replicas; 0 or more. Default: 1.
	min?: int & >=0

	// max is the most replicas; above 0.
	max!: int & >0

	// up adds a replica while the signal, averaged over the node's replicas, is above a value. Default: when a target of the graph's slo
	// is missed.
	up?: {
		// signal is what is looked at; its unit is that of the signal.
		signal!: #Signal

		// above is the value, in the signal's unit; 0 or more.
		above!: number & >=0
	}

	// down removes a replica while the signal is below a value. Default: when one fewer would still meet the graph's slo.
	down?: {
		// signal is what is looked at; its unit is that of the signal.
		signal!: #Signal

		// below is the value, in the signal's unit; 0 or more.
		below!: number & >=0
	}
}

// #Signal is what nodes tell of themselves, as a number.
#Signal: %s
`, strings.Join(diag.Quote(signals()), " | "))

// signals are those of the catalogue that are numbers.
func signals() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(kind.Signals)), func(s string) bool { return s == "blocks" })
}

// Config is what a spec may set.
type Config struct {
	Every  graph.Duration   `json:"every"`
	Window graph.Duration   `json:"window,omitempty"` // 0: three times Every
	Scale  map[string]Scale `json:"scale"`            // by node
}

// Scale bounds one node.
type Scale struct {
	Min  *int  `json:"min,omitempty"` // nil: 1
	Max  int   `json:"max"`
	Up   *Up   `json:"up,omitempty"`   // nil: the graph's slo
	Down *Down `json:"down,omitempty"` // nil: the graph's slo
}

// Up is when there are more replicas.
type Up struct {
	Signal string  `json:"signal"`
	Above  float64 `json:"above"`
}

// Down is when there are fewer.
type Down struct {
	Signal string  `json:"signal"`
	Below  float64 `json:"below"`
}

func init() {
	kind.Register(kind.Kind[Config]{
		Name:    "planner",
		Summary: "Sets how many replicas of other nodes run, within bounds.",
		Schema:  schema,
		Default: func() Config { return Config{Every: graph.Duration(30 * time.Second), Scale: map[string]Scale{}} },
		Ports: func(Config) []kind.Port {
			return []kind.Port{
				{Name: "load", Type: "load", Dir: kind.In, Many: true}, // which are needed, Check tells
				{Name: "scale", Type: "scale", Dir: kind.Out, Many: true},
			}
		},
		Check: check,
		Scales: func(c Config) map[string]plan.Replicas {
			out := make(map[string]plan.Replicas, len(c.Scale))
			for name, s := range c.Scale {
				out[name] = plan.Replicas{Min: s.least(), Max: s.Max}
			}
			return out
		},
	})
}

// least is the fewest replicas.
func (s Scale) least() int {
	if s.Min == nil {
		return 1
	}
	return *s.Min
}
