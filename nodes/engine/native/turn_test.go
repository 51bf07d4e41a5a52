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

// An engine says for how long a step takes already, and nothing while it waits for work.
func TestStuck(t *testing.T) {
	f := newFake()
	hold, pass := gate(f)
	e, _ := open(t, setup{model: f})
	if d := e.Stuck(); d > time.Second {
		t.Errorf("without work: stuck for %v", d)
	}
	hold()
	done := make(chan struct{})
	go func() {
		defer close(done)
		collect(t.Context(), e, &llm.TokensRequest{Tokens: prompt(1, 20, fakeVocab), Stop: llm.Stop{MaxTokens: 2, IgnoreEOS: true}})
	}()
	held(t, e, 1)
	for a, end := e.Stuck(), time.Now().Add(10*time.Second); ; time.Sleep(time.Millisecond) {
		if b := e.Stuck(); a > 0 && b > a {
			break
		} else if a = b; time.Now().After(end) {
			t.Fatal("a step that does not end goes unseen")
		}
	}
	pass()
	<-done
	quiet(t, e)
	for end := time.Now().Add(10 * time.Second); e.Stuck() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("stuck after the work is done")
		}
	}
}
