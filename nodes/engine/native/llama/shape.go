package llama

import (
	"fmt"
	"math"

	"github.com/dynamograph/dynamo/graph/model/gguf"
)

// shape is what the keys of a file say about the computation.
type shape struct {
	layers, dim, ff, heads, kvHeads, headDim, vocab int
	context, trained                                int
	rotated                                         int // dimensions of a head that RoPE turns
	eps                                             float32
	base, linear                                    float64 // RoPE: base of frequencies; positions are divided by linear
}

func (s *shape) qDim() int  { return s.heads * s.headDim }
func (s *shape) kvDim() int { return s.kvHeads * s.headDim }

// layerBytes is one layer of a block: keys, then values, in float16.
func (s *shape) layerBytes() int { return 2 * s.kvDim() * BlockTokens * 2 }
func (s *shape) blockBytes() int { return s.layers * s.layerBytes() }

// strange are keys that change the computation in ways that this engine does not know, with the one value that does not.
var strange = map[string]float64{
	"expert_count": 0, "expert_used_count": 0, "attention.sliding_window": 0, "attention.clamp_kqv": 0, "attention.max_alibi_bias": 0,
	"logit_scale": 1, "residual_scale": 1, "embedding_scale": 1, "attn_logit_softcapping": 0, "final_logit_softcapping": 0,
	"attention.temperature_scale": 0,
}

func readShape(f *gguf.File) (shape, error) {
	facts, err := f.Facts()
	if err != nil {
		return shape{}, err
	}
	if facts.Architecture != "llama" {
		return shape{}, fmt.Errorf("architecture %q: not supported; the native engine knows llama", facts.Architecture)
	}
	s := shape{layers: facts.Layers, dim: facts.Embedding, ff: facts.FeedForward, heads: facts.Heads, kvHeads: facts.KVHeads,
		headDim: facts.HeadDim, vocab: facts.Vocabulary, trained: facts.Context}
	for key, ok := range strange {
		key = "llama." + key
		if v, has := number(f, key); has && v != ok {
			return s, fmt.Errorf("key %q is %v: not supported by the native engine", key, v)
		}
	}
	for _, key := range []string{"block_count", "embedding_length", "feed_forward_length", "attention.head_count", "attention.head_count_kv"} {
		key = "llama." + key
		if _, ok := f.Uint(key); !ok && f.Has(key) {
			t, _ := f.ValueType(key)
			return s, fmt.Errorf("key %q is of type %s: layers of different shape are not supported", key, t)
		}
	}
	for _, c := range []struct {
		what     string
		v        int
		multiple int
		most     int
	}{
		{"block_count", s.layers, 1, 1024}, {"embedding_length", s.dim, 32, 1 << 17}, {"feed_forward_length", s.ff, 32, 1 << 18},
		{"attention.head_count", s.heads, 1, 1024}, {"attention.head_count_kv", s.kvHeads, 1, 1024}, {"head size", s.headDim, 16, 512},
		{"vocabulary", s.vocab, 1, 1 << 21},
	} {
		if c.v <= 0 || c.v > c.most || c.v%c.multiple != 0 {
			return s, fmt.Errorf("%s %d: not supported; must be a multiple of %d, at most %d", c.what, c.v, c.multiple, c.most)
		}
	}
	if s.heads%s.kvHeads != 0 {
		return s, fmt.Errorf("%d heads for %d key-value heads: not a whole ratio", s.heads, s.kvHeads)
	}
	if s.qDim()%32 != 0 {
		return s, fmt.Errorf("%d heads of %d: their product must be a multiple of 32", s.heads, s.headDim)
	}
	if v, ok := f.Uint("llama.attention.value_length"); ok && v != uint64(s.headDim) {
		return s, fmt.Errorf("key %q is %d: must equal the size of keys, %d", "llama.attention.value_length", v, s.headDim)
	}
	return s, s.readNumbers(f)
}

func (s *shape) readNumbers(f *gguf.File) error {
	eps, ok := number(f, "llama.attention.layer_norm_rms_epsilon")
	if !ok || eps < 0 || eps > 1 {
		return fmt.Errorf("key %q: must be there, from 0 to 1", "llama.attention.layer_norm_rms_epsilon")
	}
	s.eps = float32(eps)
	s.base = 10000
	if v, ok := number(f, "llama.rope.freq_base"); ok {
		s.base = v
	}
	if !(s.base >= 1 && s.base <= 1e12) {
		return fmt.Errorf("key %q is %v: must be from 1 to 1e12", "llama.rope.freq_base", s.base)
	}
	s.rotated = s.headDim
	if v, ok := f.Uint("llama.rope.dimension_count"); ok {
		if v == 0 || v%2 != 0 || v > uint64(s.headDim) {
			return fmt.Errorf("key %q is %d: must be even and at most the size of a head, %d", "llama.rope.dimension_count", v, s.headDim)
		}
		s.rotated = int(v)
	}
	s.linear = 1
	kind, _ := f.String("llama.rope.scaling.type")
	factor, has := number(f, "llama.rope.scaling.factor")
	if old, ok := number(f, "llama.rope.scale_linear"); ok {
		kind, factor, has = "linear", old, true
	}
	switch kind {
	case "", "none": // Llama 3's factors come as a tensor
	case "linear":
		if has && factor != 0 {
			s.linear = factor
		}
	default:
		return fmt.Errorf("key %q is %q: not supported; the native engine knows none and linear", "llama.rope.scaling.type", kind)
	}
	if !(s.linear >= 1e-3 && s.linear <= 1e6) {
		return fmt.Errorf("rope scaling factor %v: must be from 0.001 to 1e6", s.linear)
	}
	return nil
}

// limitContext sets the context to want tokens, or to what the model was trained for.
func (s *shape) limitContext(want int) error {
	const most = 1 << 20
	switch {
	case want < 0 || want > most:
		return fmt.Errorf("context %d: must be from 1 to %d tokens", want, most)
	case want == 0 && s.trained <= 0:
		return fmt.Errorf("key %q is missing: say how long the context shall be", "llama.context_length")
	case want > s.trained && s.trained > 0:
		return fmt.Errorf("context %d: the model was trained for %d tokens", want, s.trained)
	case want == 0:
		want = min(s.trained, most)
	}
	s.context = want
	return nil
}

// number reads a number of any type.
func number(f *gguf.File, key string) (float64, bool) {
	if v, ok := f.Float(key); ok {
		return v, !math.IsNaN(v)
	}
	if v, ok := f.Uint(key); ok {
		return float64(v), true
	}
	return 0, false
}
