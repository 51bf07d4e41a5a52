package native

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/dynamograph/dynamo/graph/model/gguf/gguftest"
)

// tinyModel writes a Llama of two layers with random weights and returns its path.
func tinyModel(t testing.TB) string {
	t.Helper()
	const dim, ff, heads, kvHeads, headDim, vocab = 64, 96, 4, 2, 16, 120
	r := rand.New(rand.NewPCG(5, 6))
	var ts []gguftest.Tensor
	mat := func(name string, k, n int) {
		v := make([]float32, k*n)
		for i := range v {
			v[i] = float32(r.NormFloat64() * 2 / math.Sqrt(float64(k)))
		}
		ts = append(ts, gguftest.F32(name, []int64{int64(k), int64(n)}, v))
	}
	ones := func(name string) {
		v := make([]float32, dim)
		for i := range v {
			v[i] = 1
		}
		ts = append(ts, gguftest.F32(name, []int64{dim}, v))
	}
	mat("token_embd.weight", dim, vocab)
	for _, b := range []string{"blk.0.", "blk.1."} {
		ones(b + "attn_norm.weight")
		mat(b+"attn_q.weight", dim, heads*headDim)
		mat(b+"attn_k.weight", dim, kvHeads*headDim)
		mat(b+"attn_v.weight", dim, kvHeads*headDim)
		mat(b+"attn_output.weight", heads*headDim, dim)
		ones(b + "ffn_norm.weight")
		mat(b+"ffn_gate.weight", dim, ff)
		mat(b+"ffn_up.weight", dim, ff)
		mat(b+"ffn_down.weight", ff, dim)
	}
	ones("output_norm.weight")
	b := gguftest.Build([]gguftest.KV{
		gguftest.K("general.architecture", "llama"), gguftest.K("llama.block_count", uint32(2)),
		gguftest.K("llama.embedding_length", uint32(dim)), gguftest.K("llama.feed_forward_length", uint32(ff)),
		gguftest.K("llama.attention.head_count", uint32(heads)), gguftest.K("llama.attention.head_count_kv", uint32(kvHeads)),
		gguftest.K("llama.attention.key_length", uint32(headDim)), gguftest.K("llama.attention.value_length", uint32(headDim)),
		gguftest.K("llama.attention.layer_norm_rms_epsilon", float32(1e-5)), gguftest.K("llama.rope.freq_base", float32(10000)),
		gguftest.K("llama.rope.dimension_count", uint32(headDim)), gguftest.K("llama.context_length", uint32(512)),
		gguftest.K("tokenizer.ggml.eos_token_id", uint32(2)), gguftest.K("tokenizer.ggml.eot_token_id", uint32(3)),
	}, ts)
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
