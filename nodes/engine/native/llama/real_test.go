package llama

import (
	"os"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/model/gguf"
)

// realModel is the path of the real model that the environment names.
func realModel(t testing.TB) string {
	t.Helper()
	p := os.Getenv("DYNAMO_TEST_MODEL")
	if p == "" {
		t.Skip("NOT RUN: set DYNAMO_TEST_MODEL to a SmolLM2-135M-Instruct GGUF file")
	}
	return p
}

// openReal opens the real model with its repacked weights in a folder that all tests of this process share.
func openReal(t testing.TB, o Options) *Model {
	t.Helper()
	o.Path, o.CacheDir = realModel(t), sharedCache
	m, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// words are the vocabulary's texts.
func words(t testing.TB, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, _ := f.Stat()
	g, err := gguf.Read(f, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	w, ok := g.Strings("tokenizer.ggml.tokens")
	if !ok {
		t.Fatal("no vocabulary")
	}
	return w
}

func argmax(row []float32) uint32 {
	best := 0
	for i, v := range row {
		if v > row[best] {
			best = i
		}
	}
	return uint32(best)
}

// TestRealText continues "The capital of France is" greedily.
func TestRealText(t *testing.T) {
	m := openReal(t, Options{})
	vocabulary := words(t, realModel(t))
	kv := alignedBytes(8 * m.Info().BlockBytes)
	blocks := []int32{5, 0, 3, 7}
	row := make([]float32, m.Info().Vocab)
	in := []uint32{504, 3575, 282, 4649, 314}
	pos, text := 0, ""
	for range 40 {
		if err := m.Forward(kv, []Seq{{Tokens: in, Pos: pos, Blocks: blocks, Logits: [][]float32{row}}}); err != nil {
			t.Fatal(err)
		}
		pos += len(in)
		in = []uint32{argmax(row)}
		text += vocabulary[in[0]]
	}
	text = strings.NewReplacer("Ġ", " ", "Ċ", "\n").Replace(text)
	if !strings.Contains(text, "Paris") {
		t.Errorf("the capital of France is%q", text)
	}
	t.Log(text)
}
