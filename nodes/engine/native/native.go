// Package native is the embedded engine: it computes models itself (package llama), batches sequences continuously (package sched),
// chooses tokens (package sample) and keeps its KV cache block by block in memory that other processes of the machine can map, so that a
// prompt computed by one instance is continued by another. It registers itself as "native".
//
// What it answers depends on the request alone: not on batch mates, chunks, cache hits, preemption, or the instance that computed the
// prompt. Tests hold this for tokens and for the bits of KV.
package native

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/native/llama"
	"github.com/dynamograph/dynamo/nodes/engine/sample"
	"github.com/dynamograph/dynamo/nodes/engine/sched"
	"github.com/dynamograph/dynamo/nodes/kv/block"
	"github.com/dynamograph/dynamo/nodes/kv/hash"
	"github.com/dynamograph/dynamo/nodes/text/constrain"
	"github.com/dynamograph/dynamo/nodes/throttle"
)

const (
	handOffLife = 30 * time.Second      // how long pinned blocks wait for decode
	fetchStall  = 3 * time.Second       // no block for so long: decode computes the prompt itself
	releaseTime = 2 * time.Second       // for telling a peer that its blocks are no longer wanted
	loadEvery   = 50 * time.Millisecond // between two loads for one subscriber
	logBatches  = 4096                  // KV event batches kept for subscribers that lag
)

// compute is the half that knows the model; *llama.Model. Forward is called by one goroutine.
type compute interface {
	Info() llama.Info
	Forward(kv []byte, batch []llama.Seq) error
	Close() error
}

// Engine is an engine.Engine; see the package.
type Engine struct {
	host  kind.Host
	model compute
	info  engine.Info
	fetch func(peer string) (flow.AsyncEngine[*llm.KVFetch, *llm.KVBlock], error)
	ends  []uint32 // the model's own end tokens
	// programs reads the vocabulary when first needed.
	programs func() (*constrain.Cache, error)
	scope    hash.Scope
	size     int // bytes a block
	kv       kind.Memory
	slab     []byte
	events   *block.Log
	loads    loads
	m        metrics
	peers    mappings

	turn     atomic.Int64      // when the loop's turn began, ns since 1970; 0 while it waits for work
	throttle throttle.Throttle // of warnings about requests

	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup // the loop, fetches, releases, exports
	wake     chan struct{}  // of the loop; one is enough
	once     sync.Once
	closeErr error

	mu       sync.Mutex // guards what follows; never held while computing, fetching or yielding
	core     *sched.Core
	shut     *flow.Error // why nothing new is taken; nil while all is well
	handOffs uint64
	evicted  uint64 // as last published
	found    uint64
	epoch    string // makes hand-off ids differ from those of an earlier life

	// The loop's alone.
	sampler *sample.Sampler
	batch   []llama.Seq
	rows    [][]float32
	chosen  []choice
}

var (
	_ engine.Engine      = (*Engine)(nil)
	_ engine.KVExporter  = (*Engine)(nil)
	_ engine.EventSource = (*Engine)(nil)
	_ engine.LoadSource  = (*Engine)(nil)
	_ kind.Progress      = (*Engine)(nil)
)

// Info says what the engine is; it never changes.
func (e *Engine) Info() engine.Info { return e.info }

// Control knows "flush" (forget KV that nobody uses) and "drain" (refuse new requests; returns when all sequences have ended and all
// hand-offs are fetched or expired, or with ctx's error).
func (e *Engine) Control(ctx context.Context, c engine.Control) error {
	switch c.Verb {
	case "flush":
		e.mu.Lock()
		e.core.Flush()
		e.mu.Unlock()
		e.poke()
		return nil
	case "drain":
		return e.drain(ctx)
	}
	return fmt.Errorf("verb %q: %w (known: flush, drain)", c.Verb, engine.ErrUnsupported)
}

// Stuck implements kind.Progress: a turn of the loop, which is one step, takes seconds at most.
func (e *Engine) Stuck() time.Duration {
	if t := e.turn.Load(); t != 0 {
		return max(0, time.Since(time.Unix(0, t)))
	}
	return 0
}

func (e *Engine) drain(ctx context.Context) error {
	for {
		e.mu.Lock()
		if e.shut == nil {
			e.shut = &flow.Error{Class: flow.Unavailable, Reason: "engine.draining", Msg: "the engine is draining", Instance: e.host.Instance(), Retry: true}
		}
		st := e.core.Stats()
		_, changed := e.loads.get()
		e.mu.Unlock()
		if st.Running+st.Waiting+st.Pins == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-e.ctx.Done():
			return nil
		case <-ctx.Done():
			return fmt.Errorf("drain: %d sequences run, %d wait, %d hand-offs are held: %w", st.Running, st.Waiting, st.Pins, ctx.Err())
		}
	}
}

// Close ends what is in flight with flow.Unavailable, reason "engine.closed", and waits for every goroutine.
func (e *Engine) Close() error {
	e.once.Do(func() {
		e.mu.Lock()
		if e.shut == nil || e.shut.Reason == "engine.draining" {
			e.shut = e.closed()
		}
		e.cancel()
		e.mu.Unlock()
		e.wg.Wait()
		e.closeErr = errors.Join(e.model.Close(), e.peers.close(), e.kv.Close())
	})
	return e.closeErr
}

func (e *Engine) closed() *flow.Error {
	return &flow.Error{Class: flow.Unavailable, Reason: "engine.closed", Msg: "the engine was closed", Instance: e.host.Instance(), Retry: true}
}

// poke makes the loop look.
func (e *Engine) poke() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *Engine) block(b int32) []byte {
	at := int(b) * e.size
	return e.slab[at : at+e.size : at+e.size]
}
