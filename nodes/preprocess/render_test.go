package preprocess

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
)

// A model without a template, of a family whose authors publish a program instead, takes chats all the same.
func TestFamilyWithoutTemplate(t *testing.T) {
	for family, want := range map[string]string{"deepseek-v3.2": "<｜User｜>Hi<｜Assistant｜></think>", "": ""} {
		h := kindtest.NewHost(t, "preprocess", "preprocess-1", nil)
		h.AllModels = []*kind.Model{{Name: "m", Names: []string{"m"}, Path: modelFile(t, ""), Context: 200, Family: family}}
		e := &engine{deltas: each(llm.FinishStop, tokens("x")...)}
		h.Dialled = map[string]any{"out": flow.Static[*llm.TokensRequest, *llm.TokensDelta]{{ID: "w-1", Node: "w", AsyncEngine: e}}}
		n := New(Config{}, h)
		if err := n.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		g := ask(n, &llm.ChatRequest{Model: "m", Logprobs: -1, Messages: json.RawMessage(`[{"role":"user","content":"Hi"}]`)})
		if want == "" {
			if g.err == nil || !strings.Contains(g.err.Error(), "carries no chat template") {
				t.Errorf("%v", g.err)
			}
		} else if g.err != nil {
			t.Errorf("%s: %v", family, g.err)
		} else if got := n.models["m"].tok.Decode(e.got.Tokens, true); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q", family, got)
		}
		_ = n.Close()
	}
}
