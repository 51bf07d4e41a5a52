package native

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
)

// loads is the last load, for those who follow.
type loads struct {
	mu      sync.Mutex
	last    llm.Load
	changed chan struct{} // nil while nobody waits
}

func (l *loads) set(v llm.Load) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v.Sequence = l.last.Sequence
	if v == l.last && v.Sequence > 0 {
		return
	}
	v.Sequence++
	l.last = v
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

func (l *loads) get() (llm.Load, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.last, l.changed
}

// Loads gives the load at once and then on change, at most every 50 ms.
func (e *Engine) Loads(ctx context.Context, _ *llm.Subscribe) iter.Seq2[*llm.Load, error] {
	return func(yield func(*llm.Load, error) bool) {
		var pause *time.Timer
		for seen := uint64(0); ; {
			l, changed := e.loads.get()
			if l.Sequence != seen {
				seen = l.Sequence
				if !yield(&l, nil) {
					return
				}
				if pause == nil {
					pause = time.NewTimer(loadEvery)
					defer pause.Stop()
				} else {
					pause.Reset(loadEvery)
				}
				select {
				case <-pause.C:
				case <-ctx.Done():
				case <-e.ctx.Done():
				}
			} else {
				select {
				case <-changed:
				case <-ctx.Done():
				case <-e.ctx.Done():
				}
			}
			if err := e.over(ctx); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// Events streams which blocks the engine holds, by routing hash: a snapshot, then what changes.
func (e *Engine) Events(ctx context.Context, s *llm.Subscribe) iter.Seq2[*llm.EventBatch, error] {
	return func(yield func(*llm.EventBatch, error) bool) {
		both, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(e.ctx, cancel)() //nolint:contextcheck // both contexts end it
		for b, err := range e.events.Follow(both, s) {
			if err != nil {
				if f := e.over(ctx); f != nil {
					err = f
				}
				yield(nil, err)
				return
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

// over says why a subscription ends, nil if it does not.
func (e *Engine) over(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return flow.AsError(err)
	}
	if e.ctx.Err() != nil {
		return e.closed()
	}
	return nil
}

// metrics are the engine's instruments with their labels bound.
type metrics struct {
	running, waiting, blocks  func(float64)
	step                      func(float64)
	in, out, preempted, found func(float64)
	handOff                   func(...string) func(float64)
}

func newMetrics(m kind.Metrics) metrics {
	tokens := m.Counter("dynamo_engine_tokens_total", "Tokens by direction: prompt tokens computed (in), tokens given (out).", "direction")
	return metrics{
		running:   m.Gauge("dynamo_engine_running", "Sequences in the batch.")(),
		waiting:   m.Gauge("dynamo_engine_waiting", "Sequences that wait.")(),
		blocks:    m.Gauge("dynamo_engine_kv_blocks_used", "KV blocks in use.")(),
		step:      m.Histogram("dynamo_engine_step_seconds", "Duration of an engine step.", []float64{.002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5})(),
		in:        tokens("in"),
		out:       tokens("out"),
		preempted: m.Counter("dynamo_engine_preemptions_total", "Sequences that gave up their KV blocks.")(),
		found:     m.Counter("dynamo_engine_prefix_hit_tokens_total", "Prompt tokens whose KV was found in the cache.")(),
		handOff:   m.Counter("dynamo_handoffs_total", "Hand-offs taken by decode, by what came of them.", "result"),
	}
}
