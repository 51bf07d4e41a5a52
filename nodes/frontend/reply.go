package frontend

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// reply collects the choices of a call that does not stream.
type reply struct {
	x       *exchange
	c       *call
	mu      sync.Mutex
	choices []choice
}

type choice struct {
	text      []byte
	reasoning []byte
	calls     []toolCall
	logprobs  []llm.TextLogprob
	finish    llm.FinishReason
}

type toolCall struct {
	id, name  string
	arguments []byte
}

func newReply(x *exchange, c *call) *reply {
	return &reply{x: x, c: c, choices: make([]choice, len(c.requests))}
}

func (r *reply) delta(i int, d *llm.ChatDelta, finish llm.FinishReason) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &r.choices[i]
	c.text = append(c.text, d.Text...)
	c.finish = finish
	if !r.c.quiet {
		c.reasoning = append(c.reasoning, d.Reasoning...)
	}
	for _, l := range d.Calls {
		for l.Index >= len(c.calls) {
			c.calls = append(c.calls, toolCall{})
		}
		o := &c.calls[l.Index]
		o.id, o.name, o.arguments = o.id+l.ID, o.name+l.Name, append(o.arguments, l.Arguments...)
	}
	if !contentLogprobs(d) {
		return true
	}
	for _, l := range d.Logprobs { // a delta lives until the next only
		l.Bytes = append([]byte(nil), l.Bytes...)
		top := make([]llm.TextLogprob, len(l.Top))
		for k, t := range l.Top {
			t.Bytes = append([]byte(nil), t.Bytes...)
			top[k] = t
		}
		l.Top = top
		c.logprobs = append(c.logprobs, l)
	}
	return true
}

// broken has nothing to do: nothing is sent before the end.
func (r *reply) broken(error) {}

func (r *reply) end(u llm.Usage) {
	object := "text_completion"
	if r.c.chat {
		object = "chat.completion"
	}
	b := append([]byte(nil), `{"id":"`+r.c.id+`","object":"`+object+`","created":`...)
	b = strconv.AppendInt(b, r.c.created, 10)
	b = append(b, `,"model":`...)
	b = appendString(b, r.c.model)
	b = append(b, `,"choices":[`...)
	for i := range r.choices {
		c := &r.choices[i]
		b = comma(b, i)
		b = append(b, `{"index":`...)
		b = strconv.AppendInt(b, int64(i), 10)
		if r.c.chat {
			b = append(b, `,"message":`...)
			b = r.appendMessage(b, c)
			b = append(b, `,"logprobs":`...)
			b = r.c.appendChatLogprobs(b, c.logprobs)
		} else {
			b = append(b, `,"text":`...)
			b = appendString(b, string(c.text))
			b = append(b, `,"logprobs":`...)
			if r.c.logprobs {
				b = appendClassicLogprobs(b, c.logprobs)
			} else {
				b = append(b, "null"...)
			}
		}
		b = append(b, `,"finish_reason":"`...)
		b = append(b, c.finish...)
		b = append(b, `"}`...)
	}
	b = append(b, `],"usage":`...)
	b = appendUsage(b, u)
	r.x.send(http.StatusOK, append(b, "}\n"...))
}

// appendMessage appends what the assistant said. Its content is null where it made calls or thought, and said nothing else.
func (r *reply) appendMessage(b []byte, c *choice) []byte {
	b = append(b, `{"role":"assistant","content":`...)
	if len(c.text) == 0 && (len(c.calls) > 0 || len(c.reasoning) > 0) {
		b = append(b, "null"...)
	} else {
		b = appendString(b, string(c.text))
	}
	if len(c.reasoning) > 0 {
		b = append(b, `,"`+r.x.f.c.ReasoningField+`":`...)
		b = appendString(b, string(c.reasoning))
	}
	for i, t := range c.calls {
		if i == 0 {
			b = append(b, `,"tool_calls":[`...)
		}
		b = append(comma(b, i), `{"id":`...)
		b = appendString(b, t.id)
		b = append(b, `,"type":"function","function":{"name":`...)
		b = appendString(b, t.name)
		b = append(b, `,"arguments":`...)
		b = append(appendString(b, string(t.arguments)), `}}`...)
	}
	if len(c.calls) > 0 {
		b = append(b, ']')
	}
	return append(b, `,"refusal":null}`...)
}
