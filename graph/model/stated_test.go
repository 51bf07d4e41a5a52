package model_test

import (
	"fmt"
	"testing"

	"github.com/dynamograph/dynamo/graph/model"
)

func TestStated(t *testing.T) {
	s := model.Stated{Parameters: 70e9, Layers: 80, Hidden: 8192, Heads: 64, KVHeads: 8, DType: "bf16"}
	f := s.Facts()
	if f.HeadDim != 128 || f.KVBytesPerToken(2) != 327680 || f.WeightBytes() != 140e9 {
		t.Errorf("%+v", f)
	}
	if f := (model.Stated{Layers: 61, Heads: 128, Hidden: 7168, Latent: 576}).Facts(); f.KVBytesPerToken(2) != 70272 {
		t.Errorf("latent: %+v", f)
	}
	if f := (model.Stated{Layers: 26, Heads: 4, KVHeads: 1, HeadDim: 256, Window: 512, WindowLayers: 22}).Facts(); f.KVBytes(1000, 16, 1, 1) != 1024*(4*1000+22*512) {
		t.Errorf("window: %+v", f)
	}
	if f := (model.Stated{Layers: 2, Heads: 4, KVHeads: 1, HeadDim: 256, Window: 512, WindowLayers: 9}).Facts(); len(f.KV) != 1 || f.KV[0].Layers != 2 {
		t.Errorf("all with a window: %+v", f)
	}
	if f := (model.Stated{Parameters: 5}).Facts(); f.KV != nil {
		t.Errorf("nothing said of layers: %+v", f)
	}
}

func TestCompare(t *testing.T) {
	real := model.Facts{Parameters: 70_553_706_496, FileBytes: 141_107_412_992, DType: "bf16", Layers: 80, Embedding: 8192, Heads: 64, KVHeads: 8, HeadDim: 128,
		Context: 131072, KV: model.Plain(80, 8, 128)}
	for _, tt := range []struct {
		s    model.Stated
		want string
	}{
		{model.Stated{}, "[]"},
		{model.Stated{Parameters: 70e9, Bytes: 141e9, DType: "fp16", Layers: 80, Heads: 64}, "[]"},
		{model.Stated{Parameters: 8e9, Layers: 32, KVHeads: 4, DType: "fp8"}, "[{parameters 8000000000 70553706496} {dtype fp8 bf16} {layers 32 80} {kvHeads 4 8}]"},
	} {
		if got := fmt.Sprint(tt.s.Compare(real)); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.s, got, tt.want)
		}
	}
	mla := model.Facts{Layers: 61, KV: []model.KVLayers{{Layers: 61, Heads: 1, Elems: 576, Latent: true}}}
	if got := fmt.Sprint(model.Stated{Latent: 512}.Compare(mla)); got != "[{latent 512 576}]" {
		t.Error(got)
	}
	near := model.Facts{KV: []model.KVLayers{{Layers: 4, Heads: 1, Elems: 512}, {Layers: 22, Heads: 1, Elems: 512, Window: 512}}}
	if got := fmt.Sprint(model.Stated{Window: 1024, WindowLayers: 20}.Compare(near)); got != "[{window 1024 512} {windowLayers 20 22}]" {
		t.Error(got)
	}
}

// What a file says counts; what it does not say is filled.
func TestFill(t *testing.T) {
	f := model.Stated{Layers: 9, Heads: 4, Hidden: 64, Context: 100}.Fill(model.Facts{Format: "gguf", Layers: 8, FileBytes: 7})
	if f.Format != "gguf" || f.Layers != 8 || f.Heads != 4 || f.FileBytes != 7 || f.Context != 100 || f.KV != nil {
		t.Errorf("%+v", f)
	}
}

// Of files that say nothing of layers, what the author says is all there is.
func TestFillKV(t *testing.T) {
	if f := (model.Stated{Layers: 9, Heads: 4, Hidden: 64}).Fill(model.Facts{FileBytes: 7}); f.KVBytesPerToken(2) != 9*64*4 {
		t.Errorf("%+v", f)
	}
}

func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		s    model.Stated
		want string
	}{
		{model.Stated{Parameters: 70e9, Layers: 80, Hidden: 8192, Heads: 64, KVHeads: 8}, "[]"},
		{model.Stated{Layers: 28, Hidden: 1024, Heads: 16, KVHeads: 8, HeadDim: 128, Window: 512, WindowLayers: 28}, "[]"},
		{model.Stated{Hidden: 100, Heads: 3, HeadDim: 64}, "[]"},
		{model.Stated{Parameters: 1e9, ExpertParameters: 2e9}, "[expertParameters: 2000000000, but all parameters are 1000000000]"},
		{model.Stated{Heads: 64, Hidden: 64, KVHeads: 7}, "[kvHeads: 7, which 64 heads cannot share evenly]"},
		{model.Stated{Hidden: 100, Heads: 3}, "[hidden: 100 is no multiple of 3 heads: how large one is must be stated]"},
		{model.Stated{Window: 512}, "[window: has no effect without windowLayers]"},
		{model.Stated{WindowLayers: 5}, "[windowLayers: has no effect without window]"},
		{model.Stated{Layers: 4, Window: 512, WindowLayers: 5}, "[windowLayers: 5, but there are 4 layers]"},
	} {
		var got []string
		for _, f := range tt.s.Faults() {
			got = append(got, f.Field+": "+f.Msg)
			if f.Hint == "" || f.Idle != (f.Other == "") {
				t.Errorf("%+v", f)
			}
		}
		if fmt.Sprint(got) != tt.want {
			t.Errorf("%+v: %v, want %s", tt.s, got, tt.want)
		}
	}
}
