package transporttest

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// Echo answers a request with its own tokens, one a delta; the last delta finishes. It records what it was asked.
type Echo struct {
	mu    sync.Mutex
	Asked []*llm.TokensRequest
	Ctxs  []context.Context
}

// Generate implements flow.AsyncEngine. The delta and its slices are the same at each turn, as an engine may do.
func (e *Echo) Generate(ctx context.Context, r *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
	return func(yield func(*llm.TokensDelta, error) bool) {
		e.mu.Lock()
		e.Asked = append(e.Asked, r)
		e.Ctxs = append(e.Ctxs, ctx)
		e.mu.Unlock()
		d := llm.TokensDelta{Tokens: []uint32{0}, Logprobs: []llm.Logprob{{}}, Instance: "echo-1"}
		for i, t := range r.Tokens {
			if err := ctx.Err(); err != nil {
				yield(nil, flow.AsError(err))
				return
			}
			d.Tokens[0] = t
			d.Logprobs[0] = llm.Logprob{Token: t, Logprob: -float32(i) / 2, Top: []llm.TopLogprob{{Token: t, Logprob: -0.5}, {Token: t + 1, Logprob: -1.5}}}
			if i == len(r.Tokens)-1 {
				d.Finish, d.StopID = llm.FinishStop, 7
				d.Usage = &llm.Usage{Prompt: 3, Completion: len(r.Tokens), Cached: 1}
				d.HandOff = handOff()
			}
			if !yield(&d, nil) {
				return
			}
		}
	}
}

func (e *Echo) last() (*llm.TokensRequest, context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.Asked[len(e.Asked)-1], e.Ctxs[len(e.Ctxs)-1]
}

func handOff() *llm.HandOff {
	return &llm.HandOff{
		ID: "h", Mode: llm.ModeAfter, Peer: "prefill-1", Tokens: 48, First: 9, Opaque: []byte{1, 2}, Deadline: time.Unix(1700000000, 5),
		FirstLogprob: &llm.Logprob{Token: 9, Logprob: -0.25, Top: []llm.TopLogprob{{Token: 9, Logprob: -0.25}}},
		Contract: llm.Contract{
			ModelID: "m", BlockSize: 16, DType: "f16", Layout: "native-1", Hash: "sha256-128", Numerics: "i16-1", TP: 1, BlockBytes: 368640,
		},
	}
}

// Endless gives deltas until it is told to stop, and counts.
type Endless struct {
	Pause   time.Duration // between deltas; 0: as fast as the caller takes them
	Started atomic.Int64
	Stopped atomic.Int64
	Given   atomic.Int64
}

// Generate implements flow.AsyncEngine.
func (e *Endless) Generate(ctx context.Context, _ *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
	return func(yield func(*llm.TokensDelta, error) bool) {
		e.Started.Add(1)
		defer e.Stopped.Add(1)
		d := llm.TokensDelta{Tokens: []uint32{0}}
		for {
			if e.Pause > 0 {
				select {
				case <-time.After(e.Pause):
				case <-ctx.Done():
				}
			}
			if err := ctx.Err(); err != nil {
				yield(nil, flow.AsError(err))
				return
			}
			d.Tokens[0]++
			e.Given.Add(1)
			if !yield(&d, nil) {
				return
			}
		}
	}
}

// fail gives one delta, then err.
func fail(err error) flow.EngineFunc[*llm.TokensRequest, *llm.TokensDelta] {
	return func(context.Context, *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
		return func(yield func(*llm.TokensDelta, error) bool) {
			if yield(&llm.TokensDelta{Tokens: []uint32{1}}, nil) {
				yield(nil, err)
			}
		}
	}
}

func panics(context.Context, *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
	return func(yield func(*llm.TokensDelta, error) bool) {
		if yield(&llm.TokensDelta{Tokens: []uint32{1}}, nil) {
			panic("the engine's own fault")
		}
	}
}

// kv gives the blocks [From, To), each of Size bytes that tell its index, in one buffer that it reuses.
type kv struct {
	size     int
	released atomic.Int64
}

func (k *kv) Generate(_ context.Context, f *llm.KVFetch) iter.Seq2[*llm.KVBlock, error] {
	return func(yield func(*llm.KVBlock, error) bool) {
		switch {
		case f.Release:
			k.released.Add(1)
			return
		case f.HandOff == "gone":
			yield(nil, &flow.Error{Class: flow.NotFound, Reason: "kv.gone", Msg: "hand-off is gone"})
			return
		}
		buf := make([]byte, k.size)
		for i := f.From; i < f.To; i++ {
			b := llm.KVBlock{Index: i, Tokens: f.Contract.BlockSize, Hash: [16]byte{1, byte(i)}, Sum: uint64(i) << 60}
			if f.SharedMemory {
				b.Region, b.Offset, b.Length = "shm:x", int64(i)<<33, k.size
			} else {
				for j := range buf {
					buf[j] = byte(i + j)
				}
				b.Bytes = buf
			}
			if !yield(&b, nil) {
				return
			}
		}
	}
}

func events(ctx context.Context, s *llm.Subscribe) iter.Seq2[*llm.EventBatch, error] {
	return func(yield func(*llm.EventBatch, error) bool) {
		for n := s.After + 1; n <= s.After+3; n++ {
			b := llm.EventBatch{Sequence: n, Snapshot: n == 1, Events: []llm.KVEvent{
				{Type: llm.EventStored, Parent: 1 << 63, Hashes: []uint64{n, 1<<64 - 1}, Tier: "device"}, {Type: llm.EventRemoved, Hashes: []uint64{n}},
				{Type: llm.EventCleared},
			}}
			if !yield(&b, nil) {
				return
			}
		}
		<-ctx.Done()
		yield(nil, flow.AsError(ctx.Err()))
	}
}

func loads(ctx context.Context, _ *llm.Subscribe) iter.Seq2[*llm.Load, error] {
	return func(yield func(*llm.Load, error) bool) {
		if yield(&llm.Load{Sequence: 1, Running: 2, Waiting: 3, PrefillTokens: 4, BlocksUsed: 5, BlocksTotal: 6, BlocksCached: 7}, nil) {
			<-ctx.Done()
			yield(nil, flow.AsError(fmt.Errorf("wrapped: %w", ctx.Err())))
		}
	}
}
