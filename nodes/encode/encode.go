// Package encode registers the kind of node "encode": it turns images and sound of prompts into embeddings. It is checked, but not run yet.
package encode

import (
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/serve"
)

const schema = `
// #Encode turns images and sound of prompts into embeddings, for the prefill and worker nodes that its edges lead to. It is checked, but not
// run yet.
#Encode: {
	#worker
	kind: "encode"

	// engine is what computes. Default: "vllm".
	engine?: "vllm" | "sglang" | "trtllm"

	// version is the engine's release, as "0.11.0". Default: not said, and what depends on it is not checked.
	version?: =~"^[bv]?[0-9][-+.0-9A-Za-z]*$"

	// flags are options of the engine, by their names without hyphens in front. Default: none.
	flags?: [string]: string | number | bool

	// device is the class of accelerators that it computes on, a name under the graph's devices. Default: what the machine has.
	device?: #Name

	// dtype is the type in which it computes. Default: "auto": the model's own.
	dtype?: "auto" | "bf16" | "f16" | "f32" | "fp8"

	// batch bounds one step of the engine.
	batch?: {
		// seqs is how many images or sounds are encoded at once; above 0. Default: the engine's own.
		seqs?: int & >0

		// queue is how many wait; beyond it they are refused; 0 or more. Default: 256.
		queue?: int & >=0
	}
}
`

// Config is what a spec may set.
type Config struct {
	Engine  string         `json:"engine"`
	Version string         `json:"version,omitempty"`
	Flags   map[string]any `json:"flags,omitempty"`
	Device  string         `json:"device,omitempty"`
	DType   string         `json:"dtype,omitempty"`
	Batch   Batch          `json:"batch"`
}

// Batch bounds one step.
type Batch struct {
	Seqs  int `json:"seqs,omitempty"` // images or sounds at once; 0: the engine's own
	Queue int `json:"queue"`
}

// config is c as all engines have it.
func (c Config) config() engine.Config {
	return engine.Config{
		Engine: c.Engine, Version: c.Version, Flags: c.Flags, Device: c.Device, DType: c.DType,
		Batch: engine.Batch{Seqs: c.Batch.Seqs, Queue: c.Batch.Queue},
	}
}

func init() {
	kind.Register(kind.Kind[Config]{
		Name:       "encode",
		Summary:    "Turns images and sound of prompts into embeddings.",
		Schema:     schema,
		NeedsModel: true,
		Default:    func() Config { return Config{Engine: "vllm", Batch: Batch{Queue: 256}} },
		Ports: func(Config) []kind.Port {
			return []kind.Port{
				{Name: "media", Type: "media", Dir: kind.Out, Need: true, Many: true, Doc: "it gives embeddings to nodes that compute prompts"},
				{Name: "scale", Type: "scale", Dir: kind.In},
				{Name: "load", Type: "load", Dir: kind.Out, Many: true, Signals: []string{"running", "waiting"}},
			}
		},
		Check:    func(c Config, s kind.Site) diag.List { return serve.Check(c.config(), s) },
		Contract: contract,
		Limits:   func(c Config) []kind.Limit { return serve.Limits(c.config()) },
	})
}

// contract says that embeddings fit the engine that made them: each has its own form.
func contract(c Config, port string) []kind.Term {
	if port != "media" {
		return nil
	}
	return []kind.Term{{Name: "engine", Field: "engine", Values: []string{c.Engine}}}
}
