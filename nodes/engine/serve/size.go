package serve

import (
	"strconv"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/nodes/engine"
)

// KVTokens is the capacity of an engine of ours' cache for a model: what the spec says, or four contexts, at most 32,768 tokens.
func KVTokens(c engine.Config, f model.Facts) int {
	if c.KV.Tokens > 0 {
		return c.KV.Tokens
	}
	return max(min(4*f.Context, 32768), f.Context)
}

// Size is what one replica takes; f.Context is the longest sequence that it serves. docs/memory.md has the formulas and how far they are
// from what was measured.
func Size(c engine.Config, f model.Facts) plan.Needs {
	switch {
	case c.Engine == "mock":
		n := plan.Needs{Threads: 1}
		n.Add(plan.Part{Name: "process", Place: plan.InMemory, Bytes: nativeProcess, Guess: true})
		return n
	case engine.IsForeign(c.Engine):
		return foreign(c, f)
	}
	return native(c, f)
}

// nativeProcess is a process of ours without model: the program, its heap and buffers of connections.
const nativeProcess = 64 << 20

// native maps weights that all replicas share, keeps keys and values as f16 in blocks, and has buffers for one step.
func native(c engine.Config, f model.Facts) plan.Needs {
	n := plan.Needs{Threads: c.Threads}
	blocks := int64((KVTokens(c, f) + BlockTokens - 1) / BlockTokens)
	each := f.KVBytesPerToken(2)
	n.Add(
		plan.Part{Name: "KV cache", Place: plan.InMemory, Bytes: blocks * BlockTokens * each, Each: each, Unit: "token", Field: "kv.tokens"},
		plan.Part{Name: "buffers of a step", Place: plan.InMemory, Bytes: nativeStep(c, f), Guess: true},
		plan.Part{Name: "process", Place: plan.InMemory, Bytes: nativeProcess, Guess: true},
		plan.Part{Name: "weights", Place: plan.Shared, Bytes: f.WeightBytes()},
		plan.Part{Name: "model file", Place: plan.ModelFile, Bytes: f.WeightBytes()},
		plan.Part{Name: "repacked weights", Place: plan.DiskCache, Bytes: f.WeightBytes()},
	)
	return n
}

// nativeStep is the float32 rows of a step's tokens, and a row of logits for each sequence, which the sampler copies.
func nativeStep(c engine.Config, f model.Facts) int64 {
	q, kv := f.Heads*f.HeadDim, f.KVHeads*f.HeadDim
	row := 3*f.Embedding + 3*q + 2*kv + 2*f.FeedForward + 2*f.HeadDim
	return 4 * (int64(c.Batch.Tokens)*int64(row) + 2*int64(c.Batch.Seqs)*int64(f.Vocabulary))
}

// spread is how a foreign engine's replica lies over devices.
type spread struct {
	tp, pp, dp int
	devices    int
	attention  int // devices over which the heads of one copy of attention are spread
}

func spreadOf(r engine.Config) spread {
	s := spread{tp: max(r.TP, 1), pp: max(r.PP, 1), dp: max(r.DP, 1)}
	s.devices, s.attention = s.tp*s.pp*s.dp, s.tp
	if r.Engine == "sglang" && on(r, "enable-dp-attention") { // its copies of attention share the devices of tp
		s.devices, s.attention = s.tp*s.pp, max(s.tp/s.dp, 1)
	}
	return s
}

// foreign is an engine that is not ours. What is certain is a lower bound: the weights as they are stored, spread evenly, and, with an
// engine that does not start without room for it, one sequence of full length.
func foreign(c engine.Config, f model.Facts) plan.Needs {
	r, _, _ := c.Resolve()
	s := spreadOf(r)
	bits := kvBits(r)
	if r.Engine == "llamacpp" {
		return llamacpp(r, f, bits)
	}
	n := plan.Needs{Devices: s.devices, DeviceClass: r.Device, DeviceGroup: s.tp, DeviceShare: share(r)}
	n.Add(plan.Part{Name: "weights", Place: plan.OnDevice, Bytes: weights(r, f, s), Spread: "tp"})
	kv := plan.Part{Name: "KV cache", Place: plan.OnDevice, Spread: "tp", Unit: "token", Field: "kv.tokens", Guess: r.Engine != "vllm", Keeps: true}
	tokens := r.KV.Tokens
	if tokens == 0 {
		kv.Name, kv.Field = "KV of one sequence", ""
		tokens = contextFlag(r, f.Context)
	}
	split := max(number(r, "decode-context-parallel-size"), 1) // a sequence's tokens are spread too
	if kv.Bytes = f.KVBytes(tokens, bits, s.attention, s.pp) / int64(split); tokens > 0 {
		kv.Each = kv.Bytes / int64(tokens) // on average, where some layers keep a window
	}
	n.Add(kv)
	n.Add(
		plan.Part{Name: "activations", Place: plan.OnDevice, Bytes: activations(r, f, s), Guess: true},
		plan.Part{Name: "runtime of the device", Place: plan.OnDevice, Bytes: 512 << 20, Guess: true},
		plan.Part{Name: "KV offload", Place: plan.InMemory, Bytes: offload(r, s), Keeps: true},
		plan.Part{Name: "processes", Place: plan.InMemory, Bytes: 2<<30 + int64(s.devices)<<30, Guess: true},
		plan.Part{Name: "model files", Place: plan.ModelFile, Bytes: f.WeightBytes()},
		plan.Part{Name: "KV on disk", Place: plan.OnDisk, Bytes: size(r.KV.Disk), Keeps: true},
	)
	return n
}

// llamacpp maps its file, and chooses by itself what of it goes to which devices: only what it keeps without any is told.
func llamacpp(r engine.Config, f model.Facts, bits int) plan.Needs {
	n := plan.Needs{Threads: r.Threads}
	n.Add(plan.Part{Name: "process", Place: plan.InMemory, Bytes: 256 << 20, Guess: true},
		plan.Part{Name: "model file", Place: plan.ModelFile, Bytes: f.WeightBytes()})
	if r.Device != "" {
		n.Devices, n.DeviceClass = 1, r.Device
		return n
	}
	tokens := r.KV.Tokens
	if tokens == 0 {
		tokens = f.Context
	}
	kv := plan.Part{Name: "KV cache", Place: plan.InMemory, Bytes: f.KVBytes(tokens, bits, 1, 1), Unit: "token", Field: "kv.tokens", Guess: r.KV.Tokens == 0}
	if tokens > 0 {
		kv.Each = kv.Bytes / int64(tokens)
	}
	n.Add(kv, plan.Part{Name: "weights", Place: plan.InMemory, Bytes: f.WeightBytes(), Guess: true})
	return n
}

// weights is what one device holds of them, at least.
func weights(r engine.Config, f model.Facts, s spread) int64 {
	all := f.WeightBytes()
	stored, want := model.Bits(f.DType), model.Bits(r.DType)
	if want == 0 { // the engine's own choice is never wider than 16 bits
		want = min(stored, 16)
	}
	if q := text(r, "quantization"); q != "" && f.Quantization == "" { // made narrower while it loads
		if want = 4; strings.HasPrefix(q, "fp8") || strings.Contains(q, "int8") {
			want = 8
		}
	}
	scale := func(n int64) int64 {
		if f.Quantization != "" || stored == 0 {
			return n
		}
		return n / int64(stored) * int64(want)
	}
	experts := f.ExpertBytes
	if experts == 0 && f.Parameters > 0 {
		experts = int64(float64(all) * (float64(f.ExpertParameters) / float64(f.Parameters)))
	}
	if f.Experts > 0 && experts == 0 { // how much is theirs is not known
		experts = all
	}
	each := scale(all-experts)/int64(s.tp*s.pp) + scale(experts)/int64(max(s.devices, 1)) // copies of the rest share the experts
	return max(each-int64(number(r, "cpu-offload-gb"))<<30, 0)
}

// kvBits is the size of an element of the cache, at least.
func kvBits(r engine.Config) int {
	if b := model.Bits(r.KV.DType); b > 0 {
		return b
	}
	if r.Engine == "llamacpp" {
		for _, name := range []string{"cache-type-k", "ctk", "cache-type-v", "ctv"} {
			if t := text(r, name); t != "" && model.Bits(t) == 0 { // "q8_0": at least 4 bits
				return 4
			}
		}
		return 16
	}
	if r.KV.DType != "" && r.KV.DType != "auto" {
		return 4
	}
	if t := model.Bits(r.DType); t > 16 {
		return t
	}
	return 16
}

// contextFlag is the longest sequence as a flag says it, else the model's; 0 where it is the engine's choice.
func contextFlag(r engine.Config, context int) int {
	for _, name := range []string{"max-model-len", "context-length", "max-seq-len"} {
		if v := text(r, name); v != "" {
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 { // "auto", "32k"
				return 0
			}
			return n
		}
	}
	return context
}

// share is the part of a device that the engine takes, at most: what its flag says, or a known default.
func share(r engine.Config) float64 {
	switch r.Engine {
	case "vllm":
		if v, err := strconv.ParseFloat(text(r, "gpu-memory-utilization"), 64); err == nil && v > 0 && v <= 1 {
			return v
		}
		return 0.92 // 0.9 in older releases
	case "sglang":
		if v, err := strconv.ParseFloat(text(r, "mem-fraction-static"), 64); err == nil && v > 0 && v <= 1 {
			return v
		}
	}
	return 0
}

// activations is an estimate of what a step needs: rows of the hidden size and of the MLP for each token, and logits for each sequence.
func activations(r engine.Config, f model.Facts, s spread) int64 {
	tokens, seqs := r.Batch.Tokens, r.Batch.Seqs
	if tokens <= 0 {
		tokens = 2048
	}
	if seqs <= 0 {
		seqs = 256
	}
	rows := 2 * int64(tokens) * (4*int64(f.Embedding) + 3*int64(f.FeedForward)/int64(s.tp))
	return rows + 8*int64(min(seqs, tokens))*int64(f.Vocabulary)
}

// offload is the host memory for blocks: as the field says for the replica, or as the engine's flag does, with SGLang for each device.
func offload(r engine.Config, s spread) int64 {
	if n := size(r.KV.Offload); n > 0 {
		return n
	}
	switch r.Engine {
	case "vllm":
		return int64(number(r, "kv-offloading-size")) << 30
	case "sglang":
		return int64(number(r, "hicache-size")) * 1e9 * int64(s.devices)
	}
	return 0
}

func size(text string) int64 {
	n, err := graph.ParseSize(text)
	if err != nil {
		return 0 // not said
	}
	return n
}

// text is a flag's value as text, "" where it is not set.
func text(r engine.Config, name string) string {
	for k, v := range r.Flags {
		if s := engine.FlagText(v); s != "" && engine.Flag(k) == name {
			return s
		}
	}
	return ""
}

func number(r engine.Config, name string) int {
	n, err := strconv.ParseFloat(text(r, name), 64)
	if err != nil || n < 0 || n > 1<<30 {
		return 0
	}
	return int(n)
}

// on reports whether a flag without value is set.
func on(r engine.Config, name string) bool {
	for k, v := range r.Flags {
		if engine.Flag(k) == name {
			b, ok := v.(bool)
			return !ok || b
		}
	}
	return false
}
