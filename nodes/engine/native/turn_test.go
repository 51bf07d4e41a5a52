package native

import (
	"runtime"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// On one CPU a reader gets each token before the next is computed, not when the scheduler interrupts a later step.
func TestReadersComeFirst(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	e, _ := open(t, setup{model: &hooked{newFake(), func() {
		for begin := time.Now(); time.Since(begin) < 3*time.Millisecond; { // computes, and lets nobody in
		}
	}}})
	const tokens = 40
	deltas := 0
	r := &llm.TokensRequest{ID: "r", Tokens: prompt(1, 20, fakeVocab), Logprobs: -1, Stop: llm.Stop{MaxTokens: tokens, IgnoreEOS: true}}
	for d, err := range e.Generate(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Tokens) > 0 {
			deltas++
		}
	}
	if deltas < tokens*3/4 {
		t.Errorf("%d tokens came in %d deltas", tokens, deltas)
	}
	quiet(t, e)
}
