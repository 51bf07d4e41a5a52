package engine

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// Config is what a spec may set of an engine, whatever the kind of its node. JSON names are the schema's; zero is "not said".
type Config struct {
	Engine   string         `json:"engine"`            // one of Names() or Foreign()
	Version  string         `json:"version,omitempty"` // of a foreign engine: "0.11.0"
	Flags    map[string]any `json:"flags,omitempty"`   // of a foreign engine, without hyphens in front; strings, numbers (float64) and booleans
	Device   string         `json:"device,omitempty"`  // key of the graph's devices
	TP       int            `json:"tp,omitempty"`
	PP       int            `json:"pp,omitempty"`
	DP       int            `json:"dp,omitempty"`
	DType    string         `json:"dtype,omitempty"` // "auto", "bf16", "f16", "f32", "fp8"
	Numerics string         `json:"numerics,omitempty"`
	Threads  int            `json:"threads,omitempty"` // 0: physical cores, less one where there are more than two
	KV       KV             `json:"kv"`
	Batch    Batch          `json:"batch"`
	Mock     *Mock          `json:"mock,omitempty"` // only with engine "mock"
}

// KV is the engine's cache of keys and values; zero is the engine's own.
type KV struct {
	Tokens     int      `json:"tokens,omitempty"` // capacity; 0 with engines of ours: four times the model's context, at most 32,768
	Block      int      `json:"block,omitempty"`  // tokens a block
	DType      string   `json:"dtype,omitempty"`  // "auto", "f16", "fp8", …: see model.Bits
	Layout     string   `json:"layout,omitempty"`
	Hash       string   `json:"hash,omitempty"` // scheme
	Seed       *uint64  `json:"seed,omitempty"` // of the hashes
	Connector  string   `json:"connector,omitempty"`
	Transports []string `json:"transports,omitempty"` // of the connector, the best first
	HandOff    llm.Mode `json:"handOff,omitempty"`    // "after" or "beside"
	Offload    string   `json:"offload,omitempty"`    // size, host memory: see graph.ParseSize
	Disk       string   `json:"disk,omitempty"`       // size
}

// Batch bounds one engine step.
type Batch struct {
	Seqs   int `json:"seqs,omitempty"`   // sequences that run at once; 0: the engine's own
	Tokens int `json:"tokens,omitempty"` // prompt and output tokens of one step: the chunk of a chunked prefill; 0: the engine's own
	Queue  int `json:"queue"`            // sequences that wait; beyond it requests are refused with capacity_exhausted
}

// Mock scripts the mock engine; see package mock.
type Mock struct {
	Seed      uint64   `json:"seed,omitempty"`
	Script    []string `json:"script,omitempty"`    // answers, by turns; empty: seeded words
	TTFT      string   `json:"ttft,omitempty"`      // duration, before the first token
	PerPrompt string   `json:"perPrompt,omitempty"` // duration a prompt token
	ITL       string   `json:"itl,omitempty"`       // duration between tokens
	HandOff   llm.Mode `json:"handOff,omitempty"`   // "after" or "beside"
	Fail      *Fail    `json:"fail,omitempty"`
}

// Fail injects a failure into the mock engine.
type Fail struct {
	Kind  string `json:"kind"`            // "error", "hang", "die", "garbage", "transfer"
	After int    `json:"after,omitempty"` // output tokens before it happens
	Every int    `json:"every,omitempty"` // 1: each request, 2: every second, …; 0 is 1
}

// DefaultConfig is the config where a spec says nothing.
func DefaultConfig() Config { return defaults("native") }

// defaults is the config of an engine of which a spec says no more than its name.
func defaults(name string) Config {
	c := Config{Engine: name, Batch: Batch{Queue: 256}}
	if !IsForeign(name) {
		c.Batch.Seqs = 16
	}
	if name == "native" { // the steps of the others have their own bound, or none
		c.Batch.Tokens = 256
	}
	return c
}

// UnmarshalJSON reads b over the defaults of the engine that it names. Unknown fields are an error.
func (c *Config) UnmarshalJSON(b []byte) error {
	var named struct{ Engine string }
	if err := json.Unmarshal(b, &named); err != nil {
		return err
	}
	if named.Engine == "" {
		named.Engine = DefaultConfig().Engine
	}
	type plain Config
	p := plain(defaults(named.Engine))
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return err
	}
	*c = Config(p)
	return nil
}

var foreign = []string{"llamacpp", "sglang", "trtllm", "vllm"}

// Foreign returns the names of the engines that are checked but not run by this build, sorted.
func Foreign() []string { return slices.Clone(foreign) }

// IsForeign reports whether name is one of Foreign.
func IsForeign(name string) bool { return slices.Contains(foreign, name) }
