package native

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/native/llama"
	"github.com/dynamograph/dynamo/nodes/kv/hash"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if dir, err := cacheDir(); err == nil {
			os.RemoveAll(dir)
		}
		os.Exit(code)
	}))
}

const (
	fakeVocab   = 97
	fakeContext = 256
	fakeEnd     = 5
)

// fake is a model whose "KV" of a token is a hash of that of the token before it: a wrong block, position or prefix changes everything
// that follows.
type fake struct {
	info   llama.Info
	before func(batch []llama.Seq) error // may block, fail or panic

	mu      sync.Mutex
	steps   int
	longest int // sequences in one step
}

func newFake() *fake {
	return &fake{info: llama.Info{Context: fakeContext, Vocab: fakeVocab, BlockTokens: 16, BlockBytes: 16 * 8, Numerics: "fake-1", Layout: "fake", DType: "u64", Kernels: "fake"}}
}

func (f *fake) Info() llama.Info { return f.info }
func (f *fake) Close() error     { return nil }

func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (f *fake) Forward(kv []byte, batch []llama.Seq) error {
	f.mu.Lock()
	f.steps++
	f.longest = max(f.longest, len(batch))
	f.mu.Unlock()
	if f.before != nil {
		if err := f.before(batch); err != nil {
			return err
		}
	}
	for _, s := range batch {
		at := func(pos int) []byte { return kv[int(s.Blocks[pos/16])*f.info.BlockBytes+pos%16*8:] }
		for j, t := range s.Tokens {
			pos, h := s.Pos+j, uint64(1)
			if pos > 0 {
				h = binary.LittleEndian.Uint64(at(pos - 1))
			}
			h = scramble(h ^ uint64(t)<<20 ^ uint64(pos))
			binary.LittleEndian.PutUint64(at(pos), h)
			if i := j - (len(s.Tokens) - len(s.Logits)); i >= 0 {
				for k := range s.Logits[i] {
					h = scramble(h + 0x9e3779b97f4a7c15)
					s.Logits[i][k] = float32(h>>40)/(1<<21) - 4 // [-4, 4)
				}
			}
		}
	}
	return nil
}

func config() engine.Config {
	c := engine.DefaultConfig()
	c.KV.Tokens = 64 * 16
	return c
}

type setup struct {
	conf     engine.Config
	model    compute
	instance string
	fetch    func(peer string) (flow.AsyncEngine[*llm.KVFetch, *llm.KVBlock], error)
}

// open starts an engine that the test closes.
func open(t testing.TB, s setup) (*Engine, *kindtest.Host) {
	t.Helper()
	if s.model == nil {
		s.model = newFake()
	}
	if s.conf.Engine == "" {
		s.conf = config()
	}
	if s.instance == "" {
		s.instance = "worker-0"
	}
	h := kindtest.NewHost(t, "worker", s.instance, nil)
	e, err := start(engine.Options{Config: s.conf, Host: h, Model: &kind.Model{SHA256: "content"}, Fetch: s.fetch}, s.model, []uint32{fakeEnd})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, h
}

// result is all that a stream gave.
type result struct {
	tokens   []uint32
	logprobs []llm.Logprob
	prompt   []llm.Logprob
	finish   llm.FinishReason
	stop     uint32
	handOff  *llm.HandOff
	usage    llm.Usage
	err      *flow.Error
}

func collect(ctx context.Context, e *Engine, r *llm.TokensRequest) (out result) {
	for d, err := range e.Generate(ctx, r) {
		if err != nil {
			out.err = flow.AsError(err)
			break
		}
		out.tokens = append(out.tokens, d.Tokens...)
		out.logprobs = append(out.logprobs, d.Logprobs...)
		if d.Prompt != nil {
			if len(out.tokens) > len(d.Tokens) {
				out.err = flow.Errorf(flow.Internal, "test", "prompt log-probabilities are not on the first delta")
			}
			out.prompt = d.Prompt
		}
		if d.Finish != "" {
			out.finish, out.stop = d.Finish, d.StopID
		}
		if d.HandOff != nil {
			out.handOff = d.HandOff
		}
		if d.Usage != nil {
			out.usage = *d.Usage
		}
	}
	return out
}

func (r result) String() string {
	return fmt.Sprintf("%v %v %v finish %q %d usage %+v err %v", r.tokens, r.logprobs, r.prompt, r.finish, r.stop, r.usage, r.err)
}

// same compares what must not depend on how an answer came about.
func same(a, b result) bool {
	a.usage.Cached, b.usage.Cached = 0, 0
	return a.String() == b.String()
}

// must runs r and fails the test on an error.
func must(t *testing.T, e *Engine, r *llm.TokensRequest) result {
	t.Helper()
	out := collect(t.Context(), e, r)
	if out.err != nil {
		t.Fatalf("request %s: %v", r.ID, out.err)
	}
	return out
}

func prompt(seed, n, vocab int) []uint32 {
	out := make([]uint32, n)
	x := uint64(seed)
	for i := range out {
		x = scramble(x + 0x9e3779b97f4a7c15)
		out[i] = uint32(x % uint64(vocab))
	}
	return out
}

// sums are the checksums of the complete blocks of tokens that e holds; every one must be there.
func sums(t *testing.T, e *Engine, tokens []uint32) []uint64 {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	root := e.scope.Root()
	ids := root.Identities(nil, tokens, 16, nil)
	blocks := e.core.Find(nil, ids)
	if len(blocks) != len(ids) {
		t.Fatalf("%d of %d blocks are held", len(blocks), len(ids))
	}
	var out []uint64
	for _, b := range blocks {
		out = append(out, hash.Sum(e.block(b)))
	}
	return out
}

// hooked runs before ahead of each step of a model.
type hooked struct {
	compute
	before func()
}

func (h *hooked) Forward(kv []byte, batch []llama.Seq) error {
	h.before()
	return h.compute.Forward(kv, batch)
}

// held waits until n sequences run or wait.
func held(t *testing.T, e *Engine, n int) {
	t.Helper()
	for {
		e.mu.Lock()
		st := e.core.Stats()
		e.mu.Unlock()
		if st.Running+st.Waiting == n {
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("%d run and %d wait, want %d", st.Running, st.Waiting, n)
		}
		runtime.Gosched()
	}
}

// quiet waits until nothing runs and reports what is still referenced.
func quiet(t *testing.T, e *Engine) {
	t.Helper()
	for {
		e.mu.Lock()
		st := e.core.Stats()
		_, changed := e.loads.get()
		e.mu.Unlock()
		if st.Running+st.Waiting+st.BlocksUsed == 0 {
			return
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("still in use: %+v", st)
		}
	}
}

// wire is the way from decode to prefill; edit may change what passes.
type wire struct {
	to   *Engine
	edit func(f *llm.KVFetch, b *llm.KVBlock) error

	mu       sync.Mutex
	fetches  int
	blocks   int
	released []string
}

func (w *wire) Generate(ctx context.Context, f *llm.KVFetch) iter.Seq2[*llm.KVBlock, error] {
	return func(yield func(*llm.KVBlock, error) bool) {
		w.mu.Lock()
		if f.Release {
			w.released = append(w.released, f.HandOff)
		} else {
			w.fetches++
		}
		w.mu.Unlock()
		for b, err := range w.to.Export(ctx, f) {
			if err == nil && w.edit != nil {
				err = w.edit(f, b)
			}
			if err == nil {
				w.mu.Lock()
				w.blocks++
				w.mu.Unlock()
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

func (w *wire) dial(peer string) (flow.AsyncEngine[*llm.KVFetch, *llm.KVBlock], error) {
	if peer != w.to.host.Instance() {
		return nil, errors.New("no such peer")
	}
	return w, nil
}

// pair is a prefill and a decode engine.
func pair(t *testing.T, mk func() compute, conf engine.Config) (p, d *Engine, w *wire, dh *kindtest.Host) {
	t.Helper()
	p, _ = open(t, setup{model: mk(), conf: conf, instance: "prefill-0"})
	w = &wire{to: p}
	d, dh = open(t, setup{model: mk(), conf: conf, instance: "decode-0", fetch: w.dial})
	return p, d, w, dh
}

// disagg runs r over both and joins what they gave as one stream.
func disagg(t *testing.T, p, d *Engine, r *llm.TokensRequest, change func(*llm.HandOff)) result {
	t.Helper()
	first := *r
	first.Phase = llm.PhasePrefill
	a := must(t, p, &first)
	if a.handOff == nil {
		return a
	}
	if len(a.tokens) != 1 || a.tokens[0] != a.handOff.First || a.finish != "" {
		t.Fatalf("prefill gave %v and first %d, finish %q", a.tokens, a.handOff.First, a.finish)
	}
	next := *r
	next.Phase = llm.PhaseDecode
	h := *a.handOff
	if change != nil {
		change(&h)
	}
	next.HandOff = &h
	out := must(t, d, &next)
	if r.PromptLogprobs && !slices.EqualFunc(a.prompt, out.prompt, func(x, y llm.Logprob) bool { return fmt.Sprint(x) == fmt.Sprint(y) }) {
		t.Fatal("prefill and decode give different prompt log-probabilities")
	}
	return out
}
