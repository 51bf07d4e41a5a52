package gguf_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/dynamograph/dynamo/graph/model/gguf"
	"github.com/dynamograph/dynamo/graph/model/gguf/gguftest"
)

// What the layers keep, for the architectures that are known; nothing for others, or where layers differ in ways that are not known.
func TestKV(t *testing.T) {
	u := func(key string, v uint32) gguftest.KV { return gguftest.K(key, v) }
	for _, tt := range []struct {
		arch string
		keys []gguftest.KV
		want string
	}{
		{"llama", nil, "[{12 2 128 0 false}]"},
		{"qwen3", nil, "[{12 2 128 0 false}]"},
		{"gemma3", []gguftest.KV{u("gemma3.attention.sliding_window", 512)}, "[{2 2 128 0 false} {10 2 128 512 false}]"},
		{"gemma2", []gguftest.KV{u("gemma2.attention.sliding_window", 4096)}, "[{6 2 128 0 false} {6 2 128 4096 false}]"},
		{"llama", []gguftest.KV{u("llama.attention.value_length", 32)}, "[{12 2 96 0 false}]"},
		{"deepseek2", []gguftest.KV{u("deepseek2.attention.kv_lora_rank", 512), u("deepseek2.rope.dimension_count", 64)}, "[{12 1 576 0 true}]"},
		{"deepseek2", []gguftest.KV{u("deepseek2.attention.kv_lora_rank", 512)}, "[]"},
		{"llama", []gguftest.KV{u("llama.attention.sliding_window", 512)}, "[]"},
		{"jamba", nil, "[]"},
		{"mamba2", nil, "[]"},
	} {
		a := tt.arch + "."
		keys := append([]gguftest.KV{gguftest.K("general.architecture", tt.arch), u(a+"block_count", 12), u(a+"embedding_length", 512),
			u(a+"attention.head_count", 8), u(a+"attention.head_count_kv", 2)}, tt.keys...)
		b := gguftest.Build(keys, nil)
		f, err := gguf.Read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		m, err := f.Facts()
		if got := fmt.Sprint(m.KV); err != nil || got != tt.want {
			t.Errorf("%s %v: %s, %v; want %s", tt.arch, tt.keys, got, err, tt.want)
		}
	}
}

func TestExperts(t *testing.T) {
	b := gguftest.Build([]gguftest.KV{gguftest.K("general.architecture", "qwen3moe"), gguftest.K("qwen3moe.expert_count", uint32(4))},
		[]gguftest.Tensor{gguftest.F32("blk.0.ffn_up_exps.weight", []int64{2, 2, 4}, make([]float32, 16)), gguftest.F32("output_norm.weight", []int64{2}, make([]float32, 2))})
	f, err := gguf.Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if m, err := f.Facts(); err != nil || m.Experts != 4 || m.ExpertParameters != 16 || m.ExpertBytes != 64 || m.Parameters != 18 {
		t.Errorf("%+v, %v", m, err)
	}
}
