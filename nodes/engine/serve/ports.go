package serve

import (
	"fmt"
	"maps"
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
		tells(c, kind.Port{Name: "events", Type: "events", Dir: kind.Out, Many: true, Signals: events(c.Engine)}),
		tells(c, kind.Port{Name: "load", Type: "load", Dir: kind.Out, Many: true, Signals: load(c.Engine)}),
	})
}

// silencers are the flags of foreign engines that switch off what a port tells: without a cache of prefixes there are no events of blocks,
// without statistics there are no figures.
var silencers = map[string]map[string][]struct {
	flag string
	at   any // the value with which it does so
}{
	"vllm": {
		"events": {{"enable-prefix-caching", false}, {"no-enable-prefix-caching", true}},
		"load":   {{"disable-log-stats", true}},
	},
	"sglang": {"events": {{"disable-radix-cache", true}}},
	"trtllm": {"events": {{"kv-cache-config.enable-block-reuse", false}}, "load": {{"enable-iter-perf-stats", false}}},
}

// tells takes the signals from a port that a flag silences, and says which.
func tells(c engine.Config, p kind.Port) kind.Port {
	for _, name := range slices.Sorted(maps.Keys(c.Flags)) {
		for _, s := range silencers[c.Engine][p.Name] {
			if engine.Flag(name) == s.flag && c.Flags[name] == s.at && len(p.Signals) > 0 {
				p.Signals, p.Doc = nil, fmt.Sprintf("flags.%s switches it off", name)
			}
		}
	}
	return p
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
