package migrate

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
)

// model is what a deterministic engine says: the n-th token follows from the prompt, the seed and n alone.
func model(prompt []uint32, seed uint64, n int) uint32 {
	h := uint32(seed) + 17
	for _, t := range prompt {
		h = h*31 + t
	}
	return (h*2654435761 + uint32(n)*40503) % 50000
}

// cut is how an attempt breaks.
type cut struct {
	after  int    // tokens of this attempt
	how    string // "error", "end", "stall", "abort"
	per    int    // tokens a delta; 0 is 1
	refuse bool   // without a chance elsewhere
}

// engines is what stands behind migrate: each attempt breaks as its cut says, the one after the last cut does not.
type engines struct {
	cuts   []cut
	length int // tokens of an answer
	n      int
	seen   []*llm.TokensRequest
}

var errLost = &flow.Error{Class: flow.Unavailable, Reason: "transport.disconnected", Msg: "gone", Retry: true}

func (e *engines) Generate(ctx context.Context, q *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
	return func(yield func(*llm.TokensDelta, error) bool) {
		e.n++
		e.seen = append(e.seen, q)
		instance := fmt.Sprintf("worker-%d", e.n)
		c := cut{after: 1 << 30, per: 1}
		if e.n <= len(e.cuts) {
			c = e.cuts[e.n-1]
			c.per = max(c.per, 1)
		}
		if !yield(&llm.TokensDelta{Instance: instance}, nil) { // as the router does
			return
		}
		prompt := q.Tokens[:len(q.Tokens)-q.Generated]
		for i, t := range q.Tokens[len(prompt):] {
			if t != model(prompt, q.Sampling.Seed, i) {
				yield(nil, flow.Errorf(flow.Internal, "test.history", "token %d of the history is %d", i, t))
				return
			}
		}
		out := q.Generated
		d := &llm.TokensDelta{}
		for {
			if out-q.Generated >= c.after {
				switch c.how {
				case "end":
				case "stall":
					<-ctx.Done()
					yield(nil, flow.AsError(ctx.Err()))
				case "abort":
					_ = yield(&llm.TokensDelta{Finish: llm.FinishAbort}, nil) && yield(nil, errLost)
				default:
					err := *errLost
					err.Retry = !c.refuse
					yield(nil, &err)
				}
				return
			}
			d.Tokens, d.Prompt, d.Finish, d.Usage = d.Tokens[:0], nil, "", nil
			if q.PromptLogprobs && out == q.Generated {
				d.Prompt = make([]llm.Logprob, len(prompt))
			}
			for range c.per {
				if out-q.Generated >= c.after || out >= e.length || q.Stop.MaxTokens > 0 && out >= q.Stop.MaxTokens {
					break
				}
				d.Tokens = append(d.Tokens, model(prompt, q.Sampling.Seed, out))
				out++
			}
			switch {
			case q.Stop.MaxTokens > 0 && out >= q.Stop.MaxTokens:
				d.Finish = llm.FinishLength
			case out >= e.length:
				d.Finish = llm.FinishStop
			}
			if d.Finish != "" && out-q.Generated < c.after {
				d.Usage = &llm.Usage{Prompt: len(prompt), Completion: out, Cached: len(q.Tokens) / 2}
				yield(d, nil)
				return
			}
			d.Finish = ""
			if len(d.Tokens) > 0 && !yield(d, nil) {
				return
			}
		}
	}
}

type result struct {
	tokens  []uint32
	finish  llm.FinishReason
	usage   llm.Usage
	usages  int
	prompts int
	err     *flow.Error
}

func run(t testing.TB, c Config, e *engines, q *llm.TokensRequest) (result, *kindtest.Host) {
	h := kindtest.NewHost(t, "migrate", "migrate-0", nil)
	h.Dialled["out"] = flow.Static[*llm.TokensRequest, *llm.TokensDelta]{{ID: "route-0", AsyncEngine: e}}
	n, err := New(c, h)
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
			continue
		}
		if r.finish != "" || r.err != nil {
			t.Errorf("something came after the end: %+v", d)
		}
		r.tokens = append(r.tokens, d.Tokens...)
		r.finish = d.Finish
		if d.Usage != nil {
			r.usage = *d.Usage
			r.usages++
		}
		if len(d.Prompt) > 0 {
			r.prompts++
		}
	}
	return r, h
}

func request() *llm.TokensRequest {
	return &llm.TokensRequest{ID: "r", Tokens: []uint32{5, 6, 7, 8}, Sampling: llm.Sampling{Seed: 3}, Logprobs: -1}
}

// same reports how two results differ in what a client sees.
func same(a, b result) string {
	switch {
	case a.err != nil || b.err != nil:
		return fmt.Sprintf("errors %v, %v", a.err, b.err)
	case !slices.Equal(a.tokens, b.tokens):
		return fmt.Sprintf("tokens %v, %v", a.tokens, b.tokens)
	case a.finish != b.finish || a.usage.Prompt != b.usage.Prompt || a.usage.Completion != b.usage.Completion || a.usages != 1 || b.usages != 1:
		return fmt.Sprintf("ends %s %+v, %s %+v", a.finish, a.usage, b.finish, b.usage)
	case a.prompts != b.prompts:
		return fmt.Sprintf("prompt logprobs %d, %d times", a.prompts, b.prompts)
	}
	return ""
}

// TestAnyCut breaks a stream at every token in every way: the client sees no difference.
func TestAnyCut(t *testing.T) {
	for _, limit := range []int{0, 9} {
		q := request()
		q.Stop.MaxTokens, q.PromptLogprobs = limit, true
		want, _ := run(t, DefaultConfig(), &engines{length: 12}, q)
		n := 12
		if limit > 0 {
			n = limit
		}
		if len(want.tokens) != n || want.prompts != 1 {
			t.Fatalf("%+v", want)
		}
		for _, how := range []string{"error", "end", "abort"} {
			for after := range n + 1 {
				got, h := run(t, DefaultConfig(), &engines{length: 12, cuts: []cut{{after: after, how: how}}}, q)
				if s := same(got, want); s != "" {
					t.Errorf("limit %d, %s after %d: %s", limit, how, after, s)
				}
				said := "ongoing"
				if after == 0 {
					said = "new"
				}
				wantCount := 1.0
				if limit > 0 && after >= limit {
					wantCount = 0 // all was said: nothing to continue
				}
				if c := h.Metric("dynamo_migrations_total", said, "success"); c != wantCount {
					t.Errorf("limit %d, %s after %d: counted %v", limit, how, after, c)
				}
			}
		}
	}
}

// TestCuts breaks streams up to three times at random, with deltas of several tokens and requests that were migrated before.
func TestCuts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		length := rapid.IntRange(1, 30).Draw(rt, "length")
		q := request()
		q.Sampling.Seed = rapid.Uint64().Draw(rt, "seed")
		q.Stop.MaxTokens = rapid.IntRange(0, 35).Draw(rt, "max")
		if g := rapid.IntRange(0, length-1).Draw(rt, "generated"); q.Stop.MaxTokens == 0 || g < q.Stop.MaxTokens {
			for i := range g {
				q.Tokens = append(q.Tokens, model(q.Tokens[:4], q.Sampling.Seed, i))
			}
			q.Generated = g
		}
		want, _ := run(t, DefaultConfig(), &engines{length: length}, q)
		e := &engines{length: length}
		for range rapid.IntRange(0, 3).Draw(rt, "cuts") {
			e.cuts = append(e.cuts, cut{
				after: rapid.IntRange(0, 30).Draw(rt, "after"), how: rapid.SampledFrom([]string{"error", "end", "abort"}).Draw(rt, "how"),
				per: rapid.IntRange(1, 4).Draw(rt, "per"),
			})
		}
		before := slices.Clone(q.Tokens)
		got, _ := run(t, DefaultConfig(), e, q)
		if s := same(got, want); s != "" {
			rt.Fatal(s)
		}
		if !slices.Equal(q.Tokens, before) || len(q.Routing.Exclude) > 0 {
			rt.Fatal("the request was changed")
		}
	})
}

// TestRetryRequest checks what the second instance is asked (case G-002): limits count all output, whoever made it.
func TestRetryRequest(t *testing.T) {
	q := request()
	q.Stop = llm.Stop{MaxTokens: 8, MinTokens: 6}
	q.Routing.Exclude = []string{"worker-9"}
	e := &engines{length: 20, cuts: []cut{{after: 3, how: "error"}}}
	r, _ := run(t, DefaultConfig(), e, q)
	if len(r.tokens) != 8 || r.finish != llm.FinishLength || r.usage != (llm.Usage{Prompt: 4, Completion: 8, Cached: 3}) {
		t.Errorf("%+v", r)
	}
	x := e.seen[1]
	if x.ID != "r" || x.Generated != 3 || len(x.Tokens) != 7 || x.Stop.MaxTokens != 8 || x.Stop.MinTokens != 6 || !slices.Equal(x.Routing.Exclude, []string{"worker-9", "worker-1"}) {
		t.Errorf("%+v", x)
	}
}

func TestLimit(t *testing.T) {
	lost := cut{after: 2, how: "error"}
	for _, c := range []struct {
		limit, attempts int
		cuts            []cut
		ok              bool
	}{
		{0, 1, []cut{lost}, false},
		{2, 3, []cut{lost, lost}, true},
		{2, 3, []cut{lost, lost, lost}, false},
		{3, 1, []cut{{after: 2, how: "error", refuse: true}}, false},
	} {
		e := &engines{length: 20, cuts: c.cuts}
		r, _ := run(t, Config{Limit: c.limit}, e, request())
		if e.n != c.attempts || (r.err == nil) != c.ok {
			t.Errorf("%+v: %d attempts, %v", c, e.n, r.err)
		}
		if !c.ok && (r.err.Reason != "transport.disconnected" || len(r.tokens) != 2*c.attempts) { // the original cause, behind what was said
			t.Errorf("%+v: %v after %v", c, r.err, r.tokens)
		}
	}
}

func TestPinnedStays(t *testing.T) {
	q := request()
	q.Routing.Pin = "worker-1"
	e := &engines{length: 20, cuts: []cut{{after: 2, how: "error"}}}
	if r, _ := run(t, DefaultConfig(), e, q); r.err == nil || e.n != 1 {
		t.Errorf("%d attempts, %v", e.n, r.err)
	}
}

// TestFinishThenError: an answer that was said to its end is whole, whatever the connection does then.
func TestFinishThenError(t *testing.T) {
	h := kindtest.NewHost(t, "migrate", "migrate-0", nil)
	calls := 0
	h.Dialled["out"] = flow.Static[*llm.TokensRequest, *llm.TokensDelta]{{AsyncEngine: flow.EngineFunc[*llm.TokensRequest, *llm.TokensDelta](
		func(context.Context, *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
			return func(yield func(*llm.TokensDelta, error) bool) {
				calls++
				_ = yield(&llm.TokensDelta{Tokens: []uint32{1}, Finish: llm.FinishStop}, nil) && yield(nil, errLost)
			}
		})}}
	n, err := New(DefaultConfig(), h)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	for _, err := range n.Generate(t.Context(), request()) {
		if err != nil {
			t.Error(err)
		}
	}
	if calls != 1 {
		t.Errorf("%d attempts", calls)
	}
}

// TestStall checks that silence after the first token counts as failure, silence before it does not, and a slow client neither.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Config{Limit: 3, Stall: graph.Duration(30 * time.Second)}
		e := &engines{length: 9, cuts: []cut{{after: 4, how: "stall"}}}
		begin := time.Now()
		want, _ := run(t, c, &engines{length: 9}, request())
		got, _ := run(t, c, e, request())
		if s := same(got, want); s != "" || time.Since(begin) != 30*time.Second {
			t.Errorf("after %v: %s", time.Since(begin), s)
		}
		if x := e.seen[1].Routing.Exclude; !slices.Equal(x, []string{"worker-1"}) {
			t.Errorf("excluded %v", x)
		}

		h := kindtest.NewHost(t, "migrate", "migrate-0", nil)
		slow := &engines{length: 5}
		h.Dialled["out"] = flow.Static[*llm.TokensRequest, *llm.TokensDelta]{{AsyncEngine: slow}}
		n, err := New(c, h)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		for _, err := range n.Generate(t.Context(), request()) {
			if err != nil {
				t.Error(err)
			}
			time.Sleep(time.Hour)
		}
		if slow.n != 1 {
			t.Errorf("%d attempts for a slow client", slow.n)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		h.Dialled["out"] = flow.Static[*llm.TokensRequest, *llm.TokensDelta]{{AsyncEngine: &engines{length: 9, cuts: []cut{{how: "stall"}}}}}
		m, err := New(c, h)
		if err != nil {
			t.Fatal(err)
		}
		delete(h.Served, "in")
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		for _, err := range m.Generate(ctx, request()) {
			if flow.AsError(err).Class != flow.DeadlineExceeded {
				t.Errorf("before the first token: %v", err)
			}
		}
	})
}

// TestCancel checks that a caller who leaves is not taken for a failure.
func TestCancel(t *testing.T) {
	e := &engines{length: 9, cuts: []cut{{after: 4, how: "stall"}}}
	h := kindtest.NewHost(t, "migrate", "migrate-0", nil)
	h.Dialled["out"] = flow.Static[*llm.TokensRequest, *llm.TokensDelta]{{AsyncEngine: e}}
	n, err := New(DefaultConfig(), h)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := 0
	var last error
	for d, err := range n.Generate(ctx, request()) {
		if last = err; err == nil {
			if got += len(d.Tokens); got == 4 {
				cancel()
			}
		}
	}
	if e.n != 1 || flow.AsError(last) == nil || flow.AsError(last).Class != flow.Cancelled {
		t.Errorf("%d attempts, ended with %v", e.n, last)
	}
}

// TestTokenAllocations holds migrate's share of the budget of two allocations a token: only its record of tokens grows.
func TestTokenAllocations(t *testing.T) {
	const n = 10000
	h := kindtest.NewHost(t, "migrate", "migrate-0", nil)
	d := &llm.TokensDelta{Tokens: []uint32{1}, Instance: "a"}
	h.Dialled["out"] = flow.Static[*llm.TokensRequest, *llm.TokensDelta]{{AsyncEngine: flow.EngineFunc[*llm.TokensRequest, *llm.TokensDelta](
		func(context.Context, *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
			return func(yield func(*llm.TokensDelta, error) bool) {
				for range n {
					yield(d, nil)
				}
				yield(&llm.TokensDelta{Finish: llm.FinishStop}, nil)
			}
		})}}
	m, err := New(DefaultConfig(), h)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	per := testing.AllocsPerRun(3, func() {
		for range m.Generate(t.Context(), request()) {
		}
	}) / n
	if per > 0.01 {
		t.Errorf("%v allocations a token", per)
	}
}
