// Package plan is a lowered graph: what is placed, restarted and scaled, in a versioned JSON form. It does no I/O; the compiler makes
// plans, the supervisor and the targets read them.
package plan

import "encoding/json"

// Version is the version of the JSON form that this package writes. Readers refuse others.
const Version = 1

// Plan is a graph ready to run. Slices are sorted by name, so that equal graphs give equal bytes.
type Plan struct {
	Version int               `json:"version"`
	Graph   string            `json:"graph"`
	Models  map[string]*Model `json:"models,omitempty"`
	Store   Store             `json:"store"`
	Groups  []*Group          `json:"groups"`
	Edges   []*Edge           `json:"edges"`
	// DrainSeconds is what a process takes to finish its streams when it is stopped; GraceSeconds what a platform allows before it kills,
	// never below. 0: the target's own.
	DrainSeconds int    `json:"drainSeconds,omitempty"`
	GraceSeconds int    `json:"graceSeconds,omitempty"`
	SLO          *SLO   `json:"slo,omitempty"`
	Status       string `json:"status,omitempty"` // the author's claim: "run", or "compiled" for a graph that never ran
}

// Model is where a model's bytes come from and what it is called.
type Model struct {
	Sources []string `json:"sources"`
	SHA256  string   `json:"sha256,omitempty"`
	Context int      `json:"context,omitempty"` // tokens; 0: the model's own
	Names   []string `json:"names"`             // never empty: the first is the one that we print

	Revision  string              `json:"revision,omitempty"`
	Family    string              `json:"family,omitempty"`
	Tools     string              `json:"tools,omitempty"`     // parser of tool calls; "" is the family's
	Reasoning string              `json:"reasoning,omitempty"` // parser of reasoning; "" is the family's
	Features  []string            `json:"features,omitempty"`  // what clients may rely on
	Adapters  map[string]*Adapter `json:"adapters,omitempty"`
}

// Adapter is a LoRA for a model.
type Adapter struct {
	Sources []string `json:"sources"`
	SHA256  string   `json:"sha256,omitempty"`
	Rank    int      `json:"rank,omitempty"` // 0: the adapter's own
	Names   []string `json:"names"`          // never empty
}

// SLO is what the deployment is for, as durations of Go: targets for the 95th percentile. Empty: not said.
type SLO struct {
	TTFT string `json:"ttft,omitempty"`
	ITL  string `json:"itl,omitempty"`
}

// Store says where the graph's processes find each other.
type Store struct {
	Kind      string   `json:"kind"`                // "memory" (one process), "embedded" (a child of the supervisor), "etcd" (Endpoints)
	Endpoints []string `json:"endpoints,omitempty"` // of an outside etcd
	Replicas  int      `json:"replicas,omitempty"`  // of an embedded store on Kubernetes: 1 or 3
}

// Group is what is placed, restarted and scaled as one: a process here, a pod on Kubernetes.
type Group struct {
	Name     string   `json:"name"` // the node that owns it
	Replicas Replicas `json:"replicas"`
	Units    []*Unit  `json:"units"` // callers before callees
	Needs    Needs    `json:"needs"`
}

// Replicas bounds a group's size.
type Replicas struct {
	Min  int `json:"min"`
	Want int `json:"want"`
	Max  int `json:"max"`
}

// Unit is a node of ours in a group.
type Unit struct {
	Node     string          `json:"node"`
	Kind     string          `json:"kind"`
	Model    string          `json:"model,omitempty"` // key of Plan.Models
	Config   json.RawMessage `json:"config"`          // with every default applied
	Inserted bool            `json:"inserted,omitempty"`
	// Listen holds the addresses bound for clients outside of the graph, by the field of Config that sets them.
	Listen map[string]string `json:"listen,omitempty"`
	// Guard says what keeps strangers from those addresses: "keys", "mtls", or "insecure" where the author wants nothing to. Empty: nothing.
	Guard string `json:"guard,omitempty"`
	// Calls holds the URLs of servers outside of the graph that it calls.
	Calls []string `json:"calls,omitempty"`
}

// Edge is a resolved edge: both ports are named.
type Edge struct {
	From      string `json:"from"` // node
	FromPort  string `json:"fromPort"`
	To        string `json:"to"` // node
	ToPort    string `json:"toPort"`
	Type      string `json:"type"`
	Transport string `json:"transport"` // "inproc" or "grpc"; for kv "shm" or "tcp"
	Inserted  bool   `json:"inserted,omitempty"`
}

// GroupOf returns the group that holds node, or nil.
func (p *Plan) GroupOf(node string) *Group {
	for _, g := range p.Groups {
		for _, u := range g.Units {
			if u.Node == node {
				return g
			}
		}
	}
	return nil
}
