package mock

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// handoffs are the prompts that prefill holds until they are released or expire.
type handoffs struct {
	mu      sync.Mutex
	held    map[string]held
	changed chan struct{} // closed and replaced by put
}

type held struct {
	tokens   []uint32
	deadline time.Time
}

func (h *handoffs) put(id string, tokens []uint32, deadline time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held == nil {
		h.held = map[string]held{}
	}
	now := time.Now()
	for k, v := range h.held { // few live at once: no queue is needed
		if now.After(v.deadline) {
			delete(h.held, k)
		}
	}
	h.held[id] = held{tokens, deadline}
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

func (h *handoffs) get(id string) (held, bool, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	v, ok := h.held[id]
	if ok && time.Now().After(v.deadline) {
		delete(h.held, id)
		return held{}, false, h.changed
	}
	return v, ok, h.changed
}

func (h *handoffs) release(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, id)
}

func (h *handoffs) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.held)
}

// offer keeps the prompt for a decode instance.
func (e *Engine) offer(r *llm.TokensRequest, first uint32, lp []llm.Logprob) *llm.HandOff {
	h := &llm.HandOff{
		ID: r.ID, Mode: llm.ModeAfter, Contract: e.info.Contract, Peer: e.self, Tokens: len(r.Tokens), First: first,
		Deadline: time.Now().Add(handOffLife),
	}
	if r.HandOff != nil { // beside: the router named it
		h.ID, h.Mode, h.Deadline = r.HandOff.ID, r.HandOff.Mode, r.HandOff.Deadline
	}
	if len(lp) > 0 {
		l := lp[0]
		h.FirstLogprob = &l
	}
	e.handoffs.put(h.ID, append([]uint32(nil), r.Tokens...), h.Deadline)
	return h
}

// Export answers a decode instance. A hand-off of mode beside may be asked for before it is there: the answer waits until then, or
// until ctx ends.
func (e *Engine) Export(ctx context.Context, f *llm.KVFetch) iter.Seq2[*llm.KVBlock, error] {
	return func(yield func(*llm.KVBlock, error) bool) {
		if f.Release {
			e.handoffs.release(f.HandOff)
			return
		}
		if d := diff(e.info.Contract, f.Contract); d != "" {
			yield(nil, flow.Errorf(flow.InvalidRequest, "handoff.contract", "hand-off %q: the ends disagree: %s", f.HandOff, d))
			return
		}
		var h held
		for {
			v, ok, changed := e.handoffs.get(f.HandOff)
			if ok {
				h = v
				break
			}
			if !e.beside {
				yield(nil, flow.Errorf(flow.NotFound, "handoff.unknown", "hand-off %q is not held here (any more)", f.HandOff))
				return
			}
			select {
			case <-changed:
			case <-e.done:
				yield(nil, errClosed(e.self))
				return
			case <-ctx.Done():
				yield(nil, flow.AsError(context.Cause(ctx)))
				return
			}
		}
		blocks := (len(h.tokens) + BlockSize - 1) / BlockSize
		for i := max(f.From, 0); i < min(f.To, blocks); i++ {
			part := h.tokens[i*BlockSize : min((i+1)*BlockSize, len(h.tokens))]
			b := encode(part)
			sum := xxh3.Hash(b)
			if e.fail != nil && e.fail.Kind == "transfer" && i >= e.fail.After {
				b[0] ^= 1
			}
			if !yield(&llm.KVBlock{Index: i, Tokens: len(part), Sum: sum, Bytes: b, Length: len(b)}, nil) {
				return
			}
		}
	}
}

func encode(tokens []uint32) []byte {
	b := make([]byte, 0, 4*len(tokens))
	for _, t := range tokens {
		b = binary.LittleEndian.AppendUint32(b, t)
	}
	return b
}

// take fetches a hand-off and returns how many tokens need not be computed: all or none. A failure is logged, counted, and made good by
// computing the prompt.
func (e *Engine) take(ctx context.Context, r *llm.TokensRequest) int {
	err := e.pull(ctx, r)
	if err == nil {
		e.count("ok")
		return len(r.Tokens)
	}
	if ctx.Err() == nil {
		e.count("failed")
		if suppressed, ok := e.throttle.Pass(r.HandOff.Peer); ok {
			e.log("hand-off failed: the prompt is computed here", "request", r.ID, "handoff", r.HandOff.ID, "peer", r.HandOff.Peer,
				"suppressed", suppressed, "error", err)
		}
	}
	return 0
}

func (e *Engine) pull(ctx context.Context, r *llm.TokensRequest) error {
	h := r.HandOff
	if e.fetch == nil {
		return fmt.Errorf("no edge to fetch from %q", h.Peer)
	}
	if h.Mode == llm.ModeAfter {
		if d := diff(h.Contract, e.info.Contract); d != "" {
			return fmt.Errorf("the ends disagree: %s", d)
		}
	}
	if !h.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, h.Deadline)
		defer cancel()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	peer, err := e.fetch(h.Peer)
	if err != nil {
		return err
	}
	blocks := (len(r.Tokens) + BlockSize - 1) / BlockSize
	next := 0
	for b, err := range peer.Generate(ctx, &llm.KVFetch{HandOff: h.ID, Contract: e.info.Contract, From: 0, To: blocks}) {
		if err != nil {
			return err
		}
		want := r.Tokens[min(b.Index*BlockSize, len(r.Tokens)):min((b.Index+1)*BlockSize, len(r.Tokens))]
		switch {
		case b.Index != next:
			return fmt.Errorf("block %d came where %d was due", b.Index, next)
		case xxh3.Hash(b.Bytes) != b.Sum:
			return fmt.Errorf("block %d: checksum differs", b.Index)
		case string(b.Bytes) != string(encode(want)):
			return fmt.Errorf("block %d holds other tokens than the prompt", b.Index)
		}
		next++
	}
	if next != blocks {
		return fmt.Errorf("%d of %d blocks came", next, blocks)
	}
	for _, err := range peer.Generate(ctx, &llm.KVFetch{HandOff: h.ID, Contract: e.info.Contract, Release: true}) {
		if err != nil {
			e.log("hand-off was not released", "handoff", h.ID, "peer", h.Peer, "error", err)
		}
	}
	return nil
}

// diff names the first field in which two contracts differ.
func diff(a, b llm.Contract) string {
	if a == b {
		return ""
	}
	return fmt.Sprintf("%+v and %+v", a, b)
}
