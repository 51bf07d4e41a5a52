package gguf

import (
	"fmt"
	"math"

	"github.com/dynamograph/dynamo/graph/model"
)

// Facts sums up what the file says about its model. What it does not say stays zero; an architecture must be there, and a number must be
// of a size that a model can have (so that sizes computed from them cannot overflow).
func (f *File) Facts() (model.Facts, error) {
	m := model.Facts{Format: "gguf", FileBytes: f.Size}
	var ok bool
	if m.Architecture, ok = f.String("general.architecture"); !ok || m.Architecture == "" {
		return m, f.keyError("general.architecture", "must be a string: the file does not say what model it holds")
	}
	m.Name, _ = f.String("general.name")
	a := m.Architecture + "."
	for _, n := range []struct {
		key   string
		to    *int
		limit uint64
	}{
		{a + "block_count", &m.Layers, 1 << 14},
		{a + "embedding_length", &m.Embedding, 1 << 24},
		{a + "feed_forward_length", &m.FeedForward, 1 << 24},
		{a + "attention.head_count", &m.Heads, 1 << 16},
		{a + "attention.head_count_kv", &m.KVHeads, 1 << 16},
		{a + "attention.key_length", &m.HeadDim, 1 << 16},
		{a + "vocab_size", &m.Vocabulary, 1 << 28},
		{a + "context_length", &m.Context, 1 << 31},
	} {
		if err := f.number(n.key, n.to, n.limit); err != nil {
			return m, err
		}
	}
	if m.KVHeads == 0 {
		m.KVHeads = m.Heads
	}
	if m.HeadDim == 0 && m.Heads > 0 {
		m.HeadDim = m.Embedding / m.Heads
	}
	weights := map[Type]int64{}
	for _, t := range f.Tensors {
		n := t.Elements()
		m.Parameters = saturate(m.Parameters, n)
		if len(t.Dims) >= 2 {
			weights[t.Type] = saturate(weights[t.Type], n)
		}
		if t.Name == "token_embd.weight" && len(t.Dims) == 2 && t.Dims[1] <= 1<<28 {
			m.Vocabulary = int(t.Dims[1]) // what the engine indexes; keys may differ by padding
		}
	}
	if m.Vocabulary == 0 {
		if v, ok := f.values["tokenizer.ggml.tokens"]; ok && v.array {
			m.Vocabulary = v.n
		}
	}
	f.experts(&m, a)
	m.KV = f.kv(m, a)
	best := Type(0)
	for t, n := range weights {
		if n > weights[best] || n == weights[best] && t < best {
			best = t
		}
	}
	if weights[best] > 0 {
		m.Quantization = best.String()
	}
	return m, nil
}

// number reads a count; where layers differ (an array) it is the largest.
func (f *File) number(key string, to *int, limit uint64) error {
	if !f.Has(key) {
		return nil
	}
	n, ok := f.Uint(key)
	if list, isList := f.Ints(key); isList {
		ok = len(list) > 0
		for _, v := range list {
			if v < 0 {
				return f.keyError(key, fmt.Sprintf("holds %d", v))
			}
			n = max(n, uint64(v))
		}
	}
	if !ok {
		typ, _ := f.ValueType(key)
		return f.keyError(key, "must be an integer that is not negative, not "+typ)
	}
	if n > limit {
		return f.keyError(key, fmt.Sprintf("is %d: at most %d is believed", n, limit))
	}
	*to = int(n)
	return nil
}

func (f *File) keyError(key, msg string) error {
	return &Error{Offset: int64(f.values[key].at), Item: fmt.Sprintf("key %q", key), Msg: msg}
}

func saturate(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
