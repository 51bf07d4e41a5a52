package all_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
	_ "github.com/dynamograph/dynamo/nodes/all"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type tokensPeer = flow.Peer[*llm.TokensRequest, *llm.TokensDelta]

// pool is a live set of instances.
type pool struct {
	mu      sync.Mutex
	list    []tokensPeer
	changed chan struct{}
}

func newPool(list ...tokensPeer) *pool { return &pool{list: list, changed: make(chan struct{})} }

func (p *pool) List() []tokensPeer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list
}

func (p *pool) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

func (p *pool) set(list ...tokensPeer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = list
	close(p.changed)
	p.changed = make(chan struct{})
}

// graph is a whole graph in one process, wired by hand.
type graph struct {
	t                        *testing.T
	url                      string
	router, migrate          *kindtest.Host
	workers, prefill, decode *pool
	hosts                    map[string]*kindtest.Host
}

// node starts a node of a kind with a config in JSON.
func node(t *testing.T, kindName, instance, config string, dial map[string]any) *kindtest.Host {
	t.Helper()
	name, _, _ := strings.Cut(instance, "-")
	h := kindtest.NewHost(t, name, instance, nil)
	for k, v := range dial {
		h.Dialled[k] = v
	}
	c, err := kind.Default.Lookup(kindName).New(json.RawMessage(config), h)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%s:\n%s", instance, h.Logs())
		}
	})
	if a, ok := c.(interface{ Addr() string }); ok {
		h.Infos["http"] = map[string]string{"url": "http://" + a.Addr()}
	}
	await(t, h)
	return h
}

func await(t *testing.T, h *kindtest.Host) {
	t.Helper()
	for {
		r, changed := h.Reports()
		if n := len(r); n > 0 && r[n-1].State != kind.Starting {
			if r[n-1].State == kind.Failed {
				t.Fatalf("%s: %s", h.Instance(), r[n-1].Reason)
			}
			return
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: not ready", h.Instance())
		}
	}
}

func tokensOf(h *kindtest.Host) tokensPeer {
	return tokensPeer{ID: h.Instance(), Node: h.Node(), Info: h.Infos["in"], AsyncEngine: h.Served["in"].(flow.AsyncEngine[*llm.TokensRequest, *llm.TokensDelta])}
}

// start makes frontend, preprocess, migrate and router over engines with the given configs: workers, or prefill and decode.
func start(t *testing.T, router, migrate string, workers, prefill, decode []string) *graph {
	t.Helper()
	g := &graph{t: t, workers: newPool(), prefill: newPool(), decode: newPool(), hosts: map[string]*kindtest.Host{}}
	up := func(kindName string, i int, config string, dial map[string]any) tokensPeer {
		h := node(t, kindName, fmt.Sprintf("%s-%d", kindName, i), config, dial)
		g.hosts[h.Instance()] = h
		return tokensOf(h)
	}
	var ws, ps, ds []tokensPeer
	var kv flow.Static[*llm.KVFetch, *llm.KVBlock]
	for i, c := range workers {
		ws = append(ws, up("worker", i, c, nil))
	}
	for i, c := range prefill {
		p := up("prefill", i, c, nil)
		ps = append(ps, p)
		kv = append(kv, flow.Peer[*llm.KVFetch, *llm.KVBlock]{
			ID: p.ID, AsyncEngine: g.hosts[p.ID].Served["kv"].(flow.AsyncEngine[*llm.KVFetch, *llm.KVBlock]),
		})
	}
	for i, c := range decode {
		ds = append(ds, up("decode", i, c, map[string]any{"kv": kv}))
	}
	dial := map[string]any{}
	if len(workers) > 0 {
		dial["worker"] = g.workers
	} else {
		dial["prefill"], dial["decode"] = g.prefill, g.decode
	}
	g.workers.set(ws...)
	g.prefill.set(ps...)
	g.decode.set(ds...)
	g.router = node(t, "router", "router-0", router, dial)
	g.migrate = node(t, "migrate", "migrate-0", migrate, map[string]any{"out": flow.Static[*llm.TokensRequest, *llm.TokensDelta]{tokensOf(g.router)}})
	pre := node(t, "preprocess", "preprocess-0", "", map[string]any{"out": flow.Static[*llm.TokensRequest, *llm.TokensDelta]{tokensOf(g.migrate)}})
	chat := flow.Static[*llm.ChatRequest, *llm.ChatDelta]{{ID: "preprocess-0", AsyncEngine: pre.Served["in"].(flow.AsyncEngine[*llm.ChatRequest, *llm.ChatDelta])}}
	front := node(t, "frontend", "frontend-0", `{"listen":"127.0.0.1:0"}`, map[string]any{"out": chat})
	g.url = front.Infos["http"]["url"]
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return g
}

// post sends a chat and returns the status and the body.
func (g *graph) post(ctx context.Context, body string) (int, []byte) {
	g.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatalf("%v after %q", err, b)
	}
	return resp.StatusCode, b
}

type answer struct {
	Choices []struct {
		Message struct{ Content string }
		Delta   struct{ Role, Content string }
		Finish  string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
	Error *struct{ Message string }
}

// ask returns the text of a chat that does not stream.
func (g *graph) ask(body string) answer {
	g.t.Helper()
	status, b := g.post(g.t.Context(), body)
	var a answer
	if err := json.Unmarshal(b, &a); err != nil || status != 200 || len(a.Choices) == 0 {
		g.t.Fatalf("status %d, %v: %s", status, err, b)
	}
	return a
}

const question = `{"model":"m","messages":[{"role":"user","content":"What is the capital of France?"}],"max_tokens":40,"temperature":0}`

func mock(more string) string { return `{"engine":"mock","mock":{` + more + `}}` }

func TestOneWorker(t *testing.T) {
	g := start(t, "", "", []string{mock("")}, nil, nil)
	a := g.ask(question)
	if u := a.Usage; len(a.Choices[0].Message.Content) != u.Completion || a.Choices[0].Finish == "" || u.Total != u.Prompt+u.Completion || u.Prompt < 30 {
		t.Fatalf("%+v %+v", a, u)
	}
	// The same as a stream.
	status, b := g.post(t.Context(), strings.Replace(question, "{", `{"stream":true,"stream_options":{"include_usage":true},`, 1))
	if status != 200 {
		t.Fatalf("status %d: %s", status, b)
	}
	text, usage := sse(t, b)
	if text != a.Choices[0].Message.Content || *usage.Usage != *a.Usage {
		t.Fatalf("streamed %q %+v, whole %q %+v", text, usage.Usage, a.Choices[0].Message.Content, a.Usage)
	}
}

// sse reads a stream that ended well: the text, and the last chunk.
func sse(t *testing.T, b []byte) (text string, last answer) {
	t.Helper()
	done := false
	s := bufio.NewScanner(bytes.NewReader(b))
	for s.Scan() {
		line := s.Text()
		if line == "" {
			continue
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || done {
			t.Fatalf("unexpected line %q", line)
		}
		if data == "[DONE]" {
			done = true
			continue
		}
		last = answer{}
		if err := json.Unmarshal([]byte(data), &last); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		for _, c := range last.Choices {
			text += c.Delta.Content
		}
	}
	if !done {
		t.Fatalf("no [DONE]: %s", b)
	}
	return text, last
}

// TestSameTextEveryWay is the property that all else rests on: however a prompt is served, the text is the same.
func TestSameTextEveryWay(t *testing.T) {
	want := start(t, "", "", []string{mock("")}, nil, nil).ask(question)
	for name, c := range map[string]struct {
		router, migrate          string
		workers, prefill, decode []string
		metric                   func(*graph) float64 // must not be 0
	}{
		"after": {prefill: []string{mock("")}, decode: []string{mock(""), mock("")},
			metric: func(g *graph) float64 {
				return g.hosts["decode-0"].Metric("dynamo_handoffs_total", "ok") + g.hosts["decode-1"].Metric("dynamo_handoffs_total", "ok")
			}},
		"beside": {prefill: []string{mock(`"handOff":"beside"`)}, decode: []string{mock(`"handOff":"beside"`)},
			metric: func(g *graph) float64 { return g.hosts["decode-0"].Metric("dynamo_handoffs_total", "ok") }},
		"no prefill": {decode: []string{mock("")},
			metric: func(g *graph) float64 { return g.router.Metric("dynamo_prefill_fallbacks_total", "no_instance") }},
		"prefill fails": {prefill: []string{mock(`"fail":{"kind":"error"}`)}, decode: []string{mock("")},
			metric: func(g *graph) float64 { return g.router.Metric("dynamo_prefill_fallbacks_total", "engine.injected") }},
		"prefill dies beside": {prefill: []string{mock(`"handOff":"beside","fail":{"kind":"die"}`)}, decode: []string{mock(`"handOff":"beside"`)},
			metric: func(g *graph) float64 {
				return g.router.Metric("dynamo_prefill_fallbacks_total", "engine.closed") + g.hosts["decode-0"].Metric("dynamo_handoffs_total", "failed")
			}}, // either side may notice first
		"prefill hangs": {router: `{"stall":"100ms"}`, prefill: []string{mock(`"fail":{"kind":"hang"}`)}, decode: []string{mock("")},
			metric: func(g *graph) float64 { return g.router.Metric("dynamo_prefill_fallbacks_total", "router.stalled") }},
		"transfer broken": {prefill: []string{mock(`"fail":{"kind":"transfer","after":1}`)}, decode: []string{mock("")},
			metric: func(g *graph) float64 { return g.hosts["decode-0"].Metric("dynamo_handoffs_total", "failed") }},
		"worker dies": {workers: []string{mock(`"fail":{"kind":"die","after":7}`), mock("")},
			metric: func(g *graph) float64 { return g.migrate.Metric("dynamo_migrations_total", "ongoing", "success") }},
		"worker errs at once": {workers: []string{mock(`"fail":{"kind":"error"}`), mock("")},
			metric: func(g *graph) float64 { return g.migrate.Metric("dynamo_migrations_total", "new", "success") }},
		"worker hangs": {migrate: `{"stall":"100ms"}`, workers: []string{mock(`"fail":{"kind":"hang","after":3}`), mock("")},
			metric: func(g *graph) float64 { return g.migrate.Metric("dynamo_migrations_total", "ongoing", "success") }},
		"decode dies": {prefill: []string{mock("")}, decode: []string{mock(`"fail":{"kind":"die","after":7}`), mock("")},
			metric: func(g *graph) float64 { return g.migrate.Metric("dynamo_migrations_total", "ongoing", "success") }},
		"two die in turn": {workers: []string{mock(`"fail":{"kind":"die","after":7}`), mock(`"fail":{"kind":"die","after":9}`), mock("")},
			metric: func(g *graph) float64 { return g.migrate.Metric("dynamo_migrations_total", "ongoing", "success") }},
	} {
		t.Run(name, func(t *testing.T) {
			g := start(t, c.router, c.migrate, c.workers, c.prefill, c.decode)
			got := g.ask(question)
			if *got.Usage != *want.Usage || got.Choices[0].Finish != want.Choices[0].Finish || got.Choices[0].Message.Content != want.Choices[0].Message.Content {
				t.Fatalf("got %+v %+v, want %+v %+v", got.Choices, got.Usage, want.Choices, want.Usage)
			}
			if c.metric(g) == 0 {
				t.Fatal("the case did not happen")
			}
		})
	}
}
