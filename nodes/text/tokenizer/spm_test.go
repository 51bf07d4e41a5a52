package tokenizer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/dynamograph/dynamo/graph/model/gguf"
	"github.com/dynamograph/dynamo/graph/model/gguf/gguftest"
)

// load makes a tokenizer from the keys of a GGUF file.
func load(t testing.TB, kvs ...gguftest.KV) (*Tokenizer, error) {
	t.Helper()
	b := gguftest.Build(kvs, nil)
	f, err := gguf.Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return FromGGUF(f)
}

// tiny is a SentencePiece BPE model of 600 pieces, trained by sentencepiece 0.2 on this project's documents.
func tiny(t testing.TB, more ...gguftest.KV) *Tokenizer {
	t.Helper()
	b, err := os.ReadFile("testdata/spm_vocab.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Tokens []string
		Scores []float32
		Types  []int32
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	tok, err := load(t, append([]gguftest.KV{
		gguftest.K("tokenizer.ggml.model", "llama"), gguftest.K("tokenizer.ggml.tokens", v.Tokens), gguftest.K("tokenizer.ggml.scores", v.Scores),
		gguftest.K("tokenizer.ggml.token_type", v.Types), gguftest.K("tokenizer.ggml.bos_token_id", uint32(1)), gguftest.K("tokenizer.ggml.eos_token_id", uint32(2)),
	}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestSPM compares with ids that sentencepiece gave.
func TestSPM(t *testing.T) {
	tok := tiny(t)
	b, err := os.ReadFile("testdata/spm.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c struct {
			S   string
			IDs []uint32
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		n++
		got := tok.Encode(nil, c.S, Options{})
		if !slices.Equal(got, c.IDs) {
			t.Errorf("%q:\n got %v\nwant %v", c.S, got, c.IDs)
		}
	}
	if n < 10 {
		t.Fatalf("only %d cases", n)
	}
}
