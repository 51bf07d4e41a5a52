// Package model holds facts about a model that a compiler and a router need: shapes, bytes a block, content id. It reads header bytes
// that it is handed and does no I/O of its own.
package model

// Facts is what a weights file says about itself. Zero means "not said".
type Facts struct {
	Format       string `json:"format"`                 // "gguf"
	Architecture string `json:"architecture"`           // "llama"
	Name         string `json:"name,omitempty"`         // "SmolLM2 135M Instruct"
	Quantization string `json:"quantization,omitempty"` // the commonest type of the matrices: "Q4_1"
	Parameters   int64  `json:"parameters"`
	FileBytes    int64  `json:"fileBytes"`
	Layers       int    `json:"layers"`
	Embedding    int    `json:"embedding"`
	FeedForward  int    `json:"feedForward"`
	Heads        int    `json:"heads"`
	KVHeads      int    `json:"kvHeads"`
	HeadDim      int    `json:"headDim"`
	Vocabulary   int    `json:"vocabulary"`
	Context      int    `json:"context"` // longest sequence in training, in tokens
}

// KVBytesPerToken is the size of one token's keys and values over all layers, for elements of elem bytes.
func (f Facts) KVBytesPerToken(elem int) int64 {
	return 2 * int64(f.Layers) * int64(f.KVHeads) * int64(f.HeadDim) * int64(elem)
}
