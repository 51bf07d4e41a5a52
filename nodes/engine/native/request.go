package native

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/engine/sample"
	"github.com/dynamograph/dynamo/nodes/engine/sched"
	"github.com/dynamograph/dynamo/nodes/kv/hash"
	"github.com/dynamograph/dynamo/nodes/text/constrain"
)

// request is a sequence on its way. The loop writes to it, the Generate that made it reads.
type request struct {
	r     *llm.TokensRequest
	seq   sched.Seq
	state *sample.Sequence
	n     int      // output tokens so far, those of earlier attempts included
	given int      // prompt tokens, without output of earlier attempts
	stops []uint32 // ids that end the sequence
	rows  bool     // log-probabilities of the prompt are still to be computed
	lps   []llm.Logprob
	match *constrain.Matcher // what the output must be; nil: anything
	off   *transfer          // import of a hand-off; nil: none

	ready chan struct{} // there is news; one is enough

	mu  sync.Mutex
	out news
}

// news is what the reader has not seen.
type news struct {
	tokens   []uint32
	logprobs []llm.Logprob
	prompt   []llm.Logprob
	finish   llm.FinishReason
	stop     uint32
	handOff  *llm.HandOff
	usage    *llm.Usage
	err      *flow.Error
	done     bool
}

// Generate continues r.Tokens. A delta holds what came since the last one: one token where the reader keeps up, more where it does not.
// Usage counts the tokens that were given, not the one that stopped the sequence; Cached counts KV that this instance had, not what a
// hand-off brought. A stop id does not act before MinTokens because it is not chosen before.
func (e *Engine) Generate(ctx context.Context, r *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
	return func(yield func(*llm.TokensDelta, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(nil, flow.AsError(err))
			return
		}
		q, err := e.submit(ctx, r) //nolint:contextcheck // what it starts outlives the request
		if err != nil {
			yield(nil, err)
			return
		}
		defer e.leave(q) //nolint:contextcheck // likewise
		var d llm.TokensDelta
		var seen news // its slices go back and forth with the loop's
		for {
			select {
			case <-q.ready:
			case <-ctx.Done():
				yield(nil, flow.AsError(ctx.Err()))
				return
			}
			q.mu.Lock()
			seen.tokens, seen.logprobs = seen.tokens[:0], seen.logprobs[:0]
			seen.prompt = nil
			last := q.out
			q.out.tokens, q.out.logprobs, q.out.prompt = seen.tokens, seen.logprobs, nil
			q.mu.Unlock()
			seen.tokens, seen.logprobs = last.tokens, last.logprobs
			if len(last.tokens) > 0 || last.prompt != nil || last.finish != "" || last.handOff != nil {
				d = llm.TokensDelta{
					Tokens: last.tokens, Prompt: last.prompt, Finish: last.finish, StopID: last.stop, HandOff: last.handOff, Usage: last.usage,
					Instance: e.host.Instance(),
				}
				if r.Logprobs >= 0 {
					d.Logprobs = last.logprobs
				}
				if !yield(&d, nil) {
					return
				}
			}
			if last.err != nil {
				yield(nil, last.err)
			}
			if last.done {
				return
			}
		}
	}
}

// submit queues a request.
func (e *Engine) submit(ctx context.Context, r *llm.TokensRequest) (*request, *flow.Error) {
	if err := e.refuse(r); err != nil {
		return nil, err
	}
	q := &request{r: r, n: r.Generated, given: len(r.Tokens) - r.Generated, ready: make(chan struct{}, 1)}
	q.stops = slices.Clone(r.Stop.IDs)
	if !r.Stop.IgnoreEOS {
		q.stops = append(q.stops, e.ends...)
	}
	q.rows = r.PromptLogprobs
	room := e.info.Context - len(r.Tokens)
	if r.Stop.MaxTokens > 0 {
		room = min(room, r.Stop.MaxTokens-r.Generated)
	}
	tokens := make([]uint32, len(r.Tokens), len(r.Tokens)+max(0, min(room, 512))+1)
	copy(tokens, r.Tokens)
	if room <= 0 && r.Generated > 0 { // the earlier attempt was the last
		q.finish(llm.FinishLength, 0)
		q.wake()
		return q, nil
	}
	if r.Constraint != nil {
		var err *flow.Error
		if q.match, err = e.constrain(ctx, r); err != nil {
			return nil, err
		}
		if q.match.Done() { // the earlier attempt said all
			q.finish(llm.FinishStop, 0)
			q.wake()
			return q, nil
		}
	}
	q.state = sample.NewSequence(r.Sampling, r.Tokens[:q.given], r.Tokens[q.given:])
	scope := e.scope
	scope.Tenant, scope.Adapter, scope.Salt = r.Tenant, r.Adapter, r.Salt
	q.seq = sched.Seq{
		Tokens: tokens, Priority: r.Priority, Deadline: r.Deadline, Root: scope.Root(), Seed: hash.RequestSeed(r), Rows: q.rows, Data: q,
	}
	first := e.accept(q)
	q.seq.Name(e.info.Contract.BlockSize)

	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shut != nil {
		err := *e.shut
		e.drop(q)
		return nil, &err
	}
	if err := e.core.Submit(&q.seq); err != nil {
		err.Instance = e.host.Instance()
		e.drop(q) // whoever tries elsewhere asks prefill anew
		return nil, err
	}
	if first != nil {
		// Prefill's token is this side's first output; its KV is still to be computed.
		e.emit(q, first.token, first.lp)
	}
	if q.off != nil && (q.seq.Import == 0 || q.done()) {
		e.release(q.off)
	}
	e.poke()
	return q, nil
}

// emit gives out a chosen token, or ends the sequence by it. The caller holds mu.
func (e *Engine) emit(q *request, token uint32, lp llm.Logprob) {
	if slices.Contains(q.stops, token) && q.n >= q.r.Stop.MinTokens {
		q.finish(llm.FinishStop, token)
		e.core.End(&q.seq)
		q.wake()
		return
	}
	e.core.Append(&q.seq, token)
	q.state.Add(token)
	q.n++
	e.m.out(1)
	q.mu.Lock()
	q.out.tokens = append(q.out.tokens, token)
	if q.r.Logprobs >= 0 {
		q.out.logprobs = append(q.out.logprobs, lp)
	}
	q.mu.Unlock()
	switch {
	case q.match != nil && (!q.match.Accept(token) || q.match.Done()): // nothing but the end may follow
		q.finish(llm.FinishStop, 0)
		e.core.End(&q.seq)
	case e.full(q):
		q.finish(llm.FinishLength, 0)
		e.core.End(&q.seq)
	}
	q.wake()
}

// full reports whether q has all the tokens that it may have.
func (e *Engine) full(q *request) bool {
	return q.r.Stop.MaxTokens > 0 && q.n >= q.r.Stop.MaxTokens || len(q.seq.Tokens) >= e.info.Context
}

func (q *request) usage() *llm.Usage {
	return &llm.Usage{Prompt: q.given, Completion: q.n, Cached: min(q.seq.Cached, q.given)}
}

func (q *request) finish(f llm.FinishReason, stop uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.out.finish, q.out.stop, q.out.usage, q.out.done = f, stop, q.usage(), true
}

// fail ends q with an error, if it has not ended.
func (q *request) fail(err *flow.Error) {
	q.mu.Lock()
	if !q.out.done {
		q.out.err, q.out.done = err, true
	}
	q.mu.Unlock()
	q.wake()
}

func (q *request) done() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.out.done
}

func (q *request) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// leave frees what q holds; the reader is gone.
func (e *Engine) leave(q *request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if q.seq.State == sched.Ended || q.seq.Data == nil {
		return
	}
	e.core.End(&q.seq)
	e.drop(q)
	e.poke()
}

// offer ends the prefill phase: the blocks are kept for whoever continues. The caller holds mu.
func (e *Engine) offer(q *request, token uint32, lp llm.Logprob) {
	n := q.n
	final := slices.Contains(q.stops, token) && n >= q.r.Stop.MinTokens
	if !final {
		final = q.r.Stop.MaxTokens > 0 && n+1 >= q.r.Stop.MaxTokens || len(q.seq.Tokens)+1 >= e.info.Context
	}
	if final {
		e.emit(q, token, lp)
		return
	}
	now := time.Now()
	h := &llm.HandOff{
		Mode: llm.ModeAfter, Contract: e.info.Contract, Peer: e.host.Instance(), Tokens: len(q.seq.Tokens), First: token,
		Deadline: now.Add(handOffLife),
	}
	if q.r.Logprobs >= 0 {
		h.FirstLogprob = &lp
	}
	e.handOffs++
	h.ID = fmt.Sprintf("%s/%s/%d", h.Peer, e.epoch, e.handOffs)
	e.core.Pin(&q.seq, h.ID, now, h.Deadline)
	q.n++
	e.m.out(1)
	q.mu.Lock()
	q.out.tokens = append(q.out.tokens, token)
	if q.r.Logprobs >= 0 {
		q.out.logprobs = append(q.out.logprobs, lp)
	}
	q.out.handOff, q.out.usage, q.out.done = h, q.usage(), true
	q.mu.Unlock()
	q.wake()
}
