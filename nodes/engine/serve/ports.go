package serve

import (
	"slices"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine"
)

// Ports returns the ports of a node with an engine: in, those of its kind, and what all of them have.
func Ports(c engine.Config, own ...kind.Port) []kind.Port {
	return slices.Concat([]kind.Port{{Name: "in", Type: "tokens", Dir: kind.In, Need: true, Many: true}}, own, []kind.Port{
		{Name: "media", Type: "media", Dir: kind.In, Many: true},
		{Name: "scale", Type: "scale", Dir: kind.In}, // one: two writers of one number of replicas would fight
		{Name: "offload", Type: "tier", Dir: kind.Out},
		{Name: "events", Type: "events", Dir: kind.Out, Many: true, Signals: events(c.Engine)},
		{Name: "load", Type: "load", Dir: kind.Out, Many: true, Signals: load(c.Engine)},
	})
}

// load and events say what an engine tells of itself, as measured on the engines: of vLLM 0.32, SGLang 0.5 and llama-server by their
// metrics, of TensorRT-LLM by its documentation.
func load(name string) []string {
	switch name {
	case "native":
		return []string{"running", "waiting", "prefillTokens", "blocksUsed", "blocksCached"}
	case "mock":
		return []string{"running", "waiting", "prefillTokens", "blocksUsed"}
	case "vllm":
		return []string{"running", "waiting", "blocksUsed", "ttft", "itl"}
	case "sglang", "trtllm":
		return []string{"running", "waiting", "blocksUsed"}
	case "llamacpp":
		return []string{"running", "waiting"}
	}
	return nil
}

func events(name string) []string {
	switch name {
	case "native", "vllm", "sglang", "trtllm":
		return []string{"blocks"}
	}
	return nil
}
