// Package fit_test compares what the compiler says of memory and parallelism with what users of real engines saw: which model ran, or did
// not, on which devices. Each case names where it was told; none was run here.
package fit_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/model/hf"
	_ "github.com/dynamograph/dynamo/nodes/all"
)

// verdict is what happened, or what we say.
type verdict string

const (
	ran     verdict = "ran"
	failed  verdict = "failed"  // for lack of memory
	refused verdict = "refused" // by us
	warned  verdict = "warned"
	passed  verdict = "passed"
)

type fitCase struct {
	source string // thread or page
	model  string
	gb     float64 // of the files, in 10^9 bytes, where the config does not tell
	memory string  // of a device, as its vendor calls it
	config string  // of the node, without engine and device
	engine string  // "" is vllm
	saw    verdict
	want   verdict // "" is passed where it ran, refused where it failed
}

// A device's memory is written as its vendor sells it, "80Gi" for a card of 80 GB, as users do. It has a little less.
var cases = []fitCase{
	{source: "vllm#12330: 14.96 GiB of weights, 11.12 GiB left for KV", model: "Llama 3 8B", memory: "40Gi", saw: ran},
	{source: "vllm#10517, RTX 3090, 20,000 tokens", model: "Llama 3.1 8B", memory: "24Gi", config: `"flags":{"max-model-len":20000,"gpu-memory-utilization":0.9}`, saw: ran},
	{source: "vllm#10517, RTX 3090, 35,000 tokens", model: "Llama 3.1 8B", memory: "24Gi", config: `"flags":{"max-model-len":35000,"gpu-memory-utilization":0.9}`, saw: ran},
	{source: "vllm#10517, RTX 3090, 45,000 tokens", model: "Llama 3.1 8B", memory: "24Gi", config: `"flags":{"max-model-len":45000,"gpu-memory-utilization":0.9}`, saw: ran},
	{source: "vllm#10517, 2 × H100, 20,000 tokens asked for", model: "Llama 3.1 70B", memory: "80Gi", config: `"tp":2,"flags":{"max-model-len":20000}`, saw: ran},
	{source: "vllm#10517, 2 × H100, the option did not arrive: 131,072 tokens", model: "Llama 3.1 70B", memory: "80Gi", config: `"tp":2`, saw: failed},
	{source: "kvplan 0.1.1: L4, 131,072 tokens need 16 GiB", model: "Llama 3.1 8B", memory: "24Gi", saw: failed},
	{source: "kvplan 0.1.1: L4, 40,192 tokens", model: "Llama 3.1 8B", memory: "24Gi", config: `"flags":{"max-model-len":40192}`, saw: ran},
	{source: "vllm#13061: 2 × RTX 4090 at 0.98, 131,072 tokens, 8.69 GiB left for 12", model: "Qwen2.5 14B", memory: "24Gi", config: `"tp":2,"flags":{"gpu-memory-utilization":0.98}`, saw: failed},
	{source: "vllm#13061: 81,536 tokens would have fitted", model: "Qwen2.5 14B", memory: "24Gi", config: `"tp":2,"flags":{"gpu-memory-utilization":0.98,"max-model-len":81536}`, saw: ran},
	{source: "vllm#21348: 4 × H100, 8.11 GiB left for KV", model: "Qwen3 235B A22B", gb: 236.4, memory: "80Gi", config: `"tp":4`, saw: ran},
	{source: "vllm#21348: the same with SGLang", model: "Qwen3 235B A22B", gb: 236.4, memory: "80Gi", engine: "sglang", config: `"tp":4,"flags":{"mem-fraction-static":0.93}`, saw: ran},
	{source: "Qwen3#16: RTX 3090, 32,768 tokens, room for 24,320", model: "Qwen1.5 7B GPTQ", gb: 5.86, memory: "24Gi", saw: failed, want: warned},
	{source: "Qwen3#16: RTX 3090, 24,320 tokens", model: "Qwen1.5 7B GPTQ", gb: 5.86, memory: "24Gi", config: `"flags":{"max-model-len":24320}`, saw: ran},
	{source: "Qwen3#16: 2 × A100, 32,768 tokens, room for 4,464", model: "Qwen1.5 72B", memory: "80Gi", config: `"tp":2`, saw: failed},
	{source: "Qwen3#16: 2 × A100, 4,464 tokens", model: "Qwen1.5 72B", memory: "80Gi", config: `"tp":2,"flags":{"max-model-len":4464}`, saw: ran, want: warned},
	{source: "lmdeploy#2960: 8 × H800 of 80 GB run out of memory", model: "DeepSeek V3", gb: 688.6, memory: "80Gi", config: `"tp":8`, saw: failed},
	{source: "lmdeploy#2960: 8 × H20 of 96 GB hold it", model: "DeepSeek V3", gb: 688.6, memory: "96Gi", config: `"tp":8,"flags":{"max-model-len":32768,"gpu-memory-utilization":0.95}`, saw: ran},
	{source: "vLLM's recipes: 8 × H200, TP and EP", model: "DeepSeek V3", gb: 688.6, memory: "141Gi", config: `"tp":8,"flags":{"enable-expert-parallel":true}`, saw: ran},
	{source: "vLLM's recipes: 8 × H200, DP and EP", model: "DeepSeek V3", gb: 688.6, memory: "141Gi", config: `"dp":8,"flags":{"enable-expert-parallel":true}`, saw: ran},
	{source: "sglang#3283, vllm#12756: 16 × H100 on two machines", model: "DeepSeek V3", gb: 688.6, memory: "80Gi", config: `"tp":16`, saw: ran},
	{source: "vllm#12756: two machines as stages", model: "DeepSeek V3", gb: 688.6, memory: "80Gi", config: `"tp":8,"pp":2`, saw: ran},
	{source: "DeepSeek-V3#855: 8 × A6000 of 48 GB", model: "DeepSeek V3", gb: 688.6, memory: "48Gi", config: `"tp":8`, saw: failed},
	{source: "vllm#33155: one H100 with 0.11.2", model: "gpt-oss 120B", gb: 65.3, memory: "80Gi", saw: ran},
	{source: "vllm#27508: one H100 at 0.95, 1.71 GiB left: what the runtime takes decided", model: "gpt-oss 120B", gb: 65.3, memory: "80Gi", config: `"batch":{"tokens":1024},"flags":{"gpu-memory-utilization":0.95}`, saw: failed, want: passed},
	{source: "EuroEval#1120: two GPUs", model: "gpt-oss 120B", gb: 65.3, memory: "48Gi", config: `"tp":2`, saw: ran},
	{source: "vllm#34076: 262,144 tokens on cards of 16 GB (the smaller of two)", model: "Qwen3 Coder 30B", gb: 31.1, memory: "16Gi", config: `"pp":2`, saw: failed},
	{source: "vllm#34076: 34,736 tokens on the larger card alone", model: "Qwen3 Coder 30B", gb: 31.1, memory: "32Gi", config: `"pp":2,"flags":{"max-model-len":34736}`, saw: ran},
	{source: "vllm#6746: 8 × H100, FP8, 131,072 tokens: activations of a prompt decided", model: "Llama 3.1 405B", gb: 433, memory: "80Gi", config: `"tp":8`, saw: failed, want: passed},
	{source: "vllm#11230: one card of 48 GB at 0.95, 8,192 tokens, with 0.6.3", model: "Qwen2.5 72B GPTQ", gb: 41.6, memory: "48Gi", config: `"flags":{"max-model-len":8192,"gpu-memory-utilization":0.95}`, saw: ran},
	{source: "vllm#2136: 2 × RTX 4090 at 0.95, 16,384 tokens, with 0.2.4", model: "CodeLlama 13B", memory: "24Gi", config: `"tp":2,"flags":{"max-model-len":16384,"gpu-memory-utilization":0.95,"max-num-seqs":16}`, saw: ran},
	{source: "vllm#16570: 4 × A100 of 40 GB, a vision model: 2.5 GiB of activations decided", model: "Qwen2.5 72B", memory: "40Gi", config: `"tp":4,"flags":{"gpu-memory-utilization":0.95}`, saw: failed, want: passed},
	{source: "NVIDIA NIM 24.3, vLLM: Llama 2 7B on one L40S", model: "Llama 2 7B", memory: "48Gi", saw: ran},
	{source: "NVIDIA NIM 24.3, vLLM: Llama 2 13B on one L40S", model: "Llama 2 13B", memory: "48Gi", saw: ran},
	{source: "NVIDIA NIM 24.3, vLLM: Llama 2 70B on 8 × L40S", model: "Llama 2 70B", memory: "48Gi", config: `"tp":8`, saw: ran},
	{source: "NVIDIA NIM 24.3, vLLM: Llama 2 70B on 4 × A100", model: "Llama 2 70B", memory: "80Gi", config: `"tp":4`, saw: ran},
	{source: "vllm#5003: a 70B does not fit 2 × A100 with its KV: on one, its weights do not", model: "Llama 2 70B", memory: "80Gi", saw: failed},
	{source: "NVIDIA NIM 24.3, vLLM: Mistral 7B on one L40S", model: "Mistral 7B v0.2", memory: "48Gi", saw: ran},
	{source: "NVIDIA NIM 24.3, vLLM: Mixtral on 4 × L40S", model: "Mixtral 8x7B", memory: "48Gi", config: `"tp":4`, saw: ran},
	{source: "NVIDIA NIM 24.3, vLLM: Mixtral on 2 × A100", model: "Mixtral 8x7B", memory: "80Gi", config: `"tp":2`, saw: ran},
	{source: "NVIDIA NIM 24.05: Llama 3 8B, FP16, on one A10G", model: "Llama 3 8B", memory: "24Gi", engine: "trtllm", saw: ran},
	{source: "gitlab!273296: Mistral Small 24B does not load on one A100 of 40 GB", model: "Mistral Small", memory: "40Gi", config: `"flags":{"max-model-len":32768}`, saw: failed},
	{source: "gitlab!273296: Mistral Small 24B on two of them", model: "Mistral Small", memory: "40Gi", config: `"tp":2,"flags":{"max-model-len":32768}`, saw: ran},
	{source: "gpustack#2101: an estimate of 139 GB where 32 sufficed, because windows were not seen; 85,000 tokens", model: "Gemma 3 27B", gb: 54.9, memory: "80Gi", config: `"flags":{"max-model-len":85000}`, saw: ran},
	{source: "gpustack#1047, #2196: what the engine reserves is no need: a small model on a large card", model: "SmolLM2 135M", memory: "16Gi", saw: ran},
	{source: "llmfit#302: 26 GB were claimed for a hybrid whose layers mostly keep nothing a token", model: "Qwen3.5-like mix", gb: 17, memory: "24Gi", config: `"flags":{"max-model-len":262144}`, saw: ran},
}

func facts(t *testing.T, name string, gb float64) *model.Facts {
	t.Helper()
	f, err := hf.Config([]byte(configs[name]))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if gb > 0 {
		f.FileBytes = int64(gb * 1e9)
	}
	return &f
}

// check compiles a graph of one worker and returns what is found about it.
func check(t *testing.T, c fitCase) diag.List {
	t.Helper()
	engine := c.engine
	if engine == "" {
		engine = "vllm"
	}
	config := fmt.Sprintf(`{"engine":%q,"device":"gpu"`, engine)
	if c.config != "" {
		config += "," + c.config
	}
	var raw map[string]any
	if err := json.Unmarshal([]byte(config+"}"), &raw); err != nil {
		t.Fatalf("%s: %v", c.source, err)
	}
	g := &graph.Graph{
		Name:   "fit",
		Models: map[string]*graph.Model{"m": {Name: "m", Sources: []string{"hf:org/repo/model.safetensors.index.json"}}},
		Nodes: map[string]*graph.Node{
			"api":  {Name: "api", Kind: "frontend", Fields: map[string]diag.Pos{}},
			"work": {Name: "work", Kind: "worker", Config: json.RawMessage(config + "}"), Fields: map[string]diag.Pos{}},
		},
		Edges:   []*graph.Edge{{From: graph.End{Node: "api"}, To: graph.End{Node: "work"}}},
		Devices: map[string]*graph.Device{},
	}
	if c.memory != "" {
		n, err := graph.ParseSize(c.memory)
		if err != nil {
			t.Fatal(err)
		}
		g.Devices["gpu"] = &graph.Device{Name: "gpu", MemoryBytes: n, Count: 16}
	} else {
		g.Devices["gpu"] = &graph.Device{Name: "gpu", Count: 16}
	}
	_, list := compiler.Compile(g, compiler.Options{Registry: kind.Default, Facts: map[string]*model.Facts{"m": facts(t, c.model, c.gb)}})
	return list
}

func TestFit(t *testing.T) {
	count := map[verdict]map[verdict]int{ran: {}, failed: {}}
	for _, c := range cases {
		got := passed
		for _, d := range check(t, c) {
			switch {
			case d.Code == "memory-fit" && d.Severity == diag.Error:
				got = refused
			case d.Code == "memory-fit" && got != refused:
				got = warned
			case d.Code != "memory-fit" && d.Severity < diag.Note:
				t.Errorf("%s: %s %s [%s]", c.source, d.Severity, d.Msg, d.Code)
			}
			if d.Code == "memory-fit" {
				t.Logf("%s: %s\n\t%s\n\t= %s", c.source, d.Msg, strings.Join(d.Notes, "\n\t"), d.Hint)
			}
		}
		count[c.saw][got]++
		want := c.want
		if want == "" {
			want = map[verdict]verdict{ran: passed, failed: refused}[c.saw]
		}
		if c.saw == ran && got == refused {
			t.Errorf("%s: a false alarm: it ran", c.source)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", c.source, got, want)
		}
	}
	if len(cases) < 30 || count[ran][refused] != 0 {
		t.Errorf("%d cases, %d of those that ran refused", len(cases), count[ran][refused])
	}
	for _, saw := range slices.Sorted(maps.Keys(count)) {
		t.Logf("%s: %v", saw, count[saw])
	}
}

// Heads and layers that cannot be shared, as users found when the engine did not start.
func TestParallelism(t *testing.T) {
	for _, tt := range []struct {
		source, model, config string
		want                  string // part of the message; "" is no finding
	}{
		{"vllm#2652", "Llama 33B", `"tp":8`, "8 devices cannot share the model's 52 attention heads evenly"},
		{"vllm#414", "Llama 33B", `"tp":3`, "3 devices cannot share the model's 52 attention heads"},
		{"vllm#414, four", "Llama 33B", `"tp":4`, ""},
		{"vllm#596", "Llama 2 13B", `"tp":3`, "40 attention heads"},
		{"vllm#4232", "Qwen1.5 32B", `"tp":6`, "40 attention heads"},
		{"vllm#11797, AdaptThink#1", "Qwen2 7B", `"tp":8`, "28 attention heads"},
		{"AdaptThink#1, seven: heads fit, key-value heads do not", "Qwen2 7B", `"tp":7`, "7 devices cannot share the model's 4 key-value heads"},
		{"AdaptThink#1, four", "Qwen2 7B", `"tp":4`, ""},
		{"vllm#2652, of an expert model", "Qwen2 57B A14B", `"tp":8`, "28 attention heads"},
		{"gpustack#2259", "Gemma 3 27B", `"tp":3`, "32 attention heads"},
		{"vllm#5003", "Llama 2 70B", `"tp":3`, "64 attention heads"},
		{"by a flag", "Llama 2 70B", `"flags":{"tensor-parallel-size":3}`, "64 attention heads"},
		{"key-value heads are kept by several", "Llama 2 70B", `"tp":16`, ""},
		{"a latent is kept by all", "DeepSeek V3", `"tp":16`, ""},
		{"stages", "Llama 2 13B", `"pp":41`, "41 stages, but the model has 40 layers"},
		{"stages that do not divide are cut unevenly", "Llama 2 13B", `"pp":3`, ""},
	} {
		c := fitCase{source: tt.source, model: tt.model, config: tt.config}
		var got []string
		for _, d := range check(t, c) {
			if d.Code == "bad-parallelism" {
				got = append(got, d.Msg)
			}
		}
		if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
			t.Errorf("%s: %q, want %q", tt.source, got, tt.want)
		}
	}
}

// What engines print of keys and values is what is computed here.
func TestPrinted(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for _, tt := range []struct {
		source, model string
		tokens, bits  int
		tp            int
		want          float64 // bytes
		within        float64 // share: where the source rounds
	}{
		{"hf dranger003/c4ai-command-r-v01-iMat.GGUF#6: llama.cpp, 2,048 tokens", "Mixtral 8x7B", 2048, 16, 1, 256 * mib, 0},
		{"the same", "Llama 3 8B", 2048, 16, 1, 256 * mib, 0},
		{"the same", "Llama 3.1 70B", 2048, 16, 1, 640 * mib, 0},
		{"the same", "Qwen1.5 32B", 2048, 16, 1, 512 * mib, 0},
		{"the same", "Yi 1.5 34B", 2048, 16, 1, 480 * mib, 0},
		{"vllm#10517: 1,478 blocks of 16 in 2.89 GiB", "Llama 3.1 8B", 1478 * 16, 16, 1, 2.89 * gib, 0.002},
		{"vllm#10517: 1,952 blocks of 16 in 3.81 GiB", "Llama 3.1 8B", 1952 * 16, 16, 1, 3.81 * gib, 0.002},
		{"kvplan 0.1.1: 131,072 tokens", "Llama 3.1 8B", 131072, 16, 1, 16 * gib, 0},
		{"vllm#34076: 262,144 tokens", "Qwen3 Coder 30B", 262144, 16, 1, 24 * gib, 0},
		{"vllm#13061: 81,536 tokens in 8.69 GiB, two devices; some went to the engine's own use", "Qwen2.5 14B", 81536, 16, 2, 8.69 * gib, 0.15},
		{"vllm#21348: 178,880 tokens in 8.11 GiB, four devices", "Qwen3 235B A22B", 178880, 16, 4, 8.11 * gib, 0.015},
		{"ollama#16480: 131,072 tokens in 4,608 MiB and 90 MiB (for two) of windows", "gpt-oss 120B", 131072, 16, 1, 4608 * mib, 0.01},
		{"vllm#27508: 131,072 tokens need 4.54 GiB, with those of a step in the windows", "gpt-oss 120B", 131072, 16, 1, 4.54 * gib, 0.01},
		{"vLLM 0.32 on the CPU: 23,296 tokens in 1 GiB, f32", "SmolLM2 135M", 23296, 32, 1, gib, 0.001},
	} {
		got := float64(facts(t, tt.model, 0).KVBytes(tt.tokens, tt.bits, tt.tp, 1))
		if got < tt.want*(1-tt.within) || got > tt.want*(1+tt.within) {
			t.Errorf("%s, %s: %.0f MiB, printed is %.0f", tt.source, tt.model, got/mib, tt.want/mib)
		}
	}
}
