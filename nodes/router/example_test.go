package router_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
	"github.com/dynamograph/dynamo/nodes/router"
)

// Two workers take turns; the delta says who worked.
func Example() {
	answer := flow.EngineFunc[*llm.TokensRequest, *llm.TokensDelta](func(context.Context, *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
		return func(yield func(*llm.TokensDelta, error) bool) {
			yield(&llm.TokensDelta{Tokens: []uint32{42}, Finish: llm.FinishStop}, nil)
		}
	})
	h := kindtest.NewHost(&testing.T{}, "route", "route-0", nil)
	h.Dialled["worker"] = flow.Static[*llm.TokensRequest, *llm.TokensDelta]{{ID: "worker-0", AsyncEngine: answer}, {ID: "worker-1", AsyncEngine: answer}}
	c := router.DefaultConfig()
	c.Policy = router.RoundRobin
	r, err := router.New(c, h)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	if err := r.Start(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		for d, err := range r.Generate(context.Background(), &llm.TokensRequest{Tokens: []uint32{1}}) {
			if err != nil {
				fmt.Println(err)
			} else if len(d.Tokens) > 0 {
				fmt.Println(d.Instance, d.Tokens)
			}
		}
	}
	// Output:
	// worker-0 [42]
	// worker-1 [42]
	// worker-0 [42]
}
