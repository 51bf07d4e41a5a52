package native

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/native/llama"
)

// samplings has every field of llm.Sampling at work once.
var samplings = map[string]llm.Sampling{
	"greedy":      {},
	"temperature": {Temperature: 0.9, Seed: 3},
	"top_k":       {Temperature: 0.9, TopK: 20, Seed: 4},
	"top_p":       {Temperature: 0.9, TopP: 0.7, Seed: 5},
	"min_p":       {Temperature: 0.9, MinP: 0.05, Seed: 6},
	"frequency":   {Temperature: 0.9, FrequencyPenalty: 0.7, Seed: 7},
	"presence":    {PresencePenalty: 3},
	"repetition":  {RepetitionPenalty: 3},
	"bias":        {Temperature: 1, LogitBias: map[uint32]float32{4: 5, 9: 5}, Seed: 8},
	"all": {Temperature: 1.3, TopK: 60, TopP: 0.95, MinP: 0.01, FrequencyPenalty: 0.2, PresencePenalty: 0.1, RepetitionPenalty: 1.2,
		LogitBias: map[uint32]float32{1: 2}, Seed: 9},
}

// models are what the equalities are held on: the fake, a tiny random Llama, and the real model where there is one.
func models(t *testing.T, each func(t *testing.T, mk func() compute)) {
	t.Run("fake", func(t *testing.T) { each(t, func() compute { return newFake() }) })
	t.Run("tiny", func(t *testing.T) {
		path := tinyModel(t)
		each(t, func() compute { return openLlama(t, path, 256) })
	})
	t.Run("real", func(t *testing.T) {
		path := os.Getenv("DYNAMO_TEST_MODEL")
		if path == "" {
			t.Skip("NOT RUN: set DYNAMO_TEST_MODEL")
		}
		if testing.Short() {
			t.Skip("NOT RUN: -short")
		}
		each(t, func() compute { return openLlama(t, path, 256) })
	})
}

var cacheDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "native") })

func openLlama(t *testing.T, path string, context int) compute {
	t.Helper()
	dir, err := cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	m, err := llama.Open(llama.Options{Path: path, CacheDir: dir, Threads: 1, Context: context})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// One request gives one answer and one KV, whatever way it takes.
func TestEveryWayGivesTheSame(t *testing.T) {
	models(t, func(t *testing.T, mk func() compute) {
		ref, _ := open(t, setup{model: mk()})
		vocab := ref.info.Vocabulary
		names := []string{"all"}
		switch {
		case vocab == fakeVocab:
			names = slices.Sorted(maps.Keys(samplings))
		case vocab < 1000:
			names = append(names, "greedy")
		}
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				r := &llm.TokensRequest{
					ID: name, Tokens: prompt(len(name), 55, vocab), Sampling: samplings[name], Logprobs: 3,
					Stop: llm.Stop{MaxTokens: 30, MinTokens: 30}, // a random model may stop at any time
				}
				want := must(t, ref, r)
				if len(want.tokens) != 30 || len(want.logprobs) != 30 || want.finish != llm.FinishLength {
					t.Fatalf("reference: %v", want)
				}
				all := slices.Concat(r.Tokens, want.tokens[:29])
				bits := sums(t, ref, all)
				check := func(t *testing.T, e *Engine, got result) {
					t.Helper()
					if !same(got, want) {
						t.Errorf("got  %v\nwant %v", got, want)
					}
					if s := sums(t, e, all); !slices.Equal(s, bits) {
						t.Errorf("KV differs: %x, want %x", s, bits)
					}
				}
				t.Run("chunked", func(t *testing.T) {
					c := config()
					c.Batch.Seqs, c.Batch.Tokens = 2, 7
					e, _ := open(t, setup{model: mk(), conf: c})
					check(t, e, must(t, e, r))
				})
				t.Run("batched, preempted", func(t *testing.T) {
					c := config()
					c.Batch = engine.Batch{Seqs: 4, Tokens: 20, Queue: 50}
					c.KV.Tokens = 16 * 16
					all6 := make(chan struct{})
					e, h := open(t, setup{model: &hooked{mk(), func() { <-all6 }}, conf: c})
					var got result
					var wg sync.WaitGroup
					for i := range 6 {
						wg.Go(func() {
							o := *r
							if i == 5 {
								got = collect(t.Context(), e, &o)
								return
							}
							o.Tokens, o.Sampling = prompt(100+i, 40+i, vocab), samplings["all"]
							o.Stop.MaxTokens, o.Stop.MinTokens = 60, 60
							if out := collect(t.Context(), e, &o); out.err != nil {
								t.Error(out.err)
							}
						})
					}
					held(t, e, 6)
					close(all6)
					wg.Wait()
					if !same(got, want) {
						t.Errorf("got  %v\nwant %v", got, want)
					}
					if h.Metric("dynamo_engine_preemptions_total") == 0 {
						t.Error("nothing was preempted: the test shows less than it says")
					}
					check(t, e, must(t, e, r))
					quiet(t, e)
				})
				t.Run("prefix hit", func(t *testing.T) {
					got := must(t, ref, r)
					if got.usage.Cached != 48 {
						t.Errorf("%d tokens cached, want 48", got.usage.Cached)
					}
					check(t, ref, got)
				})
				t.Run("migrated", func(t *testing.T) {
					for _, n := range []int{1, 9, 29} {
						e, _ := open(t, setup{model: mk()})
						m := *r
						m.Tokens, m.Generated = slices.Concat(r.Tokens, want.tokens[:n]), n
						got := must(t, e, &m)
						got.tokens = slices.Concat(want.tokens[:n], got.tokens)
						got.logprobs = slices.Concat(want.logprobs[:n], got.logprobs)
						check(t, e, got)
					}
				})
				for _, way := range []string{"shared memory", "bytes"} {
					t.Run("disaggregated by "+way, func(t *testing.T) {
						p, d, w, h := pair(t, mk, config())
						if way == "bytes" {
							d.peers.avoid("prefill-0")
						}
						check(t, d, disagg(t, p, d, r, nil))
						quiet(t, p)
						if w.blocks != 4 || h.Metric("dynamo_handoffs_total", "ok") != 1 || h.Metric("dynamo_engine_tokens_total", "in") != 0 {
							t.Errorf("%d blocks moved, %v hand-offs ok, %v prompt tokens computed by decode", w.blocks,
								h.Metric("dynamo_handoffs_total", "ok"), h.Metric("dynamo_engine_tokens_total", "in"))
						}
						check(t, d, disagg(t, p, d, r, nil)) // now decode has the complete blocks and fetches the last only
						if w.blocks != 5 {
							t.Errorf("%d blocks moved in all, want 5", w.blocks)
						}
					})
				}
			})
		}
	})
}

// Whatever goes wrong with a hand-off, the answer is the same; it is counted, logged once, and nothing stays pinned where that can be told.
func TestHandOffFailures(t *testing.T) {
	ref, _ := open(t, setup{})
	r := &llm.TokensRequest{ID: "r", Tokens: prompt(1, 70, fakeVocab), Logprobs: 2, Sampling: samplings["all"], Stop: llm.Stop{MaxTokens: 20, MinTokens: 20}}
	want := must(t, ref, r)
	flip := func(index int) func(*llm.KVFetch, *llm.KVBlock) error {
		return func(_ *llm.KVFetch, b *llm.KVBlock) error {
			if b.Index == index {
				b.Sum++
			}
			return nil
		}
	}
	for _, c := range []struct {
		name   string
		change func(*llm.HandOff)
		edit   func(*llm.KVFetch, *llm.KVBlock) error
		result string
		kept   bool // prefill cannot be told
	}{
		{name: "unknown id", change: func(h *llm.HandOff) { h.ID = "x" }, result: "expired", kept: true},
		{name: "unknown peer", change: func(h *llm.HandOff) { h.Peer = "prefill-9" }, result: "peer", kept: true},
		{name: "past its deadline", change: func(h *llm.HandOff) { h.Deadline = time.Now().Add(-time.Second) }, result: "expired"},
		{name: "other numerics", change: func(h *llm.HandOff) { h.Contract.Numerics = "int8" }, result: "contract"},
		{name: "more tokens than the prompt", change: func(h *llm.HandOff) { h.Tokens = 71 }, result: "error"},
		{name: "mode beside", change: func(h *llm.HandOff) { h.Mode = llm.ModeBeside }, result: "error", kept: true},
		{name: "first block damaged", edit: flip(0), result: "checksum"},
		{name: "third block damaged", edit: flip(2), result: "checksum"},
		{name: "wrong identity", edit: func(_ *llm.KVFetch, b *llm.KVBlock) error { b.Hash[0]++; return nil }, result: "error"},
		{name: "wrong order", edit: func(_ *llm.KVFetch, b *llm.KVBlock) error { b.Index++; return nil }, result: "error"},
		{name: "place outside the region", edit: func(_ *llm.KVFetch, b *llm.KVBlock) error { b.Offset = 1 << 40; return nil }, result: "error"},
		{name: "peer fails in the middle", edit: func(_ *llm.KVFetch, b *llm.KVBlock) error {
			if b.Index == 2 {
				return errors.New("gone")
			}
			return nil
		}, result: "error"},
		{name: "memory of another machine", edit: func(_ *llm.KVFetch, b *llm.KVBlock) error {
			if b.Region != "" {
				b.Region = "elsewhere"
			}
			return nil
		}, result: "ok"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, d, w, h := pair(t, func() compute { return newFake() }, config())
			w.edit = c.edit
			got := disagg(t, p, d, r, c.change)
			if !same(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
			if err := d.Control(t.Context(), engine.Control{Verb: "drain"}); err != nil {
				t.Error(err)
			}
			if n := h.Metric("dynamo_handoffs_total", c.result); n != 1 {
				t.Errorf("%v hand-offs with result %q, want 1; log:\n%s", n, c.result, h.Logs())
			}
			if !c.kept {
				quiet(t, p)
			}
		})
	}
}

func TestFirstTokenEndsIt(t *testing.T) {
	p, d, _, _ := pair(t, func() compute { return newFake() }, config())
	one := &llm.TokensRequest{ID: "one", Tokens: prompt(1, 20, fakeVocab), Phase: llm.PhasePrefill, Stop: llm.Stop{MaxTokens: 1, MinTokens: 1}}
	got := must(t, p, one)
	if got.handOff != nil || got.finish != llm.FinishLength || len(got.tokens) != 1 || got.usage.Completion != 1 {
		t.Fatalf("one token: %v", got)
	}
	stop := *one
	stop.Stop = llm.Stop{MaxTokens: 9, IDs: got.tokens}
	if got := must(t, p, &stop); got.handOff != nil || got.finish != llm.FinishStop || got.stop != stop.Stop.IDs[0] || len(got.tokens) != 0 {
		t.Fatalf("stop: %v", got)
	}
	// Decode applies the stop rules to prefill's token too.
	free := *one
	free.Stop = llm.Stop{MaxTokens: 9}
	h := must(t, p, &free).handOff
	free.Phase, free.HandOff, free.Stop.IDs = llm.PhaseDecode, h, []uint32{h.First}
	if got := must(t, d, &free); got.finish != llm.FinishStop || got.stop != h.First || len(got.tokens) != 0 {
		t.Fatalf("decode: %v", got)
	}
	quiet(t, p)
}

func TestPromptLogprobs(t *testing.T) {
	r := &llm.TokensRequest{ID: "r", Tokens: prompt(1, 70, fakeVocab), Logprobs: 2, PromptLogprobs: true, Stop: llm.Stop{MaxTokens: 20, MinTokens: 20}}
	ref, _ := open(t, setup{})
	want := must(t, ref, r)
	if len(want.prompt) != 70 || want.prompt[0].Top != nil || len(want.prompt[1].Top) != 2 || want.prompt[69].Token != r.Tokens[69] {
		t.Fatalf("prompt: %v", want.prompt)
	}
	if got := must(t, ref, r); !same(got, want) || got.usage.Cached != 0 {
		t.Errorf("second time: %v, want %v", got, want)
	}
	p, d, _, _ := pair(t, func() compute { return newFake() }, config())
	if got := disagg(t, p, d, r, nil); !same(got, want) {
		t.Errorf("disaggregated: %v, want %v", got, want)
	}
	quiet(t, p)
	plain := *r
	plain.PromptLogprobs = false
	if got := must(t, ref, &plain); fmt.Sprint(got.tokens, got.logprobs) != fmt.Sprint(want.tokens, want.logprobs) {
		t.Error("output depends on prompt log-probabilities")
	}
}
