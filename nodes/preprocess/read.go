package preprocess

import (
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/text/parse"
)

// reader finds reasoning and tool calls in the text of an answer, token by token.
//
// A token whose text is withheld, because it may begin or is part of a marker, belongs to what comes next; a marker that ends reasoning is
// reasoning, and one that ends a call is part of the call. Log-probabilities go with the text that a token made; those of markers in front
// of content are dropped.
type reader struct {
	p         *parse.Parser
	one       bool // a second call is not wanted
	parts     []llm.ChatDelta
	said      said
	waiting   int               // tokens without text so far
	logprobs  []llm.TextLogprob // theirs
	reasoning int               // tokens
	called    bool
}

// said is what an answer said last.
type said uint8

const (
	nothing said = iota
	content
	thought
	call
)

func newReader(t *turn) (*reader, error) {
	p, err := parse.New(t.parse)
	if err != nil {
		return nil, err
	}
	r := &reader{p: p, one: t.parse.OneCall}
	if p.InReasoning() {
		r.said = thought
	}
	return r, nil
}

// next begins with another delta of the engine.
func (r *reader) next() { r.parts = r.parts[:0] }

// token takes the text that came with a token, and reports whether no more is wanted.
func (r *reader) token(text string, l *llm.TextLogprob) (over bool) {
	var events []parse.Event
	if text != "" {
		events = r.p.Feed(text)
	}
	if len(events) == 0 {
		r.waiting++
		if l != nil {
			r.logprobs = append(r.logprobs, *l)
		}
		return false
	}
	before, first := r.said, of(events[0].Kind)
	r.settle(first)
	if first == thought {
		r.reasoning++
	}
	if l != nil {
		r.logprobs = append(r.logprobs, *l)
	}
	marker := first == content && before > content
	for i := range events {
		at := r.event(&events[i])
		if at != nil && len(r.logprobs) > 0 {
			if n := len(r.logprobs); marker && l != nil {
				r.logprobs = r.logprobs[n-1:]
			} else if marker {
				r.logprobs = r.logprobs[:0]
			}
			at.Logprobs = append(at.Logprobs, r.logprobs...)
			r.logprobs = r.logprobs[:0]
		}
		if r.one && events[i].Kind == parse.CallEnd {
			return true
		}
	}
	return false
}

// settle says of the tokens that waited whether they are reasoning.
func (r *reader) settle(next said) {
	if r.said == thought || next == thought {
		r.reasoning += r.waiting
	}
	r.waiting = 0
}

// end takes what comes behind the last token. cut says that the text was broken off. Tokens that come to be no text of the answer, as those of
// a stop string, have no log-probabilities: how many of them are of the last delta is chance.
func (r *reader) end(text string, cut bool) {
	any := false
	take := func(events []parse.Event) {
		for i := range events {
			any = r.event(&events[i]) != nil || any
		}
	}
	if text != "" {
		take(r.p.Feed(text))
	}
	take(r.p.Finish(cut))
	r.settle(r.said)
	if any {
		d := &r.parts[len(r.parts)-1]
		d.Logprobs = append(d.Logprobs, r.logprobs...)
	}
	r.logprobs = nil
}

func of(k parse.Kind) said {
	switch k {
	case parse.Content:
		return content
	case parse.Reasoning:
		return thought
	}
	return call
}

// event adds to the parts and returns the one that it added to; nil for none.
func (r *reader) event(e *parse.Event) *llm.ChatDelta {
	k := of(e.Kind)
	if e.Kind == parse.CallEnd {
		r.said = k
		return nil
	}
	n := len(r.parts)
	if n == 0 || k != r.said {
		if n < cap(r.parts) {
			r.parts = r.parts[:n+1]
			calls, l := r.parts[n].Calls, r.parts[n].Logprobs
			r.parts[n] = llm.ChatDelta{Calls: calls[:0], Logprobs: l[:0]}
		} else {
			r.parts = append(r.parts, llm.ChatDelta{})
		}
		n++
	}
	r.said = k
	d := &r.parts[n-1]
	switch e.Kind {
	case parse.Content:
		d.Text = join(d.Text, e.Text)
	case parse.Reasoning:
		d.Reasoning = join(d.Reasoning, e.Text)
	case parse.CallBegin:
		r.called = true
		d.Calls = append(d.Calls, llm.CallDelta{Index: e.Call, ID: e.ID, Name: e.Name})
	case parse.CallArguments:
		if c := len(d.Calls); c > 0 && d.Calls[c-1].Index == e.Call {
			d.Calls[c-1].Arguments = join(d.Calls[c-1].Arguments, e.Text)
		} else {
			d.Calls = append(d.Calls, llm.CallDelta{Index: e.Call, Arguments: e.Text})
		}
	}
	return d
}

// join adds b to a, for nothing where a is empty.
func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + b
}
