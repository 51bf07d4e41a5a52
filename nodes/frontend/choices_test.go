package frontend

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
)

var errFull = &flow.Error{Class: flow.CapacityExhausted, Reason: "engine.queue_full", Msg: "full", Retry: true}

// A choice that finds no room while another is under way waits: the answer is whole. Where none has begun the answer is refused as a whole.
func TestChoiceWaitsForRoom(t *testing.T) {
	for _, more := range []string{`,"n":2`, `,"stream":true,"n":2`} {
		var calls, refused atomic.Int32
		second, end := make(chan struct{}), make(chan struct{})
		s := serve(t, func(ctx context.Context, q *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) {
			if calls.Add(1) == 1 {
				if yield(&llm.ChatDelta{Text: "a", Tokens: []uint32{1}}, nil) {
					close(second)
					<-end
					words("b")(ctx, q, yield)
				}
				return
			}
			<-second // the first has begun
			switch refused.Add(1) {
			case 1:
				e := *errFull
				yield(nil, &e)
			case 2:
				yield(nil, &flow.Error{Class: flow.Unavailable, Reason: "transport.cannot_connect", Msg: "is being started again", Retry: true})
			default:
				close(end)
				words("c")(ctx, q, yield)
			}
		})
		status, _, body := s.get("POST", pathChat, hello+more+"}")
		if status != 200 || strings.Contains(body, `"error"`) || !strings.Contains(body, `"c"`) || !strings.Contains(body, "b") || refused.Load() != 3 {
			t.Errorf("%s: status %d, refused %d times: %s", more, status, refused.Load(), body)
		}
	}
}

func TestChoicesAreRefusedTogether(t *testing.T) {
	for round := range 50 {
		t.Run("", func(t *testing.T) { t.Parallel(); refusedTogether(t, round) })
	}
}

func refusedTogether(t *testing.T, round int) {
	var calls atomic.Int32
	var both sync.WaitGroup
	both.Add(2)
	s := serve(t, func(ctx context.Context, q *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) {
		n := calls.Add(1)
		if n > 2 { // the other was first: this one waited
			words("late")(ctx, q, yield)
			return
		}
		both.Done()
		both.Wait()
		if n == 1 {
			e := *errFull
			yield(nil, &e)
			return
		}
		words("a", "b")(ctx, q, yield)
	})
	status, _, body := s.get("POST", pathChat, fmt.Sprintf(`%s,"stream":true,"n":2,"seed":%d}`, hello, round))
	if whole := status == 200 && strings.Contains(body, "[DONE]") && strings.Contains(body, "late"); !whole && status != 429 {
		t.Fatalf("status %d: %s", status, body)
	}
}
