package migrate_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
	"github.com/dynamograph/dynamo/nodes/migrate"
)

// An instance is lost after two tokens; the next one goes on from there.
func Example() {
	counts := func(_ context.Context, q *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
		return func(yield func(*llm.TokensDelta, error) bool) {
			for n := q.Generated; n < 4; n++ {
				if q.Generated == 0 && n == 2 {
					yield(nil, &flow.Error{Class: flow.Unavailable, Reason: "transport.disconnected", Msg: "gone", Retry: true})
					return
				}
				d := &llm.TokensDelta{Tokens: []uint32{uint32(n)}}
				if n == 3 {
					d.Finish = llm.FinishStop
				}
				if !yield(d, nil) {
					return
				}
			}
		}
	}
	h := kindtest.NewHost(&testing.T{}, "migrate", "migrate-0", nil)
	h.Dialled["out"] = flow.Static[*llm.TokensRequest, *llm.TokensDelta]{{AsyncEngine: flow.EngineFunc[*llm.TokensRequest, *llm.TokensDelta](counts)}}
	m, err := migrate.New(migrate.DefaultConfig(), h)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	if err := m.Start(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	for d, err := range m.Generate(context.Background(), &llm.TokensRequest{Tokens: []uint32{9}}) {
		fmt.Println(d.Tokens, d.Finish, err)
	}
	// Output:
	// [0]  <nil>
	// [1]  <nil>
	// [2]  <nil>
	// [3] stop <nil>
}
