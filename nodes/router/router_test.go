package router

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
)

// set is a live set of instances.
type set struct {
	mu      sync.Mutex
	list    []peer
	changed chan struct{}
}

func (p *set) List() []peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list
}

func (p *set) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

func (p *set) set(list ...peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = list
	if p.changed != nil {
		close(p.changed)
	}
	p.changed = make(chan struct{})
}

// fake is an instance that a test scripts.
type fake struct {
	id     string
	info   map[string]string
	answer func(ctx context.Context, q *llm.TokensRequest, yield func(*llm.TokensDelta, error) bool)

	mu   sync.Mutex
	seen []*llm.TokensRequest
}

func (f *fake) Generate(ctx context.Context, q *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
	return func(yield func(*llm.TokensDelta, error) bool) {
		f.mu.Lock()
		f.seen = append(f.seen, q)
		f.mu.Unlock()
		f.answer(ctx, q, yield)
	}
}

func (f *fake) peer() peer { return peer{ID: f.id, Node: "n", Info: f.info, AsyncEngine: f} }

func (f *fake) calls() []*llm.TokensRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen
}

type answerFunc = func(context.Context, *llm.TokensRequest, func(*llm.TokensDelta, error) bool)

// tokens answers with ids and an end.
func tokens(ids ...uint32) answerFunc {
	return func(_ context.Context, q *llm.TokensRequest, yield func(*llm.TokensDelta, error) bool) {
		for _, id := range ids {
			if !yield(&llm.TokensDelta{Tokens: []uint32{id}}, nil) {
				return
			}
		}
		yield(&llm.TokensDelta{Finish: llm.FinishStop, Usage: &llm.Usage{Prompt: len(q.Tokens), Completion: len(ids), Cached: 99}}, nil)
	}
}

func fails(e *flow.Error) answerFunc {
	return func(_ context.Context, _ *llm.TokensRequest, yield func(*llm.TokensDelta, error) bool) { yield(nil, e) }
}

func hangs(ctx context.Context, _ *llm.TokensRequest, yield func(*llm.TokensDelta, error) bool) {
	<-ctx.Done()
	yield(nil, flow.AsError(ctx.Err()))
}

// handsOff answers a prefill: one token and a hand-off.
func handsOff(first uint32) answerFunc {
	return func(_ context.Context, q *llm.TokensRequest, yield func(*llm.TokensDelta, error) bool) {
		yield(&llm.TokensDelta{
			Tokens: []uint32{first}, HandOff: &llm.HandOff{ID: "h", Mode: llm.ModeAfter, First: first, Tokens: len(q.Tokens)},
			Usage: &llm.Usage{Prompt: len(q.Tokens), Completion: 1, Cached: 2},
		}, nil)
	}
}

type rig struct {
	t     *testing.T
	r     *Router
	host  *kindtest.Host
	pools [roles]*set
}

// start makes a router; nil pools have no edge.
func start(t *testing.T, change func(*Config), workers, prefills, decodes []*fake) *rig {
	t.Helper()
	c := DefaultConfig()
	c.Policy = RoundRobin
	if change != nil {
		change(&c)
	}
	g := &rig{t: t, host: kindtest.NewHost(t, "route", "route-0", nil)}
	for r, list := range [roles][]*fake{workers, prefills, decodes} {
		g.pools[r] = &set{}
		var peers []peer
		for _, f := range list {
			peers = append(peers, f.peer())
		}
		g.pools[r].set(peers...)
		if list != nil {
			g.host.Dialled[role(r).String()] = g.pools[r]
		}
	}
	r, err := New(c, g.host)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.r = r
	return g
}

func (g *rig) close() {
	g.t.Helper()
	if err := g.r.Close(); err != nil {
		g.t.Error(err)
	}
	for r := range g.r.core.pools {
		for _, i := range g.r.core.pools[r].list {
			if i.requests != 0 || i.tokens != 0 {
				g.t.Errorf("%s: %d requests, %d tokens still booked", i.id, i.requests, i.tokens)
			}
		}
	}
}

type result struct {
	tokens    []uint32
	instances []string // in order, without repeats
	finish    llm.FinishReason
	usage     *llm.Usage
	prompt    int
	err       *flow.Error
}

func (g *rig) run(ctx context.Context, q *llm.TokensRequest) result {
	var r result
	for d, err := range g.r.Generate(ctx, q) {
		if err != nil {
			r.err = flow.AsError(err)
			continue
		}
		r.tokens = append(r.tokens, d.Tokens...)
		r.prompt += len(d.Prompt)
		if d.Instance != "" && (len(r.instances) == 0 || r.instances[len(r.instances)-1] != d.Instance) {
			r.instances = append(r.instances, d.Instance)
		}
		if d.Finish != "" {
			r.finish = d.Finish
		}
		if d.Usage != nil {
			u := *d.Usage
			r.usage = &u
		}
	}
	return r
}

func ask3() *llm.TokensRequest {
	return &llm.TokensRequest{ID: "r", Tokens: []uint32{1, 2, 3}, Logprobs: -1}
}

func TestWorkers(t *testing.T) {
	a, b := &fake{id: "a", answer: tokens(1)}, &fake{id: "b", answer: tokens(2)}
	g := start(t, nil, []*fake{a, b}, nil, nil)
	defer g.close()
	for _, want := range []string{"a", "b", "a"} {
		if r := g.run(t.Context(), ask3()); !slices.Equal(r.instances, []string{want}) || r.finish != llm.FinishStop || r.err != nil {
			t.Errorf("%+v, want %s", r, want)
		}
	}
	if g.host.State() != kind.Ready {
		t.Errorf("state %s", g.host.State())
	}
	q := ask3()
	q.Routing.Pin = "b"
	for range 2 {
		if r := g.run(t.Context(), q); !slices.Equal(r.instances, []string{"b"}) {
			t.Errorf("pinned: %+v", r)
		}
	}
	q.Routing.Pin = "x"
	if r := g.run(t.Context(), q); r.err == nil || r.err.Class != flow.NotFound {
		t.Errorf("unknown pin: %+v", r)
	}
}

// TestClientErrors: what the request is to blame for never keeps others from an instance.
func TestClientErrors(t *testing.T) {
	a := &fake{id: "a", answer: fails(flow.Errorf(flow.InvalidRequest, "engine.context_length", "too long"))}
	g := start(t, nil, []*fake{a}, nil, nil)
	defer g.close()
	for range 5 {
		if r := g.run(t.Context(), ask3()); r.err.Reason != "engine.context_length" || r.err.Instance != "a" {
			t.Errorf("%+v", r.err)
		}
	}
	a.answer = tokens(1)
	if r := g.run(t.Context(), ask3()); r.err != nil {
		t.Error(r.err)
	}
}

func TestInhibit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := &flow.Error{Class: flow.Unavailable, Reason: "transport.disconnected", Msg: "gone", Retry: true}
		a, b := &fake{id: "a", answer: fails(lost)}, &fake{id: "b", answer: tokens(2)}
		g := start(t, nil, []*fake{a, b}, nil, nil)
		defer g.close()
		if r := g.run(t.Context(), ask3()); r.err == nil || r.err.Instance != "a" || !r.err.Retry {
			t.Errorf("%+v", r)
		}
		for range 4 {
			if r := g.run(t.Context(), ask3()); r.err != nil {
				t.Errorf("an instance that failed was asked again: %v", r.err)
			}
		}
		a.answer = tokens(1)
		time.Sleep(5 * time.Second)
		seen := len(a.calls())
		g.run(t.Context(), ask3())
		g.run(t.Context(), ask3())
		if len(a.calls()) == seen {
			t.Error("an instance is never asked again")
		}
		if n := g.host.Metric("dynamo_instance_failures_total", "a", "transport.disconnected"); n != 1 {
			t.Errorf("%v failures counted", n)
		}
	})
}

func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, nil, []*fake{}, nil, nil)
		defer g.close()
		if r, _ := g.host.Reports(); r[len(r)-1].State != kind.Starting || !strings.Contains(r[len(r)-1].Reason, `port "worker"`) {
			t.Errorf("%v", r)
		}
		begin := time.Now()
		r := g.run(t.Context(), ask3())
		if r.err == nil || r.err.Reason != "router.no_instance" || r.err.Class != flow.Unavailable || time.Since(begin) != 10*time.Second || r.err.RetryAfter == 0 ||
			!strings.Contains(r.err.Msg, `the node behind port "worker": no instance of worker since 10s`) {
			t.Errorf("after %v: %v", time.Since(begin), r.err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r := g.run(short, ask3()); r.err == nil || r.err.Class != flow.DeadlineExceeded {
			t.Errorf("%v", r.err)
		}
		time.AfterFunc(3*time.Second, func() { g.pools[worker].set((&fake{id: "a", answer: tokens(1)}).peer()) })
		begin = time.Now()
		if r := g.run(t.Context(), ask3()); r.err != nil || time.Since(begin) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), r.err)
		}
		if g.host.State() != kind.Ready {
			t.Errorf("state %s", g.host.State())
		}
	})
}

// TestRestart checks that an instance that was started again under its name is not held to what its predecessor did.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := &flow.Error{Class: flow.Unavailable, Reason: "transport.cannot_connect", Msg: "gone", Retry: true}
		g := start(t, nil, []*fake{{id: "a", answer: fails(lost)}}, nil, nil)
		defer g.close()
		g.run(t.Context(), ask3())
		time.AfterFunc(300*time.Millisecond, func() { g.pools[worker].set((&fake{id: "a", answer: tokens(1)}).peer()) })
		begin := time.Now()
		if r := g.run(t.Context(), ask3()); r.err != nil || time.Since(begin) != 300*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(begin), r.err)
		}
	})
}

// TestStall checks that an instance that does not answer in time, by what it has to do, is given up and avoided.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &fake{id: "a", answer: hangs}, &fake{id: "b", answer: tokens(2)}
		g := start(t, func(c *Config) { c.Stall = graph.Duration(time.Second) }, []*fake{a, b}, nil, nil)
		defer g.close()
		begin := time.Now()
		q := ask3()
		q.Tokens = make([]uint32, 40)
		r := g.run(t.Context(), q)
		if r.err == nil || r.err.Reason != "router.stalled" || !r.err.Retry || r.err.Instance != "a" || time.Since(begin) != 2*time.Second {
			t.Errorf("after %v: %+v", time.Since(begin), r.err)
		}
		for range 2 {
			if r := g.run(t.Context(), ask3()); r.err != nil {
				t.Errorf("stalled instance was asked: %v", r.err)
			}
		}
	})
}

// TestStalledCause checks that migrate's finding that an instance is silent keeps others from it.
func TestStalledCause(t *testing.T) {
	a := &fake{id: "a", answer: func(ctx context.Context, q *llm.TokensRequest, yield func(*llm.TokensDelta, error) bool) {
		if yield(&llm.TokensDelta{Tokens: []uint32{1}}, nil) {
			hangs(ctx, q, yield)
		}
	}}
	b := &fake{id: "b", answer: tokens(2)}
	g := start(t, nil, []*fake{a, b}, nil, nil)
	defer g.close()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	for d, err := range g.r.Generate(ctx, ask3()) {
		if err == nil && len(d.Tokens) > 0 {
			cancel(&flow.Error{Class: flow.Unavailable, Reason: "migrate.stalled", Instance: "a", Retry: true})
		}
	}
	for range 3 {
		if r := g.run(t.Context(), ask3()); r.err != nil || !slices.Equal(r.instances, []string{"b"}) {
			t.Errorf("%+v", r)
		}
	}
}

func TestBrokenProtocol(t *testing.T) {
	a := &fake{id: "a", answer: func(_ context.Context, _ *llm.TokensRequest, yield func(*llm.TokensDelta, error) bool) {
		yield(&llm.TokensDelta{Tokens: []uint32{1}}, nil)
	}}
	g := start(t, nil, []*fake{a}, nil, nil)
	defer g.close()
	if r := g.run(t.Context(), ask3()); r.err == nil || r.err.Reason != "router.incomplete" || !r.err.Retry {
		t.Errorf("a stream without an end gave %+v", r)
	}
	// An end that was said counts, whatever the connection does then.
	a.answer = func(ctx context.Context, q *llm.TokensRequest, yield func(*llm.TokensDelta, error) bool) {
		tokens(5)(ctx, q, yield)
		yield(nil, &flow.Error{Class: flow.Unavailable, Reason: "transport.disconnected"})
	}
	if r := g.run(t.Context(), ask3()); r.err != nil || r.finish != llm.FinishStop {
		t.Errorf("%+v", r)
	}
}

func TestDisaggregated(t *testing.T) {
	lost := &flow.Error{Class: flow.Unavailable, Reason: "transport.disconnected", Msg: "gone", Retry: true}
	bad := flow.Errorf(flow.InvalidRequest, "engine.token_id", "no such token")
	for _, c := range []struct {
		name      string
		prefill   []answerFunc
		phase     llm.Phase // that decode sees
		handoff   bool
		prefills  int // calls
		decodes   int
		instances []string
		fallback  string
		err       string
		cached    int
	}{
		{"hand-off", []answerFunc{handsOff(7)}, llm.PhaseDecode, true, 1, 1, []string{"p0", "d"}, "", "", 2},
		{"nobody", []answerFunc{}, llm.PhaseAll, false, 0, 1, []string{"d"}, "no_instance", "", 99},
		{"one lost, another there", []answerFunc{fails(lost), handsOff(7)}, llm.PhaseDecode, true, 2, 1, []string{"p0", "p1", "d"}, "", "", 2},
		{"all lost", []answerFunc{fails(lost), fails(lost)}, llm.PhaseAll, false, 2, 1, []string{"p0", "p1", "d"}, "transport.disconnected", "", 99},
		{"bad request", []answerFunc{fails(bad)}, 0, false, 1, 0, []string{"p0"}, "", "engine.token_id", 0},
		{"done by prefill", []answerFunc{tokens(7)}, 0, false, 1, 0, []string{"p0"}, "", "", 99},
		{"no end", []answerFunc{func(_ context.Context, _ *llm.TokensRequest, y func(*llm.TokensDelta, error) bool) {
			y(&llm.TokensDelta{Tokens: []uint32{7}}, nil)
		}}, llm.PhaseAll, false, 1, 1, []string{"p0", "d"}, "router.incomplete", "", 99},
	} {
		t.Run(c.name, func(t *testing.T) {
			ps := []*fake{}
			for i, a := range c.prefill {
				ps = append(ps, &fake{id: fmt.Sprintf("p%d", i), answer: a})
			}
			d := &fake{id: "d", answer: tokens(7)}
			g := start(t, nil, nil, ps, []*fake{d})
			defer g.close()
			q := ask3()
			q.Generated = 1 // as after a migration
			r := g.run(t.Context(), q)
			if c.err != "" {
				if r.err == nil || r.err.Reason != c.err {
					t.Errorf("%+v", r)
				}
			} else if r.err != nil || !slices.Equal(r.tokens, []uint32{7}) || r.usage == nil || r.usage.Cached != c.cached {
				t.Errorf("%+v %+v", r, r.usage)
			}
			if !slices.Equal(r.instances, c.instances) {
				t.Errorf("instances %v", r.instances)
			}
			n := 0
			for _, p := range ps {
				for _, x := range p.calls() {
					n++
					if x.Phase != llm.PhasePrefill || x.HandOff != nil || x.Generated != 1 || len(x.Tokens) != 3 {
						t.Errorf("prefill got %+v", x)
					}
				}
			}
			if n != c.prefills || len(d.calls()) != c.decodes {
				t.Errorf("%d prefills, %d decodes", n, len(d.calls()))
			}
			if len(d.calls()) == 1 {
				if x := d.calls()[0]; x.Phase != c.phase || (x.HandOff != nil) != c.handoff || c.handoff && (x.HandOff.First != 7 || x.HandOff.Peer == "") {
					t.Errorf("decode got %+v, hand-off %+v", x, x.HandOff)
				}
			}
			if c.fallback != "" && g.host.Metric("dynamo_prefill_fallbacks_total", c.fallback) != 1 {
				t.Errorf("fallback is not counted as %s", c.fallback)
			}
		})
	}
}

// TestPromptLogprobs checks that the prompt's logprobs come once, from whoever computed the prompt.
func TestPromptLogprobs(t *testing.T) {
	p := &fake{id: "p", answer: func(_ context.Context, _ *llm.TokensRequest, yield func(*llm.TokensDelta, error) bool) {
		yield(&llm.TokensDelta{Tokens: []uint32{7}, Prompt: make([]llm.Logprob, 3), HandOff: &llm.HandOff{ID: "h"}}, nil)
	}}
	d := &fake{id: "d", answer: tokens(7)}
	g := start(t, nil, nil, []*fake{p}, []*fake{d})
	defer g.close()
	q := ask3()
	q.PromptLogprobs = true
	if r := g.run(t.Context(), q); r.prompt != 3 || d.calls()[0].PromptLogprobs || r.err != nil {
		t.Errorf("%+v", r)
	}
}

func TestBeside(t *testing.T) {
	lost := &flow.Error{Class: flow.Unavailable, Reason: "transport.disconnected", Msg: "gone", Retry: true}
	info := map[string]string{"handoff": "beside"}
	waits := func(ctx context.Context, q *llm.TokensRequest, yield func(*llm.TokensDelta, error) bool) {
		if q.Phase == llm.PhaseAll {
			tokens(7)(ctx, q, yield)
			return
		}
		hangs(ctx, q, yield) // for prefill, which does not come
	}
	for _, c := range []struct {
		name            string
		prefill, decode answerFunc
		decodes         int
		fallback        string
		err             string
	}{
		{"both", handsOff(7), tokens(7), 1, "", ""},
		{"prefill lost", fails(lost), waits, 2, "transport.disconnected", ""},
		{"done by prefill", tokens(7), waits, 1, "", ""},
		{"bad request", fails(flow.Errorf(flow.InvalidRequest, "engine.token_id", "no")), waits, 1, "", "engine.token_id"},
		{"decode lost", handsOff(7), fails(lost), 1, "", "transport.disconnected"},
		{"prefill hangs, decode does without", hangs, tokens(7), 1, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, d := &fake{id: "p", info: info, answer: c.prefill}, &fake{id: "d", info: info, answer: c.decode}
			g := start(t, nil, nil, []*fake{p}, []*fake{d})
			defer g.close()
			r := g.run(t.Context(), ask3())
			if c.err != "" {
				if r.err == nil || r.err.Reason != c.err {
					t.Errorf("%+v", r)
				}
			} else if r.err != nil || !slices.Equal(r.tokens, []uint32{7}) {
				t.Errorf("%+v", r)
			}
			x, y := p.calls(), d.calls()
			if len(x) > 1 || len(y) != c.decodes || len(x) == 1 && (x[0].HandOff == nil || x[0].HandOff.ID != y[0].HandOff.ID || y[0].HandOff.Peer != "p" ||
				x[0].HandOff.Mode != llm.ModeBeside || y[0].HandOff.Deadline.IsZero()) {
				t.Errorf("prefill %+v, decode %+v", x, y)
			}
			if c.fallback != "" && g.host.Metric("dynamo_prefill_fallbacks_total", c.fallback) != 1 {
				t.Error("the fallback is not counted")
			}
		})
	}
}

func TestCallerLeaves(t *testing.T) {
	a := &fake{id: "a", answer: func(ctx context.Context, _ *llm.TokensRequest, yield func(*llm.TokensDelta, error) bool) {
		for yield(&llm.TokensDelta{Tokens: []uint32{1}}, nil) {
			if ctx.Err() != nil {
				yield(nil, flow.AsError(ctx.Err()))
				return
			}
		}
	}}
	g := start(t, nil, []*fake{a}, nil, nil)
	defer g.close()
	for d := range g.r.Generate(t.Context(), ask3()) {
		if len(d.Tokens) > 0 {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	var last error
	for _, err := range g.r.Generate(ctx, ask3()) {
		if n++; n == 3 {
			cancel()
		}
		last = err
	}
	if flow.AsError(last) == nil || flow.AsError(last).Class != flow.Cancelled {
		t.Errorf("ended with %v", last)
	}
}

func TestCheck(t *testing.T) {
	edge := func(port string) *graph.Edge {
		return &graph.Edge{From: graph.End{Node: "r", Port: port}, To: graph.End{Node: "x", Port: "in"}}
	}
	for _, c := range []struct {
		ports []string
		code  string
	}{
		{nil, "missing-edge"}, {[]string{"worker"}, ""}, {[]string{"prefill", "decode"}, ""}, {[]string{"prefill"}, "missing-edge"},
		{[]string{"decode"}, "missing-edge"}, {[]string{"worker", "decode"}, "mixed-roles"},
	} {
		n := &graph.Node{Name: "r", Kind: "router"}
		g := &graph.Graph{Nodes: map[string]*graph.Node{"r": n}}
		for _, p := range c.ports {
			g.Edges = append(g.Edges, edge(p))
		}
		l := check(DefaultConfig(), kind.Site{Graph: g, Node: n})
		if c.code == "" && len(l) > 0 || c.code != "" && (len(l) != 1 || l[0].Code != c.code || l[0].Severity != diag.Error || l[0].Hint == "") {
			t.Errorf("%v: %+v", c.ports, l)
		}
	}
}

func TestNoEdges(t *testing.T) {
	r, err := New(DefaultConfig(), kindtest.NewHost(t, "route", "route-0", nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context()); !errors.Is(err, kind.ErrNoEdge) {
		t.Errorf("%v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestTokenAllocations holds the router's share of the budget of two allocations a token: none.
func TestTokenAllocations(t *testing.T) {
	const n = 10000
	d := &llm.TokensDelta{Tokens: []uint32{1}}
	a := &fake{id: "a", answer: func(_ context.Context, _ *llm.TokensRequest, yield func(*llm.TokensDelta, error) bool) {
		for range n {
			yield(d, nil)
		}
		yield(&llm.TokensDelta{Finish: llm.FinishStop}, nil)
	}}
	g := start(t, nil, []*fake{a}, nil, nil)
	defer g.close()
	per := testing.AllocsPerRun(3, func() {
		for range g.r.Generate(t.Context(), ask3()) {
		}
	}) / n
	if per > 0.01 {
		t.Errorf("%v allocations a token", per)
	}
}
