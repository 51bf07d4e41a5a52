// Package ingo shows a graph that is made in Go instead of CUE: checked, compiled and written out as a spec.
package ingo

import (
	"context"
	"time"

	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/build"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
	_ "github.com/dynamograph/dynamo/nodes/all" // the kinds
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/frontend"
	"github.com/dynamograph/dynamo/nodes/router"
	"github.com/dynamograph/dynamo/specs/check"
)

// Disagg makes a graph in which one node computes prompts and others generate.
func Disagg(decoders int) (*graph.Graph, diag.List) {
	g := build.New("disagg", build.SLO(500*time.Millisecond, 25*time.Millisecond))
	mock := engine.Config{Engine: "mock", Mock: &engine.Mock{TTFT: "20ms", ITL: "5ms"}}
	api := g.Add("api", "frontend", frontend.Config{Listen: "127.0.0.1:8000"})
	route := g.Add("route", "router", router.Config{Policy: router.LeastLoaded})
	prefill := g.Add("prefill", "prefill", mock)
	decode := g.Add("decode", "decode", mock, build.Replicas(decoders))
	g.Join(api, route)
	g.Join(route.Out("prefill"), prefill)
	g.Join(route.Out("decode"), decode)
	g.Join(prefill.Out("kv"), decode.In("kv"), build.Transport("shm"))
	return g.Graph()
}

// Compile does to a graph what `dynamo graph vet` and `plan` do to a spec. The plan is nil where the list has an error.
func Compile(ctx context.Context, g *graph.Graph) (*plan.Plan, diag.List, error) {
	list, err := check.Graph(ctx, g, kind.Default)
	if err != nil || list.Failed() {
		return nil, list, err
	}
	p, more := compiler.Compile(g, compiler.Options{})
	return p, append(list, more...), nil
}
