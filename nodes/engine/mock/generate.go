package mock

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// Generate answers r.
func (e *Engine) Generate(ctx context.Context, r *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
	return func(yield func(*llm.TokensDelta, error) bool) {
		e.mu.Lock()
		if e.closed {
			e.mu.Unlock()
			yield(nil, errClosed(e.self))
			return
		}
		e.calls.Add(1)
		e.requests++
		number := e.requests
		e.mu.Unlock()
		defer e.calls.Done()
		s := &sequence{e: e, r: r, yield: yield, number: number}
		if err := s.run(ctx); err != nil {
			yield(nil, err)
		}
	}
}

// sequence is one request in progress.
type sequence struct {
	e       *Engine
	r       *llm.TokensRequest
	number  int // of the request, from 1
	yield   func(*llm.TokensDelta, error) bool
	prompt  []uint32
	out     int // tokens of output, Generated included
	answer  answer
	delta   llm.TokensDelta
	one     [1]uint32
	logprob [1]llm.Logprob
	timer   *time.Timer
	handed  bool // the first token comes from the hand-off
}

// run returns an error that is to be yielded, or nil when the stream is over.
func (s *sequence) run(ctx context.Context) error {
	e, r := s.e, s.r
	if err := e.accept(r); err != nil {
		return err
	}
	s.prompt, s.out = r.Tokens[:len(r.Tokens)-r.Generated], r.Generated
	s.answer = e.answer(s.prompt, r.Sampling)
	if err := e.admit(ctx, len(r.Tokens)); err != nil {
		return err
	}
	blocks := (len(r.Tokens) + BlockSize - 1) / BlockSize
	e.change(func() { e.used += blocks })
	defer e.change(func() { e.running--; e.used -= blocks })
	defer func() { <-e.slots }()
	s.timer = time.NewTimer(time.Hour)
	defer s.timer.Stop()

	known := 0 // tokens whose KV came from elsewhere
	if r.Phase == llm.PhaseDecode && r.HandOff != nil {
		known = e.take(ctx, r)
		s.handed = known > 0 && r.HandOff.Mode == llm.ModeAfter
	}
	err := s.wait(ctx, e.timing.ttft+time.Duration(len(r.Tokens)-known)*e.timing.perPrompt)
	e.change(func() { e.prefill -= len(r.Tokens) })
	if err != nil {
		return err
	}
	if r.PromptLogprobs {
		s.delta.Prompt = make([]llm.Logprob, len(s.prompt))
		for i, t := range s.prompt[1:] {
			s.delta.Prompt[i+1] = llm.Logprob{Token: t, Logprob: -1}
		}
	}
	for first := true; ; first = false {
		if !first {
			if err := s.wait(ctx, e.timing.itl); err != nil {
				return err
			}
		}
		over, err := s.step(ctx)
		if over || err != nil {
			return err
		}
	}
}

// step gives one token, or the end.
func (s *sequence) step(ctx context.Context) (over bool, err error) {
	r, n := s.r, s.out
	if err := s.inject(ctx, n-r.Generated); err != nil {
		return true, err
	}
	t := s.answer.token(n)
	if s.handed && n == r.Generated {
		t = r.HandOff.First
	}
	switch {
	case r.Stop.MaxTokens > 0 && n >= r.Stop.MaxTokens || len(s.prompt)+n >= s.e.info.Context:
		return s.finish(llm.FinishLength, 0), nil
	case n < r.Stop.MinTokens:
	case s.answer.ends(n) && !r.Stop.IgnoreEOS:
		return s.finish(llm.FinishStop, EndTurn%uint32(s.e.info.Vocabulary)), nil
	case slices.Contains(r.Stop.IDs, t):
		return s.finish(llm.FinishStop, t), nil
	}
	if f := s.e.fail; f != nil && f.Kind == "garbage" && s.hit(n-r.Generated) {
		t = uint32(s.e.info.Vocabulary) + 7
	}
	s.out++
	s.one[0] = t
	s.delta.Tokens = s.one[:]
	if r.Logprobs >= 0 {
		s.logprob[0] = s.answer.logprob(n, r.Logprobs)
		s.delta.Logprobs = s.logprob[:]
	}
	if r.Stop.MaxTokens > 0 && s.out >= r.Stop.MaxTokens || len(s.prompt)+s.out >= s.e.info.Context {
		return s.finish(llm.FinishLength, 0), nil
	}
	if r.Phase == llm.PhasePrefill {
		s.delta.HandOff = s.e.offer(r, t, s.delta.Logprobs)
		s.delta.Usage = s.usage()
		s.yield(&s.delta, nil)
		return true, nil
	}
	over = !s.yield(&s.delta, nil)
	s.delta = llm.TokensDelta{}
	return over, nil
}

func (s *sequence) usage() *llm.Usage { return &llm.Usage{Prompt: len(s.prompt), Completion: s.out} }

func (s *sequence) finish(f llm.FinishReason, id uint32) bool {
	s.delta.Finish, s.delta.StopID, s.delta.Usage = f, id, s.usage()
	s.yield(&s.delta, nil)
	return true
}

// hit reports whether the scripted failure happens to this request after n tokens.
func (s *sequence) hit(n int) bool {
	f := s.e.fail
	return f != nil && s.number%max(f.Every, 1) == 0 && n >= f.After
}

func (s *sequence) inject(ctx context.Context, n int) error {
	if !s.hit(n) {
		return nil
	}
	switch e := s.e; e.fail.Kind {
	case "error":
		return &flow.Error{Class: flow.Unavailable, Reason: "engine.injected", Msg: "injected failure", Instance: e.self, Retry: true}
	case "hang":
		return s.wait(ctx, 1<<62)
	case "die":
		if e.die != nil {
			e.die()
		}
		e.shut()
		return errClosed(e.self)
	}
	return nil
}

// wait waits for d, the engine's end or ctx's.
func (s *sequence) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		select {
		case <-s.e.done:
			return errClosed(s.e.self)
		case <-ctx.Done():
			return flow.AsError(context.Cause(ctx))
		default:
			return nil
		}
	}
	s.timer.Reset(d)
	select {
	case <-s.timer.C:
		return nil
	case <-s.e.done:
		return errClosed(s.e.self)
	case <-ctx.Done():
		return flow.AsError(context.Cause(ctx))
	}
}

// accept refuses what the mock cannot honour.
func (e *Engine) accept(r *llm.TokensRequest) error {
	refuse := func(param, what string) error {
		return &flow.Error{Class: flow.NotImplemented, Reason: "engine.unsupported", Param: param, Msg: "the mock engine does not support " + what}
	}
	switch {
	case r.Constraint != nil:
		return refuse("response_format", "constrained output")
	case r.Adapter != "":
		return refuse("model", "adapters")
	case len(r.Media) > 0:
		return refuse("messages", "media")
	case len(r.Extra) > 0:
		return refuse("extra", "extra parameters")
	case r.Generated < 0 || len(r.Tokens) <= r.Generated:
		return flow.Errorf(flow.InvalidRequest, "engine.empty_prompt", "the prompt is empty")
	}
	n := len(r.Tokens) - r.Generated
	if n >= e.info.Context {
		return flow.Errorf(flow.InvalidRequest, "engine.context_length",
			"this model's maximum context length is %d tokens, but the prompt has %d and leaves no room for an answer", e.info.Context, n)
	}
	for _, t := range r.Tokens {
		if int(t) >= e.info.Vocabulary {
			return flow.Errorf(flow.InvalidRequest, "engine.token_id", "token id %d is outside of the vocabulary of %d", t, e.info.Vocabulary)
		}
	}
	return nil
}

// admit waits for a place in the batch.
func (e *Engine) admit(ctx context.Context, tokens int) error {
	e.mu.Lock()
	full := e.waiting >= e.queue && len(e.slots) == cap(e.slots)
	e.mu.Unlock()
	if full {
		return &flow.Error{
			Class: flow.CapacityExhausted, Reason: "engine.queue_full", Instance: e.self, Retry: true, RetryAfter: time.Second,
			Msg: fmt.Sprintf("%d sequences wait already", e.queue),
		}
	}
	e.change(func() { e.waiting++; e.prefill += tokens })
	var err error
	select {
	case e.slots <- struct{}{}:
		e.change(func() { e.waiting--; e.running++ })
		return nil
	case <-e.done:
		err = errClosed(e.self)
	case <-ctx.Done():
		err = flow.AsError(context.Cause(ctx))
	}
	e.change(func() { e.waiting--; e.prefill -= tokens })
	return err
}
