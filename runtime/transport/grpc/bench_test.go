package grpc

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/runtime/transport"
)

// batch is an engine whose step gives each of its sequences one token at once, as a real engine does. pause is the time between steps;
// 0 gives tokens as fast as they are taken.
type batch struct {
	pause time.Duration
	mu    sync.Mutex
	seqs  map[chan struct{}]bool
}

func (e *batch) run(ctx context.Context) {
	tick := time.NewTicker(e.pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		e.mu.Lock()
		for c := range e.seqs {
			select {
			case c <- struct{}{}:
			default:
			}
		}
		e.mu.Unlock()
	}
}

func (e *batch) Generate(ctx context.Context, r *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
	return func(yield func(*llm.TokensDelta, error) bool) {
		c := make(chan struct{}, 1)
		if e.pause > 0 {
			e.mu.Lock()
			e.seqs[c] = true
			e.mu.Unlock()
			defer func() {
				e.mu.Lock()
				delete(e.seqs, c)
				e.mu.Unlock()
			}()
		}
		d := llm.TokensDelta{Tokens: []uint32{0}, Instance: "decode-1"}
		for i := range r.Stop.MaxTokens {
			if e.pause > 0 {
				select {
				case <-c:
				case <-ctx.Done():
					yield(nil, ctx.Err())
					return
				}
			}
			d.Tokens[0] = uint32(i)
			if i == r.Stop.MaxTokens-1 {
				d.Finish = llm.FinishLength
			}
			if !yield(&d, nil) {
				return
			}
		}
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTokens measures a token's way from the engine's loop to the caller's, both ends in this process, over a unix socket. One
// operation is one token of every stream; CPU time and allocations are of both ends, gRPC's included.
func BenchmarkTokens(b *testing.B) {
	for _, pause := range []time.Duration{0, 5 * time.Millisecond} {
		for _, streams := range []int{1, 16, 64} {
			name := fmt.Sprintf("streams=%d/unpaced", streams)
			if pause > 0 {
				name = fmt.Sprintf("streams=%d/paced=%s", streams, pause)
			}
			b.Run(name, func(b *testing.B) { benchTokens(b, streams, pause) })
		}
	}
}

func benchTokens(b *testing.B, streams int, pause time.Duration) {
	s := NewServer(Options{})
	e := &batch{pause: pause, seqs: map[chan struct{}]bool{}}
	if err := s.Handle(echoAt, "tokens", e); err != nil {
		b.Fatal(err)
	}
	c := dial(b, listen(b, s))
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	if pause > 0 {
		wg.Go(func() { e.run(ctx) })
	}
	defer wg.Wait()
	defer cancel()
	if _, err := drive(ctx, tokens(b, c, echoAt), 0, nil); err != nil { // connect
		b.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := cpuTime(b)
	b.ResetTimer()
	var readers sync.WaitGroup
	for range streams {
		readers.Go(func() {
			n := 0
			for d, err := range tokens(b, c, echoAt).Generate(ctx, &llm.TokensRequest{Stop: llm.Stop{MaxTokens: b.N}}) {
				if err != nil {
					b.Error(err)
					return
				}
				n += len(d.Tokens)
			}
			if n != b.N {
				b.Errorf("%d tokens of %d", n, b.N)
			}
		})
	}
	readers.Wait()
	b.StopTimer()
	cpu = cpuTime(b) - cpu
	runtime.ReadMemStats(&after)
	n := float64(b.N * streams)
	b.ReportMetric(float64(cpu.Nanoseconds())/n, "cpu-ns/token")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/token")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/token")
}

// BenchmarkFetch measures KV blocks of SmolLM2-135M's size as bytes on a unix socket.
func BenchmarkFetch(b *testing.B) {
	const size = 368_640
	s := NewServer(Options{})
	a := transport.Address{Node: "node", Port: "kv"}
	block := llm.KVBlock{Tokens: 16, Bytes: make([]byte, size)}
	if err := s.Handle(a, "kv", flow.EngineFunc[*llm.KVFetch, *llm.KVBlock](
		func(_ context.Context, f *llm.KVFetch) iter.Seq2[*llm.KVBlock, error] {
			return func(yield func(*llm.KVBlock, error) bool) {
				for range f.To {
					if !yield(&block, nil) {
						return
					}
				}
			}
		})); err != nil {
		b.Fatal(err)
	}
	v, err := dial(b, listen(b, s)).Engine(a, "kv")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	b.ReportAllocs()
	n := 0
	for k, err := range v.(kvEngine).Generate(b.Context(), &llm.KVFetch{To: b.N}) {
		if err != nil || len(k.Bytes) != size {
			b.Fatal(err)
		}
		n++
	}
	if n != b.N {
		b.Fatalf("%d blocks of %d", n, b.N)
	}
}
