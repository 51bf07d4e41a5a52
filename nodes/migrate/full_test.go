package migrate

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
)

// crowd is two instances behind a router that are full from an attempt on, for a time.
type crowd struct {
	engines
	until time.Time
	dead  bool // worker-b is not full, it is started again
	full  int  // attempts that were refused
}

func (c *crowd) Generate(ctx context.Context, q *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
	if c.n < len(c.cuts) || !time.Now().Before(c.until) {
		return c.engines.Generate(ctx, q)
	}
	return func(yield func(*llm.TokensDelta, error) bool) {
		c.full++
		who := []string{"worker-a", "worker-b"}[c.full%2]
		if c.dead && who == "worker-b" {
			yield(nil, &flow.Error{Class: flow.Unavailable, Reason: "transport.cannot_connect", Instance: who, Retry: true})
			return
		}
		yield(nil, &flow.Error{Class: flow.CapacityExhausted, Reason: "engine.queue_full", Instance: who, Retry: true, RetryAfter: time.Second})
	}
}

func crowded(t *testing.T, c *crowd, q *llm.TokensRequest) result {
	h := kindtest.NewHost(t, "migrate", "migrate-0", nil)
	h.Dialled["out"] = flow.Static[*llm.TokensRequest, *llm.TokensDelta]{{ID: "route-0", AsyncEngine: c}}
	n, err := New(DefaultConfig(), h)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	var r result
	for d, err := range n.Generate(t.Context(), q) {
		if err != nil {
			r.err = flow.AsError(err)
			break
		}
		r.tokens = append(r.tokens, d.Tokens...)
		if r.finish = d.Finish; d.Usage != nil {
			r.usage = *d.Usage
			r.usages++
		}
	}
	return r
}

// An instance is lost while the others are full: the streams that it had wait for room, they are not lost.
func TestOngoingWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole, _ := run(t, DefaultConfig(), &engines{length: 20}, request())
		c := &crowd{engines: engines{length: 20, cuts: []cut{{after: 7, how: "error"}}}, until: time.Now().Add(20 * time.Second)}
		if d := same(crowded(t, c, request()), whole); d != "" {
			t.Error(d)
		}
		if c.full < 10 || c.full > 40 {
			t.Errorf("asked %d times in 20 s", c.full)
		}
		// Nor is it lost where the next one is lost too.
		c = &crowd{engines: engines{length: 20, cuts: []cut{{after: 7, how: "error"}, {after: 3, how: "error"}}}, until: time.Now().Add(5 * time.Second)}
		if d := same(crowded(t, c, request()), whole); d != "" {
			t.Error(d)
		}
		// Nor where the lost one is not back yet.
		c = &crowd{engines: engines{length: 20, cuts: []cut{{after: 7, how: "error"}}}, until: time.Now().Add(20 * time.Second), dead: true}
		if d := same(crowded(t, c, request()), whole); d != "" {
			t.Error(d)
		}
		// But not for ever.
		began := time.Now()
		c = &crowd{engines: engines{length: 20, cuts: []cut{{after: 7, how: "error"}}}, until: time.Now().Add(time.Hour)}
		if r := crowded(t, c, request()); r.err == nil || r.err.Class != flow.CapacityExhausted || len(r.tokens) != 7 || time.Since(began) > 90*time.Second {
			t.Errorf("%v behind %d tokens, after %v", r.err, len(r.tokens), time.Since(began))
		}
	})
}

// A new request that finds everybody full is refused, after each was asked once.
func TestNewIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := &crowd{engines: engines{length: 20}, until: began.Add(time.Hour)}
		r := crowded(t, c, request())
		if r.err == nil || r.err.Class != flow.CapacityExhausted || r.err.RetryAfter != time.Second || c.full != 3 || !time.Now().Equal(began) {
			t.Errorf("%v after %d attempts and %v", r.err, c.full, time.Since(began))
		}
	})
}
