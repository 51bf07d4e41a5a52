package model_test

import (
	"math"
	"testing"

	"github.com/dynamograph/dynamo/graph/model"
)

func TestKVBytes(t *testing.T) {
	llama70 := model.Facts{KV: model.Plain(80, 8, 128)}
	deepseek := model.Facts{KV: []model.KVLayers{{Layers: 61, Heads: 1, Elems: 576, Latent: true}}}
	gemma := model.Facts{KV: []model.KVLayers{{Layers: 4, Heads: 1, Elems: 512}, {Layers: 22, Heads: 1, Elems: 512, Window: 512}}}
	for _, tt := range []struct {
		name         string
		f            model.Facts
		tokens, bits int
		tp, pp       int
		want         int64
	}{
		{"a token", llama70, 1, 16, 1, 1, 327680},
		{"fp8", llama70, 1, 8, 1, 1, 163840},
		{"spread over heads", llama70, 1, 16, 8, 1, 40960},
		{"more devices than heads: each has one whole", llama70, 1, 16, 16, 1, 40960},
		{"heads that do not divide: the device with most", llama70, 1, 16, 3, 1, 3 * 327680 / 8},
		{"stages", llama70, 1, 16, 1, 2, 163840},
		{"a latent is not spread", deepseek, 1, 16, 8, 1, 70272},
		{"within the window", gemma, 512, 16, 1, 1, 512 * 26 * 512 * 2},
		{"beyond it", gemma, 1024, 16, 1, 1, (4*1024 + 22*512) * 512 * 2},
		{"not known", model.Facts{Layers: 80, KVHeads: 8, HeadDim: 128}, 1, 16, 1, 1, 0},
		{"no type", llama70, 1, 0, 1, 1, 0},
		{"beyond counting", model.Facts{KV: model.Plain(1<<14, 1<<16, 1<<16)}, 1 << 40, 64, 1, 1, math.MaxInt64},
	} {
		if got := tt.f.KVBytes(tt.tokens, tt.bits, tt.tp, tt.pp); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestWeightBytes(t *testing.T) {
	for _, tt := range []struct {
		name string
		f    model.Facts
		want int64
	}{
		{"the files", model.Facts{FileBytes: 5, Parameters: 100, DType: "bf16"}, 5},
		{"the parameters", model.Facts{Parameters: 100, DType: "bf16"}, 200},
		{"in f8", model.Facts{Parameters: 100, DType: "f8"}, 100},
		{"no type", model.Facts{Parameters: 100}, 0},
		{"quantised somehow", model.Facts{Parameters: 100, DType: "bf16", Quantization: "awq"}, 0},
	} {
		if got := tt.f.WeightBytes(); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}
