package serve_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/serve"
)

// llama is Llama 3.1 70B as its author publishes it, and deepseek DeepSeek V3 in FP8.
var (
	llama    = model.Stated{Parameters: 70_553_706_496, DType: "bf16", Layers: 80, Hidden: 8192, Heads: 64, KVHeads: 8, Vocabulary: 128256, Context: 131072}.Facts()
	deepseek = model.Stated{Parameters: 671_026_419_200, ExpertParameters: 653_908_770_816, DType: "fp8", Layers: 61, Hidden: 7168, Heads: 128, Experts: 256, Latent: 576, Context: 163840}.Facts()
)

// parts writes what is certain on a device, and then all of another place.
func part(n plan.Needs, name string) plan.Part {
	for _, p := range n.Parts {
		if p.Name == name {
			return p
		}
	}
	return plan.Part{}
}

func TestSizeOfForeign(t *testing.T) {
	flags := func(kv ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i].(string)] = kv[i+1]
		}
		return m
	}
	const weights = 70_553_706_496 * 2
	for _, tt := range []struct {
		name        string
		c           engine.Config
		f           model.Facts
		devices     int
		weights, kv int64 // on one device
		share       float64
	}{
		{"one device", engine.Config{Engine: "vllm"}, llama, 1, weights, 131072 * 327680, 0.92},
		{"spread", engine.Config{Engine: "vllm", TP: 4}, llama, 4, weights / 4, 131072 * 327680 / 4, 0.92},
		{"by a flag", engine.Config{Engine: "vllm", Flags: flags("tensor-parallel-size", 4.0)}, llama, 4, weights / 4, 131072 * 327680 / 4, 0.92},
		{"more devices than key-value heads", engine.Config{Engine: "vllm", TP: 16}, llama, 16, weights / 16, 131072 * 327680 / 8, 0.92},
		{"stages", engine.Config{Engine: "vllm", TP: 2, PP: 2}, llama, 4, weights / 4, 131072 * 327680 / 4, 0.92},
		{"copies", engine.Config{Engine: "vllm", TP: 2, DP: 2}, llama, 4, weights / 2, 131072 * 327680 / 2, 0.92},
		{"a cache of its own size", engine.Config{Engine: "vllm", TP: 4, KV: engine.KV{Tokens: 200000}}, llama, 4, weights / 4, 200000 * 327680 / 4, 0.92},
		{"fp8 cache", engine.Config{Engine: "vllm", TP: 4, KV: engine.KV{DType: "fp8"}}, llama, 4, weights / 4, 131072 * 327680 / 8, 0.92},
		{"a shorter sequence", engine.Config{Engine: "vllm", TP: 4, Flags: flags("max-model-len", 8192.0, "gpu-memory-utilization", 0.8)}, llama, 4, weights / 4, 8192 * 327680 / 4, 0.8},
		{"the length is left to the engine", engine.Config{Engine: "vllm", TP: 4, Flags: flags("max-model-len", "auto")}, llama, 4, weights / 4, 0, 0.92},
		{"fp8 weights made at load", engine.Config{Engine: "vllm", TP: 4, DType: "fp8"}, llama, 4, weights / 8, 131072 * 327680 / 4, 0.92},
		{"a method made at load", engine.Config{Engine: "vllm", TP: 4, Flags: flags("quantization", "bitsandbytes")}, llama, 4, weights / 16, 131072 * 327680 / 4, 0.92},
		{"some weights on the CPU", engine.Config{Engine: "vllm", TP: 4, Flags: flags("cpu-offload-gb", 10.0)}, llama, 4, weights/4 - 10<<30, 131072 * 327680 / 4, 0.92},
		{"tokens of a sequence spread", engine.Config{Engine: "vllm", TP: 8, Flags: flags("decode-context-parallel-size", 2.0)}, llama, 8, weights / 8, 131072 * 327680 / 16, 0.92},
		{"experts over all, the rest on each", engine.Config{Engine: "vllm", DP: 8, Flags: flags("enable-expert-parallel", true)}, deepseek, 8, 671_026_419_200 - 653_908_770_816 + 653_908_770_816/8, 163840 * 70272, 0.92},
		{"copies of attention share devices", engine.Config{Engine: "sglang", TP: 8, DP: 8, Flags: flags("enable-dp-attention", true)}, deepseek, 8, 671_026_419_200 / 8, 163840 * 70272, 0},
		{"SGLang's own share", engine.Config{Engine: "sglang", TP: 8, Flags: flags("mem-fraction-static", 0.85)}, llama, 8, weights / 8, 131072 * 327680 / 8, 0.85},
		{"nothing known", engine.Config{Engine: "vllm", TP: 2}, model.Facts{}, 2, 0, 0, 0.92},
		{"llama.cpp chooses what goes to the device", engine.Config{Engine: "llamacpp", Device: "gpu"}, llama, 1, 0, 0, 0},
	} {
		n := serve.Size(tt.c, tt.f)
		kv := part(n, "KV of one sequence")
		if tt.c.KV.Tokens > 0 {
			kv = part(n, "KV cache")
		}
		w := part(n, "weights")
		near := func(a, b int64) bool { return a-b < 1<<20 && b-a < 1<<20 } // shares of floats
		if n.Devices != tt.devices || !near(w.Bytes, tt.weights) || !near(kv.Bytes, tt.kv) || n.DeviceShare != tt.share {
			t.Errorf("%s: %d devices, weights %d, KV %d, share %v; want %d, %d, %d, %v", tt.name, n.Devices, w.Bytes, kv.Bytes, n.DeviceShare, tt.devices, tt.weights, tt.kv, tt.share)
		}
		if kv.Bytes > 0 && kv.Guess != (tt.c.Engine != "vllm") {
			t.Errorf("%s: only vLLM refuses to start without room for one sequence", tt.name)
		}
	}
}

func TestSizeOfHost(t *testing.T) {
	n := serve.Size(engine.Config{Engine: "vllm", TP: 4, KV: engine.KV{Offload: "256Gi", Disk: "2Ti"}}, llama)
	if p := part(n, "KV offload"); p.Bytes != 256<<30 || p.Place != plan.InMemory || p.Guess {
		t.Errorf("offload: %+v", p)
	}
	if p := part(n, "KV on disk"); p.Bytes != 2<<40 || p.Place != plan.OnDisk {
		t.Errorf("disk: %+v", p)
	}
	// sglang#14282: its flag is for each of the devices.
	n = serve.Size(engine.Config{Engine: "sglang", TP: 4, Flags: map[string]any{"hicache-size": 40.0}}, llama)
	if p := part(n, "KV offload"); p.Bytes != 160e9 {
		t.Errorf("hicache-size: %+v", p)
	}
	n = serve.Size(engine.Config{Engine: "vllm", TP: 4, Flags: map[string]any{"kv_offloading_size": 16.0}}, llama)
	if p := part(n, "KV offload"); p.Bytes != 16<<30 {
		t.Errorf("kv_offloading_size: %+v", p)
	}
	n = serve.Size(engine.Config{Engine: "llamacpp", KV: engine.KV{Tokens: 4096}}, llama)
	if p := part(n, "KV cache"); p.Bytes != 4096*327680 || p.Place != plan.InMemory || p.Guess {
		t.Errorf("llama.cpp's cache: %+v", p)
	}
	n = serve.Size(engine.Config{Engine: "llamacpp", KV: engine.KV{Tokens: 4096}, Flags: map[string]any{"cache-type-k": "q8_0"}}, llama)
	if p := part(n, "KV cache"); p.Bytes != 4096*327680/4 {
		t.Errorf("llama.cpp's narrower cache: %+v", p)
	}
	// The whole blocks of our own, and the sums are those of the parts.
	n = serve.Size(engine.Config{Engine: "native", KV: engine.KV{Tokens: 17}, Batch: engine.Batch{Seqs: 1, Tokens: 16}}, llama)
	if p := part(n, "KV cache"); p.Bytes != 32*327680 || p.Field != "kv.tokens" {
		t.Errorf("native cache: %+v", p)
	}
	var sum int64
	for _, p := range n.Parts {
		if p.Place == plan.InMemory {
			sum += p.Bytes
		}
	}
	if sum != n.MemoryBytes {
		t.Errorf("parts are %d, the sum says %d", sum, n.MemoryBytes)
	}
}

// The tables of tests/fit hold threads about heads; here are the other rules.
func TestSpread(t *testing.T) {
	at := diag.Pos{File: "spec.cue", Line: 7, Col: 3}
	for _, tt := range []struct {
		name string
		c    engine.Config
		f    model.Facts
		want []string
	}{
		{"fits", engine.Config{Engine: "vllm", TP: 8, PP: 2}, llama, nil},
		{"nothing known", engine.Config{Engine: "vllm", TP: 7}, model.Facts{}, nil},
		{"our own are not spread", engine.Config{Engine: "native"}, llama, nil},
		{"heads", engine.Config{Engine: "sglang", TP: 6}, llama, []string{"bad-parallelism nodes.w.tp: 6 devices cannot share the model's 64 attention heads evenly"}},
		{"stages", engine.Config{Engine: "trtllm", PP: 81}, llama, []string{"bad-parallelism nodes.w.pp: 81 stages, but the model has 80 layers"}},
		{"heads of copies", engine.Config{Engine: "sglang", TP: 8, DP: 8, Flags: map[string]any{"enable-dp-attention": true}}, deepseek, nil},
		{"copies that do not share", engine.Config{Engine: "sglang", TP: 8, DP: 3, Flags: map[string]any{"enable-dp-attention": true}}, deepseek,
			[]string{"bad-parallelism nodes.w.dp: 3 copies of attention do not share the 8 devices of tp evenly"}},
		{"experts", engine.Config{Engine: "sglang", TP: 12, Flags: map[string]any{"ep-size": 12.0}}, model.Facts{Experts: 256, Heads: 96},
			[]string{"bad-parallelism nodes.w.flags.ep-size: 12 groups cannot share the model's 256 experts evenly"}},
		{"groups", engine.Config{Engine: "trtllm", TP: 8, Flags: map[string]any{"ep_size": 3.0}}, deepseek,
			[]string{"bad-parallelism nodes.w.flags.ep_size: 3 groups of experts do not share the 8 devices of tp evenly"}},
		{"more devices than experts", engine.Config{Engine: "vllm", TP: 8, DP: 2, Flags: map[string]any{"enable-expert-parallel": true}}, model.Facts{Experts: 8, Heads: 64},
			[]string{"bad-parallelism nodes.w.flags.enable-expert-parallel: 16 devices for the model's 8 experts"}},
		{"a tier below a device that holds more", engine.Config{Engine: "vllm", TP: 4, KV: engine.KV{Tokens: 200000, Offload: "32Gi"}}, llama,
			[]string{`tier-order nodes.w.kv.offload: 32Gi, but the devices above it keep 200000 tokens, 62500 MiB`}},
		{"a tier that is large enough", engine.Config{Engine: "vllm", TP: 4, KV: engine.KV{Tokens: 200000, Offload: "64Gi"}}, llama, nil},
		{"what is left of the device", engine.Config{Engine: "vllm", Device: "h100", TP: 4, KV: engine.KV{Offload: "64Gi"}}, llama,
			[]string{`tier-order nodes.w.kv.offload: 64Gi, but about 144 GiB of keys and values fit on the 4 devices above it`}},
		{"more than what is left", engine.Config{Engine: "vllm", Device: "h100", TP: 4, KV: engine.KV{Offload: "160Gi"}}, llama, nil},
	} {
		n := &graph.Node{Name: "w", Kind: "worker", Model: "m", Fields: map[string]diag.Pos{"tp": at}}
		g := &graph.Graph{Models: map[string]*graph.Model{"m": {}}, Nodes: map[string]*graph.Node{"w": n}, Devices: map[string]*graph.Device{"h100": {Name: "h100", MemoryBytes: 80 << 30, Count: 8}}}
		f := tt.f
		f.Context = 0 // lengths are not the question
		var got []string
		for _, d := range serve.Check(tt.c, kind.Site{Graph: g, Node: n, Facts: &f}) {
			if d.Code == "bad-parallelism" || d.Code == "tier-order" {
				got = append(got, d.Code+" "+d.Msg)
				if d.Hint == "" || strings.HasSuffix(d.Path, ".tp") && d.Pos != at {
					t.Errorf("%s: %+v", tt.name, d)
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
}
