package grpc_test

import (
	"context"
	"fmt"
	"iter"
	"net"
	"os"
	"path/filepath"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/runtime/transport"
	"github.com/dynamograph/dynamo/runtime/transport/grpc"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "grpc")
	must(err)
	defer os.RemoveAll(dir)
	at := transport.Address{Node: "decode", Port: "in"}

	// One process serves.
	s := grpc.NewServer(grpc.Options{Instance: "decode-1"})
	must(s.Handle(at, llm.Tokens.Type, flow.EngineFunc[*llm.TokensRequest, *llm.TokensDelta](
		func(_ context.Context, r *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
			return func(yield func(*llm.TokensDelta, error) bool) {
				if yield(&llm.TokensDelta{Tokens: r.Tokens}, nil) {
					yield(nil, flow.Errorf(flow.InvalidRequest, "engine.context_length", "too long"))
				}
			}
		})))
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	must(err)
	done := make(chan error)
	go func() { done <- s.Serve(l) }()

	// Another calls.
	c := grpc.Dial("unix:"+filepath.Join(dir, "s"), grpc.Options{Instance: "decode-1"})
	v, err := c.Engine(at, llm.Tokens.Type)
	must(err)
	for d, err := range v.(flow.AsyncEngine[*llm.TokensRequest, *llm.TokensDelta]).Generate(context.Background(), &llm.TokensRequest{Tokens: []uint32{1, 2}}) {
		if err != nil {
			fmt.Println(flow.AsError(err).Reason, err)
			break
		}
		fmt.Println(d.Tokens)
	}
	must(c.Close())
	must(s.Close())
	must(<-done)
	// Output:
	// [1 2]
	// engine.context_length decode-1: too long
}
