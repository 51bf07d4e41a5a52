package check_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/check"
)

type flags = map[string]any

// at gives each field a line of its own, so that a test sees which place a finding points at.
var at = []string{"engine", "version", "kv.connector", "kv.dtype", "family", "tools", "reasoning", "features", "adapters", "adapters.a.rank", "source", "context", "names", "kv.block", "kv.hash"}

func line(field string) int {
	if i := slices.Index(at, field); i >= 0 {
		return i + 1
	}
	return 100 // a flag
}

// find runs the check on a node "w" of a model "m".
func find(c engine.Config, m graph.Model, facts *model.Facts) diag.List {
	return findIn("worker", c, m, facts)
}

func findIn(kindName string, c engine.Config, m graph.Model, facts *model.Facts) diag.List {
	n := &graph.Node{Name: "w", Kind: kindName, Model: "m", Fields: map[string]diag.Pos{}}
	g := &graph.Graph{Models: map[string]*graph.Model{"m": &m}, Nodes: map[string]*graph.Node{"w": n}, Fields: map[string]diag.Pos{}}
	for f := range c.Flags {
		n.Fields["flags."+f] = diag.Pos{File: "x.cue", Line: line("flags." + f), Col: 1}
	}
	for _, f := range at {
		pos := diag.Pos{File: "x.cue", Line: line(f), Col: 1}
		if line(f) <= line("kv.dtype") || strings.HasPrefix(f, "kv.") {
			n.Fields[f] = pos
		} else if f != "family" || m.Family != "" {
			g.Fields["models.m."+f] = pos
		}
	}
	return check.Engine(c, kind.Site{Graph: g, Node: n, Facts: facts})
}

func TestWrong(t *testing.T) {
	vllm := func(version string, f flags) engine.Config {
		return engine.Config{Engine: "vllm", Version: version, Flags: f}
	}
	sglang := func(f flags) engine.Config { return engine.Config{Engine: "sglang", Version: "0.5.23", Flags: f} }
	llama := func(f flags) engine.Config { return engine.Config{Engine: "llamacpp", Version: "11434", Flags: f} }
	for _, tt := range []struct {
		name  string
		c     engine.Config
		m     graph.Model
		facts *model.Facts
		// want is severity, code, line, message and hint; related is the line of the second place, 0 for none.
		want    string
		related int
	}{
		// versions
		{name: "a version that is not known", c: vllm("0.99.0", flags{"any-thing": "x"}), want: `warning unchecked-version 2 nodes.w.version: vLLM 0.99.0: unchecked`},
		{name: "a patch that is not known", c: vllm("0.32.1", nil), want: `warning unchecked-version 2 nodes.w.version: vLLM 0.32.1: unchecked: its flags and parsers are not known here; did you mean "0.32.0"?`},
		{name: "an engine that is not known", c: engine.Config{Engine: "trtllm", Version: "1.2.0", Flags: flags{"x": 1.0}}, want: `warning unchecked-version 2 nodes.w.version: TensorRT-LLM 1.2.0: unchecked`},
		{name: "the same without version", c: engine.Config{Engine: "trtllm", Flags: flags{"x": 1.0}}, want: `warning unchecked-version 1 nodes.w.engine: TensorRT-LLM: unchecked`},

		// flags
		{name: "misspelt", c: vllm("0.32.0", flags{"max-modle-len": 4096.0}), want: `error unknown-flag 100 nodes.w.flags.max-modle-len: vLLM 0.32.0 has no flag "max-modle-len"; did you mean "max-model-len"?`, related: 2},
		{name: "too new", c: vllm("0.30.0", flags{"tool-strict-level": "auto"}), want: `error unknown-flag 100 nodes.w.flags.tool-strict-level: vLLM 0.30.0 has no flag "tool-strict-level"; 0.31.0 and later have it`, related: 2},
		{name: "too old", c: vllm("0.33.0", flags{"calculate-kv-scales": true}), want: `error unknown-flag 100 nodes.w.flags.calculate-kv-scales: vLLM 0.33.0 has no flag "calculate-kv-scales"`, related: 2},
		{name: "another engine's", c: vllm("0.32.0", flags{"mem-fraction-static": 0.8}), want: `error unknown-flag 100 nodes.w.flags.mem-fraction-static: vLLM 0.32.0 has no flag "mem-fraction-static"; it is a flag of SGLang`, related: 2},
		{name: "of nobody", c: llama(flags{"zzzzqqqq": 1.0}), want: "error unknown-flag 100 nodes.w.flags.zzzzqqqq: llama.cpp b11434 has no flag \"zzzzqqqq\"; remove it; `llama-server --help` lists its flags", related: 2},
		{name: "no version, and no release has it", c: engine.Config{Engine: "vllm", Flags: flags{"max-modle-len": 1.0}}, want: `warning unknown-flag 100 nodes.w.flags.max-modle-len: no release of vLLM that is known here has a flag "max-modle-len"; did you mean "max-model-len"?`, related: 2},
		{name: "a shortened flag where none is taken", c: llama(flags{"ctx-siz": 1.0}), want: `error unknown-flag 100 nodes.w.flags.ctx-siz: llama.cpp b11434 has no flag "ctx-siz"; did you mean "ctx-size"?`, related: 2},
		{name: "a part of a flag that has none", c: vllm("0.32.0", flags{"max-model-len.x": 1.0}), want: `error unknown-flag 100 nodes.w.flags.max-model-len.x: vLLM 0.32.0 has no flag "max-model-len.x"`, related: 2},

		// values
		{name: "no choice", c: vllm("0.32.0", flags{"scheduling-policy": "fcsf"}), want: `error bad-flag 100 nodes.w.flags.scheduling-policy: "fcsf" is not one of fcfs, priority; did you mean "fcfs"?`, related: 2},
		{name: "a choice of a later release", c: vllm("0.20.2", flags{"kv-cache-dtype": "nvfp4_4over6"}), want: `error bad-flag 100 nodes.w.flags.kv-cache-dtype: "nvfp4_4over6" is not one of auto, bfloat16`, related: 2},
		{name: "a value for a switch", c: vllm("0.32.0", flags{"enforce-eager": "yes"}), want: `error bad-flag 100 nodes.w.flags.enforce-eager: enforce-eager is a switch and takes no value; found "yes"; write true or false, without quotes`, related: 2},
		{name: "no number", c: sglang(flags{"page-size": "sixteen"}), want: `error bad-flag 100 nodes.w.flags.page-size: page-size takes a number; found "sixteen"; write a number`, related: 2},
		{name: "a switch's value for a number", c: sglang(flags{"page-size": true}), want: `error bad-flag 100 nodes.w.flags.page-size: page-size takes a number; found true`, related: 2},
		{name: "half a number", c: sglang(flags{"page-size": 1.5}), want: `error bad-flag 100 nodes.w.flags.page-size: page-size takes a whole number; found 1.5`, related: 2},
		{name: "no JSON", c: vllm("0.32.0", flags{"kv-events-config": "{publisher: zmq}"}), want: `error bad-flag 100 nodes.w.flags.kv-events-config: kv-events-config takes JSON; found "{publisher: zmq}"`, related: 2},
		{name: "a word that YAML makes a boolean", c: llama(flags{"cache-type-k": true}), want: `error bad-flag 100 nodes.w.flags.cache-type-k: true is not one of bf16, f16`, related: 2},
		{name: "without what it needs", c: vllm("0.32.0", flags{"enable-auto-tool-choice": true}), want: `error bad-flag 100 nodes.w.flags.enable-auto-tool-choice: vLLM 0.32.0 does not start with it and without "tool-call-parser"; add "tool-call-parser", or remove it`},

		// KV
		{name: "a connector that is gone", c: engine.Config{Engine: "vllm", Version: "0.32.0", KV: engine.KV{Connector: "p2p-nccl"}}, want: `error unsupported-feature 3 nodes.w.kv.connector: vLLM 0.32.0 has no connector "p2p-nccl"; the last that had it is 0.23.0`, related: 2},
		{name: "a connector of another engine", c: engine.Config{Engine: "sglang", Version: "0.5.23", KV: engine.KV{Connector: "lmcache"}}, want: `error unsupported-feature 3 nodes.w.kv.connector: SGLang 0.5.23 has no connector "lmcache"; use one that it has`, related: 2},
		{name: "a class that does not exist", c: vllm("0.32.0", flags{"kv-transfer-config": `{"kv_connector": "NixlConector", "kv_role": "kv_both"}`}), want: `error bad-flag 100 nodes.w.flags.kv-transfer-config: vLLM 0.32.0 has no connector "NixlConector"; did you mean "NixlConnector"?`, related: 2},
		{name: "a type of the cache", c: engine.Config{Engine: "llamacpp", Version: "11434", KV: engine.KV{DType: "fp8"}}, want: `error unsupported-feature 4 nodes.w.kv.dtype: llama.cpp b11434 has no KV cache of type "fp8"`, related: 2},

		{name: "a size of blocks", c: engine.Config{Engine: "vllm", Version: "0.11.0", KV: engine.KV{Block: 48}}, want: `error unsupported-feature 14 nodes.w.kv.block: vLLM 0.11.0 has no KV block of 48 tokens; 0.18.0 and later have it`, related: 2},
		{name: "a scheme of hashes", c: engine.Config{Engine: "vllm", Version: "0.11.0", KV: engine.KV{Hash: "xxhash"}}, want: `error unsupported-feature 15 nodes.w.kv.hash: vLLM 0.11.0 has no hash scheme "xxhash"; 0.13.0 and later have it`, related: 2},

		// parsers
		{name: "a parser that does not exist", c: vllm("0.32.0", flags{"tool-call-parser": "hermess"}), want: `error unknown-parser 100 nodes.w.flags.tool-call-parser: vLLM 0.32.0 has no parser of tool calls "hermess"; did you mean "hermes"?`, related: 2},
		{name: "another engine's name of it", c: vllm("0.32.0", flags{"tool-call-parser": "qwen25"}), want: `error unknown-parser 100 nodes.w.flags.tool-call-parser: vLLM 0.32.0 has no parser of tool calls "qwen25"; vLLM calls it "hermes"`, related: 2},
		{name: "a parser too new", c: vllm("0.25.1", flags{"reasoning-parser": "kimi_k3"}), want: `error unknown-parser 100 nodes.w.flags.reasoning-parser: vLLM 0.25.1 has no parser of reasoning "kimi_k3"; 0.27.0 and later have it`, related: 2},
		{name: "the model's", c: vllm("0.32.0", nil), m: graph.Model{Tools: "hermess"}, want: `error unknown-parser 6 models.m.tools: no parser of tool calls "hermess"; did you mean "hermes"?`},
		{name: "the model's, with an engine of ours", c: engine.Config{Engine: "native"}, m: graph.Model{Reasoning: "deepseek_r2"}, want: `error unknown-parser 7 models.m.reasoning: no parser of reasoning "deepseek_r2"; did you mean "deepseek_r1"?`},
		{name: "the model's, too new", c: vllm("0.25.1", nil), m: graph.Model{Tools: "plamo3"}, want: `error unknown-parser 6 models.m.tools: vLLM 0.25.1 has no parser of tool calls "plamo3"; 0.32.0 and later have it`, related: 2},
		{name: "it does not fit the stated family", c: vllm("0.32.0", nil), m: graph.Model{Tools: "hermes", Family: "llama3"}, want: `error parser-misfit 6 models.m.tools: "hermes" does not fit: models of family "llama3" write tool calls as llama3_json or pythonic; write "llama3_json" or "pythonic"`, related: 5},
		{name: "reasoning of a model that does not think", c: vllm("0.32.0", nil), m: graph.Model{Reasoning: "deepseek_r1", Family: "qwen2.5"}, want: `error parser-misfit 7 models.m.reasoning: "deepseek_r1" does not fit: models of family "qwen2.5" write no reasoning; remove it`, related: 5},
		{name: "it does not fit the name", c: vllm("0.32.0", nil), m: graph.Model{Reasoning: "deepseek_r1", Sources: []string{"hf:Qwen/Qwen2.5-7B-Instruct@main/x"}}, want: `warning parser-misfit 7 models.m.reasoning: "deepseek_r1" does not fit: models of family "qwen2.5" write no reasoning`},
		{name: "it does not fit the file", c: engine.Config{Engine: "native"}, m: graph.Model{Tools: "llama3_json"}, facts: &model.Facts{Name: "Qwen2.5 Coder 0.5B Instruct"}, want: `warning parser-misfit 6 models.m.tools: "llama3_json" does not fit`},
		{name: "the flag's does not fit", c: vllm("0.32.0", flags{"tool-call-parser": "hermes"}), m: graph.Model{Family: "gpt-oss"}, want: `error parser-misfit 100 nodes.w.flags.tool-call-parser: "hermes" does not fit: models of family "gpt-oss" write tool calls as harmony; write "openai"`, related: 5},
		{name: "the flag's does not fit, version not known", c: vllm("0.99.0", flags{"tool-call-parser": "hermes"}), m: graph.Model{Family: "gpt-oss"}, want: `warning unchecked-version 2` + "\n" + `error parser-misfit 100 nodes.w.flags.tool-call-parser: "hermes" does not fit`},
		{name: "model and flag differ", c: vllm("0.32.0", flags{"tool-call-parser": "mistral"}), m: graph.Model{Tools: "hermes"}, want: `error conflict 100 nodes.w.flags.tool-call-parser: "mistral", but models.m.tools is "hermes", another format; keep one of them`, related: 6},

		// what the graph says of the model
		{name: "another context", c: vllm("0.32.0", flags{"max_model_len": "32K"}), m: graph.Model{Context: 8192}, want: `error conflict 100 nodes.w.flags.max_model_len: 32768 tokens, but models.m.context is 8192; keep one of them`, related: 12},
		{name: "another model", c: sglang(flags{"model": "Qwen/Qwen3-8B"}), m: graph.Model{Sources: []string{"hf:meta-llama/Llama-3.1-8B/x.safetensors"}}, want: `error conflict 100 nodes.w.flags.model: "Qwen/Qwen3-8B", but the model is "hf:meta-llama/Llama-3.1-8B/x.safetensors"; remove it: the node serves models.m`, related: 11},
		{name: "another name", c: vllm("0.32.0", flags{"served-model-name": "qwen"}), m: graph.Model{Names: []string{"llama"}}, want: `error conflict 100 nodes.w.flags.served-model-name: "qwen", but clients call the model "llama"`, related: 13},
		{name: "another role", c: sglang(flags{"disaggregation-mode": "decode"}), want: `error conflict 100 nodes.w.flags.disaggregation-mode: "decode", but the node is a worker; remove it: the kind of the node says it`},
		{name: "another connector", c: engine.Config{Engine: "vllm", Version: "0.32.0", KV: engine.KV{Connector: "mooncake"}, Flags: flags{"kv-transfer-config": `{"kv_connector": "NixlConnector"}`}}, want: `error conflict 100 nodes.w.flags.kv-transfer-config: connector "NixlConnector", but kv.connector is "mooncake"; keep one of them`, related: 3},

		// features
		{name: "native has no adapters", c: engine.Config{Engine: "native"}, m: graph.Model{Adapters: map[string]*graph.Adapter{"a": {Name: "a"}}}, want: `error unsupported-feature 1 nodes.w.engine: engine "native" does not have "lora" (adapters), but models.m has adapters; remove it, or use an engine that has it: llamacpp, sglang, vllm`, related: 9},
		{name: "mock has no grammar", c: engine.Config{Engine: "mock"}, m: graph.Model{Features: []string{"logprobs", "structured"}}, want: `error unsupported-feature 1 nodes.w.engine: engine "mock" does not have "structured"`, related: 8},
		{name: "a flag takes it away", c: sglang(flags{"grammar-backend": "none"}), m: graph.Model{Features: []string{"structured"}}, want: `error unsupported-feature 100 nodes.w.flags.grammar-backend: it takes "structured"`, related: 8},
		{name: "a negated flag does", c: vllm("0.32.0", flags{"no-enable-lora": true}), m: graph.Model{Features: []string{"lora"}}, want: `error unsupported-feature 100 nodes.w.flags.no-enable-lora: it takes "lora" (adapters) away, but models.m.features has "lora"; remove one of them`, related: 8},
		{name: "no room for the adapter's rank", c: vllm("0.32.0", flags{"max-lora-rank": 16.0}), m: graph.Model{Adapters: map[string]*graph.Adapter{"a": {Name: "a", Rank: 64}}}, want: `error unsupported-feature 100 nodes.w.flags.max-lora-rank: 16, but adapter "a" of the model has rank 64; raise it to 64`, related: 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := find(tt.c, tt.m, tt.facts)
			var got []string
			for _, d := range l {
				got = append(got, fmt.Sprintf("%s %s %d %s; %s", d.Severity, d.Code, d.Pos.Line, d.Msg, d.Hint))
				if _, ok := diag.Codes[d.Code]; !ok {
					t.Errorf("code %q is not in the catalogue", d.Code)
				}
				if !strings.HasPrefix(d.Msg, d.Path+": ") || d.Hint == "" {
					t.Errorf("path %q, hint %q, message %q", d.Path, d.Hint, d.Msg)
				}
			}
			want := strings.Split(tt.want, "\n")
			if len(got) != len(want) {
				t.Fatalf("got %s", strings.Join(got, "\n"))
			}
			for i := range want {
				if !strings.HasPrefix(got[i], want[i]) {
					t.Errorf("got  %s\nwant %s", got[i], want[i])
				}
			}
			last := l[len(l)-1]
			if (tt.related > 0 || len(want) == 1) && (len(last.Related) > 0) != (tt.related > 0) && tt.related > 0 || tt.related > 0 && last.Related[0].Pos.Line != tt.related {
				t.Errorf("second place: %v, want line %d", last.Related, tt.related)
			}
		})
	}
}

// TestRight: what people run is not called wrong.
func TestRight(t *testing.T) {
	sources := func(s ...string) graph.Model { return graph.Model{Sources: s} }
	for name, tt := range map[string]struct {
		c     engine.Config
		m     graph.Model
		facts *model.Facts
	}{
		"native":   {c: engine.DefaultConfig(), m: graph.Model{Features: []string{"logprobs"}}},
		"mock":     {c: engine.Config{Engine: "mock"}, m: graph.Model{Tools: "hermes", Reasoning: "deepseek-r1"}},
		"no model": {c: engine.Config{Engine: "vllm", Version: "0.32.0"}},
		"vllm on a CPU": {c: engine.Config{Engine: "vllm", Version: "0.32.0", Flags: flags{
			"enforce-eager": true, "max-model-len": 2048.0, "dtype": "float32", "block-size": 32.0, "enable-scale-out": true,
			"enable-prompt-tokens-details": true, "served-model-name": "x", "enable-lora": true, "max-lora-rank": 8.0,
			"kv-events-config":   `{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","topic":"T"}`,
			"kv-transfer-config": `{"kv_connector":"NixlConnector","kv_role":"kv_producer","kv_buffer_device":"cpu"}`,
		}}},
		"vllm, other ways to write": {c: engine.Config{Engine: "vllm", Version: "v0.32.0", Flags: flags{
			"max_model_len": "32k", "tp": 2.0, "no-enable-prefix-caching": true, "enable-prefix-caching": false, "gpu-memory-utilization": 0.9,
			"max-num-batched": 8192.0, "compilation-config.mode": 3.0, "kv-transfer-config.kv_connector": "NixlConnector", "async-scheduling": true,
			"limit-mm-per-prompt": `{"image": 2}`, "hf-overrides": `{"a": 1}`, "trust-remote-code": true, "load-format": "dummy", "seed": 1.0,
		}}},
		"vllm with an old release": {c: engine.Config{Engine: "vllm", Version: "0.11.0", Flags: flags{
			"max-model-len": 8192.0, "structured-outputs-config": "{}", "enable-auto-tool-choice": true, "tool-call-parser": "llama3_json",
			"disable-log-requests": true, "swap-space": 4.0, "enable-expert-parallel": true, "data-parallel-size": 8.0,
		}}},
		"vllm with a parser of one's own": {c: engine.Config{Engine: "vllm", Version: "0.32.0", Flags: flags{
			"enable-auto-tool-choice": true, "tool-call-parser": "mine", "tool-parser-plugin": "/mine.py",
		}}},
		"vllm with a connector of one's own": {c: engine.Config{Engine: "vllm", Version: "0.32.0", Flags: flags{
			"kv-transfer-config": `{"kv_connector":"Mine","kv_connector_module_path":"mine.connector","kv_role":"kv_both"}`,
		}}},
		"vllm without version": {c: engine.Config{Engine: "vllm", Flags: flags{
			"max-model-len": 8192.0, "guided-decoding-backend": "xgrammar", "tool-call-parser": "minimax", "enable-auto-tool-choice": true, "kv-cache-dtype": "fp8_inc",
		}}},
		"sglang": {c: engine.Config{Engine: "sglang", Version: "0.5.23", Flags: flags{
			"device": "cpu", "dtype": "float32", "attention-backend": "torch_native", "sampling-backend": "pytorch", "disable-overlap-schedule": true,
			"max-total-tokens": 8192.0, "context-length": 2048.0, "page-size": 16.0, "enable-cache-report": true, "enable-metrics": true,
			"disaggregation-mode": "null", "disaggregation-transfer-backend": "nixl", "disaggregation-bootstrap-port": 8998.0,
			"mem-fraction-static": 0.8, "tp": 4.0, "tool-call-parser": "qwen25", "reasoning-parser": "qwen3", "chunked-prefill-size": -1.0,
			"kv-events-config": `{"publisher":"zmq","topic":"t","endpoint":"tcp://*:5557"}`, "trust-remote-code": true,
		}}, m: sources("hf:Qwen/Qwen3-8B/model.safetensors")},
		"llama.cpp": {c: engine.Config{Engine: "llamacpp", Version: "11434", Flags: flags{
			"t": 1.0, "c": 8192.0, "parallel": 4.0, "slot-save-path": "/tmp/x", "flash-attn": "off", "cache-type-k": "f32", "ctv": "q8_0", "ngl": 0.0,
			"embeddings": true, "pooling": "mean", "lora": "f.gguf", "jinja": true, "metrics": true, "load-mode": "mmap", "cache-prompt": true,
		}}},
		"trtllm, nothing to check":   {c: engine.Config{Engine: "trtllm"}},
		"adapters within the rank":   {c: engine.Config{Engine: "vllm", Version: "0.32.0", Flags: flags{"max-lora-rank": 64.0}}, m: graph.Model{Adapters: map[string]*graph.Adapter{"a": {Name: "a", Rank: 64}}}},
		"our name and the engine's":  {c: engine.Config{Engine: "sglang", Version: "0.5.23", Flags: flags{"tool-call-parser": "qwen25"}}, m: graph.Model{Tools: "hermes", Family: "qwen2.5"}},
		"a family that is not known": {c: engine.Config{Engine: "native"}, m: graph.Model{Tools: "hermes", Family: "acme"}},
		"a distilled model":          {c: engine.Config{Engine: "vllm", Version: "0.32.0"}, m: graph.Model{Family: "qwen2.5", Reasoning: "deepseek_r1", Sources: []string{"hf:deepseek-ai/DeepSeek-R1-Distill-Qwen-7B/x"}}},
		"a tuned model":              {c: engine.Config{Engine: "vllm", Version: "0.32.0"}, m: graph.Model{Tools: "hermes", Sources: []string{"hf:NousResearch/Hermes-3-Llama-3.1-8B/x"}}, facts: &model.Facts{Architecture: "llama", Name: "Hermes 3 Llama 3.1 8B"}},
		"a model that thinks":        {c: engine.Config{Engine: "vllm", Version: "0.32.0"}, m: graph.Model{Reasoning: "deepseek_r1", Sources: []string{"hf:Qwen/Qwen3-30B-A3B-Thinking-2507/x"}}},
		"a parser of a later release, of a version that is not said": {c: engine.Config{Engine: "vllm"}, m: graph.Model{Tools: "plamo3"}},
		"features": {c: engine.Config{Engine: "vllm", Version: "0.32.0"}, m: graph.Model{Features: []string{"tools", "structured", "logprobs", "reasoning", "lora", "images", "audio", "embeddings"}}},
		"what the graph says, too": {c: engine.Config{Engine: "vllm", Version: "0.32.0", KV: engine.KV{Connector: "nixl"}, Flags: flags{
			"max-model-len": "32K", "model": "/models/x.safetensors", "served-model-name": "b", "kv-transfer-config": `{"kv_connector": "NixlPushConnector"}`,
		}}, m: graph.Model{Context: 32768, Names: []string{"a", "b"}, Sources: []string{"hf:org/repo/x.safetensors"}}},
		"a connector of several": {c: engine.Config{Engine: "vllm", Version: "0.32.0", KV: engine.KV{Connector: "nixl"}, Flags: flags{
			"kv-transfer-config": `{"kv_connector": "MultiConnector"}`, "max-model-len": "auto",
		}}, m: graph.Model{Context: 4096}},
		"cache types":       {c: engine.Config{Engine: "vllm", Version: "0.11.0", KV: engine.KV{DType: "fp8", Connector: "p2p-nccl"}}},
		"blocks and hashes": {c: engine.Config{Engine: "vllm", Version: "0.33.0", KV: engine.KV{Block: 48, Hash: "sha256"}}},
		"mori":              {c: engine.Config{Engine: "sglang", Version: "0.5.23", KV: engine.KV{DType: "fp8_e5m2", Connector: "moriio"}}},
		"llama.cpp f16":     {c: engine.Config{Engine: "llamacpp", Version: "b11434", KV: engine.KV{DType: "f16"}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, d := range find(tt.c, tt.m, tt.facts) {
				t.Errorf("false alarm: %s %s %s; %s", d.Severity, d.Code, d.Msg, d.Hint)
			}
		})
	}
}

func TestRoles(t *testing.T) {
	for kindName, mode := range map[string]string{"prefill": "prefill", "decode": "decode", "worker": "null"} {
		for _, m := range []string{"prefill", "decode", "null"} {
			c := engine.Config{Engine: "sglang", Version: "0.5.23", Flags: flags{"disaggregation-mode": m}}
			if l := findIn(kindName, c, graph.Model{}, nil); (len(l) == 0) != (m == mode) {
				t.Errorf("%s in a %s: %v", m, kindName, l)
			}
		}
	}
}

func TestFeatures(t *testing.T) {
	for _, tt := range []struct {
		c     engine.Config
		want  string
		known bool
	}{
		{engine.Config{Engine: "native"}, "logprobs reasoning structured tools", true},
		{engine.Config{Engine: "vllm", Version: "0.32.0"}, "audio embeddings images logprobs lora reasoning structured tools", true},
		{engine.Config{Engine: "vllm", Version: "0.32.0", Flags: flags{"language-model-only": true}}, "embeddings logprobs lora reasoning structured tools", true},
		{engine.Config{Engine: "vllm", Version: "9"}, "", false},
		{engine.Config{Engine: "vllm"}, "", false},
		{engine.Config{Engine: "trtllm", Version: "1.2.0"}, "", false},
	} {
		have, known := check.Features(tt.c)
		if strings.Join(have, " ") != tt.want || known != tt.known {
			t.Errorf("%s %s: %v %v", tt.c.Engine, tt.c.Version, have, known)
		}
	}
}
