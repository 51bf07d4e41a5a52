package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// sameFlag maps an option of a foreign engine to the field of Config that says the same. Names have hyphens where the engine takes both.
var sameFlag = map[string]map[string]string{
	"vllm": {
		"tensor-parallel-size": "tp", "tp": "tp", "pipeline-parallel-size": "pp", "pp": "pp", "data-parallel-size": "dp", "dp": "dp",
		"dtype": "dtype", "block-size": "kv.block", "kv-cache-dtype": "kv.dtype", "prefix-caching-hash-algo": "kv.hash",
		"max-num-seqs": "batch.seqs", "max-num-batched-tokens": "batch.tokens",
	},
	"sglang": {
		"tensor-parallel-size": "tp", "tp-size": "tp", "tp": "tp", "pipeline-parallel-size": "pp", "pp-size": "pp", "pp": "pp",
		"data-parallel-size": "dp", "dp-size": "dp", "dp": "dp", "dtype": "dtype", "page-size": "kv.block", "kv-cache-dtype": "kv.dtype",
		"max-total-tokens": "kv.tokens", "disaggregation-transfer-backend": "kv.connector",
		"max-running-requests": "batch.seqs", "chunked-prefill-size": "batch.tokens",
	},
	"trtllm": {
		"tp-size": "tp", "tensor-parallel-size": "tp", "pp-size": "pp", "pipeline-parallel-size": "pp",
		"max-batch-size": "batch.seqs", "max-num-tokens": "batch.tokens",
		"kv-cache-config.tokens-per-block": "kv.block", "kv-cache-config.dtype": "kv.dtype", "kv-cache-config.max-tokens": "kv.tokens",
	},
	"llamacpp": {
		"ctx-size": "kv.tokens", "c": "kv.tokens", "parallel": "batch.seqs", "np": "batch.seqs", "batch-size": "batch.tokens", "b": "batch.tokens",
	},
}

// Flag returns an option's name as tables have it: "max_model_len" is "max-model-len".
func Flag(name string) string { return strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-") }

// Conflict is a field and a flag that say the same thing differently.
type Conflict struct {
	Field, Flag    string // "kv.block", "block-size" as the author wrote it
	Said, FlagSaid string
}

// Resolve returns c with what its flags say of fields that are not set, where each such field was said ("flags.block-size"), and what they
// say otherwise than the fields. Values that no field could have are left out.
func (c Config) Resolve() (out Config, from map[string]string, conflicts []Conflict) {
	out, from = c, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Flags)) {
		field, ok := sameFlag[c.Engine][Flag(name)]
		v := FlagText(c.Flags[name])
		if !ok || v == "" {
			continue
		}
		said, set := out.field(field)
		switch {
		case !set(v): // not of the field's type
		case said != "" && TypeName(said) != TypeName(v):
			set(said)
			conflicts = append(conflicts, Conflict{Field: field, Flag: name, Said: said, FlagSaid: v})
		case said != "":
			set(said)
		default:
			from[field] = "flags." + name
		}
	}
	if c.Engine == "vllm" && c.KV.Connector == "" {
		if n := connectorOf(c.Flags); n != "" {
			out.KV.Connector = n
			from["kv.connector"] = "flags.kv-transfer-config"
		}
	}
	return out, from, conflicts
}

// TypeName returns a type by the name that fields have for it; anything else is itself.
func TypeName(v string) string {
	switch v {
	case "bfloat16":
		return "bf16"
	case "float16", "half", "fp16":
		return "f16"
	case "float32", "float", "fp32":
		return "f32"
	}
	return v
}

// field returns a field as text, "" where it is not said, and what sets it.
func (c *Config) field(name string) (string, func(string) bool) {
	num := func(p *int) (string, func(string) bool) {
		set := func(v string) bool {
			n, err := strconv.Atoi(v)
			if err == nil && n > 0 {
				*p = n
			}
			return err == nil && n > 0
		}
		if *p == 0 {
			return "", set
		}
		return strconv.Itoa(*p), set
	}
	text := func(p *string) (string, func(string) bool) {
		return *p, func(v string) bool { *p = v; return true }
	}
	switch name {
	case "tp":
		return num(&c.TP)
	case "pp":
		return num(&c.PP)
	case "dp":
		return num(&c.DP)
	case "dtype":
		return text(&c.DType)
	case "kv.block":
		return num(&c.KV.Block)
	case "kv.tokens":
		return num(&c.KV.Tokens)
	case "kv.dtype":
		return text(&c.KV.DType)
	case "kv.hash":
		return text(&c.KV.Hash)
	case "kv.connector":
		return text(&c.KV.Connector)
	case "batch.seqs":
		return num(&c.Batch.Seqs)
	case "batch.tokens":
		return num(&c.Batch.Tokens)
	}
	return "", func(string) bool { return false }
}

// FlagText is a flag's value as text, "" for one that is neither text nor a number.
func FlagText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case int:
		return strconv.Itoa(v)
	}
	return ""
}

// connectors are the names that vLLM's classes go by here.
var connectors = map[string]string{
	"NixlConnector": "nixl", "NixlPushConnector": "nixl", "MooncakeConnector": "mooncake", "MooncakeStoreConnector": "mooncake",
	"LMCacheConnector": "lmcache", "LMCacheConnectorV1": "lmcache", "LMCacheMPConnector": "lmcache", "P2pNcclConnector": "p2p-nccl",
	"MoRIIOConnector": "moriio", "SharedStorageConnector": "shm", "ExampleConnector": "shm",
}

// Transfer is what vLLM's flag kv-transfer-config says.
type Transfer struct {
	Connector string `json:"kv_connector"`
	Role      string `json:"kv_role"` // "kv_producer", "kv_consumer", "kv_both"
}

// TransferOf reads the flag kv-transfer-config; found is false where it is not set.
func TransferOf(flags map[string]any) (t Transfer, found bool, err error) {
	for name, v := range flags {
		if Flag(name) != "kv-transfer-config" {
			continue
		}
		if err := json.Unmarshal([]byte(FlagText(v)), &t); err != nil {
			return t, true, fmt.Errorf("it is not JSON: %w", err)
		}
		return t, true, nil
	}
	return t, false, nil
}

func connectorOf(flags map[string]any) string {
	t, _, err := TransferOf(flags)
	if err != nil {
		return ""
	}
	return connectors[t.Connector]
}

// HandOffs returns how the engine's prefill can meet its decode; nil where that is not known.
func (c Config) HandOffs() []llm.Mode {
	switch {
	case c.Engine == "mock" && c.Mock != nil && c.Mock.HandOff != "":
		return []llm.Mode{c.Mock.HandOff}
	case c.Engine == "mock":
		return []llm.Mode{llm.ModeAfter, llm.ModeBeside}
	case c.Engine == "native":
		return []llm.Mode{llm.ModeAfter}
	case c.KV.HandOff != "":
		return []llm.Mode{c.KV.HandOff}
	case c.Engine == "sglang":
		return []llm.Mode{llm.ModeBeside}
	case c.Engine == "vllm", c.Engine == "trtllm":
		return []llm.Mode{llm.ModeAfter}
	}
	return nil
}
