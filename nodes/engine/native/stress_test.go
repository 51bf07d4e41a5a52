package native

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
	"github.com/dynamograph/dynamo/nodes/engine"
)

// Many requests at once, whole, handed off, cancelled in the middle, on so few blocks that they are preempted: every answer is the one
// that the request gets alone, and in the end nothing is in use.
func TestManyAtOnce(t *testing.T) {
	ref, _ := open(t, setup{})
	c := config()
	c.Batch = engine.Batch{Seqs: 4, Tokens: 24, Queue: 500}
	c.KV.Tokens = 14 * 16
	p, d, w, h := pair(t, func() compute { return newFake() }, c)
	seed := uint64(20)
	r := rand.New(rand.NewPCG(seed, 0))
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range 120 {
		n := 10 + r.IntN(30)
		req := &llm.TokensRequest{
			ID: fmt.Sprint(i), Tokens: prompt(r.IntN(5), 5+r.IntN(90), fakeVocab), Sampling: samplings["all"], Priority: r.IntN(3),
			Stop: llm.Stop{MaxTokens: n}, PromptLogprobs: r.IntN(8) == 0, Logprobs: r.IntN(3),
		}
		req.Sampling.Seed = r.Uint64()
		want := must(t, ref, req)
		cancelAfter, handOff := -1, r.IntN(2) == 0
		if r.IntN(5) == 0 {
			cancelAfter = r.IntN(n)
		}
		wg.Go(func() {
			<-begin
			if cancelAfter >= 0 {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				got := 0
				for delta := range d.Generate(ctx, req) {
					if got += len(delta.Tokens); got >= cancelAfter {
						return
					}
				}
				return
			}
			x := *req
			if handOff {
				x.Phase = llm.PhasePrefill
				first := collect(t.Context(), p, &x)
				if first.err != nil {
					t.Errorf("seed %d, %d: prefill: %v", seed, i, first.err)
					return
				}
				if first.handOff == nil {
					if !same(first, want) {
						t.Errorf("seed %d, %d: prefill alone %v, want %v", seed, i, first, want)
					}
					return
				}
				x.Phase, x.HandOff = llm.PhaseDecode, first.handOff
			}
			if got := collect(t.Context(), d, &x); !same(got, want) {
				t.Errorf("seed %d, %d: got %v, want %v", seed, i, got, want)
			}
		})
	}
	close(begin)
	wg.Wait()
	quiet(t, d)
	if err := d.Control(t.Context(), engine.Control{Verb: "drain"}); err != nil {
		t.Error(err)
	}
	quiet(t, p)
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.Metric("dynamo_engine_preemptions_total") == 0 || w.blocks == 0 {
		t.Errorf("%v preemptions, %d blocks moved: the test shows less than it says", h.Metric("dynamo_engine_preemptions_total"), w.blocks)
	}
}

func ExampleOpen() {
	h := kindtest.NewHost(&testing.T{}, "worker", "worker-0", nil)
	e, err := Open(engine.Options{Config: engine.DefaultConfig(), Host: h, Model: &kind.Model{Path: "missing.gguf"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	for d, err := range e.Generate(context.Background(), &llm.TokensRequest{Tokens: []uint32{1, 2, 3}, Stop: llm.Stop{MaxTokens: 8}}) {
		fmt.Println(d, err)
	}
	// Output: engine native: model: open missing.gguf: no such file or directory
}
