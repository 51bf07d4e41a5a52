package native

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine/sched"
	"github.com/dynamograph/dynamo/nodes/kv/hash"
)

var (
	errLeft     = errors.New("the request ended")
	errStalled  = fmt.Errorf("no block for %v", fetchStall)
	errExpired  = errors.New("the hand-off has expired")
	errChecksum = errors.New("checksum differs")
	errContract = errors.New("contracts differ")
	errPeer     = errors.New("peer not found")
	errNoMap    = errors.New("shared memory cannot be mapped")
)

// transfer is the import of a hand-off.
type transfer struct {
	h      *llm.HandOff
	cancel context.CancelCauseFunc // nil until begun
	over   bool                    // begun or released: what is left to do is on its way
}

// drop gives up the hand-off of a request that has ended. The caller holds mu.
func (e *Engine) drop(q *request) {
	switch {
	case q.off == nil || e.ctx.Err() != nil: // a closing engine leaves it to whoever takes the request
	case q.off.cancel != nil:
		q.off.cancel(errLeft)
	case !q.off.over:
		e.release(q.off)
	}
}

// accept looks at the hand-off of q. Where blocks can be fetched, the sequence will import them; where prefill's token can be used, it
// becomes the first output and is returned. Without either, the prompt is computed here: the tokens are the same.
func (e *Engine) accept(q *request) *choice {
	h, r := q.r.HandOff, q.r
	if h == nil || r.Phase != llm.PhaseDecode {
		return nil
	}
	err := e.acceptable(q)
	if e.fetch != nil && h.Mode == llm.ModeAfter {
		q.off = &transfer{h: h}
	}
	switch {
	case err != nil:
		e.report(q, err)
	case !q.rows:
		q.seq.Import = h.Tokens
	}
	// Tokens of a later attempt hold the first one already.
	next := h.Tokens == len(r.Tokens) || r.Generated == 0
	if q.rows || !next || h.Mode != llm.ModeAfter || h.Contract.ModelID != e.info.ModelID || int64(h.First) >= int64(e.info.Vocabulary) {
		return nil
	}
	c := &choice{token: h.First, lp: llm.Logprob{Token: h.First}, ok: true}
	if r.Logprobs >= 0 {
		if h.FirstLogprob == nil || h.FirstLogprob.Token != h.First {
			return nil
		}
		c.lp = *h.FirstLogprob
	}
	return c
}

func (e *Engine) acceptable(q *request) error {
	h := q.r.HandOff
	switch d := e.info.Contract.Diff(h.Contract); {
	case h.Mode != llm.ModeAfter:
		return fmt.Errorf("mode %q: this engine knows %q", h.Mode, llm.ModeAfter)
	case e.fetch == nil:
		return fmt.Errorf("%w: the node has no kv edge", errPeer)
	case len(d) > 0:
		return fmt.Errorf("%w: %s", errContract, strings.Join(d, ", "))
	case h.Tokens < 1 || h.Tokens > len(q.r.Tokens):
		return fmt.Errorf("it holds %d tokens, the request has %d", h.Tokens, len(q.r.Tokens))
	case !h.Deadline.IsZero() && time.Now().After(h.Deadline):
		return errExpired
	}
	return nil
}

// report counts what became of a hand-off and logs what went wrong.
func (e *Engine) report(q *request, err error) {
	result := "error"
	var f *flow.Error
	switch {
	case err == nil:
		result = "ok"
	case errors.Is(err, errLeft):
		result = "cancelled"
	case errors.Is(err, errContract):
		result = "contract"
	case errors.Is(err, errChecksum):
		result = "checksum"
	case errors.Is(err, errStalled):
		result = "timeout"
	case errors.Is(err, errExpired):
		result = "expired"
	case errors.Is(err, errPeer):
		result = "peer"
	case errors.As(err, &f):
		switch {
		case f.Reason == "handoff.contract":
			result = "contract"
		case f.Reason == "handoff.unknown":
			result = "expired"
		case f.Class == flow.Unavailable:
			result = "peer"
		}
	}
	e.m.handOff(result)(1)
	if err == nil || result == "cancelled" {
		return
	}
	if suppressed, ok := e.throttle.Pass(q.r.HandOff.Peer + " " + result); ok { // all that a lost peer had offered comes here
		e.host.Log().Warn("hand-off failed: the prompt is computed here", "request", q.r.ID, "peer", q.r.HandOff.Peer, "result", result,
			"suppressed", suppressed, "error", err)
	}
}

// begin starts imports.
func (e *Engine) begin(seqs []*sched.Seq) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range seqs {
		q := s.Data.(*request)
		if s.State != sched.Importing { // its reader left meanwhile
			e.core.Imported(s, 0)
			continue
		}
		ctx, cancel := context.WithCancelCause(kind.WithTrace(e.ctx, q.r.Trace))
		q.off.cancel, q.off.over = cancel, true
		size := e.info.Contract.BlockSize
		p := &pull{
			e: e, h: q.off.h, blocks: slices.Clone(s.Blocks), ids: s.IDs(), next: s.Computed / size, to: (s.Import + size - 1) / size,
			tokens: s.Computed,
		}
		e.wg.Go(func() {
			err := p.run(ctx)
			cancel(nil)
			if e.ctx.Err() == nil {
				e.report(q, err)
			}
			e.mu.Lock()
			e.core.Imported(s, p.tokens)
			if e.ctx.Err() == nil {
				e.release(q.off) //nolint:contextcheck // outlives the fetch
			}
			e.mu.Unlock()
			e.poke()
		})
	}
}

// pull copies the blocks of one hand-off.
type pull struct {
	e      *Engine
	h      *llm.HandOff
	blocks []int32
	ids    []hash.ID
	next   int // block to come
	to     int
	tokens int // whose KV is here and verified
}

func (p *pull) run(ctx context.Context) error {
	peer, err := p.e.fetch(p.h.Peer)
	if err != nil {
		return fmt.Errorf("%w: %w", errPeer, err)
	}
	if !p.h.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, p.h.Deadline, errExpired)
		defer cancel()
	}
	shared := p.e.peers.mappable(p.h.Peer)
	err = p.blocksOf(ctx, peer, shared)
	if shared && errors.Is(err, errNoMap) {
		p.e.host.Log().Info("fetching by bytes", "peer", p.h.Peer, "error", err)
		p.e.peers.avoid(p.h.Peer)
		err = p.blocksOf(ctx, peer, false)
	}
	return err
}

func (p *pull) blocksOf(ctx context.Context, peer flow.AsyncEngine[*llm.KVFetch, *llm.KVBlock], shared bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(fetchStall, func() { cancel(errStalled) })
	defer watch.Stop()
	for b, err := range peer.Generate(ctx, &llm.KVFetch{HandOff: p.h.ID, Contract: p.e.info.Contract, From: p.next, To: p.to, SharedMemory: shared}) {
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
		if err := p.take(b); err != nil {
			return err
		}
		watch.Reset(fetchStall)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case p.next < p.to:
		return fmt.Errorf("the peer gave blocks up to %d of %d", p.next, p.to)
	}
	return nil
}

// take copies one block and verifies the copy.
func (p *pull) take(b *llm.KVBlock) error {
	size := p.e.info.Contract.BlockSize
	want := min(size, p.h.Tokens-p.next*size)
	if p.next >= p.to || b.Index != p.next || b.Tokens != want {
		return fmt.Errorf("block %d with %d tokens, want block %d with %d", b.Index, b.Tokens, p.next, want)
	}
	if want == size && (p.next >= len(p.ids) || hash.ID(b.Hash) != p.ids[p.next]) {
		return fmt.Errorf("block %d: identity %x is not that of the request's tokens", b.Index, b.Hash)
	}
	data := b.Bytes
	if b.Region != "" {
		m, err := p.e.peers.get(p.h.Peer, b.Region)
		if err != nil {
			return fmt.Errorf("%w: %w", errNoMap, err)
		}
		defer func() {
			if e := p.e.peers.put(m); e != nil {
				p.e.host.Log().Warn("a peer's memory was not unmapped", "peer", p.h.Peer, "error", e)
			}
		}()
		all := m.mem.Bytes()
		if b.Length < 0 || b.Offset < 0 || b.Offset > int64(len(all))-int64(b.Length) {
			return fmt.Errorf("block %d: bytes [%d, +%d) of a region of %d", b.Index, b.Offset, b.Length, len(all))
		}
		data = all[b.Offset : b.Offset+int64(b.Length)]
	}
	own := p.e.block(p.blocks[p.next])
	if len(data) != len(own) {
		return fmt.Errorf("block %d has %d bytes, want %d", b.Index, len(data), len(own))
	}
	copy(own, data)
	if sum := hash.Sum(own); sum != b.Sum {
		return fmt.Errorf("block %d: %w: %016x, want %016x", b.Index, errChecksum, sum, b.Sum)
	}
	p.tokens = p.next*size + want
	p.next++
	return nil
}

// release tells the peer that its blocks are no longer wanted, in the background. The caller holds mu; the engine is open.
func (e *Engine) release(t *transfer) {
	t.over = true
	h := t.h
	e.wg.Go(func() {
		ctx, cancel := context.WithTimeout(e.ctx, releaseTime)
		defer cancel()
		peer, err := e.fetch(h.Peer)
		if err == nil {
			for _, err = range peer.Generate(ctx, &llm.KVFetch{HandOff: h.ID, Release: true}) {
				if err != nil {
					break
				}
			}
		}
		if err != nil && e.ctx.Err() == nil { // its deadline does it, later
			e.host.Log().Debug("hand-off not released", "handoff", h.ID, "peer", h.Peer, "error", err)
		}
	})
}
