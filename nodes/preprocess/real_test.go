package preprocess

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
)

// TestRealModel renders a chat with SmolLM2's own template and tokenizer; the ids are those that Hugging Face's tokenizers gave for the
// text that transformers renders.
func TestRealModel(t *testing.T) {
	path := os.Getenv("DYNAMO_TEST_MODEL")
	if path == "" {
		t.Skip("NOT RUN: set DYNAMO_TEST_MODEL to SmolLM2-135M-Instruct as GGUF")
	}
	e := &engine{deltas: each(llm.FinishStop, 19556, 905, 10813, 242, 218)} // the last three are one emoji
	h := kindtest.NewHost(t, "preprocess", "preprocess-1", nil)
	h.AllModels = []*kind.Model{{Name: "m", Names: []string{"tiny"}, Path: path, Context: 8192}}
	h.Dialled = map[string]any{"out": flow.Static[*llm.TokensRequest, *llm.TokensDelta]{{ID: "w-1", AsyncEngine: e}}}
	n := New(Config{}, h)
	if err := n.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	g := ask(n, chat("What is 2+2?"))
	if g.err != nil {
		t.Fatal(g.err)
	}
	want := []uint32{1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018, 411, 407, 19712, 8182, 2, 198,
		1, 4093, 198, 1780, 314, 216, 34, 27, 34, 47, 2, 198, 1, 520, 9531, 198}
	if !slices.Equal(e.got.Tokens, want) {
		t.Errorf("prompt %v\nwant   %v", e.got.Tokens, want)
	}
	if want := []string{"Hello", " world", "", "", "😀", ""}; !slices.Equal(g.texts, want) {
		t.Errorf("deltas %q, want %q", g.texts, want)
	}
	if !slices.Equal(e.got.Stop.IDs, []uint32{2, 0}) {
		t.Errorf("end tokens %v", e.got.Stop.IDs)
	}
}
