// Package kind says how a kind of node is made and found, and what the runtime offers to a running node. The compiler names no kind: all
// that it knows of one is here. Implementations of Host live in runtime.
package kind

import (
	"context"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
)

// Dir is the direction of a port as an edge is drawn.
type Dir string

// The directions.
const (
	In  Dir = "in"
	Out Dir = "out"
)

// Word returns "input" or "output".
func (d Dir) Word() string { return string(d) + "put" }

// Port is one port of a kind.
type Port struct {
	Name string // one word, unique in its direction: "prefill"
	Type string // "chat", "tokens", "kv", "events", "load", "scale", "media"
	Dir  Dir
	Need bool // an edge must be there
	Many bool // several edges may be there
}

// Serves reports whether the node answers calls at p: call ports are answered by the edge's To, data ports by its From.
func (p Port) Serves() bool {
	if p.Type == "chat" || p.Type == "tokens" {
		return p.Dir == In
	}
	return p.Dir == Out
}

// Kind describes one kind of node. C is its configuration: a struct with JSON names equal to the schema's fields.
type Kind[C any] struct {
	Name    string // one word: "decode"
	Summary string // one line
	// Schema is the CUE of package spec that defines the user's config: a closed definition named after the kind ("#Decode") with
	// documented optional fields (unit, range, default in words). It sets kind, may embed #worker, and holds no defaults.
	Schema string
	// Colocate says that the node runs in the process of the node that calls it, and is never replicated by itself.
	Colocate bool
	// NeedsModel says that the node serves or reads a model of the graph.
	NeedsModel bool
	// Converts names two call types, "chat" and "tokens": where an edge leads from a port of the first to one of the second, the compiler
	// inserts a node of this kind. It has one port of each. Both empty: it is never inserted so. At most one kind converts a pair.
	Converts [2]string
	// Wraps names a call type: the compiler inserts a node of this kind at the top of each path of that type, directly below the node
	// that converts to it. It has one port in and one out, both of that type. Several such kinds are stacked in the order of their names.
	Wraps   string
	Default func() C                        // the config where the spec says nothing
	Ports   func(C) []Port                  // in the order in which they are listed
	Check   func(C, Site) diag.List         // what only this kind knows; pure; nil is "nothing"
	Size    func(C, model.Facts) plan.Needs // one replica; nil is "nothing to speak of"
	New     func(C, Host) (Component, error)
	// Contract is what the node says about the edges at its data port (type kv, events, …); a key is the config field that says it, so
	// that a finding can point there: {"engine": "native"}. Keys that both ends say must have equal values. Pure; nil says nothing.
	Contract func(c C, port string) map[string]string
	// Listen gives the addresses ("127.0.0.1:8000") that one replica binds for clients outside of the graph, by the config field that sets
	// them ("listen"). A target may write another host into that field: in a pod it is all interfaces. The first of them answers GET /live
	// and /ready over HTTP. Nil: none.
	Listen func(C) map[string]string
}

// Site is what a Check sees of the graph around its node.
type Site struct {
	Graph *graph.Graph // with defaults, inserted stages and resolved ports
	Node  *graph.Node
	Facts *model.Facts // of the node's model; nil where unknown
}

// Field returns the place of a field that the author set, or the node's.
func (s Site) Field(path string) diag.Pos {
	if p, ok := s.Node.Fields[path]; ok {
		return p
	}
	return s.Node.Pos
}

// Component is a running node. Start returns once it can accept or refuse work; whether it can serve is a State that it reports through
// Host. Drain takes no new work and returns when what is in flight has ended or ctx has. Close is safe in any state, twice too, and waits
// for every goroutine of the component.
type Component interface {
	Start(ctx context.Context) error
	Drain(ctx context.Context) error
	Close() error
}
