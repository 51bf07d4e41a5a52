package native

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/model/gguf"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/native/llama"
	"github.com/dynamograph/dynamo/nodes/engine/sample"
	"github.com/dynamograph/dynamo/nodes/engine/sched"
	"github.com/dynamograph/dynamo/nodes/kv/block"
	"github.com/dynamograph/dynamo/nodes/kv/hash"
	"github.com/dynamograph/dynamo/nodes/text/constrain"
)

func init() {
	engine.Register("native", func(o engine.Options) (engine.Engine, error) { return Open(o) })
}

// Open maps or repacks the weights, which may take seconds, and starts the engine. It reports progress as kind.Starting and never Ready.
func Open(o engine.Options) (*Engine, error) {
	if o.Model == nil {
		return nil, fmt.Errorf("engine native: node %s has no model", o.Host.Node())
	}
	if err := check(o.Config); err != nil {
		return nil, err
	}
	ends, err := endTokens(o.Model.Path)
	if err != nil {
		return nil, err
	}
	m, err := llama.Open(llama.Options{
		Path: o.Model.Path, SHA256: o.Model.SHA256, CacheDir: o.Host.CacheDir(), Threads: o.Config.Threads, Context: o.Model.Context,
		Progress: func(msg string) { o.Host.Report(kind.Starting, msg) },
	})
	if err != nil {
		return nil, fmt.Errorf("engine native: %w", err)
	}
	e, err := start(o, m, ends)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return e, nil
}

func check(c engine.Config) error {
	switch b := c.Batch; {
	case b.Seqs < 1:
		return fmt.Errorf("engine native: batch.seqs %d: at least 1", b.Seqs)
	case b.Tokens < b.Seqs:
		return fmt.Errorf("engine native: batch.tokens %d: at least batch.seqs, %d", b.Tokens, b.Seqs)
	case b.Queue < 0:
		return fmt.Errorf("engine native: batch.queue %d: at least 0", b.Queue)
	case c.KV.Tokens < 0:
		return fmt.Errorf("engine native: kv.tokens %d: at least 0", c.KV.Tokens)
	}
	return nil
}

// endTokens reads which tokens end a sequence by the model's own account.
func endTokens(path string) ([]uint32, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("engine native: model: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("engine native: model: %w", err)
	}
	g, err := gguf.Read(f, st.Size())
	if err != nil {
		return nil, fmt.Errorf("engine native: model %s: %w", path, err)
	}
	var ends []uint32
	for _, k := range []string{"eos", "eot", "eom"} {
		if id, ok := g.Uint("tokenizer.ggml." + k + "_token_id"); ok && id < 1<<32 {
			ends = append(ends, uint32(id))
		}
	}
	return ends, nil
}

// start makes the engine around an open model, which it closes in Close, and runs its loop.
func start(o engine.Options, m compute, ends []uint32) (*Engine, error) {
	mi, b := m.Info(), o.Config.Batch
	tokens := o.Config.KV.Tokens
	if tokens == 0 {
		tokens = max(min(4*mi.Context, 32768), mi.Context)
	}
	blocks := (tokens + mi.BlockTokens - 1) / mi.BlockTokens
	kv, err := o.Host.Memory("kv", int64(blocks)*int64(mi.BlockBytes))
	if err != nil {
		return nil, fmt.Errorf("engine native: KV cache of %d tokens, %d MiB: %w", tokens, blocks*mi.BlockBytes>>20, err)
	}
	conf := sched.Config{
		Blocks: blocks, BlockSize: mi.BlockTokens, Context: mi.Context,
		Seqs: b.Seqs, Tokens: b.Tokens, Queue: b.Queue, Pins: 4 * b.Seqs,
	}
	e := &Engine{
		host: o.Host, model: m, fetch: o.Fetch, size: mi.BlockBytes, kv: kv, slab: kv.Bytes(), events: block.NewLog(logBatches),
		core: sched.New(conf), wake: make(chan struct{}, 1), sampler: sample.New(mi.Vocab), epoch: rand.Text(), m: newMetrics(o.Host.Metrics()),
	}
	for _, id := range ends {
		if int64(id) < int64(mi.Vocab) {
			e.ends = append(e.ends, id)
		}
	}
	e.programs = sync.OnceValues(func() (*constrain.Cache, error) { return vocabulary(o.Model.Path, mi.Vocab, e.ends) })
	content := o.Model.SHA256
	e.scope = hash.Scope{Graph: o.Host.Graph(), ModelID: content, Numerics: mi.Numerics}
	e.info = engine.Info{
		Engine: "native", ModelID: content, Context: e.core.Limit(), Vocabulary: mi.Vocab, MaxSeqs: b.Seqs, Blocks: blocks,
		Contract: llm.Contract{
			ModelID: content, BlockSize: mi.BlockTokens, DType: mi.DType, Layout: mi.Layout, Hash: hash.Scheme, Numerics: mi.Numerics, TP: 1,
			BlockBytes: mi.BlockBytes,
		},
		HandOff:  []llm.Mode{llm.ModeAfter},
		Features: []string{"logprobs", "prompt_logprobs", "penalties", "logit_bias", "min_tokens", "seed", "prefix_cache", "constraint"},
		Note:     mi.Warning,
	}
	e.peers.open = o.Host.OpenMemory
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.publish()
	e.wg.Go(e.run)
	o.Host.Log().Info("engine open", "engine", "native", "kernels", mi.Kernels, "numerics", mi.Numerics, "context", e.info.Context,
		"blocks", blocks, "kv", cmp.Or(kv.Region(), "private"))
	return e, nil
}
