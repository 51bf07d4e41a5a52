package native

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// A request that decode refuses, for it is full, goes elsewhere with a hand-off of its own: the blocks of this one are given up at once, not
// when they expire. Else prefill's cache is full of them just when there is much to do.
func TestRefusedHandOffIsReleased(t *testing.T) {
	conf := config()
	conf.Batch.Seqs, conf.Batch.Queue = 1, 0
	p, _ := open(t, setup{conf: conf, instance: "prefill-0"})
	f := newFake()
	hold, pass := gate(f)
	d, _ := open(t, setup{model: f, conf: conf, instance: "decode-0", fetch: (&wire{to: p}).dial})
	hold()
	defer pass()
	busy, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		collect(busy, d, &llm.TokensRequest{ID: "busy", Tokens: prompt(1, 20, fakeVocab), Logprobs: -1, Stop: llm.Stop{MaxTokens: 4}})
	})
	held(t, d, 1)
	r := &llm.TokensRequest{ID: "r", Tokens: prompt(2, 40, fakeVocab), Logprobs: -1, Stop: llm.Stop{MaxTokens: 4, IgnoreEOS: true}, Phase: llm.PhasePrefill}
	a := must(t, p, r)
	if a.handOff == nil {
		t.Fatalf("no hand-off: %v", a)
	}
	next := *r
	next.Phase, next.HandOff = llm.PhaseDecode, a.handOff
	if out := collect(t.Context(), d, &next); out.err == nil || out.err.Reason != "engine.queue_full" || !out.err.Retry {
		t.Fatalf("not refused: %v", out)
	}
	began := time.Now()
	quiet(t, p)
	if took := time.Since(began); took > handOffLife/2 {
		t.Errorf("released after %v", took)
	}
}
