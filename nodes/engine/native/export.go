package native

import (
	"context"
	"iter"
	"strings"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/engine/sched"
	"github.com/dynamograph/dynamo/nodes/kv/hash"
)

// Export gives the blocks of a hand-off, as bytes or as places in shared memory; both stay as they are until the hand-off is released or
// expires, bytes at least until the loop's next turn.
func (e *Engine) Export(ctx context.Context, f *llm.KVFetch) iter.Seq2[*llm.KVBlock, error] {
	return func(yield func(*llm.KVBlock, error) bool) {
		if f.Release {
			e.mu.Lock()
			e.core.Unpin(f.HandOff)
			e.mu.Unlock()
			e.poke()
			return
		}
		if d := e.info.Contract.Diff(f.Contract); len(d) > 0 {
			err := flow.Errorf(flow.BackendProtocol, "handoff.contract", "hand-off from %s: the two sides differ in %s", e.host.Instance(), strings.Join(d, ", "))
			err.Instance = e.host.Instance()
			yield(nil, err)
			return
		}
		p, err := e.lease(f.HandOff)
		if err != nil {
			yield(nil, err)
			return
		}
		defer e.giveBack(p)
		if f.From < 0 || f.To < f.From || f.To > len(p.Blocks) {
			yield(nil, flow.Errorf(flow.InvalidRequest, "handoff.range", "hand-off %q: blocks [%d, %d) of %d", f.HandOff, f.From, f.To, len(p.Blocks)))
			return
		}
		size := e.info.Contract.BlockSize
		for i := f.From; i < f.To; i++ {
			if err := ctx.Err(); err != nil {
				yield(nil, flow.AsError(err))
				return
			}
			data := e.block(p.Blocks[i])
			b := llm.KVBlock{Index: i, Tokens: min(size, p.Tokens-i*size), Sum: hash.Sum(data), Length: len(data)}
			if i < len(p.IDs) {
				b.Hash = p.IDs[i]
			}
			if f.SharedMemory {
				b.Region, b.Offset = e.kv.Region(), int64(p.Blocks[i])*int64(e.size)
			} else {
				b.Bytes = data
			}
			if !yield(&b, nil) {
				return
			}
		}
	}
}

// lease takes a hand-off for reading; Close waits until it is given back.
func (e *Engine) lease(id string) (*sched.Pin, *flow.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return nil, e.closed()
	}
	p, ok := e.core.Lease(id)
	if !ok {
		err := flow.Errorf(flow.NotFound, "handoff.unknown", "hand-off %q is not held: it was released, or it expired", id)
		err.Instance = e.host.Instance()
		return nil, err
	}
	e.wg.Add(1)
	return p, nil
}

func (e *Engine) giveBack(p *sched.Pin) {
	e.mu.Lock()
	e.core.Return(p)
	e.mu.Unlock()
	e.poke()
	e.wg.Done()
}
