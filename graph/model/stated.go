package model

import "fmt"

// Stated is what the author of a graph says about a model, so that it can be checked without its files. Zero means "not said".
type Stated struct {
	Parameters       int64  `json:"parameters,omitempty"`
	ExpertParameters int64  `json:"expertParameters,omitempty"` // of all routed experts; a part of Parameters
	Bytes            int64  `json:"bytes,omitempty"`            // of all files of weights
	DType            string `json:"dtype,omitempty"`            // of the weights: "bf16", "f16", "f32", "fp8"
	Layers           int    `json:"layers,omitempty"`
	Hidden           int    `json:"hidden,omitempty"`
	Heads            int    `json:"heads,omitempty"`
	KVHeads          int    `json:"kvHeads,omitempty"` // 0: as many as heads
	HeadDim          int    `json:"headDim,omitempty"` // 0: hidden / heads
	Vocabulary       int    `json:"vocabulary,omitempty"`
	Context          int    `json:"context,omitempty"`
	Experts          int    `json:"experts,omitempty"`
	Latent           int    `json:"latent,omitempty"`       // elements that a layer keeps of a token where keys and values are compressed (MLA)
	Window           int    `json:"window,omitempty"`       // tokens that layers with a window keep
	WindowLayers     int    `json:"windowLayers,omitempty"` // how many layers have one
}

// Facts returns what s says in the form of what files say.
func (s Stated) Facts() Facts {
	f := Facts{
		Format: "stated", Parameters: s.Parameters, ExpertParameters: s.ExpertParameters, FileBytes: s.Bytes, DType: s.DType,
		Layers: s.Layers, Embedding: s.Hidden, Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim, Vocabulary: s.Vocabulary,
		Context: s.Context, Experts: s.Experts,
	}
	if f.KVHeads == 0 {
		f.KVHeads = f.Heads
	}
	if f.HeadDim == 0 && f.Heads > 0 {
		f.HeadDim = f.Embedding / f.Heads
	}
	switch {
	case s.Latent > 0 && s.Layers > 0:
		f.KV = []KVLayers{{Layers: s.Layers, Heads: 1, Elems: s.Latent, Latent: true}}
	default:
		f.KV = Plain(s.Layers, f.KVHeads, f.HeadDim)
	}
	if near := min(s.WindowLayers, s.Layers); len(f.KV) > 0 && s.Window > 0 && near > 0 {
		k := f.KV[0]
		k.Layers, k.Window = near, s.Window
		if f.KV[0].Layers -= near; f.KV[0].Layers == 0 {
			f.KV = nil
		}
		f.KV = append(f.KV, k)
	}
	return f
}

// Difference is a field of which two sources say different things.
type Difference struct {
	Field        string // of Stated, by its JSON name
	Stated, Real any
}

// Compare returns what f says otherwise, in the order of Stated's fields. Counts that are published rounded may differ by a twentieth.
func (s Stated) Compare(f Facts) []Difference {
	var out []Difference
	near := func(a, b int64) bool { return float64(max(a, b)-min(a, b)) <= float64(max(a, b))/20 }
	round := func(field string, a, b int64) {
		if a > 0 && b > 0 && !near(a, b) {
			out = append(out, Difference{field, a, b})
		}
	}
	exact := func(field string, a, b int) {
		if a > 0 && b > 0 && a != b {
			out = append(out, Difference{field, a, b})
		}
	}
	round("parameters", s.Parameters, f.Parameters)
	round("expertParameters", s.ExpertParameters, f.ExpertParameters)
	round("bytes", s.Bytes, f.FileBytes)
	if a, b := Bits(s.DType), Bits(f.DType); f.Quantization == "" && a > 0 && b > 0 && a != b {
		out = append(out, Difference{"dtype", s.DType, f.DType})
	}
	exact("layers", s.Layers, f.Layers)
	exact("hidden", s.Hidden, f.Embedding)
	exact("heads", s.Heads, f.Heads)
	exact("kvHeads", s.KVHeads, f.KVHeads)
	exact("headDim", s.HeadDim, f.HeadDim)
	exact("context", s.Context, f.Context)
	exact("experts", s.Experts, f.Experts)
	if len(f.KV) > 0 && f.KV[0].Latent {
		exact("latent", s.Latent, f.KV[0].Elems)
	}
	for _, k := range f.KV {
		if k.Window > 0 {
			exact("window", s.Window, k.Window)
			exact("windowLayers", s.WindowLayers, k.Layers)
		}
	}
	return out
}

// Fault is something in a statement that cannot be so, or that changes nothing.
type Fault struct {
	Field, Other string // of Stated, by their JSON names; Other is what it does not agree with
	Idle         bool   // Field changes nothing without Other
	Msg, Hint    string
}

// Faults returns what does not agree within s, in the order of its fields.
func (s Stated) Faults() []Fault {
	var out []Fault
	if s.Parameters > 0 && s.ExpertParameters > s.Parameters {
		out = append(out, Fault{Field: "expertParameters", Other: "parameters", Msg: fmt.Sprintf("%d, but all parameters are %d", s.ExpertParameters, s.Parameters),
			Hint: "they are a part of all"})
	}
	if s.Heads > 0 && s.KVHeads > 0 && s.Heads%s.KVHeads != 0 {
		out = append(out, Fault{Field: "kvHeads", Other: "heads", Msg: fmt.Sprintf("%d, which %d heads cannot share evenly", s.KVHeads, s.Heads),
			Hint: "write num_key_value_heads of the model's config.json"})
	}
	if s.HeadDim == 0 && s.Heads > 0 && s.Hidden%s.Heads != 0 {
		out = append(out, Fault{Field: "hidden", Other: "heads", Msg: fmt.Sprintf("%d is no multiple of %d heads: how large one is must be stated", s.Hidden, s.Heads),
			Hint: "add headDim, head_dim of the model's config.json"})
	}
	switch {
	case s.Window > 0 && s.WindowLayers == 0:
		out = append(out, Fault{Field: "window", Idle: true, Msg: "has no effect without windowLayers", Hint: "add windowLayers: how many layers have the window"})
	case s.WindowLayers > 0 && s.Window == 0:
		out = append(out, Fault{Field: "windowLayers", Idle: true, Msg: "has no effect without window", Hint: "add window: how many tokens these layers keep"})
	case s.Layers > 0 && s.WindowLayers > s.Layers:
		out = append(out, Fault{Field: "windowLayers", Other: "layers", Msg: fmt.Sprintf("%d, but there are %d layers", s.WindowLayers, s.Layers), Hint: "they are a part of all"})
	}
	return out
}

// Fill returns f with what it does not say taken from s.
func (s Stated) Fill(f Facts) Facts {
	g := s.Facts()
	if f.KV == nil && f.Layers == 0 { // with layers known, that theirs are not means that they are of a sort that s cannot say
		f.KV = g.KV
	}
	for _, v := range []struct{ to, from *int64 }{{&f.Parameters, &g.Parameters}, {&f.ExpertParameters, &g.ExpertParameters}, {&f.FileBytes, &g.FileBytes}} {
		if *v.to == 0 {
			*v.to = *v.from
		}
	}
	for _, v := range []struct{ to, from *int }{
		{&f.Layers, &g.Layers}, {&f.Embedding, &g.Embedding}, {&f.Heads, &g.Heads}, {&f.KVHeads, &g.KVHeads}, {&f.HeadDim, &g.HeadDim},
		{&f.Vocabulary, &g.Vocabulary}, {&f.Context, &g.Context}, {&f.Experts, &g.Experts},
	} {
		if *v.to == 0 {
			*v.to = *v.from
		}
	}
	if f.DType == "" {
		f.DType = g.DType
	}
	return f
}
