package transporttest

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
)

type iterLoad = iter.Seq2[*llm.Load, error]

func (s *suite) fetch() {
	e := engineOf(s, "kv", llm.KV)
	f := &llm.KVFetch{HandOff: "h", Contract: handOff().Contract, From: 2, To: 9}
	i := f.From
	for b, err := range e.Generate(s.t.Context(), f) {
		s.check(err)
		if len(b.Bytes) != s.kv.size {
			s.t.Fatalf("block %d has %d bytes", i, len(b.Bytes))
		}
		for j, c := range b.Bytes {
			if c != byte(i+j) {
				s.t.Fatalf("block %d: byte %d is %d", i, j, c)
			}
		}
		c := *b
		c.Bytes = nil
		s.equal(c, llm.KVBlock{Index: i, Tokens: 16, Hash: [16]byte{1, byte(i)}, Sum: uint64(i) << 60})
		i++
	}
	s.equal(i, 9)

	f.SharedMemory = true
	i = f.From
	for b, err := range e.Generate(s.t.Context(), f) {
		s.check(err)
		s.equal(*b, llm.KVBlock{
			Index: i, Tokens: 16, Hash: [16]byte{1, byte(i)}, Sum: uint64(i) << 60, Region: "shm:x", Offset: int64(i) << 33, Length: s.kv.size,
		})
		i++
	}
	s.equal(i, 9)

	for range e.Generate(s.t.Context(), &llm.KVFetch{HandOff: "h", Release: true}) {
		s.t.Error("a release was answered")
	}
	s.equal(s.kv.released.Load(), int64(1))

	var last error
	for _, err := range e.Generate(s.t.Context(), &llm.KVFetch{HandOff: "gone", To: 1}) {
		last = err
	}
	if e := s.fails(last, flow.NotFound, "kv.gone", false); e.Msg != "hand-off is gone" || e.Instance != Instance {
		s.t.Errorf("got %+v", e)
	}
}

func (s *suite) events() {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	n := uint64(4)
	var last error
	for b, err := range engineOf(s, "events", llm.Events).Generate(ctx, &llm.Subscribe{After: n}) {
		if last = err; err != nil {
			break
		}
		n++
		s.equal(b, &llm.EventBatch{Sequence: n, Events: []llm.KVEvent{
			{Type: llm.EventStored, Parent: 1 << 63, Hashes: []uint64{n, 1<<64 - 1}, Tier: "device"}, {Type: llm.EventRemoved, Hashes: []uint64{n}},
			{Type: llm.EventCleared},
		}})
		if n == 7 {
			cancel()
		}
	}
	s.fails(last, flow.Cancelled, "cancelled", false)
	for b, err := range engineOf(s, "events", llm.Events).Generate(s.t.Context(), &llm.Subscribe{}) {
		s.check(err)
		s.equal(b.Snapshot, true)
		break
	}
}

func (s *suite) loads() {
	for l, err := range engineOf(s, "load", llm.Loads).Generate(s.t.Context(), &llm.Subscribe{}) {
		s.check(err)
		s.equal(l, &llm.Load{Sequence: 1, Running: 2, Waiting: 3, PrefillTokens: 4, BlocksUsed: 5, BlocksTotal: 6, BlocksCached: 7})
		break
	}
}

func (s *suite) drain() {
	started := make(chan struct{})
	finish := make(chan struct{})
	s.serve("held", "tokens", flow.EngineFunc[*llm.TokensRequest, *llm.TokensDelta](
		func(context.Context, *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
			return func(yield func(*llm.TokensDelta, error) bool) {
				close(started)
				<-finish
				yield(&llm.TokensDelta{Tokens: []uint32{5}, Finish: llm.FinishLength}, nil)
			}
		}))
	var wg sync.WaitGroup
	var tokens []uint32
	var err, drained error
	wg.Go(func() { tokens, _, err = collect(s.t.Context(), s.engine("held"), prompt(1)) })
	<-started

	short, cancel := context.WithTimeout(s.t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Server.Drain(short); err == nil {
		s.t.Error("drained with a request in flight")
	}
	wg.Go(func() { drained = s.Server.Drain(s.t.Context()) })
	_, _, late := collect(s.t.Context(), s.engine("echo"), prompt(1))
	s.fails(late, flow.Unavailable, "transport.draining", true)
	close(finish)
	wg.Wait()
	s.check(err)
	s.check(drained)
	s.equal(tokens, []uint32{5})
	n := 0
	for _, err := range engineOf(s, "kv", llm.KV).Generate(s.t.Context(), &llm.KVFetch{HandOff: "h", To: 2}) {
		s.check(err)
		n++
	}
	s.equal(n, 2)
	s.check(s.Server.Drain(s.t.Context()))
}

// drainThenClose shuts a busy server down: each request is answered whole or refused, none is cut.
func (s *suite) drainThenClose() {
	var wg sync.WaitGroup
	var whole, refused atomic.Int64
	for range 16 {
		wg.Go(func() {
			for {
				tokens, last, err := collect(s.t.Context(), s.engine("echo"), prompt(200))
				var e *flow.Error
				switch {
				case err == nil && len(tokens) == 200 && last.Finish == llm.FinishStop:
					whole.Add(1)
				case errors.As(err, &e) && len(tokens) == 0 && e.Class == flow.Unavailable && e.Retry: // refused, or never seen by the server
					refused.Add(1)
					return
				default:
					s.t.Errorf("cut after %d tokens: %v", len(tokens), err)
					return
				}
			}
		})
	}
	s.eventually("requests are answered", func() bool { return whole.Load() > 50 })
	s.check(s.Server.Drain(s.t.Context()))
	s.check(s.Server.Close())
	wg.Wait()
	s.equal(refused.Load(), int64(16))
}

// open starts one stream of each sort and returns a function that waits for their ends.
func (s *suite) open() (wait func() []error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	var begun sync.WaitGroup
	add := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}
	begun.Add(3)
	wg.Go(func() {
		once := sync.OnceFunc(begun.Done)
		_, last := 0, error(nil)
		for _, err := range s.engine("endless").Generate(s.t.Context(), prompt(1)) {
			once()
			last = err
		}
		add(last)
	})
	wg.Go(func() {
		once := sync.OnceFunc(begun.Done)
		var last error
		for _, err := range engineOf(s, "events", llm.Events).Generate(s.t.Context(), &llm.Subscribe{}) {
			once()
			last = err
		}
		add(last)
	})
	wg.Go(func() {
		once := sync.OnceFunc(begun.Done)
		var last error
		for _, err := range engineOf(s, "load", llm.Loads).Generate(s.t.Context(), &llm.Subscribe{}) {
			once()
			last = err
		}
		add(last)
	})
	begun.Wait()
	return func() []error {
		wg.Wait()
		return errs
	}
}

func (s *suite) serverClose() {
	wait := s.open()
	s.check(s.Server.Close())
	for _, err := range wait() {
		if e := s.fails(err, flow.Unavailable, "transport.disconnected", true); e.Instance != Instance {
			s.t.Errorf("instance is %q", e.Instance)
		}
	}
	s.equal(s.idle.Started.Load(), s.idle.Stopped.Load())
	s.eventually("the connection is known to be gone", func() bool { return !s.Conn.Healthy() })
	_, _, err := collect(s.t.Context(), s.engine("echo"), prompt(1))
	s.fails(err, flow.Unavailable, "transport.cannot_connect", true)
}

func (s *suite) connClose() {
	wait := s.open()
	s.check(s.Conn.Close())
	for _, err := range wait() {
		s.fails(err, flow.Unavailable, "transport.closed", true)
	}
	s.eventually("the engine stopped", func() bool { return s.idle.Stopped.Load() == 1 })
	_, _, err := collect(s.t.Context(), s.engine("echo"), prompt(1))
	s.fails(err, flow.Unavailable, "transport.closed", true)
}
