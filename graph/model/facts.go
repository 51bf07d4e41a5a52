// Package model holds facts about a model that a compiler and a router need: shapes, bytes a block, content id. It reads header bytes
// that it is handed and does no I/O of its own.
package model

import "math"

// Facts is what a weights file, or the author of a graph, says about a model. Zero means "not said".
type Facts struct {
	Format       string `json:"format"`                 // "gguf", "safetensors", "config" (shapes without weights) or "stated"
	Architecture string `json:"architecture"`           // "llama"; of a config its model_type
	Name         string `json:"name,omitempty"`         // "SmolLM2 135M Instruct"
	Quantization string `json:"quantization,omitempty"` // the commonest type of the matrices: "Q4_1"; of a config the method: "fp8", "awq"
	Parameters   int64  `json:"parameters"`
	FileBytes    int64  `json:"fileBytes"` // of all files that hold weights
	Layers       int    `json:"layers"`
	Embedding    int    `json:"embedding"`
	FeedForward  int    `json:"feedForward"`
	Heads        int    `json:"heads"`
	KVHeads      int    `json:"kvHeads"`
	HeadDim      int    `json:"headDim"`
	Vocabulary   int    `json:"vocabulary"`
	Context      int    `json:"context"` // longest sequence in training, in tokens

	DType            string `json:"dtype,omitempty"`            // of the weights that are not quantised: "bf16", "f16", "f32", "f8"
	Tied             bool   `json:"tied,omitempty"`             // the output projection is the embedding
	Experts          int    `json:"experts,omitempty"`          // routed experts of a layer; 0: none
	ExpertParameters int64  `json:"expertParameters,omitempty"` // of all routed experts of all layers; a part of Parameters
	ExpertBytes      int64  `json:"expertBytes,omitempty"`      // the same, of FileBytes
	// KV says what the layers keep of each token. Empty: not known, which no other field makes up for: a model may have layers that
	// keep nothing a token.
	KV []KVLayers `json:"kv,omitempty"`
}

// KVLayers are layers that keep the same of each token.
type KVLayers struct {
	Layers int  `json:"layers"`           // how many
	Heads  int  `json:"heads"`            // key-value heads, which tensor parallelism spreads; 1 for a latent
	Elems  int  `json:"elems"`            // elements of one head and token: its key and its value
	Window int  `json:"window,omitempty"` // how many of the last tokens are kept; 0: all
	Latent bool `json:"latent,omitempty"` // one compressed vector for all heads (MLA), which each device keeps whole
}

// Plain is the KV of a model whose layers are all alike: full attention, keys and values of one size.
func Plain(layers, kvHeads, headDim int) []KVLayers {
	if layers <= 0 || kvHeads <= 0 || headDim <= 0 {
		return nil
	}
	return []KVLayers{{Layers: layers, Heads: kvHeads, Elems: 2 * headDim}}
}

// KVBytesPerToken is the size of one token's keys and values over all layers, for elements of elem bytes; 0 where it is not known.
func (f Facts) KVBytesPerToken(elem int) int64 { return f.KVBytes(1, 8*elem, 1, 1) }

// KVBytes is what one device keeps of a sequence of some tokens, for elements of bits bits, where each layer's heads are spread over tp
// devices and the layers over pp: a head that has no device of its own is kept whole by each, and a stage has its share of the layers.
// 0 where it is not known; math.MaxInt64 where it is beyond counting.
func (f Facts) KVBytes(tokens, bits, tp, pp int) int64 {
	if tokens < 0 || bits <= 0 || tp < 1 || pp < 1 {
		return 0
	}
	var sum float64 // exact up to 2^53, which no device has
	for _, k := range f.KV {
		n := tokens
		if k.Window > 0 {
			n = min(n, k.Window)
		}
		heads := k.Heads
		if !k.Latent {
			heads = (k.Heads + tp - 1) / tp
		}
		sum += float64(k.Layers) * float64(heads) * float64(k.Elems) * float64(n)
	}
	if sum *= float64(bits) / 8 / float64(pp); sum >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(sum)
}

// Bits is the size of an element of a type as engines name it, in bits: 16 for "bf16" and "fp16", 8 for "fp8_e5m2". 0 where it is not
// known, as for "auto".
func Bits(dtype string) int { return bits[dtype] }

var bits = map[string]int{
	"f64": 64, "f32": 32, "fp32": 32, "float32": 32, "float": 32,
	"f16": 16, "fp16": 16, "float16": 16, "half": 16, "bf16": 16, "bfloat16": 16,
	"f8": 8, "fp8": 8, "fp8_e4m3": 8, "fp8_e5m2": 8, "fp8_inc": 8, "fp8_ds_mla": 8, "float8_e4m3fn": 8, "float8_e5m2": 8, "int8": 8, "i8": 8, "u8": 8,
	"f4": 4, "fp4": 4, "fp4_e2m1": 4, "nvfp4": 4, "mxfp4": 4, "int4": 4,
}

// WeightBytes is what the weights take as they are stored: the files, or else the parameters in their type. 0 where it is not known.
func (f Facts) WeightBytes() int64 {
	if f.FileBytes > 0 {
		return f.FileBytes
	}
	if f.Quantization != "" { // how many bits is not said by the method's name alone
		return 0
	}
	return f.Parameters * int64(Bits(f.DType)) / 8
}
