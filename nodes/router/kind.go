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
	// less loaded of two random ones. Default: "least-loaded".
	policy?: "round-robin" | "random" | "power-of-two" | "least-loaded"

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
	Wait    graph.Duration `json:"wait"`
	Inhibit graph.Duration `json:"inhibit"`
	Stall   graph.Duration `json:"stall"`
}

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
		Ports: func(Config) []kind.Port {
			return []kind.Port{
				{Name: "in", Type: "tokens", Dir: kind.In, Need: true, Many: true},
				{Name: "prefill", Type: "tokens", Dir: kind.Out, Many: true},
				{Name: "decode", Type: "tokens", Dir: kind.Out, Many: true},
				{Name: "worker", Type: "tokens", Dir: kind.Out, Many: true},
			}
		},
		Check: check,
		New:   func(c Config, h kind.Host) (kind.Component, error) { return New(c, h) },
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
	for field, d := range map[string]graph.Duration{"wait": c.Wait, "inhibit": c.Inhibit, "stall": c.Stall} {
		if d < 0 {
			l.Add(diag.Diagnostic{
				Code: "bad-value", Pos: s.Field(field), Len: len(field), Path: path + "." + field,
				Msg: fmt.Sprintf("%s.%s: %q is below zero", path, field, d.Std()),
			})
		}
	}
	return l
}
