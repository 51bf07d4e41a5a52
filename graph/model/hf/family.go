package hf

import (
	"github.com/dynamograph/dynamo/graph/model"
)

// family is how the parts of one type of model follow from its config, beyond what all have: gated or plain MLP, norms, biases, windows.
type family struct {
	qkvBias    bool // query, key and value have biases, always
	outBias    bool // and so has the attention's output
	qkNorm     bool // queries and keys have a norm of one head's size
	norms      int  // vectors of the hidden size in a layer; 0: 2
	plainMLP   bool // two matrices with biases instead of three without
	normBias   bool // norms have biases
	headBias   bool // the output projection has one
	sinks      bool // an extra number for each head
	tied       bool // where the config does not say
	every      int  // of so many layers one keeps all tokens, the others a window; 0: all keep the same
	window     bool // sliding_window counts where it is set, for all layers
	ifUsed     bool // sliding_window counts only with use_sliding_window, from layer max_window_layers on
	expertBias bool // experts and their router have biases
}

// families are the types of model whose sizes are known. A type that is not here has only what its config says.
var families = map[string]family{
	"llama":       {},
	"mistral":     {window: true},
	"mixtral":     {window: true},
	"qwen2":       {qkvBias: true, ifUsed: true},
	"qwen2_moe":   {qkvBias: true, ifUsed: true},
	"qwen3":       {qkNorm: true, ifUsed: true},
	"qwen3_moe":   {qkNorm: true, ifUsed: true},
	"gemma":       {tied: true},
	"gemma2":      {norms: 4, tied: true, every: 2},
	"gemma3":      {norms: 4, qkNorm: true, tied: true, every: 6},
	"gemma3_text": {norms: 4, qkNorm: true, tied: true, every: 6},
	"phi":         {qkvBias: true, outBias: true, plainMLP: true, norms: 1, normBias: true, headBias: true},
	"phi3":        {window: true},
	"granite":     {},
	"deepseek_v2": {},
	"deepseek_v3": {},
	"kimi_k2":     {},
	"gpt_oss":     {qkvBias: true, outBias: true, sinks: true, expertBias: true, every: 2},
	"smollm3":     {tied: true, ifUsed: true},
}

// kv is what the layers keep, nil where that is not sure.
func (c *config) kv(fam family, f model.Facts) []model.KVLayers {
	if c.KVRank > 0 {
		if c.QKRope == 0 || c.KVRank > 1<<16 || c.QKRope > 1<<16 {
			return nil
		}
		return []model.KVLayers{{Layers: f.Layers, Heads: 1, Elems: int(c.KVRank + c.QKRope), Latent: true}}
	}
	plain := model.Plain(f.Layers, f.KVHeads, f.HeadDim)
	if plain == nil {
		return nil
	}
	near := 0 // layers that keep a window
	switch {
	case len(c.LayerTypes) > 0:
		if len(c.LayerTypes) != f.Layers {
			return nil
		}
		for _, t := range c.LayerTypes {
			switch t {
			case "full_attention":
			case "sliding_attention":
				near++
			default: // linear, chunked or something newer
				return nil
			}
		}
	case fam.every > 0:
		every := fam.every
		if c.Pattern > 0 {
			every = int(c.Pattern)
		}
		near = f.Layers - f.Layers/every // the last of each run keeps all
	case fam.window && c.Window > 0:
		near = f.Layers
	case fam.ifUsed && c.UseWindow != nil && *c.UseWindow && c.Window > 0:
		near = max(f.Layers-int(c.MaxWindow), 0)
	}
	if near == 0 {
		return plain
	}
	if c.Window == 0 {
		return nil
	}
	k := plain[0]
	k.Layers, k.Window = near, int(c.Window)
	plain[0].Layers -= near
	if plain[0].Layers == 0 {
		return []model.KVLayers{k}
	}
	return append(plain, k)
}

// parameters counts all, and those of routed experts.
func (c *config) parameters(fam family, f model.Facts) (all, experts int64) {
	h, v := int64(f.Embedding), int64(f.Vocabulary)
	all = v*h + h // embedding and the last norm
	if !f.Tied {
		all += v * h
	}
	if fam.headBias {
		all += v
	}
	if fam.normBias {
		all += h
	}
	norms := int64(fam.norms)
	if norms == 0 {
		norms = 2
	}
	if fam.normBias {
		norms *= 2
	}
	layer := c.attention(fam, f) + h*norms
	all += int64(f.Layers) * layer
	dense := map[int]bool{}
	for _, i := range c.DenseOnly {
		dense[i] = true
	}
	for i := range f.Layers {
		if dense[i] || !c.sparse(i) {
			all += c.dense(fam, h, int64(c.Inner))
			continue
		}
		one := c.expert(fam, h)
		experts += int64(f.Experts) * one
		all += int64(f.Experts)*one + h*int64(f.Experts) // and the router
		if fam.expertBias || c.ModelType == "deepseek_v3" || c.ModelType == "kimi_k2" {
			all += int64(f.Experts)
		}
		switch {
		case c.SharedInner > 0: // with a gate
			all += 3*h*int64(c.SharedInner) + h
		case c.SharedExperts > 0:
			all += 3 * h * int64(c.ExpertInner) * int64(c.SharedExperts)
		}
	}
	return all, experts
}

func (c *config) attention(fam family, f model.Facts) int64 {
	h, heads, d := int64(f.Embedding), int64(f.Heads), int64(f.HeadDim)
	if c.KVRank > 0 {
		rank, rope, nope, value := int64(c.KVRank), int64(c.QKRope), int64(c.QKNope), int64(c.VHead)
		q := h * heads * (nope + rope)
		if r := int64(c.QRank); r > 0 {
			q = h*r + r + r*heads*(nope+rope)
		}
		return q + h*(rank+rope) + rank + rank*heads*(nope+value) + heads*value*h
	}
	q, kv := heads*d, int64(f.KVHeads)*d
	n := h*q + 2*h*kv + q*h
	if fam.qkvBias || c.AttnBias {
		n += q + 2*kv
	}
	if fam.outBias || c.AttnBias && !fam.qkvBias {
		n += h
	}
	if fam.qkNorm {
		n += 2 * d
	}
	if fam.sinks {
		n += heads
	}
	return n
}

func (c *config) dense(fam family, h, inner int64) int64 {
	if fam.plainMLP {
		return 2*h*inner + inner + h
	}
	n := 3 * h * inner
	if c.MLPBias {
		n += 2*inner + h
	}
	return n
}

// expert is the parameters of one routed expert.
func (c *config) expert(fam family, h int64) int64 {
	inner := int64(c.ExpertInner)
	if inner == 0 {
		inner = int64(c.Inner)
	}
	n := 3 * h * inner
	if fam.expertBias {
		n += 2*inner + h
	}
	return n
}

// sparse reports whether layer i routes to experts, where the config does not name it among those that do not.
func (c *config) sparse(i int) bool {
	if c.experts() == 0 || i < int(c.FirstDense) {
		return false
	}
	if n := int(c.SparseStep); n > 1 {
		return (i+1)%n == 0
	}
	if n := int(c.MoEFrequency); n > 1 {
		return i%n == 0
	}
	return true
}
