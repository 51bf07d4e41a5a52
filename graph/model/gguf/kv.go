package gguf

import (
	"strings"

	"github.com/dynamograph/dynamo/graph/model"
)

// alternate tells, for the architectures whose keys and values are known here, which layers keep a window only: every nth keeps all, 0
// where all layers are alike. An architecture that is not listed has no KV in its facts: it may keep something else.
var alternate = map[string]int{
	"llama": 0, "qwen2": 0, "qwen3": 0, "qwen2moe": 0, "qwen3moe": 0, "gemma": 0, "phi2": 0, "starcoder2": 0, "granite": 0, "deepseek2": 0,
	"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "cohere2": 4,
}

// kv says what the layers keep, nil where that is not known. Prefix is that of the architecture's keys.
func (f *File) kv(m model.Facts, prefix string) []model.KVLayers {
	every, known := alternate[m.Architecture]
	if _, mixed := f.Ints(prefix + "attention.head_count_kv"); !known || mixed || m.Layers == 0 {
		return nil
	}
	if rank, ok := f.Uint(prefix + "attention.kv_lora_rank"); ok {
		rope, ok := f.Uint(prefix + "rope.dimension_count")
		if !ok || rank == 0 || rank > 1<<16 || rope > 1<<16 {
			return nil
		}
		return []model.KVLayers{{Layers: m.Layers, Heads: 1, Elems: int(rank + rope), Latent: true}}
	}
	if m.KVHeads == 0 || m.HeadDim == 0 {
		return nil
	}
	all := model.KVLayers{Layers: m.Layers, Heads: m.KVHeads, Elems: 2 * m.HeadDim}
	if v, ok := f.Uint(prefix + "attention.value_length"); ok && v <= 1<<16 {
		all.Elems = m.HeadDim + int(v)
	}
	window, ok := f.Uint(prefix + "attention.sliding_window")
	switch {
	case !ok || window == 0:
		return []model.KVLayers{all}
	case every == 0 || window > 1<<31: // a window where the architecture has none: what it means is not known here
		return nil
	}
	near := all
	all.Layers = m.Layers / every
	near.Layers, near.Window = m.Layers-all.Layers, int(window)
	return []model.KVLayers{all, near}
}

// experts counts what the routed experts hold.
func (f *File) experts(m *model.Facts, prefix string) {
	if n, ok := f.Uint(prefix + "expert_count"); ok && n <= 1<<16 {
		m.Experts = int(n)
	}
	for _, t := range f.Tensors {
		if strings.Contains(t.Name, "_exps.") { // "blk.0.ffn_gate_exps.weight"
			m.ExpertParameters = saturate(m.ExpertParameters, t.Elements())
			m.ExpertBytes = saturate(m.ExpertBytes, t.Size)
		}
	}
}
