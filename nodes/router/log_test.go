package router

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// TestLogsSeldom holds that a prefill that is full, and an instance that fails many requests, take one line a second and a reason.
func TestLogsSeldom(t *testing.T) {
	full := &flow.Error{Class: flow.CapacityExhausted, Reason: "engine.queue_full", Msg: "full", Retry: true}
	lost := &flow.Error{Class: flow.Unavailable, Reason: "transport.disconnected", Msg: "lost", Retry: true}
	later := func(ctx context.Context, q *llm.TokensRequest, yield func(*llm.TokensDelta, error) bool) {
		time.Sleep(100 * time.Millisecond) // till all are there
		yield(nil, lost)
	}
	for _, c := range []struct {
		name, line string
		prefill    *flow.Error
		decode     answerFunc
		level      string
	}{
		{"prefill is full", "decode computes the prompt", full, tokens(1), "WARN"},
		{"no prefill", "decode computes the prompt", nil, tokens(1), "INFO"},
		{"decode is lost", "instance failed", full, later, "WARN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pre := []*fake{}
				if c.prefill != nil {
					pre = append(pre, &fake{id: "p", answer: fails(c.prefill)})
				}
				g := start(t, nil, nil, pre, []*fake{{id: "d", answer: c.decode}})
				defer g.close()
				ask := func(n int) []string {
					before := g.host.Logs()
					var wg sync.WaitGroup
					for range n {
						wg.Go(func() {
							for range g.r.Generate(t.Context(), ask3()) {
							}
						})
					}
					wg.Wait()
					var l []string
					for line := range strings.Lines(strings.TrimPrefix(g.host.Logs(), before)) {
						if strings.Contains(line, c.line) || strings.Contains(line, "prefill failed") {
							l = append(l, line)
						}
					}
					return l
				}
				if l := ask(50); len(l) != 1 || !strings.Contains(l[0], "level="+c.level) || !strings.Contains(l[0], "suppressed=0") {
					t.Errorf("50 requests: %q", l)
				}
				time.Sleep(6 * time.Second)
				if l := ask(1); len(l) != 1 || !strings.Contains(l[0], "suppressed=") || strings.Contains(l[0], "suppressed=0") {
					t.Errorf("later: %q", l)
				}
			})
		})
	}
}
