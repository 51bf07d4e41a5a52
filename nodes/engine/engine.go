// Package engine is what prefill, decode and worker nodes drive: something that continues sequences of tokens. Implementations register
// themselves by name (native, mock); this package knows none of them.
package engine

import (
	"context"
	"errors"
	"iter"

	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// Engine continues sequences of tokens. All methods are safe for concurrent use. Close waits for every goroutine and ends what is in
// flight with flow.Unavailable, reason "engine.closed", Retry set.
type Engine interface {
	Info() Info
	// Generate streams what the sequence gains. Deltas are valid until the loop's next turn. Cancelling ctx or leaving the loop frees
	// the sequence within one engine step. Errors are *flow.Error.
	Generate(ctx context.Context, r *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error]
	// Control does an administrative verb; ErrUnsupported names the verbs that the engine lacks.
	Control(ctx context.Context, c Control) error
	Close() error
}

// KVExporter is an Engine whose prefill phase leaves blocks that another instance can fetch.
type KVExporter interface {
	// Export answers a fetch: blocks in order, or nothing for a release. Contracts are compared before the first block.
	Export(ctx context.Context, f *llm.KVFetch) iter.Seq2[*llm.KVBlock, error]
}

// EventSource is an Engine that tells which blocks it holds.
type EventSource interface {
	Events(ctx context.Context, s *llm.Subscribe) iter.Seq2[*llm.EventBatch, error]
}

// LoadSource is an Engine that tells how busy it is; the stream gives a value at once and then on change, at most some tens a second.
type LoadSource interface {
	Loads(ctx context.Context, s *llm.Subscribe) iter.Seq2[*llm.Load, error]
}

// Info is what an engine says about itself once it is open.
type Info struct {
	Engine     string       // "native"
	ModelID    string       // content id of the weights
	Context    int          // longest sequence, tokens
	Vocabulary int          // token ids are below it
	MaxSeqs    int          // sequences in one batch
	Blocks     int          // KV blocks of Contract.BlockSize tokens
	Contract   llm.Contract // of its KV
	HandOff    []llm.Mode   // modes that it takes part in; empty: none
	Features   []string     // "logprobs", "penalties", "constraint", …
	Note       string       // for the user, shown once at start: "portable kernels: about 30 times slower"
}

// Control is an administrative verb.
type Control struct {
	Verb string // "flush": drop cached KV
	Args map[string]string
}

// ErrUnsupported is wrapped by Control for a verb that an engine lacks.
var ErrUnsupported = errors.New("not supported by this engine")
