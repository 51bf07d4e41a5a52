package inproc_test

import (
	"context"
	"fmt"
	"iter"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/runtime/transport"
	"github.com/dynamograph/dynamo/runtime/transport/inproc"
)

func Example() {
	s := inproc.NewServer("decode-1", nil)
	defer s.Close()
	at := transport.Address{Node: "decode", Port: "in"}
	err := s.Handle(at, llm.Tokens.Type, flow.EngineFunc[*llm.TokensRequest, *llm.TokensDelta](
		func(_ context.Context, r *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
			return func(yield func(*llm.TokensDelta, error) bool) {
				yield(&llm.TokensDelta{Tokens: r.Tokens, Finish: llm.FinishStop}, nil)
			}
		}))
	if err != nil {
		panic(err)
	}
	c := s.Conn()
	defer c.Close()
	v, err := c.Engine(at, llm.Tokens.Type)
	if err != nil {
		panic(err)
	}
	e := v.(flow.AsyncEngine[*llm.TokensRequest, *llm.TokensDelta])
	for d, err := range e.Generate(context.Background(), &llm.TokensRequest{Tokens: []uint32{1, 2}}) {
		fmt.Println(d.Tokens, d.Finish, err)
	}
	// Output: [1 2] stop <nil>
}
