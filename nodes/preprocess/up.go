package preprocess

import (
	"context"
	"iter"
	"unicode/utf8"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/text/detok"
)

// Generate answers one request. The ChatDelta that it yields, and the slices in it, are valid until the loop's next turn. Every error is a
// *flow.Error; those from below pass untouched, behind the text that was held back.
//
// The first delta carries Usage with the prompt's length; with Echo its text begins with the prompt's, and with logprobs too its Logprobs
// begin with one for each prompt token, so that there are more of them than Tokens; with NoOutput that is all. The last delta carries Finish
// and the whole Usage. A stop string ends the work below at once, and so does the end of the first call with OneCall.
//
// Where reasoning or calls are read out of the text, a delta of the engine may give several, in the order in which the model wrote them;
// see reader for what of a token belongs where.
func (n *Node) Generate(ctx context.Context, r *llm.ChatRequest) iter.Seq2[*llm.ChatDelta, error] {
	return func(yield func(*llm.ChatDelta, error) bool) {
		ctx, done, err := n.calls.Begin(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		defer done()
		ctx, span := kind.StartSpan(ctx, n.h, r.Trace, "preprocess")
		yield, end := kind.Follow(span, yield)
		defer end()
		span.Str("dynamo.request.id", r.ID)
		m, err := n.model(r.Model)
		if err != nil {
			yield(nil, err)
			return
		}
		q, t, err := m.down(ctx, r)
		if err != nil {
			yield(nil, flow.AsError(err))
			return
		}
		peer, err := n.pick(r.Routing.Pin)
		if err != nil {
			yield(nil, err)
			return
		}
		span.Int("gen_ai.usage.input_tokens", len(q.Tokens))
		span.Event("tokens")
		if span.On() {
			q.Trace = span.Traceparent()
		}
		u, err := newUp(m, r, q, t)
		if err != nil {
			yield(nil, flow.AsError(err))
			return
		}
		defer u.close()
		u.run(peer.Generate(ctx, q), yield)
	}
}

// up is the way up of one request.
type up struct {
	m      *served
	d      *detok.Decoder
	read   *reader // nil: all text is content
	prompt []uint32
	echo   string
	mute   bool // nothing of what is generated is given
	place  place
	out    llm.ChatDelta
	usage  llm.Usage
	begun  bool // a delta was yielded
	over   bool // Finish was yielded
	text   []byte
}

func newUp(m *served, r *llm.ChatRequest, q *llm.TokensRequest, t *turn) (*up, error) {
	u := &up{m: m, prompt: q.Tokens, usage: llm.Usage{Prompt: len(q.Tokens)}, mute: r.Echo && r.NoOutput, place: place{tok: m.tok, special: r.KeepSpecial}}
	o := detok.Options{Stops: r.StopStrings, IncludeStop: r.IncludeStop, KeepSpecial: r.KeepSpecial, MinTokens: r.Stop.MinTokens}
	if t.reads() {
		var err error
		if u.read, err = newReader(t); err != nil {
			return nil, err
		}
		o.Keep = t.kept
	}
	u.d = detok.New(m.tok, o)
	if r.Echo && len(r.Messages) == 0 {
		if u.echo = r.Prompt; len(r.Tokens) > 0 {
			u.echo = m.tok.Decode(r.Tokens, r.KeepSpecial)
		}
		u.place.written = r.Prompt
	}
	return u, nil
}

// close ends what still waits for text.
func (u *up) close() {
	if u.read != nil {
		u.read.p.Close()
	}
}

func (u *up) run(deltas iter.Seq2[*llm.TokensDelta, error], yield func(*llm.ChatDelta, error) bool) {
	stopped := false
	for d, err := range deltas {
		if u.over { // all was said; the stream below is let come to its end
			continue
		}
		if err != nil {
			if u.rest(yield) {
				yield(nil, err)
			}
			return
		}
		if d == nil {
			continue
		}
		if d.Instance != "" {
			u.out.Instance = d.Instance
		}
		if len(d.Tokens) == 0 && d.Finish == "" && d.Usage == nil && len(d.Prompt) == 0 {
			continue // tells only who works on it
		}
		if u.read == nil {
			stopped = u.take(d)
		} else {
			stopped = u.takeRead(d)
		}
		if stopped {
			break // which ends the work below
		}
		if d.Finish == llm.FinishAbort {
			u.out.Finish, u.out.Usage = "", nil // the error that follows says it
		}
		u.over = u.out.Finish != ""
		if !u.give(yield) {
			return
		}
	}
	switch {
	case stopped:
		u.out.Finish = llm.FinishStop
		u.out.Usage = &u.usage
		u.give(yield)
	case !u.over:
		if u.rest(yield) {
			yield(nil, &flow.Error{Class: flow.BackendProtocol, Reason: "preprocess.incomplete", Msg: "the answer ended without a reason", Instance: u.out.Instance})
		}
	}
}

// take turns one delta into out and reports whether a stop string ended the text.
func (u *up) take(d *llm.TokensDelta) (stopped bool) {
	n := 0
	for n < len(d.Tokens) && !stopped && !u.mute {
		stopped = u.d.Add(d.Tokens[n])
		n++
	}
	u.count(d, n, stopped)
	if d.Finish != "" && !stopped {
		stopped = u.d.Finish()
	}
	u.out.Text = u.d.Text()
	u.logprobs(d, n)
	return stopped
}

// takeRead is take where reasoning and calls are read out of the text: it takes the tokens one by one, so that it is known what each of
// them is part of. The end of the one call that was wanted ends the text, too.
func (u *up) takeRead(d *llm.TokensDelta) (stopped bool) {
	u.read.next()
	n, cut := 0, false
	for n < len(d.Tokens) && !stopped {
		cut = u.d.Add(d.Tokens[n])
		var l *llm.TextLogprob
		if n < len(d.Logprobs) {
			t := u.logprob(d.Logprobs[n])
			t.Offset = u.place.output(t.Token)
			l = &t
		}
		n++
		stopped = u.read.token(u.d.Text(), l) || cut
	}
	u.count(d, n, stopped)
	if d.Finish != "" && !stopped {
		stopped = u.d.Finish()
		cut = stopped || d.Finish != llm.FinishStop
	}
	if stopped || d.Finish != "" {
		u.read.end(u.d.Text(), cut)
		u.usage.Reasoning = u.read.reasoning
	}
	return stopped
}

// count notes what n tokens of a delta change but for text.
func (u *up) count(d *llm.TokensDelta, n int, stopped bool) {
	u.usage.Completion += n
	if d.Usage != nil {
		u.usage.Cached = d.Usage.Cached
		if !stopped {
			u.usage.Completion = d.Usage.Completion
		}
	}
	u.out.Finish = d.Finish
	if u.mute {
		if u.usage.Completion = 0; d.Finish == llm.FinishStop {
			u.out.Finish = llm.FinishLength
		}
	}
	u.out.Tokens = d.Tokens[:n]
	if u.out.Usage = nil; d.Finish != "" {
		u.out.Usage = &u.usage
	}
}

// rest gives what was held back where no finish comes.
func (u *up) rest(yield func(*llm.ChatDelta, error) bool) bool {
	u.d.Finish()
	u.out = llm.ChatDelta{Text: u.d.Text(), Instance: u.out.Instance}
	if u.read != nil {
		u.read.next()
		u.read.end(u.out.Text, true)
		if u.out.Text = ""; len(u.read.parts) == 0 {
			return true
		}
		return u.give(yield)
	}
	return u.out.Text == "" || u.give(yield)
}

// give yields what the engine's delta gave: one delta, or several where it said things of several kinds. Tokens come with the first, the
// reason of the end and usage with the last.
func (u *up) give(yield func(*llm.ChatDelta, error) bool) bool {
	var begin *llm.Usage
	if !u.begun {
		u.begun = true
		begin = &llm.Usage{Prompt: u.usage.Prompt}
		if u.echo != "" {
			u.out.Text = u.echo + u.out.Text
		}
		if u.out.Usage == nil {
			u.out.Usage = begin
		}
	}
	if u.read == nil {
		return yield(&u.out, nil)
	}
	finish, usage := u.out.Finish, u.out.Usage
	u.out.Text, u.out.Reasoning, u.out.Calls, u.out.Logprobs = "", "", nil, nil
	last := len(u.read.parts) - 1
	for i := range u.read.parts {
		p := &u.read.parts[i]
		u.out.Text, u.out.Reasoning, u.out.Calls, u.out.Logprobs = p.Text, p.Reasoning, p.Calls, p.Logprobs
		if u.out.Finish, u.out.Usage = "", begin; i == last {
			u.out.Finish, u.out.Usage = finish, usage
		}
		if !yield(&u.out, nil) {
			return false
		}
		u.out.Tokens, begin = nil, nil
		if finish == "" {
			usage = nil
		}
	}
	return last >= 0 || yield(&u.out, nil)
}

// logprobs brings the first n log-probabilities of d, and those of the prompt, to text.
func (u *up) logprobs(d *llm.TokensDelta, n int) {
	u.out.Logprobs = u.out.Logprobs[:0]
	for i, l := range d.Prompt[:min(len(u.prompt), len(d.Prompt))] {
		l.Token = u.prompt[i] // the first is empty: nothing stands before it
		t := u.logprob(l)
		t.None, t.Offset = i == 0, u.place.prompt(l.Token, i)
		u.out.Logprobs = append(u.out.Logprobs, t)
	}
	for _, l := range d.Logprobs[:min(n, len(d.Logprobs))] {
		t := u.logprob(l)
		t.Offset = u.place.output(l.Token)
		u.out.Logprobs = append(u.out.Logprobs, t)
	}
}

func (u *up) logprob(l llm.Logprob) llm.TextLogprob {
	t := u.one(l.Token, l.Logprob)
	if len(l.Top) > 0 {
		t.Top = make([]llm.TextLogprob, len(l.Top))
		for i, a := range l.Top {
			t.Top[i] = u.one(a.Token, a.Logprob)
		}
	}
	return t
}

// one is a token by itself: its text does not depend on its neighbours.
func (u *up) one(id uint32, p float32) llm.TextLogprob {
	t := llm.TextLogprob{Token: id, Text: u.m.tok.Piece(id), Logprob: p}
	t.Bytes = []byte(t.Text)
	if !utf8.ValidString(t.Text) {
		u.text, _ = detok.AppendValid(u.text[:0], t.Bytes, true)
		t.Text = string(u.text)
	}
	return t
}
