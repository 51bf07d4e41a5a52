package native

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/native/llama"
)

func TestRefusals(t *testing.T) {
	e, _ := open(t, setup{})
	ok := func() *llm.TokensRequest { return &llm.TokensRequest{ID: "r", Tokens: []uint32{1, 2, 3}} }
	for name, c := range map[string]struct {
		change func(*llm.TokensRequest)
		class  flow.Class
		param  string
		text   string
	}{
		"adapter":     {func(r *llm.TokensRequest) { r.Adapter = "a" }, flow.NotImplemented, "adapter", `"a"`},
		"constraint":  {func(r *llm.TokensRequest) { r.Constraint = &llm.Constraint{Regex: "a"} }, flow.NotImplemented, "constraint", ""},
		"media":       {func(r *llm.TokensRequest) { r.Media = []llm.MediaItem{{}} }, flow.NotImplemented, "media", ""},
		"extra":       {func(r *llm.TokensRequest) { r.Extra = map[string]string{"z": "", "b": ""} }, flow.NotImplemented, "extra.b", ""},
		"empty":       {func(r *llm.TokensRequest) { r.Tokens = nil }, flow.InvalidRequest, "tokens", "empty"},
		"vocabulary":  {func(r *llm.TokensRequest) { r.Tokens[2] = fakeVocab }, flow.InvalidRequest, "tokens", "id 97 at position 2, the vocabulary has 97"},
		"context":     {func(r *llm.TokensRequest) { r.Tokens = make([]uint32, fakeContext) }, flow.InvalidRequest, "tokens", "256 tokens, the context holds 256"},
		"generated":   {func(r *llm.TokensRequest) { r.Generated = 3 }, flow.InvalidRequest, "generated", "3 of 3"},
		"max tokens":  {func(r *llm.TokensRequest) { r.Stop.MaxTokens = -1 }, flow.InvalidRequest, "max_tokens", "-1"},
		"min tokens":  {func(r *llm.TokensRequest) { r.Stop.MinTokens = -1 }, flow.InvalidRequest, "min_tokens", "-1"},
		"stop id":     {func(r *llm.TokensRequest) { r.Stop.IDs = []uint32{97} }, flow.InvalidRequest, "stop_token_ids", "97"},
		"logprobs":    {func(r *llm.TokensRequest) { r.Logprobs = 65 }, flow.InvalidRequest, "logprobs", "at most 64"},
		"logprobs -2": {func(r *llm.TokensRequest) { r.Logprobs = -2 }, flow.InvalidRequest, "logprobs", "-2"},
		"sampling":    {func(r *llm.TokensRequest) { r.Sampling.TopP = 2 }, flow.InvalidRequest, "top_p", "2"},
		"phase":       {func(r *llm.TokensRequest) { r.Phase = 9 }, flow.InvalidRequest, "phase", "9"},
		"deadline":    {func(r *llm.TokensRequest) { r.Deadline = time.Now().Add(-time.Second) }, flow.DeadlineExceeded, "", ""},
	} {
		r := ok()
		c.change(r)
		err := collect(t.Context(), e, r).err
		if err == nil || err.Class != c.class || err.Param != c.param || !strings.Contains(err.Error(), c.text) || err.Instance != "worker-0" {
			t.Errorf("%s: %+v", name, err)
		}
	}
	quiet(t, e)
}

func TestSmallCacheIsNamed(t *testing.T) {
	c := config()
	c.KV.Tokens = 40 // three blocks
	e, _ := open(t, setup{conf: c})
	if e.Info().Context != 48 {
		t.Fatalf("context %d", e.Info().Context)
	}
	err := collect(t.Context(), e, &llm.TokensRequest{Tokens: make([]uint32, 50)}).err
	if err == nil || !strings.Contains(err.Error(), "50 tokens, the KV cache (kv.tokens) holds 48") {
		t.Fatalf("%v", err)
	}
	got := must(t, e, &llm.TokensRequest{Tokens: prompt(1, 40, fakeVocab), Stop: llm.Stop{IgnoreEOS: true}})
	if got.finish != llm.FinishLength || len(got.tokens) != 8 {
		t.Fatalf("to the end of the context: %v", got)
	}
}

func TestBadConfig(t *testing.T) {
	for text, change := range map[string]func(*engine.Config){
		"batch.seqs 0":    func(c *engine.Config) { c.Batch.Seqs = 0 },
		"batch.tokens 15": func(c *engine.Config) { c.Batch.Tokens = 15 },
		"batch.queue -1":  func(c *engine.Config) { c.Batch.Queue = -1 },
		"kv.tokens -1":    func(c *engine.Config) { c.KV.Tokens = -1 },
	} {
		c := config()
		change(&c)
		_, err := Open(engine.Options{Config: c, Host: kindtest.NewHost(t, "worker", "worker-0", nil), Model: &kind.Model{Path: "none"}})
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	_, err := Open(engine.Options{Config: config(), Host: kindtest.NewHost(t, "worker", "worker-0", nil)})
	if err == nil || !strings.Contains(err.Error(), "no model") {
		t.Error(err)
	}
	_, err = Open(engine.Options{Config: config(), Host: kindtest.NewHost(t, "worker", "worker-0", nil), Model: &kind.Model{Path: "none.gguf"}})
	if err == nil || !strings.Contains(err.Error(), "none.gguf") {
		t.Error(err)
	}
}

// Opened by name, the engine reads the model's end tokens, reports progress and leaves Ready to its node.
func TestOpenByName(t *testing.T) {
	h := kindtest.NewHost(t, "worker", "worker-0", nil)
	c := config()
	c.Threads = 1
	e, err := engine.Open(engine.Options{Config: c, Host: h, Model: &kind.Model{Path: tinyModel(t), SHA256: strings.Repeat("ab", 32), Context: 128}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	n := e.(*Engine)
	if fmt.Sprint(n.ends) != "[2 3]" {
		t.Errorf("ends %v", n.ends)
	}
	i := e.Info()
	if i.Engine != "native" || i.Context != 128 || i.Vocabulary != 120 || i.Contract.BlockSize != 16 || i.Contract.ModelID != strings.Repeat("ab", 32) ||
		i.Contract.Numerics == "" || i.Contract.BlockBytes != 2*2*2*16*16*2 || i.Blocks != 64 {
		t.Errorf("info %+v", i)
	}
	reports, _ := h.Reports()
	for _, r := range reports {
		if r.State != kind.Starting || r.Reason == "" {
			t.Errorf("report %+v", r)
		}
	}
	if err := e.Control(t.Context(), engine.Control{Verb: "sleep"}); !errors.Is(err, engine.ErrUnsupported) || !strings.Contains(err.Error(), `"sleep"`) {
		t.Error(err)
	}
}

func TestStops(t *testing.T) {
	e, _ := open(t, setup{})
	base := &llm.TokensRequest{Tokens: prompt(3, 20, fakeVocab), Stop: llm.Stop{MaxTokens: 200, IgnoreEOS: true}}
	free := must(t, e, base)
	if len(free.tokens) != 200 || !slices.Contains(free.tokens, fakeEnd) || len(free.logprobs) != 200 {
		t.Fatalf("the random stream has no end token: choose another seed: %v", free)
	}
	at := slices.Index(free.tokens, fakeEnd)
	r := *base
	r.Stop.IgnoreEOS = false
	got := must(t, e, &r)
	if got.finish != llm.FinishStop || got.stop != fakeEnd || !slices.Equal(got.tokens, free.tokens[:at]) || got.usage.Completion != at || got.usage.Prompt != 20 {
		t.Errorf("end token: %v", got)
	}
	r.Stop.MinTokens = at + 1
	got = must(t, e, &r)
	if len(got.tokens) <= at || !slices.Equal(got.tokens[:at], free.tokens[:at]) || got.tokens[at] == fakeEnd {
		t.Errorf("min tokens %d: %v", at+1, got)
	}
	r = *base
	r.Stop.IDs = []uint32{free.tokens[7]}
	got = must(t, e, &r)
	first := slices.Index(free.tokens, free.tokens[7])
	if got.finish != llm.FinishStop || got.stop != free.tokens[7] || !slices.Equal(got.tokens, free.tokens[:first]) {
		t.Errorf("stop id: %v", got)
	}
	r = *base
	r.Logprobs = -1
	if got := must(t, e, &r); got.logprobs != nil || !slices.Equal(got.tokens, free.tokens) {
		t.Errorf("without log-probabilities: %v", got)
	}
	r.Tokens, r.Generated, r.Stop.MaxTokens = slices.Concat(base.Tokens, free.tokens[:5]), 5, 5
	if got := must(t, e, &r); got.finish != llm.FinishLength || len(got.tokens) != 0 || got.usage.Completion != 5 || got.usage.Prompt != 20 {
		t.Errorf("nothing left to do: %v", got)
	}
}

// gate lets a test hold the model between steps.
func gate(f *fake) (hold, pass func()) {
	var mu sync.Mutex
	f.before = func([]llama.Seq) error { mu.Lock(); mu.Unlock(); return nil } //nolint:staticcheck // a gate
	return mu.Lock, mu.Unlock
}

func TestQueueIsBounded(t *testing.T) {
	f := newFake()
	hold, pass := gate(f)
	c := config()
	c.Batch = engine.Batch{Seqs: 1, Tokens: 16, Queue: 2}
	e, _ := open(t, setup{model: f, conf: c})
	hold()
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			if out := collect(t.Context(), e, &llm.TokensRequest{Tokens: prompt(i, 5, fakeVocab), Stop: llm.Stop{MaxTokens: 4}}); out.err != nil {
				t.Error(out.err)
			}
		})
	}
	held(t, e, 3)
	err := collect(t.Context(), e, &llm.TokensRequest{Tokens: []uint32{1}}).err
	if err == nil || err.Class != flow.CapacityExhausted || !err.Retry || !strings.Contains(err.Error(), "batch.queue 2") {
		t.Errorf("%v", err)
	}
	pass()
	wg.Wait()
	quiet(t, e)
}

func TestCancelFreesWithinOneStep(t *testing.T) {
	f := newFake()
	hold, pass := gate(f)
	c := config()
	c.Batch = engine.Batch{Seqs: 1, Tokens: 16, Queue: 2}
	e, _ := open(t, setup{model: f, conf: c})
	hold()
	ctx, cancel := context.WithCancelCause(t.Context())
	errs := make(chan *flow.Error, 2)
	for i := range 2 { // one runs, one waits
		go func() {
			errs <- collect(ctx, e, &llm.TokensRequest{Tokens: prompt(i, 50, fakeVocab), Stop: llm.Stop{IgnoreEOS: true}}).err
		}()
	}
	held(t, e, 2)
	cancel(nil)
	for range 2 {
		if err := <-errs; err == nil || err.Class != flow.Cancelled {
			t.Errorf("%v", err)
		}
	}
	e.mu.Lock()
	st := e.core.Stats()
	e.mu.Unlock()
	if st.Running+st.Waiting+st.BlocksUsed != 0 { // the step is still held: nothing had to be computed to free them
		t.Errorf("in use: %+v", st)
	}
	pass()
	for d, err := range e.Generate(t.Context(), &llm.TokensRequest{Tokens: prompt(1, 5, fakeVocab), Stop: llm.Stop{IgnoreEOS: true}}) {
		if err != nil || len(d.Tokens) == 0 {
			t.Fatalf("%v, %v", d, err)
		}
		break
	}
	quiet(t, e)
}

func TestClose(t *testing.T) {
	f := newFake()
	hold, pass := gate(f)
	e, _ := open(t, setup{model: f})
	hold()
	errs := make(chan *flow.Error, 1)
	go func() { errs <- collect(t.Context(), e, &llm.TokensRequest{Tokens: []uint32{1, 2}}).err }()
	held(t, e, 1)
	closed := make(chan error)
	go func() { closed <- e.Close() }()
	<-e.ctx.Done()
	pass()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	for _, err := range []*flow.Error{<-errs, collect(t.Context(), e, &llm.TokensRequest{Tokens: []uint32{1}}).err} {
		if err == nil || err.Class != flow.Unavailable || err.Reason != "engine.closed" || !err.Retry {
			t.Errorf("%+v", err)
		}
	}
	if _, err := e.lease("x"); err == nil || err.Reason != "engine.closed" {
		t.Errorf("export after close: %v", err)
	}
}

func TestPanicFailsTheStepAndTheEngine(t *testing.T) {
	f := newFake()
	hold, pass := gate(f)
	wait := f.before
	f.before = func(b []llama.Seq) error {
		wait(b)
		panic("boom")
	}
	c := config()
	c.Batch = engine.Batch{Seqs: 1, Tokens: 16, Queue: 2}
	e, h := open(t, setup{model: f, conf: c})
	hold()
	errs := make(chan *flow.Error, 2)
	for range 2 {
		go func() { errs <- collect(t.Context(), e, &llm.TokensRequest{Tokens: []uint32{1, 2}}).err }()
	}
	held(t, e, 2)
	pass()
	got := map[string]bool{}
	for range 2 {
		err := <-errs
		got[fmt.Sprintf("%s %s %v", err.Class, err.Reason, err.Retry)] = true
	}
	if !got["internal engine.panic false"] || !got["unavailable engine.failed true"] {
		t.Errorf("%v", got)
	}
	if err := collect(t.Context(), e, &llm.TokensRequest{Tokens: []uint32{1}}).err; err == nil || err.Reason != "engine.failed" {
		t.Errorf("%v", err)
	}
	<-e.ctx.Done()
	for h.State() != kind.Failed {
		_, changed := h.Reports()
		if h.State() != kind.Failed {
			<-changed
		}
	}
	if !strings.Contains(h.Logs(), "boom") {
		t.Error("the panic is not logged")
	}
}

func TestStepErrorFailsTheStepOnly(t *testing.T) {
	f := newFake()
	bad := true
	f.before = func([]llama.Seq) error {
		if bad {
			bad = false
			return errors.New("no")
		}
		return nil
	}
	e, _ := open(t, setup{model: f})
	r := &llm.TokensRequest{Tokens: []uint32{1, 2}, Stop: llm.Stop{MaxTokens: 3}}
	if err := collect(t.Context(), e, r).err; err == nil || err.Class != flow.Internal || err.Reason != "engine.step" {
		t.Errorf("%v", err)
	}
	must(t, e, r)
}

type nan struct{ *fake }

func (n nan) Forward(kv []byte, batch []llama.Seq) error {
	for _, s := range batch {
		for _, row := range s.Logits {
			row[3] = float32(math.NaN())
		}
	}
	return nil
}

func TestLogitsThatAreNotNumbers(t *testing.T) {
	e, _ := open(t, setup{model: nan{newFake()}})
	if err := collect(t.Context(), e, &llm.TokensRequest{Tokens: []uint32{1, 2}}).err; err == nil || err.Reason != "engine.logits" {
		t.Errorf("%v", err)
	}
	quiet(t, e)
}

func TestDrain(t *testing.T) {
	f := newFake()
	hold, pass := gate(f)
	e, _ := open(t, setup{model: f})
	hold()
	done := make(chan result, 1)
	go func() {
		done <- collect(t.Context(), e, &llm.TokensRequest{Tokens: []uint32{1, 2}, Stop: llm.Stop{MaxTokens: 3, MinTokens: 3}})
	}()
	held(t, e, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Control(ctx, engine.Control{Verb: "drain"}); !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "drain: ") {
		t.Errorf("%v", err)
	}
	if err := collect(t.Context(), e, &llm.TokensRequest{Tokens: []uint32{1}}).err; err == nil || err.Reason != "engine.draining" || !err.Retry {
		t.Errorf("%v", err)
	}
	pass()
	if err := e.Control(t.Context(), engine.Control{Verb: "drain"}); err != nil {
		t.Error(err)
	}
	if out := <-done; out.err != nil || len(out.tokens) != 3 {
		t.Errorf("%v", out)
	}
}

// A fetch that hangs stalls neither the steps of others nor, for long, its own sequence.
func TestHangingFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d, w, h := pair(t, func() compute { return newFake() }, config())
		hang := make(chan struct{})
		w.edit = func(_ *llm.KVFetch, b *llm.KVBlock) error {
			if b.Index == 1 {
				<-hang
			}
			return nil
		}
		r := &llm.TokensRequest{ID: "r", Tokens: prompt(1, 70, fakeVocab), Stop: llm.Stop{MaxTokens: 9, MinTokens: 9}}
		want := must(t, p, r)
		done := make(chan result)
		go func() { done <- disagg(t, p, d, r, nil) }()
		synctest.Wait()
		if len(must(t, d, &llm.TokensRequest{Tokens: prompt(2, 30, fakeVocab), Stop: llm.Stop{MaxTokens: 5, MinTokens: 5}}).tokens) != 5 {
			t.Error("another sequence stalls")
		}
		begin := time.Now()
		time.AfterFunc(fetchStall+time.Second, func() { close(hang) }) // a transport ends by its context; this one a second later
		if got := <-done; !same(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if took := time.Since(begin); took > fetchStall+2*time.Second {
			t.Errorf("took %v", took)
		}
		if h.Metric("dynamo_handoffs_total", "timeout") != 1 {
			t.Errorf("log: %s", h.Logs())
		}
		d.Close()
		p.Close()
	})
}

func TestHandOffExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, _, _ := pair(t, func() compute { return newFake() }, config())
		r := &llm.TokensRequest{ID: "r", Tokens: prompt(1, 70, fakeVocab), Phase: llm.PhasePrefill, Stop: llm.Stop{MinTokens: 2}}
		h := must(t, p, r).handOff
		if !h.Deadline.Equal(time.Now().Add(30*time.Second)) || h.Peer != "prefill-0" || h.Tokens != 70 || h.Mode != llm.ModeAfter {
			t.Errorf("hand-off %+v", h)
		}
		export := func() error {
			for b, err := range p.Export(t.Context(), &llm.KVFetch{HandOff: h.ID, Contract: h.Contract, To: 5}) {
				if err != nil {
					return err
				}
				if len(b.Bytes) != 128 || b.Region != "" {
					t.Errorf("block %+v", b)
				}
			}
			return nil
		}
		time.Sleep(29 * time.Second)
		if err := export(); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		if err := flow.AsError(export()); err == nil || err.Class != flow.NotFound || err.Reason != "handoff.unknown" {
			t.Errorf("%v", err)
		}
		quiet(t, p)
		p.Close()
	})
}

func TestExportRefusals(t *testing.T) {
	e, _ := open(t, setup{})
	h := must(t, e, &llm.TokensRequest{ID: "r", Tokens: prompt(1, 20, fakeVocab), Phase: llm.PhasePrefill, Stop: llm.Stop{MinTokens: 2}}).handOff
	ask := func(f llm.KVFetch) *flow.Error {
		for _, err := range e.Export(t.Context(), &f) {
			if err != nil {
				return flow.AsError(err)
			}
		}
		return nil
	}
	other := h.Contract
	other.DType = "bf16"
	err := ask(llm.KVFetch{HandOff: h.ID, Contract: other, To: 2})
	if err == nil || err.Class != flow.BackendProtocol || err.Reason != "handoff.contract" || !strings.Contains(err.Error(), `dtype "u64" and "bf16"`) {
		t.Errorf("contract: %v", err)
	}
	for _, r := range [][2]int{{0, 3}, {-1, 1}, {2, 1}} {
		if err := ask(llm.KVFetch{HandOff: h.ID, Contract: h.Contract, From: r[0], To: r[1]}); err == nil || err.Reason != "handoff.range" {
			t.Errorf("range %v: %v", r, err)
		}
	}
	if err := ask(llm.KVFetch{HandOff: h.ID, Release: true}); err != nil {
		t.Errorf("release: %v", err)
	}
	if err := ask(llm.KVFetch{HandOff: h.ID, Contract: h.Contract, To: 2}); err == nil || err.Reason != "handoff.unknown" {
		t.Errorf("after release: %v", err)
	}
	quiet(t, e)
}

// A follower's view of the blocks is the engine's, after much coming and going.
func TestEventsConverge(t *testing.T) {
	c := config()
	c.KV.Tokens = 256
	e, _ := open(t, setup{conf: c})
	ctx, cancel := context.WithCancel(t.Context())
	view := map[uint64]bool{}
	var seq uint64
	var mu sync.Mutex
	var wg sync.WaitGroup
	wg.Go(func() {
		for b, err := range e.Events(ctx, &llm.Subscribe{}) {
			if err != nil {
				if flow.AsError(err).Class != flow.Cancelled {
					t.Error(err)
				}
				return
			}
			mu.Lock()
			if b.Snapshot {
				clear(view)
			} else if b.Sequence != seq+1 {
				t.Errorf("batch %d follows %d", b.Sequence, seq)
			}
			seq = b.Sequence
			for _, ev := range b.Events {
				for _, h := range ev.Hashes {
					if ev.Type == llm.EventStored {
						view[h] = true
					} else {
						delete(view, h)
					}
				}
				if ev.Type == llm.EventCleared {
					clear(view)
				}
			}
			mu.Unlock()
		}
	})
	var runs sync.WaitGroup
	for i := range 30 {
		runs.Go(func() {
			r := &llm.TokensRequest{Tokens: prompt(i%7, 30+i, fakeVocab), Stop: llm.Stop{MaxTokens: 20, MinTokens: 20}}
			if out := collect(ctx, e, r); out.err != nil {
				t.Error(out.err)
			}
		})
	}
	runs.Wait()
	quiet(t, e)
	settled := func(want int) {
		t.Helper()
		for {
			mu.Lock()
			n := len(view)
			mu.Unlock()
			if n == want {
				return
			}
			if t.Context().Err() != nil {
				t.Fatalf("view of %d blocks, engine has %d", n, want)
			}
			time.Sleep(time.Millisecond)
		}
	}
	e.mu.Lock()
	cached := e.core.Stats().BlocksCached
	e.mu.Unlock()
	if cached == 0 {
		t.Error("nothing is cached")
	}
	settled(cached)
	if err := e.Control(ctx, engine.Control{Verb: "flush"}); err != nil {
		t.Error(err)
	}
	settled(0)
	cancel()
	wg.Wait()
}

func TestLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, setup{})
		ctx, cancel := context.WithCancel(t.Context())
		var got []llm.Load
		var at []time.Time
		done := make(chan struct{})
		go func() {
			defer close(done)
			for l, err := range e.Loads(ctx, &llm.Subscribe{}) {
				if err != nil {
					return
				}
				got, at = append(got, *l), append(at, time.Now())
			}
		}()
		synctest.Wait()
		if len(got) != 1 || got[0].BlocksTotal != 64 || got[0].Running != 0 {
			t.Fatalf("first: %+v", got)
		}
		for range 20 {
			must(t, e, &llm.TokensRequest{Tokens: prompt(1, 30, fakeVocab), Stop: llm.Stop{MaxTokens: 5}})
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * loadEvery) // the last change gets through
		cancel()
		<-done
		for i := 1; i < len(at); i++ {
			if at[i].Sub(at[i-1]) < loadEvery {
				t.Errorf("loads %v apart", at[i].Sub(at[i-1]))
			}
		}
		if last := got[len(got)-1]; len(got) < 2 || last.Running != 0 || last.BlocksCached == 0 {
			t.Errorf("%+v", got)
		}
		e.Close()
	})
}

// Tenants and salts share no KV, and get the same tokens.
func TestTenantsShareNothing(t *testing.T) {
	e, _ := open(t, setup{})
	r := llm.TokensRequest{Tokens: prompt(1, 40, fakeVocab), Stop: llm.Stop{MaxTokens: 5, MinTokens: 5}}
	want := must(t, e, &r)
	for _, c := range []struct {
		tenant, salt string
		cached       int
	}{{"", "", 32}, {"a", "", 0}, {"a", "", 32}, {"", "a", 0}, {"b", "a", 0}} {
		x := r
		x.Tenant, x.Salt = c.tenant, c.salt
		if got := must(t, e, &x); !same(got, want) || got.usage.Cached != c.cached {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
