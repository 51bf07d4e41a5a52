package serve_test

import (
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/nodes/engine"
	_ "github.com/dynamograph/dynamo/nodes/engine/mock"
	"github.com/dynamograph/dynamo/nodes/engine/serve"
)

func TestCheck(t *testing.T) {
	at := diag.Pos{File: "spec.cue", Line: 7, Col: 3}
	mock := func(c engine.Config) engine.Config { c.Engine = "mock"; return c }
	for _, tt := range []struct {
		name    string
		c       engine.Config
		context int          // of the graph's model
		facts   *model.Facts // of its file
		want    string       // code and part of the message; "" is no finding
	}{
		{name: "nothing set", c: mock(engine.DefaultConfig()), context: 2048},
		{name: "room for one", c: mock(engine.Config{KV: engine.KV{Tokens: 2048}}), context: 2048},
		{name: "too small for the graph's context", c: mock(engine.Config{KV: engine.KV{Tokens: 1024}}), context: 2048,
			want: "kv-too-small nodes.w.kv.tokens: 1024 tokens, but one sequence may have 2048: models.m.context"},
		{name: "too small for the model's", c: mock(engine.Config{KV: engine.KV{Tokens: 1024}}), facts: &model.Facts{Context: 4096},
			want: "kv-too-small nodes.w.kv.tokens: 1024 tokens, but one sequence may have 4096: the model's own context"},
		{name: "the graph's context wins", c: mock(engine.Config{KV: engine.KV{Tokens: 1024}}), context: 1024, facts: &model.Facts{Context: 4096}},
		{name: "unknown context", c: mock(engine.Config{KV: engine.KV{Tokens: 1}})},
		{name: "vLLM insists on the model's own length", c: engine.Config{Engine: "vllm", KV: engine.KV{Tokens: 1024}}, facts: &model.Facts{Context: 4096},
			want: "kv-too-small nodes.w.kv.tokens: 1024 tokens, but one sequence may have 4096: the model's own context"},
		{name: "its flag says less", c: engine.Config{Engine: "vllm", KV: engine.KV{Tokens: 1024}, Flags: map[string]any{"max-model-len": 1024.0}}, facts: &model.Facts{Context: 4096}},
		{name: "its flag says more than the cache has", c: engine.Config{Engine: "vllm", KV: engine.KV{Tokens: 1024}, Flags: map[string]any{"max_model_len": 2048.0}}, facts: &model.Facts{Context: 4096},
			want: "kv-too-small nodes.w.kv.tokens: 1024 tokens, but one sequence may have 2048: flags.max-model-len"},
		{name: "llama.cpp serves what it has room for", c: engine.Config{Engine: "llamacpp", KV: engine.KV{Tokens: 8192}}, facts: &model.Facts{Context: 131072}},
		{name: "SGLang too", c: engine.Config{Engine: "sglang", KV: engine.KV{Tokens: 8192}}, facts: &model.Facts{Context: 131072}},
		{name: "unknown engine", c: engine.Config{Engine: "mok"}, want: `bad-value nodes.w.engine: unknown engine "mok"`},
		{name: "bad duration", c: mock(engine.Config{Mock: &engine.Mock{ITL: "5"}}), want: `bad-value nodes.w.mock.itl: "5"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := &graph.Node{Name: "w", Kind: "worker", Model: "m", Fields: map[string]diag.Pos{"kv.tokens": at}}
			g := &graph.Graph{Models: map[string]*graph.Model{"m": {Context: tt.context}}, Nodes: map[string]*graph.Node{"w": n}}
			l := serve.Check(tt.c, kind.Site{Graph: g, Node: n, Facts: tt.facts})
			if tt.want == "" {
				if len(l) > 0 {
					t.Errorf("got %v", l)
				}
				return
			}
			if len(l) != 1 || !strings.HasPrefix(l[0].Code+" "+l[0].Msg, tt.want) {
				t.Fatalf("got %v, want %s", l, tt.want)
			}
			if l[0].Code == "kv-too-small" && l[0].Pos != at {
				t.Errorf("it points at %v", l[0].Pos)
			}
		})
	}
}
