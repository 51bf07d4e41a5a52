package serve

import (
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/nodes/engine"
)

// KVTokens is the capacity of the engine's cache for a model: what the spec says, or four contexts, at most 32,768 tokens.
func KVTokens(c engine.Config, f model.Facts) int {
	if c.KV.Tokens > 0 {
		return c.KV.Tokens
	}
	return max(min(4*f.Context, 32768), f.Context)
}

// Size is what one replica takes: the weights, shared by the replicas of one machine, and f16 KV beside a fixed part.
func Size(c engine.Config, f model.Facts) plan.Needs {
	const process = 64 << 20 // Go runtime, tokenizer, buffers of one batch: an estimate
	if c.Engine == "mock" {
		return plan.Needs{MemoryBytes: process, Threads: 1}
	}
	return plan.Needs{
		MemoryBytes: process + f.KVBytesPerToken(2)*int64(KVTokens(c, f)),
		SharedBytes: f.FileBytes,
		DiskBytes:   2 * f.FileBytes, // the file and its repacked copy
		Threads:     c.Threads,
	}
}
