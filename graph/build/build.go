// Package build makes graphs in Go: what a spec says, said by calls. Findings point at the lines that made the calls. It does no I/O and
// knows neither CUE nor the kinds of nodes.
//
//	g := build.New("hello")
//	api := g.Add("api", "frontend", frontend.Config{Listen: ":8000"})
//	work := g.Add("work", "worker", engine.Config{Engine: "mock"}, build.Replicas(2))
//	g.Join(api, work)
//	graph, findings := g.Graph()
//
// The compiler takes the graph as it takes one that was loaded. What the schemas of kinds demand beyond their Go types, package specs/check
// holds a graph to.
package build

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
)

// Graph is a graph in the making. It is not safe for concurrent use.
type Graph struct {
	g    graph.Graph
	list diag.List
}

// New begins a graph; see spec.#Graph for its name.
func New(name string, opts ...Option) *Graph {
	pos := caller()
	b := &Graph{g: graph.Graph{Name: name, Pos: pos, Models: map[string]*graph.Model{}, Nodes: map[string]*graph.Node{}, Fields: map[string]diag.Pos{"name": pos}}}
	for _, o := range opts {
		o(b, pos)
	}
	return b
}

// Option says something of the graph as a whole. All options of one call have its place.
type Option func(b *Graph, pos diag.Pos)

// Model adds a model under a name that nodes may use. A graph with one model needs not name it in its nodes. Its Name and Pos are set.
func Model(name string, m graph.Model) Option {
	return func(b *Graph, pos diag.Pos) {
		if old := b.g.Models[name]; old != nil {
			b.twice("models."+name, pos, old.Pos)
			return
		}
		m.Name, m.Pos = name, pos
		b.g.Models[name] = &m
		for f, set := range map[string]bool{
			"source": len(m.Sources) > 0, "sha256": m.SHA256 != "", "context": m.Context != 0, "names": len(m.Names) > 0, "revision": m.Revision != "",
			"family": m.Family != "", "tools": m.Tools != "", "reasoning": m.Reasoning != "", "features": len(m.Features) > 0, "facts": m.Stated != nil,
			"adapters": len(m.Adapters) > 0,
		} {
			if set {
				b.g.Fields["models."+name+"."+f] = pos
			}
		}
	}
}

// SLO sets the targets of the 95th percentile; zero says nothing.
func SLO(ttft, itl time.Duration) Option {
	return func(b *Graph, pos diag.Pos) {
		b.g.SLO = graph.SLO{TTFT: graph.Duration(ttft), ITL: graph.Duration(itl)}
		b.fields(pos, map[string]bool{"slo.ttft": ttft != 0, "slo.itl": itl != 0})
	}
}

// Timeouts bounds the deployment as a whole.
func Timeouts(t graph.Timeouts) Option {
	return func(b *Graph, pos diag.Pos) {
		b.g.Timeouts = t
		b.fields(pos, map[string]bool{"timeouts.client": t.Client != 0, "timeouts.drain": t.Drain != 0, "timeouts.grace": t.Grace != 0})
	}
}

// Machine says what one machine offers.
func Machine(m graph.Machine) Option {
	return func(b *Graph, pos diag.Pos) {
		b.g.Machine = m
		b.fields(pos, map[string]bool{"machine.memory": m.MemoryBytes != 0, "machine.disk": m.DiskBytes != 0, "machine.cores": m.Cores != 0})
	}
}

// Device adds a class of accelerators: what one has in bytes, and how many a machine has.
func Device(name string, memoryBytes int64, count int) Option {
	return func(b *Graph, pos diag.Pos) {
		if b.g.Devices == nil {
			b.g.Devices = map[string]*graph.Device{}
		}
		if old := b.g.Devices[name]; old != nil {
			b.twice("devices."+name, pos, old.Pos)
			return
		}
		b.g.Devices[name] = &graph.Device{Name: name, Pos: pos, MemoryBytes: memoryBytes, Count: count}
		b.fields(pos, map[string]bool{"devices." + name + ".memory": true, "devices." + name + ".count": true})
	}
}

// Status claims that the graph ran as it stands ("run"), or only passed the compiler ("compiled").
func Status(status string) Option {
	return func(b *Graph, pos diag.Pos) {
		b.g.Status = status
		b.fields(pos, map[string]bool{"status": true})
	}
}

func (b *Graph) fields(pos diag.Pos, set map[string]bool) {
	for f, ok := range set {
		if ok {
			b.g.Fields[f] = pos
		}
	}
}

// Node is a node that was added.
type Node struct {
	b *Graph
	n *graph.Node
}

// Out names an output port of the node.
func (n *Node) Out(port string) Port { return Port{n.n.Name, port} }

// In names an input port of the node.
func (n *Node) In(port string) Port { return Port{n.n.Name, port} }

func (n *Node) end() graph.End { return graph.End{Node: n.n.Name} }

// Port is a port of a node.
type Port struct{ node, port string }

func (p Port) end() graph.End { return graph.End{Node: p.node, Port: p.port} }

// End is one end of an edge: a *Node, whose port the compiler finds where only one pair fits, or a Port.
type End interface{ end() graph.End }

// Add adds a node of a kind. config is a struct, or a pointer to one, whose fields have JSON names, or a map, or nil. Of a struct, fields
// that are zero are not said: a kind's defaults stand. To say zero use a map, or a field that is a pointer.
func (b *Graph) Add(name, kind string, config any, opts ...NodeOption) *Node {
	pos := caller()
	n := &graph.Node{Name: name, Kind: kind, Pos: pos, Fields: map[string]diag.Pos{"kind": pos}}
	path := "nodes." + name
	said, err := say(config)
	if err == nil {
		n.Config, err = json.Marshal(said)
	}
	if err != nil {
		b.list.Add(diag.Diagnostic{Code: "bad-value", Pos: pos, Path: path, Msg: fmt.Sprintf("%s: config of type %T: %v", path, config, err)})
		n.Config = json.RawMessage(`{}`)
	}
	places("", said, pos, n.Fields)
	for _, o := range opts {
		o(n, pos)
	}
	if old := b.g.Nodes[name]; old != nil {
		b.twice(path, pos, old.Pos)
	} else {
		b.g.Nodes[name] = n
	}
	return &Node{b, n}
}

// NodeOption says something of a node that all kinds have.
type NodeOption func(n *graph.Node, pos diag.Pos)

// Replicas sets how many of the node run.
func Replicas(n int) NodeOption {
	return func(x *graph.Node, pos diag.Pos) {
		x.Replicas = &n
		x.Fields["replicas"] = pos
	}
}

// Serves names the model of the node, where the graph has several.
func Serves(model string) NodeOption {
	return func(x *graph.Node, pos diag.Pos) {
		x.Model = model
		x.Fields["model"] = pos
	}
}

// Join adds an edge. Which ports it joins the compiler finds where only one pair fits.
func (b *Graph) Join(from, to End, opts ...EdgeOption) {
	pos := caller()
	e := &graph.Edge{From: from.end(), To: to.end(), Pos: pos, Fields: map[string]diag.Pos{}}
	for _, o := range opts {
		o(e, pos)
	}
	b.g.Edges = append(b.g.Edges, e)
}

// EdgeOption tunes an edge.
type EdgeOption func(e *graph.Edge, pos diag.Pos)

// Transport sets how the edge moves data: "grpc", "shm", "tcp", …; see spec.#Edge.
func Transport(name string) EdgeOption {
	return func(e *graph.Edge, pos diag.Pos) {
		e.Transport = name
		e.Fields["transport"] = pos
	}
}

// Graph returns a copy of the graph, and what is wrong with the calls that made it; with an error in the list it is nil. What is wrong with
// the graph the compiler tells.
func (b *Graph) Graph() (*graph.Graph, diag.List) {
	list := slices.Clone(b.list)
	list.Sort()
	if list.Failed() {
		return nil, list
	}
	g := b.g.Clone()
	g.Fields = maps.Clone(b.g.Fields)
	g.Devices = maps.Clone(b.g.Devices)
	return g, list
}

// twice notes a name that is given again.
func (b *Graph) twice(path string, pos, first diag.Pos) {
	b.list.Add(diag.Diagnostic{Code: "conflict", Pos: pos, Path: path, Msg: path + ": it is there already", Hint: "choose another name",
		Related: []diag.Related{{Pos: first, Msg: "the first"}}})
}

// caller is the place of the call into this package.
func caller() diag.Pos {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return diag.Pos{}
	}
	return diag.Pos{File: file, Line: line}
}

// places notes one place for every field that is said.
func places(prefix string, m map[string]any, pos diag.Pos, into map[string]diag.Pos) {
	for k, v := range m {
		into[prefix+k] = pos
		if sub, ok := v.(map[string]any); ok {
			places(prefix+k+".", sub, pos, into)
		}
	}
}
