package serve_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/serve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is the engine "fake": tests set what it does, one at a time.
type fake struct {
	generate func(ctx context.Context, yield func(*llm.TokensDelta, error) bool)
	closed   chan struct{}
	once     sync.Once
}

var opens func(engine.Options) (engine.Engine, error)

func init() {
	engine.Register("fake", func(o engine.Options) (engine.Engine, error) { return opens(o) })
}

func (f *fake) Info() engine.Info {
	return engine.Info{Engine: "fake", ModelID: "abc", Context: 128, HandOff: []llm.Mode{llm.ModeAfter}, Note: "slow",
		Contract: llm.Contract{ModelID: "abc", BlockSize: 16}}
}
func (f *fake) Control(context.Context, engine.Control) error { return engine.ErrUnsupported }
func (f *fake) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}
func (f *fake) Generate(ctx context.Context, _ *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
	return func(yield func(*llm.TokensDelta, error) bool) { f.generate(ctx, yield) }
}

func start(t *testing.T, open func(engine.Options) (engine.Engine, error), change func(*serve.Options)) (*serve.Node, *kindtest.Host) {
	t.Helper()
	opens = open
	h := kindtest.NewHost(t, "decode", "decode-0", nil)
	h.Dialled["kv"] = flow.Static[*llm.KVFetch, *llm.KVBlock]{{ID: "prefill-0", AsyncEngine: flow.EngineFunc[*llm.KVFetch, *llm.KVBlock](
		func(context.Context, *llm.KVFetch) iter.Seq2[*llm.KVBlock, error] {
			return flow.Fail[*llm.KVBlock](errors.New("x"))
		})}}
	o := serve.Options{Config: engine.Config{Engine: "fake"}, Host: h}
	if change != nil {
		change(&o)
	}
	n, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n, h
}

func call(ctx context.Context, h *kindtest.Host) (instance string, err error) {
	in := h.Served["in"].(flow.AsyncEngine[*llm.TokensRequest, *llm.TokensDelta])
	for d, e := range in.Generate(ctx, &llm.TokensRequest{ID: "r"}) {
		if e != nil {
			err = e
			continue
		}
		instance = d.Instance
	}
	return instance, err
}

func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{closed: make(chan struct{}), generate: func(_ context.Context, yield func(*llm.TokensDelta, error) bool) {
			yield(&llm.TokensDelta{Tokens: []uint32{1}, Finish: llm.FinishStop}, nil)
		}}
		var got engine.Options
		n, h := start(t, func(o engine.Options) (engine.Engine, error) {
			time.Sleep(time.Second)
			got = o
			return f, nil
		}, func(o *serve.Options) { o.FetchKV = true })
		if h.State() != kind.Starting {
			t.Errorf("state %s before the engine is open", h.State())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if r, _ := h.Reports(); r[len(r)-1] != (kindtest.Report{State: kind.Ready, Reason: "slow"}) {
			t.Errorf("%v", r)
		}
		if i := h.Infos["in"]; i["engine"] != "fake" || i["model"] != "abc" || i["context"] != "128" || i["handoff"] != "after" || !strings.Contains(i["kv"], `"blockSize":16`) {
			t.Errorf("info %v", i)
		}
		if _, err := got.Fetch("prefill-0"); err != nil {
			t.Error(err)
		}
		if _, err := got.Fetch("prefill-1"); flow.AsError(err).Reason != "handoff.no_peer" || !strings.Contains(err.Error(), `no instance "prefill-1"`) {
			t.Error(err)
		}
		if i, err := call(t.Context(), h); i != "decode-0" || err != nil {
			t.Errorf("%q %v", i, err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		<-f.closed
	})
}

func TestFailsToOpen(t *testing.T) {
	for want, open := range map[string]func(engine.Options) (engine.Engine, error){
		"no such file":             func(engine.Options) (engine.Engine, error) { return nil, errors.New("no such file") },
		"panic while opening: odd": func(engine.Options) (engine.Engine, error) { panic("odd") },
	} {
		synctest.Test(t, func(t *testing.T) {
			n, h := start(t, open, nil)
			synctest.Wait()
			if r, _ := h.Reports(); r[len(r)-1].State != kind.Failed || !strings.Contains(r[len(r)-1].Reason, want) || len(h.Served) > 0 {
				t.Errorf("%v", r)
			}
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		f := &fake{closed: make(chan struct{})}
		n, h := start(t, func(engine.Options) (engine.Engine, error) { return f, nil }, func(o *serve.Options) { o.ServeKV = true })
		synctest.Wait()
		if r, _ := h.Reports(); r[len(r)-1].State != kind.Failed || !strings.Contains(r[len(r)-1].Reason, "cannot export KV") {
			t.Errorf("%v", r)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseWhileOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{closed: make(chan struct{})}
		n, h := start(t, func(engine.Options) (engine.Engine, error) { time.Sleep(time.Minute); return f, nil }, nil)
		begin := time.Now()
		if err := n.Close(); err != nil || time.Since(begin) != time.Minute { // an engine cannot be interrupted while it opens
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		<-f.closed
		if h.State() != kind.Starting || len(h.Served) > 0 {
			t.Errorf("state %s, served %v", h.State(), h.Served)
		}
	})
}

func TestPanicCostsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{closed: make(chan struct{}), generate: func(_ context.Context, yield func(*llm.TokensDelta, error) bool) {
			yield(&llm.TokensDelta{Tokens: []uint32{1}}, nil)
			panic("boom")
		}}
		n, h := start(t, func(engine.Options) (engine.Engine, error) { return f, nil }, nil)
		synctest.Wait()
		_, err := call(t.Context(), h)
		if e := flow.AsError(err); e == nil || e.Class != flow.Internal || e.Reason != "engine.panic" || strings.Contains(e.Error(), "boom") || !strings.Contains(h.Logs(), "boom") {
			t.Errorf("%v; log %s", err, h.Logs())
		}
		// A panic of the caller is the caller's.
		func() {
			defer func() {
				if p := recover(); p != "mine" {
					t.Errorf("recovered %v", p)
				}
			}()
			in := h.Served["in"].(flow.AsyncEngine[*llm.TokensRequest, *llm.TokensDelta])
			for range in.Generate(t.Context(), &llm.TokensRequest{}) {
				panic("mine")
			}
		}()
		if err := n.Drain(t.Context()); err != nil { // both calls are counted out
			t.Error(err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{closed: make(chan struct{}), generate: func(_ context.Context, yield func(*llm.TokensDelta, error) bool) {
			time.Sleep(10 * time.Second)
			yield(&llm.TokensDelta{Finish: llm.FinishStop}, nil)
		}}
		n, h := start(t, func(engine.Options) (engine.Engine, error) { return f, nil }, nil)
		synctest.Wait()
		done := make(chan error, 1)
		go func() { _, err := call(t.Context(), h); done <- err }()
		synctest.Wait()
		begin := time.Now()
		if err := n.Drain(t.Context()); err != nil || time.Since(begin) != 10*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := call(t.Context(), h); flow.AsError(err).Reason != "node.draining" || !flow.AsError(err).Retry {
			t.Errorf("%v", err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
}
