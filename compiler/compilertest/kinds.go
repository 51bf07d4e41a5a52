// Package compilertest helps to test the compiler and its targets: kinds of nodes that only have ports, and graphs in a few lines of text.
// It knows no real kind, so that the compiler cannot either.
package compilertest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
)

type frontend struct {
	Listen  string         `json:"listen"`
	Keys    string         `json:"keys,omitempty"`
	Tenants bool           `json:"tenants,omitempty"`
	Body    int64          `json:"body,omitempty"`
	Admit   int64          `json:"requests,omitempty"`
	Timeout graph.Duration `json:"timeout"`
}

type stage struct{}

type router struct {
	Policy string         `json:"policy"`
	Wait   graph.Duration `json:"wait"`
	Stall  graph.Duration `json:"stall"`
	Quiet  graph.Duration `json:"quiet,omitempty"`
}

type far struct {
	URL string `json:"url"`
}

type planner struct {
	Signals []string                 `json:"signals,omitempty"` // that it needs of every node
	Scale   map[string]plan.Replicas `json:"scale,omitempty"`
}

type cache struct {
	Scope string `json:"scope,omitempty"`
	URL   string `json:"url,omitempty"`
	Bytes int64  `json:"bytes,omitempty"` // that it keeps in memory
}

type engine struct {
	Engine string `json:"engine"`
	KV     struct {
		Tokens     int      `json:"tokens,omitempty"`
		Disk       int64    `json:"disk,omitempty"`
		Block      int      `json:"block,omitempty"`
		Hash       string   `json:"hash,omitempty"`
		Transports []string `json:"transports,omitempty"`
	} `json:"kv"`
	Device  string            `json:"device,omitempty"` // "": computes in main memory
	TP      int               `json:"tp,omitempty"`
	Seqs    int64             `json:"seqs,omitempty"`
	Threads int               `json:"threads,omitempty"`
	Queue   int64             `json:"queue,omitempty"`
	Flags   map[string]string `json:"flags,omitempty"`
	Mock    *mock             `json:"mock,omitempty"`
}

type mock struct {
	HandOff string         `json:"handOff,omitempty"`
	TTFT    graph.Duration `json:"ttft,omitempty"`
	ITL     graph.Duration `json:"itl,omitempty"`
}

// Registry returns a fresh set of kinds with the ports of the real ones.
func Registry() *kind.Registry {
	r := &kind.Registry{}
	kind.Add(r, kind.Kind[frontend]{
		Name: "frontend", Summary: "takes requests", Schema: "#Frontend: {}",
		Default: func() frontend { return frontend{Listen: "127.0.0.1:8000"} },
		Ports: ports[frontend](kind.Port{Name: "out", Type: "chat", Dir: kind.Out, Need: true, Many: true},
			kind.Port{Name: "load", Type: "load", Dir: kind.Out, Many: true, Signals: []string{"ttft"}}),
		Listen: func(c frontend) map[string]string { return map[string]string{"listen": c.Listen} },
		Guard: func(c frontend) string {
			if c.Keys != "" {
				return "keys"
			}
			return ""
		},
		Tenants: func(c frontend) (string, string) {
			if c.Tenants {
				return "tells", "tenants"
			}
			return "", ""
		},
		Limits: func(c frontend) []kind.Limit {
			return []kind.Limit{{Bound: kind.Body, Field: "body", Value: c.Body}, {Bound: kind.Admit, Field: "requests", Value: c.Admit},
				{Bound: kind.Total, Field: "timeout", Value: int64(c.Timeout)}}
		},
		New: never[frontend],
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
		Default: func() router { return router{Policy: "round-robin", Wait: graph.Duration(10 * time.Second)} },
		Ports: func(c router) []kind.Port {
			events := kind.Port{Name: "events", Type: "events", Dir: kind.In, Many: true}
			if c.Policy == "kv" {
				events.Signals = []string{"blocks"}
			}
			return []kind.Port{{Name: "in", Type: "tokens", Dir: kind.In}, {Name: "prefill", Type: "tokens", Dir: kind.Out, Many: true},
				{Name: "decode", Type: "tokens", Dir: kind.Out, Many: true}, {Name: "worker", Type: "tokens", Dir: kind.Out, Many: true}, events}
		},
		Limits: func(c router) []kind.Limit {
			return []kind.Limit{{Bound: kind.Queue, Field: "wait", Value: int64(c.Wait)}, {Bound: kind.Begin, Field: "stall", Value: int64(c.Stall)},
				{Bound: kind.Stall, Field: "quiet", Value: int64(c.Quiet)}}
		},
		Check: func(c router, s kind.Site) diag.List {
			if !slices.ContainsFunc(s.Graph.Edges, func(e *graph.Edge) bool { return e.From.Node == s.Node.Name }) {
				return diag.List{{Code: "missing-edge", Pos: s.Node.Pos, Path: "nodes." + s.Node.Name, Msg: "nodes." + s.Node.Name + ": it leads nowhere"}}
			}
			if slices.Contains([]string{"round-robin", "least-loaded", "kv"}, c.Policy) {
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
	kind.Add(r, kind.Kind[stage]{
		Name: "say", Summary: "answers chats in its caller's process", Schema: "#Say: {}", Colocate: true, Default: none[stage],
		Ports: ports[stage](kind.Port{Name: "in", Type: "chat", Dir: kind.In, Need: true}, kind.Port{Name: "scale", Type: "scale", Dir: kind.In}),
		New:   never[stage],
	})
	kind.Add(r, kind.Kind[far]{
		Name: "far", Summary: "a server elsewhere", Schema: "#Far: {}", Colocate: true, Default: none[far],
		Ports: ports[far](kind.Port{Name: "in", Type: "chat", Dir: kind.In, Need: true}),
		Calls: func(c far) []string { return []string{c.URL} },
		New:   never[far],
	})
	kind.Add(r, kind.Kind[planner]{ // without New: it is only checked
		Name: "planner", Summary: "sets replicas", Schema: "#Planner: {}", Default: none[planner],
		Ports: func(c planner) []kind.Port {
			return []kind.Port{{Name: "load", Type: "load", Dir: kind.In, Need: true, Many: true, Signals: c.Signals},
				{Name: "scale", Type: "scale", Dir: kind.Out, Need: true, Many: true}}
		},
		Scales: func(c planner) map[string]plan.Replicas { return c.Scale },
	})
	kind.Add(r, kind.Kind[cache]{
		Name: "cache", Summary: "keeps KV", Schema: "#Cache: {}", Default: none[cache],
		Ports: ports[cache](kind.Port{Name: "kv", Type: "tier", Dir: kind.In, Need: true, Many: true}),
		Tenants: func(c cache) (string, string) {
			if c.Scope == "graph" {
				return "mixes", "scope"
			}
			return "", ""
		},
		Size: func(c cache, _ model.Facts) (n plan.Needs) {
			n.Add(plan.Part{Name: "tier in memory", Place: plan.InMemory, Bytes: c.Bytes, Keeps: true})
			return n
		},
		New: never[cache],
	})
	in := kind.Port{Name: "in", Type: "tokens", Dir: kind.In}
	work(r, "worker", "answers prompts", in)
	work(r, "prefill", "computes prompts", in, kind.Port{Name: "kv", Type: "kv", Dir: kind.Out, Many: true})
	work(r, "decode", "continues prompts", in, kind.Port{Name: "kv", Type: "kv", Dir: kind.In, Many: true})
	return r
}

func work(r *kind.Registry, name, summary string, p ...kind.Port) {
	kind.Add(r, kind.Kind[engine]{
		Name: name, Summary: summary, Schema: "#X: {}", NeedsModel: true,
		Default: func() engine { return engine{Engine: "native"} },
		Ports: func(c engine) []kind.Port {
			var blocks []string
			if c.Engine != "blind" {
				blocks = []string{"blocks"}
			}
			return slices.Concat(p, []kind.Port{{Name: "events", Type: "events", Dir: kind.Out, Many: true, Signals: blocks},
				{Name: "load", Type: "load", Dir: kind.Out, Many: true, Signals: []string{"running", "waiting"}},
				{Name: "scale", Type: "scale", Dir: kind.In}, {Name: "offload", Type: "tier", Dir: kind.Out}})
		},
		Limits: func(c engine) []kind.Limit {
			l := []kind.Limit{{Bound: kind.Run, Field: "seqs", Value: c.Seqs}, {Bound: kind.Wait, Field: "queue", Value: c.Queue}}
			if c.Mock != nil {
				l = append(l, kind.Limit{Bound: kind.First, Field: "mock.ttft", Value: int64(c.Mock.TTFT)},
					kind.Limit{Bound: kind.Step, Field: "mock.itl", Value: int64(c.Mock.ITL)})
			}
			return l
		},
		Features: func(c engine) ([]string, bool) {
			if c.Engine == "foreign" {
				return nil, false
			}
			return []string{"logprobs", "tools"}, true
		},
		Size: func(c engine, f model.Facts) plan.Needs {
			tokens := c.KV.Tokens
			if tokens == 0 {
				tokens = 4 * f.Context
			}
			if c.Device != "" {
				return onDevice(c, f)
			}
			return plan.Needs{MemoryBytes: int64(tokens) * f.KVBytesPerToken(2), SharedBytes: f.FileBytes, DiskBytes: c.KV.Disk, Threads: max(c.Threads, 1)}
		},
		Contract: func(c engine, port string) []kind.Term {
			terms := []kind.Term{{Name: "engine", Field: "engine", Values: []string{c.Engine}}}
			if len(c.KV.Transports) > 0 {
				terms = append(terms, kind.Term{Name: kind.Transport, Field: "kv.transports", Values: c.KV.Transports, Rule: kind.Meet})
			}
			block := kind.Term{Name: "block size", Field: "kv.block"}
			if c.KV.Block > 0 {
				block.Values = []string{strconv.Itoa(c.KV.Block)}
			}
			if port == "events" {
				return []kind.Term{block}
			}
			hash := kind.Term{Name: "hash scheme", Field: "kv.hash"}
			if c.KV.Hash != "" {
				hash.Values = []string{c.KV.Hash}
			}
			terms = append(terms, block, hash)
			if c.Mock != nil && c.Mock.HandOff != "" {
				terms = append(terms, kind.Term{Name: "hand-off mode", Field: "mock.handOff", Values: []string{c.Mock.HandOff}})
			}
			return terms
		},
		Lacks: func(c engine) []kind.Lack {
			if c.Engine == "foreign" {
				return []kind.Lack{{Field: "engine", Msg: `engine "foreign" is not run yet: use "native"`}}
			}
			return nil
		},
		New: never[engine],
	})
}

// onDevice has parts: weights and cache are certain, what else a device holds is guessed.
func onDevice(c engine, f model.Facts) plan.Needs {
	tp, tokens := max(c.TP, 1), c.KV.Tokens
	part := plan.Part{Name: "KV of one sequence", Place: plan.OnDevice, Spread: "tp", Keeps: true}
	if tokens == 0 {
		tokens = f.Context
	} else {
		part = plan.Part{Name: "KV cache", Place: plan.OnDevice, Spread: "tp", Keeps: true, Each: f.KVBytes(1, 16, tp, 1), Unit: "token", Field: "kv.tokens"}
	}
	part.Bytes = f.KVBytes(tokens, 16, tp, 1)
	n := plan.Needs{Devices: tp, DeviceGroup: tp, DeviceClass: c.Device}
	n.Add(plan.Part{Name: "weights", Place: plan.OnDevice, Bytes: f.WeightBytes() / int64(tp), Spread: "tp"}, part,
		plan.Part{Name: "activations", Place: plan.OnDevice, Bytes: 1 << 30, Guess: true},
		plan.Part{Name: "process", Place: plan.InMemory, Bytes: 4 << 30, Guess: true},
		plan.Part{Name: "model", Place: plan.ModelFile, Bytes: f.WeightBytes()},
		plan.Part{Name: "tier on disk", Place: plan.OnDisk, Bytes: c.KV.Disk, Keeps: true})
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
