package serve

import (
	"context"
	"iter"
	"runtime/debug"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/inflight"
)

// guard counts calls of e and turns a panic of the engine into the failure of one request.
func guard(calls *inflight.Group, h kind.Host, e engine.Engine) flow.EngineFunc[*llm.TokensRequest, *llm.TokensDelta] {
	instance := h.Instance()
	return func(ctx context.Context, r *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
		return func(yield func(*llm.TokensDelta, error) bool) {
			ctx, done, err := calls.Begin(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			defer done()
			ctx, w := watch(ctx, h, r)
			if w != nil {
				defer w.end(ctx)
				r = w.request
			}
			outside := false // the consumer runs: its panic is not ours
			defer func() {
				p := recover()
				if p == nil {
					return
				}
				if outside {
					panic(p)
				}
				h.Log().Error("engine panicked", "request", r.ID, "panic", p, "stack", string(debug.Stack()))
				failed := &flow.Error{Class: flow.Internal, Reason: "engine.panic", Msg: "internal error in the engine", Instance: instance}
				w.saw(nil, failed)
				yield(nil, failed)
			}()
			for d, err := range e.Generate(ctx, r) {
				if d != nil && d.Instance == "" {
					d.Instance = instance
				}
				w.saw(d, err)
				outside = true
				ok := yield(d, err)
				outside = false
				if !ok || err != nil {
					return
				}
			}
		}
	}
}
