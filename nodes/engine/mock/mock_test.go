package mock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/nodes/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, c engine.Mock, change ...func(*engine.Options)) *Engine {
	t.Helper()
	o := engine.Options{Config: engine.DefaultConfig(), Host: kindtest.NewHost(t, "prefill", "prefill-0", nil)}
	o.Config.Engine, o.Config.Mock = "mock", &c
	for _, f := range change {
		f(&o)
	}
	e, err := engine.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e.(*Engine)
}

type result struct {
	tokens  []uint32
	finish  llm.FinishReason
	stop    uint32
	usage   *llm.Usage
	handoff *llm.HandOff
	logprob []llm.Logprob
	prompt  []llm.Logprob
	err     *flow.Error
}

func run(ctx context.Context, e *Engine, r *llm.TokensRequest) result {
	var out result
	for d, err := range e.Generate(ctx, r) {
		if err != nil {
			out.err = flow.AsError(err)
			continue
		}
		out.tokens = append(out.tokens, d.Tokens...)
		out.logprob = append(out.logprob, d.Logprobs...)
		out.prompt = append(out.prompt, d.Prompt...)
		if d.Finish != "" {
			out.finish, out.stop = d.Finish, d.StopID
		}
		if d.Usage != nil {
			out.usage = d.Usage
		}
		if d.HandOff != nil {
			out.handoff = d.HandOff
		}
	}
	return out
}

// ids is a prompt of the byte vocabulary, long enough for several blocks.
func ids(s string) []uint32 {
	out := make([]uint32, len(s))
	for i := range len(s) {
		out[i] = uint32(s[i])
	}
	return out
}

const prompt = "What is the capital of France, and how many people live there?"

func ask() *llm.TokensRequest { return &llm.TokensRequest{ID: "r", Tokens: ids(prompt), Logprobs: -1} }

func text(tokens []uint32) string {
	b := make([]byte, len(tokens))
	for i, t := range tokens {
		b[i] = byte(t)
	}
	return string(b)
}

// TestDeterministic checks that an answer follows from (seed, prompt, position): it can be continued at every place.
func TestDeterministic(t *testing.T) {
	e := open(t, engine.Mock{Seed: 5})
	want := run(t.Context(), e, ask())
	if want.finish != llm.FinishStop || want.stop != EndTurn || len(want.tokens) < 24 || *want.usage != (llm.Usage{Prompt: len(prompt), Completion: len(want.tokens)}) {
		t.Fatalf("%+v %+v", want, want.usage)
	}
	for n := range want.tokens {
		r := ask()
		r.Tokens, r.Generated = append(r.Tokens, want.tokens[:n]...), n
		if got := run(t.Context(), e, r); !slices.Equal(got.tokens, want.tokens[n:]) || *got.usage != *want.usage || got.finish != want.finish {
			t.Fatalf("continued at %d: %+v %+v", n, got, got.usage)
		}
	}
	other := ask()
	other.Tokens[3]++
	if got := run(t.Context(), e, other); slices.Equal(got.tokens, want.tokens) {
		t.Error("another prompt has the same answer")
	}
	if got := run(t.Context(), open(t, engine.Mock{Seed: 6}), ask()); slices.Equal(got.tokens, want.tokens) {
		t.Error("another seed has the same answer")
	}
	warm := ask()
	warm.Sampling = llm.Sampling{Temperature: 1, Seed: 1}
	a := run(t.Context(), e, warm)
	warm.Sampling.Seed = 2
	if b := run(t.Context(), e, warm); slices.Equal(a.tokens, b.tokens) {
		t.Error("the request's seed does not act")
	}
}

func TestEnds(t *testing.T) {
	e := open(t, engine.Mock{Script: []string{"Hello there", "Bye"}})
	small := open(t, engine.Mock{}, func(o *engine.Options) { o.Model = &kind.Model{Name: "m", Context: len(prompt) + 5} })
	turns := func(n int) []uint32 { return slices.Repeat([]uint32{BeginTurn, 'u', EndTurn}, n) }
	for _, c := range []struct {
		name   string
		e      *Engine
		change func(*llm.TokensRequest)
		text   string
		finish llm.FinishReason
		stop   uint32
	}{
		{"script", e, nil, "Hello there", llm.FinishStop, EndTurn},
		{"first question", e, func(r *llm.TokensRequest) { r.Tokens = turns(1) }, "Hello there", llm.FinishStop, EndTurn},
		{"second question", e, func(r *llm.TokensRequest) { r.Tokens = turns(3) }, "Bye", llm.FinishStop, EndTurn},
		{"third question", e, func(r *llm.TokensRequest) { r.Tokens = turns(5) }, "Hello there", llm.FinishStop, EndTurn},
		{"max", e, func(r *llm.TokensRequest) { r.Stop.MaxTokens = 4 }, "Hell", llm.FinishLength, 0},
		{"max is the end", e, func(r *llm.TokensRequest) { r.Stop.MaxTokens = 11 }, "Hello there", llm.FinishLength, 0},
		{"stop id", e, func(r *llm.TokensRequest) { r.Stop.IDs = []uint32{'o'} }, "Hell", llm.FinishStop, 'o'},
		{"stop id after min", e, func(r *llm.TokensRequest) { r.Stop.IDs, r.Stop.MinTokens = []uint32{'e'}, 2 }, "Hello th", llm.FinishStop, 'e'},
		{"ignore end", e, func(r *llm.TokensRequest) { r.Stop.IgnoreEOS, r.Stop.MaxTokens = true, 14 }, "Hello thereHel", llm.FinishLength, 0},
		{"min beyond end", e, func(r *llm.TokensRequest) { r.Stop.MinTokens = 12 }, "Hello thereH", llm.FinishStop, EndTurn},
		{"context", small, func(r *llm.TokensRequest) { r.Stop.IgnoreEOS = true }, "-", llm.FinishLength, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ask()
			if c.change != nil {
				c.change(r)
			}
			got := run(t.Context(), c.e, r)
			if c.text == "-" {
				c.text = text(got.tokens)
				if len(got.tokens) != 5 {
					t.Errorf("%d tokens fit", len(got.tokens))
				}
			}
			if got.err != nil || text(got.tokens) != c.text || got.finish != c.finish || got.stop != c.stop || got.usage.Completion != len(got.tokens) {
				t.Errorf("%q %s %d %+v %v", text(got.tokens), got.finish, got.stop, got.usage, got.err)
			}
		})
	}
}

func TestLogprobs(t *testing.T) {
	e := open(t, engine.Mock{})
	r := ask()
	r.Logprobs, r.PromptLogprobs, r.Stop.MaxTokens = 2, true, 3
	got := run(t.Context(), e, r)
	if len(got.logprob) != 3 || len(got.logprob[0].Top) != 2 || got.logprob[1].Token != got.tokens[1] || got.logprob[1].Logprob > 0 || len(got.prompt) != len(prompt) {
		t.Errorf("%+v", got)
	}
}

func TestRefusals(t *testing.T) {
	e := open(t, engine.Mock{})
	for reason, change := range map[string]func(*llm.TokensRequest){
		"engine.unsupported/response_format": func(r *llm.TokensRequest) { r.Constraint = &llm.Constraint{Regex: "a"} },
		"engine.unsupported/model":           func(r *llm.TokensRequest) { r.Adapter = "x" },
		"engine.unsupported/messages":        func(r *llm.TokensRequest) { r.Media = make([]llm.MediaItem, 1) },
		"engine.unsupported/extra":           func(r *llm.TokensRequest) { r.Extra = map[string]string{"a": "b"} },
		"engine.empty_prompt/":               func(r *llm.TokensRequest) { r.Tokens = nil },
		"engine.token_id/":                   func(r *llm.TokensRequest) { r.Tokens[2] = Vocabulary },
		"engine.context_length/":             func(r *llm.TokensRequest) { r.Tokens = make([]uint32, defaultContext) },
	} {
		r := ask()
		change(r)
		if got := run(t.Context(), e, r); got.err == nil || got.err.Reason+"/"+got.err.Param != reason || got.err.Retry {
			t.Errorf("%s: %+v", reason, got.err)
		}
	}
	if err := e.Control(t.Context(), engine.Control{Verb: "sleep"}); err == nil || !strings.Contains(err.Error(), `"sleep"`) {
		t.Error(err)
	}
	for _, c := range []engine.Mock{{TTFT: "soon"}, {ITL: "-1s"}, {Fail: &engine.Fail{Kind: "sulk"}}} {
		o := engine.Options{Config: engine.Config{Engine: "mock", Mock: &c}}
		if _, err := engine.Open(o); err == nil {
			t.Errorf("%+v: opened", c)
		}
	}
	m := &kind.Model{Name: "m", Facts: model.Facts{Vocabulary: 9}}
	if _, err := Open(engine.Options{Config: engine.Config{Mock: &engine.Mock{Script: []string{"a"}}}, Model: m}); err == nil {
		t.Error("a script with a model's vocabulary")
	}
}

// TestTiming checks the scripted clock: the time to the first token grows with the prompt, the others follow evenly.
func TestTiming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, engine.Mock{TTFT: "100ms", PerPrompt: "1ms", ITL: "20ms"})
		r := ask()
		r.Stop.MaxTokens = 5
		begin := time.Now()
		var at []time.Duration
		for range e.Generate(t.Context(), r) {
			at = append(at, time.Since(begin))
		}
		for i := range at {
			if want := 100*time.Millisecond + time.Duration(len(prompt))*time.Millisecond + time.Duration(i)*20*time.Millisecond; at[i] != want {
				t.Errorf("token %d after %v, want %v", i, at[i], want)
			}
		}
		if len(at) != 5 {
			t.Errorf("%d deltas", len(at))
		}
	})
}

func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		fail   engine.Fail
		tokens int
		reason string
	}{
		"error":            {engine.Fail{Kind: "error"}, 0, "engine.injected"},
		"error later":      {engine.Fail{Kind: "error", After: 3}, 3, "engine.injected"},
		"die":              {engine.Fail{Kind: "die", After: 2}, 2, "engine.closed"},
		"hang":             {engine.Fail{Kind: "hang", After: 2}, 2, "deadline"},
		"not this request": {engine.Fail{Kind: "error", Every: 2}, 6, ""},
		"garbage":          {engine.Fail{Kind: "garbage", After: 5}, 6, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := open(t, engine.Mock{Fail: &c.fail})
				r := ask()
				r.Stop.MaxTokens = 6
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				got := run(ctx, e, r)
				reason := ""
				if got.err != nil {
					reason = got.err.Reason
				}
				if len(got.tokens) != c.tokens || reason != c.reason {
					t.Errorf("%d tokens, %v", len(got.tokens), got.err)
				}
				if bad := slices.ContainsFunc(got.tokens, func(x uint32) bool { return x >= Vocabulary }); bad != (name == "garbage") {
					t.Errorf("tokens %v", got.tokens)
				}
				if got.err != nil && name != "hang" && !got.err.Retry {
					t.Error("another instance cannot do it?")
				}
			})
		})
	}
	died := false
	e := open(t, engine.Mock{Fail: &engine.Fail{Kind: "die"}}, func(o *engine.Options) { o.Die = func() { died = true } })
	run(t.Context(), e, ask())
	if !died {
		t.Error("Options.Die was not called")
	}
}

// pair is a prefill and a decode engine with an edge.
func pair(t *testing.T, p, d engine.Mock) (prefill, decode *Engine, host *kindtest.Host) {
	prefill = open(t, p)
	host = kindtest.NewHost(t, "decode", "decode-0", nil)
	decode = open(t, d, func(o *engine.Options) {
		o.Host = host
		o.Fetch = func(peer string) (flow.AsyncEngine[*llm.KVFetch, *llm.KVBlock], error) {
			if peer != "prefill-0" {
				return nil, fmt.Errorf("no instance %q", peer)
			}
			return flow.EngineFunc[*llm.KVFetch, *llm.KVBlock](prefill.Export), nil
		}
	})
	return prefill, decode, host
}

func TestHandOff(t *testing.T) {
	want := run(t.Context(), open(t, engine.Mock{}), ask())
	for name, c := range map[string]struct {
		p, d   engine.Mock
		change func(*llm.HandOff)
		ok     bool
	}{
		"good":            {ok: true},
		"unknown peer":    {change: func(h *llm.HandOff) { h.Peer = "prefill-9" }},
		"unknown id":      {change: func(h *llm.HandOff) { h.ID = "x" }},
		"expired":         {change: func(h *llm.HandOff) { h.Deadline = time.Now().Add(-time.Second) }},
		"other contract":  {change: func(h *llm.HandOff) { h.Contract.Numerics = "other" }},
		"corrupted block": {p: engine.Mock{Fail: &engine.Fail{Kind: "transfer", After: 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			prefill, decode, host := pair(t, c.p, c.d)
			r := ask()
			r.Phase = llm.PhasePrefill
			p := run(t.Context(), prefill, r)
			if p.handoff == nil || p.finish != "" || len(p.tokens) != 1 || p.handoff.First != want.tokens[0] || p.handoff.Tokens != len(prompt) || p.handoff.Peer != "prefill-0" {
				t.Fatalf("prefill: %+v %+v", p, p.handoff)
			}
			if c.change != nil {
				c.change(p.handoff)
			}
			d := ask()
			d.Phase, d.HandOff = llm.PhaseDecode, p.handoff
			if got := run(t.Context(), decode, d); got.err != nil || !slices.Equal(got.tokens, want.tokens) || *got.usage != *want.usage {
				t.Errorf("decode: %+v", got)
			}
			result := "failed"
			if c.ok {
				result = "ok"
			}
			if n := host.Metric("dynamo_handoffs_total", result); n != 1 {
				t.Errorf("%v hand-offs are %s; log: %s", n, result, host.Logs())
			}
			if _, held, _ := prefill.handoffs.get(r.ID); held == c.ok {
				t.Errorf("held after: %v", held)
			}
		})
	}
}

// TestHandOffSavesTime checks that a prompt that came over is not computed again.
func TestHandOffSavesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := engine.Mock{PerPrompt: "10ms"}
		prefill, decode, _ := pair(t, c, c)
		r := ask()
		r.Phase = llm.PhasePrefill
		h := run(t.Context(), prefill, r).handoff
		d := ask()
		d.Phase, d.HandOff = llm.PhaseDecode, h
		begin := time.Now()
		run(t.Context(), decode, d)
		if took := time.Since(begin); took != 0 {
			t.Errorf("with hand-off: %v", took)
		}
		run(t.Context(), decode, ask())
		if took := time.Since(begin); took != time.Duration(len(prompt))*10*time.Millisecond {
			t.Errorf("without: %v", took)
		}
	})
}

// TestBeside starts decode first: it waits for the prompt.
func TestBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := run(t.Context(), open(t, engine.Mock{}), ask())
		c := engine.Mock{HandOff: llm.ModeBeside, PerPrompt: "1ms"}
		prefill, decode, host := pair(t, c, c)
		h := &llm.HandOff{ID: "r/1", Mode: llm.ModeBeside, Peer: "prefill-0", Deadline: time.Now().Add(time.Minute)}
		d := ask()
		d.Phase, d.HandOff = llm.PhaseDecode, h
		var got result
		var wg sync.WaitGroup
		wg.Go(func() { got = run(t.Context(), decode, d) })
		synctest.Wait()
		p := ask()
		p.Phase, p.HandOff = llm.PhasePrefill, h
		begin := time.Now()
		if x := run(t.Context(), prefill, p); x.handoff == nil || x.handoff.ID != "r/1" {
			t.Errorf("prefill: %+v", x)
		}
		wg.Wait()
		if took := time.Since(begin); !slices.Equal(got.tokens, want.tokens) || took != time.Duration(len(prompt))*time.Millisecond || host.Metric("dynamo_handoffs_total", "ok") != 1 {
			t.Errorf("after %v: %+v", took, got)
		}
		// Without prefill, decode gives up at the deadline and computes.
		h.ID, h.Deadline = "r/2", time.Now().Add(time.Second)
		begin = time.Now()
		got = run(t.Context(), decode, d)
		if took := time.Since(begin); !slices.Equal(got.tokens, want.tokens) || took != time.Second+time.Duration(len(prompt))*time.Millisecond {
			t.Errorf("after %v: %+v", took, got)
		}
	})
}

func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, engine.Mock{TTFT: "1s"}, func(o *engine.Options) { o.Config.Batch = engine.Batch{Seqs: 2, Queue: 3} })
		results := make(chan result, 6)
		for range 6 {
			go func() { results <- run(t.Context(), e, ask()) }()
			synctest.Wait()
		}
		if l, _ := e.load(); l.Running != 2 || l.Waiting != 3 || l.PrefillTokens != 5*len(prompt) || l.BlocksUsed != 2*4 {
			t.Errorf("%+v", l)
		}
		full := (<-results).err
		if full == nil || full.Class != flow.CapacityExhausted || !full.Retry || full.RetryAfter == 0 {
			t.Errorf("%v", full)
		}
		begin := time.Now()
		for range 5 {
			if r := <-results; r.err != nil {
				t.Error(r.err)
			}
		}
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("five, two at once: %v", took)
		}
		if l, _ := e.load(); l.Running+l.Waiting+l.PrefillTokens+l.BlocksUsed != 0 {
			t.Errorf("idle: %+v", l)
		}
	})
}

func TestLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, engine.Mock{ITL: "10ms"})
		ctx, cancel := context.WithCancel(t.Context())
		var got []llm.Load
		var at []time.Time
		var wg sync.WaitGroup
		wg.Go(func() {
			for l, err := range e.Loads(ctx, &llm.Subscribe{}) {
				if err != nil {
					if flow.AsError(err).Class != flow.Cancelled {
						t.Error(err)
					}
					return
				}
				got, at = append(got, *l), append(at, time.Now())
			}
		})
		synctest.Wait()
		run(t.Context(), e, ask())
		time.Sleep(time.Second)
		cancel()
		wg.Wait()
		if len(got) < 2 || got[0].Running != 0 || !slices.ContainsFunc(got, func(l llm.Load) bool { return l.Running == 1 }) || got[len(got)-1].Running != 0 {
			t.Errorf("%+v", got)
		}
		for i := range at[1:] {
			if at[i+1].Sub(at[i]) < 50*time.Millisecond {
				t.Errorf("value %d after %v", i+1, at[i+1].Sub(at[i]))
			}
		}
	})
}

// TestCancelFrees checks that a caller who leaves frees the sequence, however it leaves.
func TestCancelFrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, engine.Mock{ITL: "1h"})
		for range e.Generate(t.Context(), ask()) {
			break
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r := run(ctx, e, ask()); r.err == nil || r.err.Class != flow.DeadlineExceeded {
			t.Errorf("%v", r.err)
		}
		if l, _ := e.load(); l.Running != 0 {
			t.Errorf("%+v", l)
		}
		done := make(chan result)
		go func() { done <- run(t.Context(), e, ask()) }()
		synctest.Wait()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if r := <-done; r.err == nil || r.err.Reason != "engine.closed" || !r.err.Retry {
			t.Errorf("%v", r.err)
		}
	})
}

func Example() {
	e, err := engine.Open(engine.Options{Config: engine.Config{Engine: "mock", Batch: engine.Batch{Seqs: 1}, Mock: &engine.Mock{Script: []string{"Hi!"}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	for d, err := range e.Generate(context.Background(), &llm.TokensRequest{Tokens: []uint32{'?'}, Logprobs: -1}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%q%s\n", text(d.Tokens), d.Finish)
	}
	// Output:
	// "H"
	// "i"
	// "!"
	// ""stop
}
