package gguf_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/graph/model/gguf"
	"github.com/dynamograph/dynamo/graph/model/gguf/gguftest"
)

func small() []byte {
	return gguftest.Build([]gguftest.KV{
		gguftest.K("general.architecture", "llama"),
		gguftest.K("general.name", "tiny"),
		gguftest.K("llama.block_count", uint32(2)),
		gguftest.K("llama.embedding_length", int64(8)),
		gguftest.K("llama.attention.head_count", uint8(4)),
		gguftest.K("llama.attention.head_count_kv", []int32{1, 2}),
		gguftest.K("llama.rope.freq_base", float32(10000)),
		gguftest.K("eps", 1e-5),
		gguftest.K("neg", int16(-3)),
		gguftest.K("big", uint64(1<<63)),
		gguftest.K("flag", true),
		gguftest.K("tokenizer.ggml.tokens", []string{"a", "", "ccc"}),
		gguftest.K("tokenizer.ggml.scores", []float32{0.5, -1, 2}),
		gguftest.K("types", []uint16{1, 65535}),
	}, []gguftest.Tensor{
		gguftest.F32("token_embd.weight", []int64{8, 3}, make([]float32, 24)),
		{Name: "q", Type: gguf.Q4_1, Dims: []int64{64, 2}, Data: make([]byte, 80)},
		gguftest.F32("norm", []int64{8}, make([]float32, 8)),
	})
}

func read(t *testing.T, b []byte) *gguf.File {
	t.Helper()
	f, err := gguf.Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRead(t *testing.T) {
	b := small()
	f := read(t, b)
	if f.Version != 3 || f.Alignment != 32 || f.DataOffset%32 != 0 || len(f.Keys()) != 14 {
		t.Errorf("version %d, alignment %d, data at %d, %d keys", f.Version, f.Alignment, f.DataOffset, len(f.Keys()))
	}
	check := func(what string, got, want any, ok bool) {
		t.Helper()
		if !ok || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v (%v), want %v", what, got, ok, want)
		}
	}
	s, ok := f.String("general.name")
	check("string", s, "tiny", ok)
	u, ok := f.Uint("llama.embedding_length")
	check("int64 as uint", u, 8, ok)
	u, ok = f.Uint("big")
	check("uint64", u, uint64(1<<63), ok)
	x, ok := f.Float("eps")
	check("float64", x, 1e-5, ok)
	fl, ok := f.Bool("flag")
	check("bool", fl, true, ok)
	ss, ok := f.Strings("tokenizer.ggml.tokens")
	check("strings", ss, []string{"a", "", "ccc"}, ok && len(ss) == 3)
	xs, ok := f.Floats("tokenizer.ggml.scores")
	check("floats", xs, []float64{0.5, -1, 2}, ok)
	is, ok := f.Ints("types")
	check("ints", is, []int64{1, 65535}, ok)
	if _, ok := f.Uint("neg"); ok {
		t.Error("a negative number passed as Uint")
	}
	if _, ok := f.String("flag"); ok {
		t.Error("a bool passed as String")
	}
	if _, ok := f.Strings("absent"); ok {
		t.Error("an absent key was found")
	}
	q := f.Tensors[1]
	if q.Name != "q" || q.Type.String() != "Q4_1" || q.Size != 80 || q.Offset != f.DataOffset+96 || !slices.Equal(q.Dims, []int64{64, 2}) {
		t.Errorf("tensor q: %+v", q)
	}
	m, err := f.Facts()
	if err != nil {
		t.Fatal(err)
	}
	if m.Layers != 2 || m.KVHeads != 2 || m.HeadDim != 2 || m.Vocabulary != 3 || m.Quantization != "Q4_1" || m.Parameters != 24+128+8 || m.FileBytes != int64(len(b)) {
		t.Errorf("facts: %+v", m)
	}
}

// TestReal reads a real file within the time that each start of a process can afford.
func TestReal(t *testing.T) {
	path := os.Getenv("DYNAMO_TEST_MODEL")
	if path == "" {
		t.Skip("NOT RUN: set DYNAMO_TEST_MODEL")
	}
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	st, err := r.Stat()
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	f, err := gguf.Read(r, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	parse := time.Since(start)
	start = time.Now()
	tokens, ok := f.Strings("tokenizer.ggml.tokens")
	merges, _ := f.Strings("tokenizer.ggml.merges")
	types, _ := f.Ints("tokenizer.ggml.token_type")
	decode := time.Since(start)
	m, err := f.Facts()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("parse %v, arrays %v, %d tokens, %d merges, %d types; %+v", parse, decode, len(tokens), len(merges), len(types), m)
	if !ok || len(tokens) != m.Vocabulary || m.Layers == 0 || m.HeadDim == 0 || m.Context == 0 {
		t.Errorf("facts: %+v", m)
	}
	if parse+decode > 300*time.Millisecond { // 10 times what it takes on an idle machine
		t.Errorf("parse %v, arrays %v", parse, decode)
	}
}
