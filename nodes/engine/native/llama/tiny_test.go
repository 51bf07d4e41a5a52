package llama

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/dynamograph/dynamo/graph/model/gguf"
	"github.com/dynamograph/dynamo/graph/model/gguf/gguftest"
	"github.com/dynamograph/dynamo/nodes/engine/native/kernel"
)

// tiny describes a random model.
type tiny struct {
	name                                            string
	dim, ff, layers, heads, kvHeads, headDim, vocab int
	context                                         int
	types                                           []gguf.Type // of matrices, in turns
	tied, factors                                   bool
	base                                            float32
	rotated                                         int
	linear                                          float32
	seed                                            uint64
}

// tinies cover every type, head size and ratio that the engine promises.
var tinies = []tiny{
	{name: "Q4_1 tied", dim: 64, ff: 160, layers: 2, heads: 3, kvHeads: 1, headDim: 64, vocab: 97, types: []gguf.Type{gguf.Q4_1}, tied: true},
	{name: "Q8_0", dim: 96, ff: 64, layers: 2, heads: 4, kvHeads: 4, headDim: 16, vocab: 80, types: []gguf.Type{gguf.Q8_0}, linear: 4},
	{name: "Q4_0", dim: 64, ff: 128, layers: 2, heads: 8, kvHeads: 2, headDim: 32, vocab: 64, types: []gguf.Type{gguf.Q4_0}, base: 500000},
	{name: "F32", dim: 32, ff: 96, layers: 2, heads: 2, kvHeads: 2, headDim: 128, vocab: 33, types: []gguf.Type{gguf.F32}, factors: true},
	{name: "F16", dim: 64, ff: 96, layers: 1, heads: 5, kvHeads: 1, headDim: 96, vocab: 50, types: []gguf.Type{gguf.F16}, tied: true},
	{name: "BF16", dim: 64, ff: 96, layers: 2, heads: 4, kvHeads: 2, headDim: 80, vocab: 70, types: []gguf.Type{gguf.BF16}, rotated: 40},
	{name: "mixed", dim: 128, ff: 192, layers: 3, heads: 32, kvHeads: 1, headDim: 16, vocab: 130, factors: true,
		types: []gguf.Type{gguf.Q4_1, gguf.F16, gguf.Q8_0, gguf.F32, gguf.Q4_0, gguf.BF16, gguf.Q4_1}},
}

// matrixData is n rows of k random weights of a type.
func matrixData(r *rand.Rand, typ gguf.Type, k, n int) []byte {
	f := formats[typ]
	out := make([]byte, n*f.SourceBytes(k))
	sigma := 1 / math.Sqrt(float64(k))
	half := func(at int, v float64) { binary.LittleEndian.PutUint16(out[at:], toHalf(float32(v))) }
	if f.Quantised() {
		for i := range out {
			out[i] = byte(r.Uint32())
		}
		step := f.SourceBytes(32)
		for at := 0; at < len(out); at += step {
			switch typ {
			case gguf.Q8_0:
				half(at, sigma/74*(0.5+r.Float64()))
			case gguf.Q4_0:
				half(at, sigma/4.6*(0.5+r.Float64()))
			default:
				d := sigma / 4.6 * (0.5 + r.Float64())
				half(at, d)
				half(at+2, -7.5*d)
			}
		}
		return out
	}
	for i := range n * k {
		v := float32(r.NormFloat64() * sigma)
		switch typ {
		case gguf.F32:
			binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(v))
		case gguf.F16:
			half(2*i, float64(v))
		default:
			binary.LittleEndian.PutUint16(out[2*i:], uint16(math.Float32bits(v)>>16))
		}
	}
	return out
}

// toHalf rounds to float16.
func toHalf(v float32) uint16 {
	var b [32]byte
	x := make([]float32, 16)
	x[0] = v
	kernel.Portable().Half(x, b[:])
	return binary.LittleEndian.Uint16(b[:])
}

// parts are the keys and tensors of the model's file.
func (c tiny) parts() ([]gguftest.KV, []gguftest.Tensor) {
	if c.context == 0 {
		c.context = 256
	}
	if c.rotated == 0 {
		c.rotated = c.headDim
	}
	if c.base == 0 {
		c.base = 10000
	}
	r := rand.New(rand.NewPCG(c.seed, uint64(len(c.name))))
	kvs := []gguftest.KV{
		gguftest.K("general.architecture", "llama"), gguftest.K("llama.block_count", uint32(c.layers)),
		gguftest.K("llama.embedding_length", uint32(c.dim)), gguftest.K("llama.feed_forward_length", uint32(c.ff)),
		gguftest.K("llama.attention.head_count", uint32(c.heads)), gguftest.K("llama.attention.head_count_kv", uint32(c.kvHeads)),
		gguftest.K("llama.attention.key_length", uint32(c.headDim)), gguftest.K("llama.attention.value_length", uint32(c.headDim)),
		gguftest.K("llama.attention.layer_norm_rms_epsilon", float32(1e-5)), gguftest.K("llama.rope.freq_base", c.base),
		gguftest.K("llama.rope.dimension_count", uint32(c.rotated)), gguftest.K("llama.context_length", uint32(c.context)),
	}
	if c.linear != 0 {
		kvs = append(kvs, gguftest.K("llama.rope.scaling.type", "linear"), gguftest.K("llama.rope.scaling.factor", c.linear))
	}
	var ts []gguftest.Tensor
	next := 0
	mat := func(name string, k, n int) {
		typ := c.types[next%len(c.types)]
		next++
		ts = append(ts, gguftest.Tensor{Name: name, Type: typ, Dims: []int64{int64(k), int64(n)}, Data: matrixData(r, typ, k, n)})
	}
	vec := func(name string, n int, mean, spread float64) {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(mean + spread*r.Float64())
		}
		ts = append(ts, gguftest.F32(name, []int64{int64(n)}, v))
	}
	mat("token_embd.weight", c.dim, c.vocab)
	for i := range c.layers {
		p := "blk." + string(rune('0'+i)) + "."
		vec(p+"attn_norm.weight", c.dim, 0.5, 1)
		mat(p+"attn_q.weight", c.dim, c.heads*c.headDim)
		mat(p+"attn_k.weight", c.dim, c.kvHeads*c.headDim)
		mat(p+"attn_v.weight", c.dim, c.kvHeads*c.headDim)
		mat(p+"attn_output.weight", c.heads*c.headDim, c.dim)
		vec(p+"ffn_norm.weight", c.dim, 0.5, 1)
		mat(p+"ffn_gate.weight", c.dim, c.ff)
		mat(p+"ffn_up.weight", c.dim, c.ff)
		mat(p+"ffn_down.weight", c.ff, c.dim)
	}
	vec("output_norm.weight", c.dim, 0.5, 1)
	if !c.tied {
		mat("output.weight", c.dim, c.vocab)
	}
	if c.factors {
		vec("rope_freqs.weight", c.rotated/2, 1, 7)
	}
	return kvs, ts
}

// write makes the model's file and returns its path.
func (c tiny) write(t testing.TB) string {
	t.Helper()
	return writeFile(t, gguftest.Build(c.parts()))
}

func writeFile(t testing.TB, b []byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(p, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func mustOpen(t testing.TB, o Options) *Model {
	t.Helper()
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
