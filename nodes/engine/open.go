package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
)

// Config is what a spec may set of an engine, whatever the kind of its node. JSON names are the schema's.
type Config struct {
	Engine  string `json:"engine"`            // "native" or "mock"
	Threads int    `json:"threads,omitempty"` // 0: physical cores, less one where there are more than two
	KV      KV     `json:"kv"`
	Batch   Batch  `json:"batch"`
	Mock    *Mock  `json:"mock,omitempty"` // only with engine "mock"
}

// KV bounds the engine's cache.
type KV struct {
	Tokens int `json:"tokens,omitempty"` // capacity; 0: four times the model's context, at most 32,768
}

// Batch bounds one engine step.
type Batch struct {
	Seqs   int `json:"seqs"`   // sequences that run at once
	Tokens int `json:"tokens"` // prompt and output tokens of one step: the chunk of a chunked prefill
	Queue  int `json:"queue"`  // sequences that wait; beyond it requests are refused with capacity_exhausted
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
func DefaultConfig() Config {
	return Config{Engine: "native", Batch: Batch{Seqs: 16, Tokens: 256, Queue: 256}}
}

// Options is what the node gives an engine beside the user's Config.
type Options struct {
	Config Config
	Host   kind.Host
	Model  *kind.Model // nil: only the mock engine does without
	// Fetch finds the instance that holds a hand-off's blocks; nil where the node has no kv edge.
	Fetch func(peer string) (flow.AsyncEngine[*llm.KVFetch, *llm.KVBlock], error)
	// Die ends the process at once, for the mock's failure "die"; nil: the engine closes instead.
	Die func()
}

// OpenFunc opens an engine. It may take seconds and reports progress by Host.Report(Starting, …).
type OpenFunc func(Options) (Engine, error)

var engines = map[string]OpenFunc{}

// Register makes an engine known by name; call it from init. It panics on a repeated name.
func Register(name string, open OpenFunc) {
	if _, ok := engines[name]; ok {
		panic("engine " + name + ": registered twice")
	}
	engines[name] = open
}

// Names returns the known engines, sorted.
func Names() []string {
	out := make([]string, 0, len(engines))
	for n := range engines {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// Open opens the engine that o.Config names.
func Open(o Options) (Engine, error) {
	open, ok := engines[o.Config.Engine]
	if !ok {
		return nil, fmt.Errorf("engine %q: unknown; known: %s", o.Config.Engine, strings.Join(Names(), ", "))
	}
	return open(o)
}
