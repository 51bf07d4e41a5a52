package router

import (
	"fmt"
	"time"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

const schema = `
// #Router sends each request to an instance: to a worker, or to prefill and then to decode.
#Router: {
	kind: "router"

	// policy chooses among instances. "least-loaded" counts requests (for prefill: prompt tokens) in flight, "power-of-two" takes the
	// less loaded of two random ones, "kv" weighs the prompt's blocks that an instance has against its load, and needs the events of every
	// node that computes prompts; it is checked, but not run yet. Default: "least-loaded".
	policy?: "round-robin" | "random" | "power-of-two" | "least-loaded" | "kv"

	// kv tunes policy "kv".
	kv?: {
		// overlap is how many blocks of load one block weighs that an instance has; 0 or more. Default: 1.
		overlap?: number & >=0 & <=100

		// temperature spreads requests over instances of nearly equal cost: 0 takes the best one; 0 or more. Default: 0.
		temperature?: number & >=0 & <=100
	}

	// wait is how long a request waits while no instance is there. Default: "10s".
	wait?: #Duration

	// inhibit is how long an instance gets nothing after it could not be reached or stalled. Default: "5s".
	inhibit?: #Duration

	// stall is how long an instance may take for its first answer, above 25 ms for each prompt token that it has in flight; "0s" does
	// not watch. Default: "15s".
	stall?: #Duration
}
`

// Config is what a spec may set.
type Config struct {
	Policy  string         `json:"policy"`
	KV      *KV            `json:"kv,omitempty"` // only with policy "kv"
	Wait    graph.Duration `json:"wait"`
	Inhibit graph.Duration `json:"inhibit"`
	Stall   graph.Duration `json:"stall"`
}

// KV tunes policy "kv".
type KV struct {
	Overlap     *float64 `json:"overlap,omitempty"` // blocks of load that one block is worth; nil: 1
	Temperature float64  `json:"temperature,omitempty"`
}

// byKV is the policy that looks at the blocks which instances hold.
const byKV = "kv"

// DefaultConfig is the config where a spec says nothing.
func DefaultConfig() Config {
	return Config{
		Policy: LeastLoaded, Wait: graph.Duration(10 * time.Second), Inhibit: graph.Duration(5 * time.Second),
		Stall: graph.Duration(15 * time.Second),
	}
}

func init() {
	kind.Register(kind.Kind[Config]{
		Name:     "router",
		Summary:  "Sends each request to an instance: to a worker, or to prefill and then to decode.",
		Schema:   schema,
		Colocate: true,
		Default:  DefaultConfig,
		Ports: func(c Config) []kind.Port {
			events := kind.Port{Name: "events", Type: "events", Dir: kind.In, Many: true}
			if c.Policy == byKV {
				events.Signals = []string{"blocks"}
			}
			return []kind.Port{
				{Name: "in", Type: "tokens", Dir: kind.In, Need: true, Many: true},
				{Name: "prefill", Type: "tokens", Dir: kind.Out, Many: true},
				{Name: "decode", Type: "tokens", Dir: kind.Out, Many: true},
				{Name: "worker", Type: "tokens", Dir: kind.Out, Many: true},
				events,
				{Name: "load", Type: "load", Dir: kind.In, Many: true},
			}
		},
		Check: check,
		Lacks: func(c Config) []kind.Lack {
			if c.Policy == byKV {
				return []kind.Lack{{Field: "policy", Msg: `policy "kv" is not run yet: use "least-loaded"`}}
			}
			return nil
		},
		Limits: func(c Config) []kind.Limit {
			return []kind.Limit{
				{Bound: kind.Queue, Field: "wait", Value: int64(c.Wait)},
				{Bound: kind.Begin, Field: "stall", Value: int64(c.Stall)},
			}
		},
		New: func(c Config, h kind.Host) (kind.Component, error) { return New(c, h) },
	})
}

// check finds a router that could not send anywhere.
func check(c Config, s kind.Site) diag.List {
	var l diag.List
	out := map[string]*graph.Edge{}
	for _, e := range s.Graph.Edges {
		if e.From.Node == s.Node.Name {
			out[e.From.Port] = e
		}
	}
	path := "nodes." + s.Node.Name
	add := func(pos diag.Pos, msg, hint string) {
		l.Add(diag.Diagnostic{Code: "missing-edge", Pos: pos, Path: path, Msg: path + ": " + msg, Hint: hint})
	}
	switch w, p, d := out["worker"], out["prefill"], out["decode"]; {
	case w != nil && (p != nil || d != nil):
		e := p
		if e == nil {
			e = d
		}
		l.Add(diag.Diagnostic{
			Code: "mixed-roles", Pos: e.Pos, Len: e.Len, Path: path,
			Msg:     fmt.Sprintf("%s: edge %q: a router has either workers, or prefill and decode", path, e),
			Hint:    "use two routers, or one kind of node",
			Related: []diag.Related{{Pos: w.Pos, Len: w.Len, Msg: "the workers are joined here"}},
		})
	case w == nil && p == nil && d == nil:
		add(s.Node.Pos, "a router without an edge to a worker, prefill or decode node", fmt.Sprintf(`add an edge "%s -> NODE"`, s.Node.Name))
	case p != nil && d == nil:
		add(p.Pos, "a router with prefill nodes but no decode node", fmt.Sprintf(`add an edge "%s.decode -> NODE"`, s.Node.Name))
	case p == nil && d != nil:
		add(d.Pos, "a router with decode nodes but no prefill node", `use kind "worker", or add a prefill node`)
	}
	l = append(l, signals(c, s)...)
	for field, d := range map[string]graph.Duration{"wait": c.Wait, "inhibit": c.Inhibit, "stall": c.Stall} {
		if d < 0 {
			l.Add(s.Finding("bad-value", field, "", "%q is below zero", d.Std()))
		}
	}
	return l
}

// signals finds what policy "kv" lacks, and what the others make nothing of.
func signals(c Config, s kind.Site) diag.List {
	var l diag.List
	tells := map[string]bool{}
	for _, e := range s.Graph.Edges {
		if e.To.Node != s.Node.Name || e.Type != "events" && e.Type != "load" {
			continue
		}
		tells[e.Type+" "+e.From.Node] = true
		if c.Policy != byKV {
			l.Add(diag.Diagnostic{
				Code: "no-effect", Severity: diag.Warning, Pos: e.Pos, Len: e.Len, Path: fmt.Sprintf("edges.%q", e),
				Msg:  fmt.Sprintf("edge %q: policy %q of %s does not look at it", e, c.Policy, s.Node.Name),
				Hint: `remove the edge, or use policy "kv"`,
			})
		}
	}
	if c.Policy != byKV {
		if c.KV != nil {
			l.Add(s.Finding("no-effect", "kv", `set policy: "kv", or remove kv`, "has no effect with policy %q", c.Policy))
		}
		return l
	}
	for _, e := range s.Graph.Edges {
		if to := e.To.Node; e.From.Node == s.Node.Name && (e.From.Port == "prefill" || e.From.Port == "worker") && !tells["events "+to] {
			d := s.Finding("missing-signal", "policy", fmt.Sprintf(`add "%s.events -> %s"`, to, s.Node.Name),
				`"kv" needs to know which blocks %s holds, and no edge of type events comes from it`, to)
			d.Related = []diag.Related{{Pos: e.Pos, Len: e.Len, Msg: fmt.Sprintf("it sends requests to %s here", to)}}
			l.Add(d)
		}
	}
	return l
}
