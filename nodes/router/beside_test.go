package router

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/engine/serve"
)

// Prefill that dies once decode has begun costs nothing: decode has what it needs.
func TestBesideLostLate(t *testing.T) { synctest.Test(t, besideLostLate) }

func besideLostLate(t *testing.T) {
	given, dead := make(chan struct{}), make(chan struct{})
	pre := &fake{id: "p", info: map[string]string{serve.InfoHandOff: string(llm.ModeBeside)}}
	pre.answer = func(_ context.Context, _ *llm.TokensRequest, yield func(*llm.TokensDelta, error) bool) {
		<-given
		yield(nil, &flow.Error{Class: flow.Unavailable, Reason: "transport.disconnected", Msg: "killed", Retry: true})
		close(dead)
	}
	dec := &fake{id: "d", answer: func(ctx context.Context, q *llm.TokensRequest, yield func(*llm.TokensDelta, error) bool) {
		if !yield(&llm.TokensDelta{Tokens: []uint32{1}}, nil) {
			return
		}
		close(given)
		<-dead
		time.Sleep(time.Second)
		if ctx.Err() != nil {
			yield(nil, flow.AsError(context.Cause(ctx)))
			return
		}
		tokens(2, 3)(ctx, q, yield)
	}}
	g := start(t, nil, nil, []*fake{pre}, []*fake{dec})
	defer g.close()
	var got []uint32
	for d, err := range g.r.Generate(t.Context(), ask3()) {
		if err != nil {
			t.Fatalf("after %v: %v", got, err)
		}
		got = append(got, d.Tokens...)
	}
	if !slices.Equal(got, []uint32{1, 2, 3}) {
		t.Errorf("%v", got)
	}
}
