package native

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine/native/llama"
	"github.com/dynamograph/dynamo/nodes/engine/sched"
)

// choice is what a work that ends its sequence's tokens led to.
type choice struct {
	token uint32
	lp    llm.Logprob
	ok    bool
	err   error // of the request's constraint
}

// run is the engine's loop, one goroutine from start to Close.
func (e *Engine) run() {
	defer e.turn.Store(0)
	for e.ctx.Err() == nil {
		e.turn.Store(time.Now().UnixNano())
		busy, wake, ok := e.guarded()
		if !ok {
			return
		}
		if busy {
			// Readers first: where the next step computes on all CPUs, they would wait for the scheduler to interrupt it, most of a step.
			runtime.Gosched()
			continue
		}
		e.turn.Store(0)
		var alarm <-chan time.Time
		var timer *time.Timer
		if !wake.IsZero() {
			timer = time.NewTimer(time.Until(wake))
			alarm = timer.C
		}
		select {
		case <-e.wake:
		case <-alarm:
		case <-e.ctx.Done():
		}
		if timer != nil {
			timer.Stop()
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failAll(e.closed())
}

// guarded does a turn. A panic fails the requests of the step, and the engine: who else is in flight may try another instance.
func (e *Engine) guarded() (busy bool, wake time.Time, ok bool) {
	var step *sched.Step
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		ok = false
		e.host.Log().Error("engine step panicked", "panic", p, "stack", string(debug.Stack()))
		e.mu.Lock()
		defer e.mu.Unlock()
		if step != nil {
			for _, w := range step.Run {
				w.Seq.Data.(*request).fail(&flow.Error{Class: flow.Internal, Reason: "engine.panic", Msg: "internal error in the engine", Instance: e.host.Instance()})
			}
		}
		e.shut = &flow.Error{Class: flow.Unavailable, Reason: "engine.failed", Msg: "the engine has failed", Instance: e.host.Instance(), Retry: true}
		e.failAll(e.shut)
		e.cancel()
		e.host.Report(kind.Failed, fmt.Sprintf("engine step panicked: %v", p))
	}()
	step = e.plan()
	// Blocks that change hands are zeroed, so that nothing of their former owner is in those that are not filled to the end, and equal
	// blocks are equal in every byte. Nobody else looks at them now.
	for _, b := range step.Fresh {
		clear(e.block(b))
	}
	if len(step.Import) > 0 {
		e.begin(step.Import)
	}
	if len(step.Run) == 0 {
		return false, step.Wake, true
	}
	begin := time.Now()
	err := e.model.Forward(e.slab, e.batch)
	if err == nil {
		e.choose(step)
	}
	e.settle(step, err, time.Since(begin))
	return true, time.Time{}, true
}

// failAll ends every sequence with err. The caller holds mu.
func (e *Engine) failAll(err *flow.Error) {
	var all []*sched.Seq
	e.core.Each(func(s *sched.Seq) { all = append(all, s) })
	for _, s := range all {
		e.core.End(s)
		each := *err // readers may add to theirs
		s.Data.(*request).fail(&each)
	}
	e.publish()
}

// plan asks the scheduler and lays out the batch.
func (e *Engine) plan() *sched.Step {
	e.mu.Lock()
	defer e.mu.Unlock()
	step := e.core.Plan(time.Now())
	for _, s := range step.Expired {
		q := s.Data.(*request)
		q.fail(&flow.Error{Class: flow.DeadlineExceeded, Reason: "engine.deadline", Msg: "the request's deadline passed", Instance: e.host.Instance()})
		e.drop(q)
	}
	e.batch = e.batch[:0]
	rows := 0
	for _, w := range step.Run {
		n, q := 0, w.Seq.Data.(*request)
		if q.off != nil && !q.off.over { // all that it offers is here
			e.m.handOff("cached")(1)
			e.release(q.off)
		}
		if q.rows {
			n = w.N
		} else if w.Last {
			n = 1
		}
		for len(e.rows) < rows+n {
			e.rows = append(e.rows, make([]float32, e.info.Vocabulary))
		}
		e.batch = append(e.batch, llama.Seq{Tokens: w.Seq.Tokens[w.Pos : w.Pos+w.N], Pos: w.Pos, Blocks: w.Seq.Blocks, Logits: e.rows[rows : rows+n]})
		rows += n
	}
	e.publish()
	return step
}

// choose turns logits into tokens.
func (e *Engine) choose(step *sched.Step) {
	e.chosen = e.chosen[:0]
	for i, w := range step.Run {
		q, logits := w.Seq.Data.(*request), e.batch[i].Logits
		if q.rows {
			e.promptRows(q, w, logits)
		}
		var c choice
		if w.Last {
			row := logits[len(logits)-1]
			var forbid []uint32
			if q.n < q.r.Stop.MinTokens {
				forbid = q.stops
			}
			var allow []uint64
			if q.match != nil {
				if q.r.Stop.IgnoreEOS {
					forbid = append(slices.Clip(forbid), e.ends...)
				}
				allow, c.err = q.match.Mask()
			}
			if c.token, c.ok = e.sampler.Next(q.state, q.n, row, forbid, allow); c.ok && q.r.Logprobs >= 0 {
				c.lp = e.sampler.Logprob(row, c.token, q.r.Logprobs)
			}
		}
		e.chosen = append(e.chosen, c)
	}
}

// promptRows collects log-probabilities of the prompt. After a preemption positions come again: each is taken once.
func (e *Engine) promptRows(q *request, w sched.Work, logits [][]float32) {
	if len(q.lps) == 0 {
		q.lps = append(make([]llm.Logprob, 0, q.given), llm.Logprob{Token: q.r.Tokens[0]})
	}
	for j, row := range logits {
		if next := w.Pos + j + 1; next == len(q.lps) && next < q.given {
			q.lps = append(q.lps, e.sampler.Logprob(row, q.r.Tokens[next], q.r.Logprobs))
		}
	}
	if len(q.lps) == q.given {
		q.rows = false
		q.mu.Lock()
		q.out.prompt = q.lps
		q.mu.Unlock()
	}
}

// settle tells the scheduler and the readers what became of a step.
func (e *Engine) settle(step *sched.Step, err error, took time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.host.Log().Error("engine step failed", "error", err)
	}
	in := 0
	for i, w := range step.Run {
		q := w.Seq.Data.(*request)
		if w.Seq.State != sched.Running {
			continue // its reader left meanwhile
		}
		if err != nil {
			e.core.End(w.Seq)
			q.fail(&flow.Error{Class: flow.Internal, Reason: "engine.step", Msg: "internal error in the engine", Instance: e.host.Instance(), Err: err})
			continue
		}
		e.core.Commit(w)
		in += min(w.Pos+w.N, w.Seq.Prompt) - min(w.Pos, w.Seq.Prompt)
		if !w.Last {
			continue
		}
		switch c := &e.chosen[i]; {
		case c.err != nil:
			e.core.End(w.Seq)
			f := flow.Errorf(flow.InvalidRequest, "constraint.invalid", "constraint: %v", c.err)
			f.Instance = e.host.Instance()
			q.fail(f)
		case !c.ok && q.match != nil:
			e.core.End(w.Seq)
			q.fail(&flow.Error{Class: flow.InvalidRequest, Reason: "constraint.dead_end", Msg: "constraint: no token of this model may follow what was written", Instance: e.host.Instance()})
		case !c.ok:
			e.core.End(w.Seq)
			q.fail(&flow.Error{Class: flow.Internal, Reason: "engine.logits", Msg: "the model's logits are not numbers, or all tokens are excluded", Instance: e.host.Instance()})
		case q.r.Phase == llm.PhasePrefill:
			e.offer(q, c.token, c.lp)
		default:
			e.emit(q, c.token, c.lp)
		}
	}
	e.m.in(float64(in))
	e.m.step(took.Seconds())
}

// publish tells subscribers and gauges how things are. The caller holds mu.
func (e *Engine) publish() {
	e.events.Append(e.core.Events())
	st := e.core.Stats()
	e.loads.set(st.Load)
	e.m.running(float64(st.Running))
	e.m.waiting(float64(st.Waiting))
	e.m.blocks(float64(st.BlocksUsed))
	if d := st.Evicted - e.evicted; d > 0 {
		e.m.preempted(float64(d))
		e.evicted = st.Evicted
	}
	if d := st.Found - e.found; d > 0 {
		e.m.found(float64(d))
		e.found = st.Found
	}
}
