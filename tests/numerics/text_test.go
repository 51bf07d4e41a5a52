package numerics

import (
	"os"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/model/gguf"
	"github.com/dynamograph/dynamo/nodes/engine/native/llama"
)

// TestText continues "The capital of France is" greedily.
func TestText(t *testing.T) {
	m := open(t, llama.Options{})
	f, err := os.Open(model(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	g, err := gguf.Read(f, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	words, _ := g.Strings("tokenizer.ggml.tokens")
	kv, row := slab(m, 8), rows(m, 1)
	in, pos, text := []uint32{504, 3575, 282, 4649, 314}, 0, ""
	for range 40 {
		if err := m.Forward(kv, []llama.Seq{{Tokens: in, Pos: pos, Blocks: []int32{5, 0, 3, 7}, Logits: row}}); err != nil {
			t.Fatal(err)
		}
		pos += len(in)
		in = []uint32{argmax(row[0])}
		text += words[in[0]]
	}
	if text = strings.NewReplacer("Ġ", " ", "Ċ", "\n").Replace(text); !strings.HasPrefix(text, " Paris") {
		t.Errorf("the capital of France is%q", text)
	}
}
