// Package mock is an engine without a model, for tests of everything around engines: its answers follow from (seed, prompt, position)
// alone, so that a migrated or handed-off request can be proven by equal tokens; its timing, its hand-offs and its failures are scripted.
//
// Without a model it speaks a byte vocabulary: token id = byte value, BeginTurn and EndTurn above. With a model it gives ids of that
// model's vocabulary, which mean nothing. Temperature, cut-offs, penalties and biases do not act, but for Sampling.Seed where the
// temperature is not 0; what would change the meaning of an answer (constraint, adapter, media, extra) is refused.
package mock

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/throttle"
)

// The byte vocabulary: ids below 256 are bytes.
const (
	BeginTurn  = 256 // <|im_start|>
	EndTurn    = 257 // <|im_end|>: ends an answer
	Vocabulary = 258
)

// BlockSize is the number of tokens in one of the mock's KV blocks; a block's bytes are its token ids, 4 bytes each, little-endian.
const BlockSize = 16

const (
	defaultContext = 8192
	handOffLife    = 30 * time.Second
)

func init() { engine.Register("mock", Open) }

// Engine is the mock engine. It is safe for concurrent use.
type Engine struct {
	info     engine.Info
	script   [][]uint32
	seed     uint64
	fail     *engine.Fail
	fetch    func(string) (flow.AsyncEngine[*llm.KVFetch, *llm.KVBlock], error)
	self     string // instance
	beside   bool   // hand-offs may be asked for before they are there
	die      func()
	timing   timing
	log      func(msg string, args ...any)
	throttle throttle.Throttle // of what it says about requests
	count    func(result string)

	slots chan struct{} // one a running sequence
	done  chan struct{} // closed by Close
	queue int

	mu       sync.Mutex
	closed   bool
	calls    sync.WaitGroup
	requests int // for Fail.Every
	running  int
	waiting  int
	prefill  int // prompt tokens admitted and not yet computed
	used     int // blocks
	sequence uint64
	changed  chan struct{} // closed and replaced when the load changes
	handoffs handoffs
}

type timing struct{ ttft, perPrompt, itl time.Duration }

var (
	_ engine.Engine     = (*Engine)(nil)
	_ engine.KVExporter = (*Engine)(nil)
	_ engine.LoadSource = (*Engine)(nil)
)

// Open opens a mock engine.
func Open(o engine.Options) (engine.Engine, error) {
	c := engine.Mock{}
	if o.Config.Mock != nil {
		c = *o.Config.Mock
	}
	e := &Engine{
		seed: c.Seed, fail: c.Fail, fetch: o.Fetch, die: o.Die, queue: o.Config.Batch.Queue,
		slots: make(chan struct{}, max(o.Config.Batch.Seqs, 1)), done: make(chan struct{}), changed: make(chan struct{}),
		log: func(string, ...any) {}, count: func(string) {},
	}
	for _, d := range []struct {
		name, value string
		to          *time.Duration
	}{{"ttft", c.TTFT, &e.timing.ttft}, {"perPrompt", c.PerPrompt, &e.timing.perPrompt}, {"itl", c.ITL, &e.timing.itl}} {
		if d.value == "" {
			continue
		}
		v, err := time.ParseDuration(d.value)
		if err != nil || v < 0 {
			return nil, fmt.Errorf("mock.%s: %q is not a duration of zero or more", d.name, d.value)
		}
		*d.to = v
	}
	if c.Fail != nil {
		switch c.Fail.Kind {
		case "error", "hang", "die", "garbage", "transfer":
		default:
			return nil, fmt.Errorf("mock.fail.kind: %q is unknown; known: error, hang, die, garbage, transfer", c.Fail.Kind)
		}
	}
	e.info = engine.Info{
		Engine: "mock", ModelID: "mock", Context: defaultContext, Vocabulary: Vocabulary, MaxSeqs: cap(e.slots),
		HandOff: []llm.Mode{llm.ModeAfter, llm.ModeBeside}, Features: []string{"logprobs"}, Note: "mock engine: answers are invented",
	}
	if c.HandOff != "" {
		e.info.HandOff = []llm.Mode{c.HandOff}
		e.beside = c.HandOff == llm.ModeBeside
	}
	if m := o.Model; m != nil {
		if m.SHA256 != "" {
			e.info.ModelID = m.SHA256
		}
		e.info.Context = cmp.Or(m.Context, m.Facts.Context, defaultContext)
		if m.Facts.Vocabulary > 0 {
			e.info.Vocabulary = m.Facts.Vocabulary
			if len(c.Script) > 0 {
				return nil, fmt.Errorf("mock.script: needs the byte vocabulary: use a model with source \"mock:\", not %q", m.Name)
			}
		}
	}
	e.info.Blocks = max(o.Config.KV.Tokens, 4*e.info.Context) / BlockSize
	e.info.Contract = llm.Contract{
		ModelID: e.info.ModelID, BlockSize: BlockSize, DType: "ids", Layout: "mock-1", Hash: "none", Numerics: fmt.Sprintf("mock-%d", c.Seed),
		TP: 1, BlockBytes: 4 * BlockSize,
	}
	for _, s := range c.Script {
		ids := make([]uint32, len(s))
		for i := range len(s) {
			ids[i] = uint32(s[i])
		}
		e.script = append(e.script, ids)
	}
	if h := o.Host; h != nil {
		e.self = h.Instance()
		e.log = h.Log().Warn
		handed := h.Metrics().Counter("dynamo_handoffs_total", "Hand-offs taken by decode, by what came of them.", "result")
		e.count = func(result string) { handed(result)(1) }
	}
	return e, nil
}

// Info returns what the engine is.
func (e *Engine) Info() engine.Info { return e.info }

// Control knows "flush", which forgets hand-offs.
func (e *Engine) Control(_ context.Context, c engine.Control) error {
	if c.Verb != "flush" {
		return fmt.Errorf("engine mock: verb %q: %w", c.Verb, engine.ErrUnsupported)
	}
	e.handoffs.clear()
	return nil
}

// Close ends what is in flight with engine.closed and waits for it.
func (e *Engine) Close() error {
	e.shut()
	e.calls.Wait()
	return nil
}

func (e *Engine) shut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.closed = true
		close(e.done)
	}
}

// Loads gives the load at once and then on change.
func (e *Engine) Loads(ctx context.Context, _ *llm.Subscribe) iter.Seq2[*llm.Load, error] {
	return func(yield func(*llm.Load, error) bool) {
		const pause = 50 * time.Millisecond // at most 20 values a second
		t := time.NewTimer(pause)
		defer t.Stop()
		for {
			l, changed := e.load()
			if !yield(&l, nil) {
				return
			}
			t.Reset(pause)
			for _, c := range []<-chan struct{}{changed, nil} {
				var wait <-chan time.Time
				if c == nil {
					wait = t.C
				}
				select {
				case <-c:
				case <-wait:
				case <-e.done:
					yield(nil, errClosed(e.self))
					return
				case <-ctx.Done():
					yield(nil, flow.AsError(context.Cause(ctx)))
					return
				}
			}
		}
	}
}

func (e *Engine) load() (llm.Load, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return llm.Load{
		Sequence: e.sequence, Running: e.running, Waiting: e.waiting, PrefillTokens: e.prefill, BlocksUsed: e.used, BlocksTotal: e.info.Blocks,
	}, e.changed
}

// change updates the load under the lock and wakes those who watch it.
func (e *Engine) change(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
	e.sequence++
	close(e.changed)
	e.changed = make(chan struct{})
}

func errClosed(instance string) error {
	return &flow.Error{Class: flow.Unavailable, Reason: "engine.closed", Msg: "the engine was closed", Instance: instance, Retry: true}
}
