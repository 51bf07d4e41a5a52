package frontend

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
)

type chatEngine = flow.AsyncEngine[*llm.ChatRequest, *llm.ChatDelta]

// answer runs a call's choices and writes what they say.
func (x *exchange) answer(ctx context.Context, c *call) {
	e, err := x.f.engine(c.model)
	if err != nil {
		x.fail(err)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var out sink
	if c.stream {
		s := newStream(x, c)
		defer s.stop()
		out = s
	} else {
		out = newReply(x, c)
	}
	t := tally{f: x.f, begin: x.begin, choices: make([]progress, len(c.requests))}
	if err := t.all(ctx, cancel, e, c, out); err != nil {
		err = c.blame(err)
		if x.status == 0 {
			x.fail(err)
			return
		}
		x.err = err
		out.broken(err)
		panic(http.ErrAbortHandler) // never a clean end: a client must not take half an answer for a whole one
	}
	u := t.usage(c.n)
	x.span.Int("gen_ai.usage.input_tokens", u.Prompt)
	x.span.Int("gen_ai.usage.output_tokens", u.Completion)
	x.span.Int("dynamo.cached_tokens", u.Cached)
	x.f.metrics.prompt(float64(u.Prompt))
	x.f.metrics.output(float64(u.Completion))
	x.f.metrics.cached(float64(u.Cached))
	out.end(u)
}

// sink takes what choices say. Its methods may be called by the goroutines of several choices.
type sink interface {
	delta(choice int, d *llm.ChatDelta, finish llm.FinishReason) bool // finish instead of d's; false: the client left
	broken(err error)                                                 // after something was sent
	end(u llm.Usage)
}

// tally watches over the choices of a call.
type tally struct {
	f       *Frontend
	begin   time.Time
	choices []progress

	mu      sync.Mutex
	begun   bool // something was given
	refused bool // before that: nothing will be
}

type progress struct {
	begun bool      // something was given
	calls bool      // of it, the begin of a tool call
	last  time.Time // of the last delta with tokens
	usage llm.Usage
}

// finishCalls is how an answer ends that the model ended behind a call; where the client named the function, it ends with "stop" as OpenAI's do.
const finishCalls llm.FinishReason = "tool_calls"

var errLeft = &flow.Error{Class: flow.Cancelled, Reason: "cancelled", Msg: "the client left"}

// one runs a choice to its end.
func (t *tally) one(ctx context.Context, e chatEngine, i int, q *llm.ChatRequest, out sink) error {
	p := &t.choices[i]
	named := q.ToolChoice.Mode == llm.ToolNamed
	for d, err := range e.Generate(ctx, q) {
		if err != nil {
			if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
				return errLeft
			}
			return err
		}
		if d == nil {
			continue
		}
		said := d.Text != "" || d.Reasoning != "" || len(d.Calls) > 0
		if len(d.Tokens) > 0 || said { // other servers give no tokens
			now := time.Now()
			if p.last.IsZero() {
				t.f.metrics.ttft(now.Sub(t.begin).Seconds())
			} else {
				t.f.metrics.itl(now.Sub(p.last).Seconds())
			}
			p.last = now
		}
		if d.Usage != nil {
			p.usage = *d.Usage
		}
		if d.Finish == llm.FinishAbort {
			continue // an error follows
		}
		if len(d.Tokens) == 0 && !said && d.Finish == "" && len(d.Logprobs) == 0 {
			continue // news for stages in between
		}
		if !p.begun {
			if !t.start() {
				return errLeft
			}
			p.begun = true
		}
		p.calls = p.calls || len(d.Calls) > 0
		finish := d.Finish
		if finish == llm.FinishStop && p.calls && !named {
			finish = finishCalls
		}
		if !out.delta(i, d, finish) {
			return errLeft
		}
		if d.Finish != "" {
			return nil
		}
	}
	if ctx.Err() != nil {
		return flow.AsError(context.Cause(ctx))
	}
	return &flow.Error{Class: flow.BackendProtocol, Reason: "frontend.incomplete", Msg: "the answer ended without a reason"}
}

// usage adds the choices up; the n choices of one prompt count it once.
func (t *tally) usage(n int) llm.Usage {
	var u llm.Usage
	for i, p := range t.choices {
		if i%n == 0 {
			u.Prompt += p.usage.Prompt
			u.Cached += p.usage.Cached
		}
		u.Completion += p.usage.Completion
		u.Reasoning += p.usage.Reasoning
	}
	return u
}
