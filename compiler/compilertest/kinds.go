// Package compilertest helps to test the compiler and its targets: kinds of nodes that only have ports, and graphs in a few lines of text.
// It knows no real kind, so that the compiler cannot either.
package compilertest

import (
	"context"
	"errors"
	"slices"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
)

type frontend struct {
	Listen string `json:"listen"`
}

type stage struct{}

type router struct {
	Policy string `json:"policy"`
}

type engine struct {
	Engine string `json:"engine"`
	KV     struct {
		Tokens int   `json:"tokens,omitempty"`
		Disk   int64 `json:"disk,omitempty"`
	} `json:"kv"`
	Device string `json:"device,omitempty"` // "": computes in main memory
	TP     int    `json:"tp,omitempty"`
	Mock   *mock  `json:"mock,omitempty"`
}

type mock struct {
	HandOff string `json:"handOff,omitempty"`
}

// Registry returns a fresh set of kinds with the ports of the real ones.
func Registry() *kind.Registry {
	r := &kind.Registry{}
	kind.Add(r, kind.Kind[frontend]{
		Name: "frontend", Summary: "takes requests", Schema: "#Frontend: {}",
		Default: func() frontend { return frontend{Listen: "127.0.0.1:8000"} },
		Ports:   ports[frontend](kind.Port{Name: "out", Type: "chat", Dir: kind.Out, Need: true}),
		Listen:  func(c frontend) map[string]string { return map[string]string{"listen": c.Listen} },
		New:     never[frontend],
	})
	kind.Add(r, kind.Kind[stage]{
		Name: "preprocess", Summary: "turns chats into tokens", Schema: "#Preprocess: {}",
		Colocate: true, NeedsModel: true, Converts: [2]string{"chat", "tokens"}, Default: none[stage],
		Ports: ports[stage](kind.Port{Name: "in", Type: "chat", Dir: kind.In, Need: true},
			kind.Port{Name: "out", Type: "tokens", Dir: kind.Out, Need: true}),
		New: never[stage],
	})
	kind.Add(r, kind.Kind[stage]{
		Name: "migrate", Summary: "moves streams of dead workers", Schema: "#Migrate: {}", Colocate: true, Wraps: "tokens", Default: none[stage],
		Ports: ports[stage](kind.Port{Name: "in", Type: "tokens", Dir: kind.In, Need: true},
			kind.Port{Name: "out", Type: "tokens", Dir: kind.Out, Need: true}),
		New: never[stage],
	})
	kind.Add(r, kind.Kind[router]{
		Name: "router", Summary: "picks a worker", Schema: "#Router: {}", Colocate: true,
		Default: func() router { return router{Policy: "round-robin"} },
		Ports: ports[router](kind.Port{Name: "in", Type: "tokens", Dir: kind.In},
			kind.Port{Name: "prefill", Type: "tokens", Dir: kind.Out, Many: true},
			kind.Port{Name: "decode", Type: "tokens", Dir: kind.Out, Many: true},
			kind.Port{Name: "worker", Type: "tokens", Dir: kind.Out, Many: true},
			kind.Port{Name: "events", Type: "events", Dir: kind.In, Many: true}),
		Check: func(c router, s kind.Site) diag.List {
			if !slices.ContainsFunc(s.Graph.Edges, func(e *graph.Edge) bool { return e.From.Node == s.Node.Name }) {
				return diag.List{{Code: "missing-edge", Pos: s.Node.Pos, Path: "nodes." + s.Node.Name, Msg: "nodes." + s.Node.Name + ": it leads nowhere"}}
			}
			if c.Policy == "round-robin" || c.Policy == "least-loaded" {
				return nil
			}
			return diag.List{{Code: "bad-value", Pos: s.Field("policy"), Path: "nodes." + s.Node.Name + ".policy",
				Msg: "nodes." + s.Node.Name + ".policy: unknown policy"}}
		},
		New: never[router],
	})
	kind.Add(r, kind.Kind[stage]{
		Name: "echo", Summary: "answers in its caller's process", Schema: "#Echo: {}", Colocate: true, Default: none[stage],
		Ports: ports[stage](kind.Port{Name: "in", Type: "tokens", Dir: kind.In, Many: true, Need: true}), New: never[stage],
	})
	in := kind.Port{Name: "in", Type: "tokens", Dir: kind.In}
	events := kind.Port{Name: "events", Type: "events", Dir: kind.Out, Many: true}
	work(r, "worker", "answers prompts", in, events)
	work(r, "prefill", "computes prompts", in, kind.Port{Name: "kv", Type: "kv", Dir: kind.Out, Many: true}, events)
	work(r, "decode", "continues prompts", in, kind.Port{Name: "kv", Type: "kv", Dir: kind.In, Many: true}, events)
	return r
}

func work(r *kind.Registry, name, summary string, p ...kind.Port) {
	kind.Add(r, kind.Kind[engine]{
		Name: name, Summary: summary, Schema: "#X: {}", NeedsModel: true,
		Default: func() engine { return engine{Engine: "native"} },
		Ports:   ports[engine](p...),
		Size: func(c engine, f model.Facts) plan.Needs {
			tokens := c.KV.Tokens
			if tokens == 0 {
				tokens = 4 * f.Context
			}
			if c.Device != "" {
				return onDevice(c, f)
			}
			return plan.Needs{MemoryBytes: int64(tokens) * f.KVBytesPerToken(2), SharedBytes: f.FileBytes, DiskBytes: c.KV.Disk, Threads: 1}
		},
		Contract: func(c engine, _ string) []kind.Term {
			terms := []kind.Term{{Name: "engine", Field: "engine", Values: []string{c.Engine}}}
			if c.Mock != nil && c.Mock.HandOff != "" {
				terms = append(terms, kind.Term{Name: "hand-off mode", Field: "mock.handOff", Values: []string{c.Mock.HandOff}})
			}
			return terms
		},
		New: never[engine],
	})
}

// onDevice has parts: weights and cache are certain, what else a device holds is guessed.
func onDevice(c engine, f model.Facts) plan.Needs {
	tp, tokens := max(c.TP, 1), c.KV.Tokens
	part := plan.Part{Name: "KV of one sequence", Place: plan.OnDevice, Spread: "tp"}
	if tokens == 0 {
		tokens = f.Context
	} else {
		part = plan.Part{Name: "KV cache", Place: plan.OnDevice, Spread: "tp", Each: f.KVBytes(1, 16, tp, 1), Unit: "token", Field: "kv.tokens"}
	}
	part.Bytes = f.KVBytes(tokens, 16, tp, 1)
	n := plan.Needs{Devices: tp, DeviceGroup: tp, DeviceClass: c.Device}
	n.Add(plan.Part{Name: "weights", Place: plan.OnDevice, Bytes: f.WeightBytes() / int64(tp), Spread: "tp"}, part,
		plan.Part{Name: "activations", Place: plan.OnDevice, Bytes: 1 << 30, Guess: true},
		plan.Part{Name: "process", Place: plan.InMemory, Bytes: 4 << 30, Guess: true},
		plan.Part{Name: "model", Place: plan.ModelFile, Bytes: f.WeightBytes()},
		plan.Part{Name: "tier on disk", Place: plan.OnDisk, Bytes: c.KV.Disk})
	return n
}

func ports[C any](p ...kind.Port) func(C) []kind.Port { return func(C) []kind.Port { return p } }

func none[C any]() (c C) { return c }

// never is the New of kinds that only exist to be compiled.
func never[C any](C, kind.Host) (kind.Component, error) {
	return component{}, errors.New("a kind of package compilertest cannot run")
}

type component struct{}

func (component) Start(context.Context) error {
	return errors.New("a kind of package compilertest cannot run")
}
func (component) Drain(context.Context) error { return nil }
func (component) Close() error                { return nil }
