package frontend

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// stream writes server-sent events. Nothing is sent before the first delta, so that an early failure is a plain HTTP error. The bytes of
// a delta are built in one buffer that lives as long as the stream.
type stream struct {
	x     *exchange
	c     *call
	rc    *http.ResponseController
	flush http.Flusher // nil: the writer cannot
	head  []byte       // of a chunk, up to its choices
	tail  []byte       // from behind its choices
	role  []bool       // by choice: the first chunk was sent

	mu       sync.Mutex
	buf      []byte
	gone     bool // the client left, or all was said
	written  time.Time
	deadline time.Time // of writes, as last set
	alive    *time.Timer
}

func newStream(x *exchange, c *call) *stream {
	s := &stream{x: x, c: c, rc: http.NewResponseController(x.w), role: make([]bool, len(c.requests))}
	s.flush, _ = x.w.(http.Flusher)
	object := "text_completion"
	if c.chat {
		object = "chat.completion.chunk"
	}
	s.head = append(s.head, `data: {"id":"`+c.id+`","object":"`+object+`","created":`...)
	s.head = strconv.AppendInt(s.head, c.created, 10)
	s.head = append(s.head, `,"model":`...)
	s.head = appendString(s.head, c.model)
	s.head = append(s.head, `,"choices":[`...)
	s.tail = []byte("]}\n\n")
	if c.usage {
		s.tail = []byte("],\"usage\":null}\n\n")
	}
	return s
}

// begin sends the headers; s.mu is held.
func (s *stream) begin() {
	h := s.x.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no") // nginx buffers otherwise
	s.x.header(http.StatusOK)
	s.written = time.Now()
	if every := s.x.f.c.KeepAlive.Std(); every > 0 {
		s.alive = time.AfterFunc(every, func() { s.keepAlive(every) })
	}
}

// keepAlive sends a comment if nothing else was sent for a while.
func (s *stream) keepAlive(every time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	left := every - time.Since(s.written)
	if left <= 0 {
		s.buf = append(s.buf[:0], ": keep-alive\n\n"...)
		s.write()
		left = every
	}
	if !s.gone {
		s.alive.Reset(left)
	}
}

// stop ends the keep-alive: afterwards nobody else writes.
func (s *stream) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	if s.alive != nil {
		s.alive.Stop()
	}
}

// write sends s.buf; s.mu is held.
func (s *stream) write() {
	now := time.Now()
	s.written = now
	if d := s.x.f.c.SlowClient.Std(); d > 0 && s.deadline.Sub(now) < d/2 { // setting it each time would cost more than the write
		s.deadline = now.Add(d)
		_ = s.rc.SetWriteDeadline(s.deadline)
	}
	if _, err := s.x.w.Write(s.buf); err != nil {
		s.gone = true
		return
	}
	if s.flush != nil {
		s.flush.Flush()
	}
}

func (s *stream) delta(choice int, d *llm.ChatDelta, finish llm.FinishReason) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return false
	}
	if s.x.status == 0 {
		s.begin()
	}
	s.buf = s.buf[:0]
	if s.c.chat {
		s.chat(choice, d, finish)
	} else {
		s.completion(choice, d)
	}
	if len(s.buf) > 0 {
		s.write()
	}
	return !s.gone
}

// chat appends the chunks of a delta: the role, then what was said, then why it ended.
func (s *stream) chat(choice int, d *llm.ChatDelta, finish llm.FinishReason) {
	if !s.role[choice] {
		s.role[choice] = true
		s.open(choice)
		s.buf = append(s.buf, `"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`...)
		s.buf = append(s.buf, s.tail...)
	}
	if d.Reasoning != "" && !s.c.quiet {
		s.open(choice)
		s.buf = append(s.buf, `"delta":{"`...)
		s.buf = append(s.buf, s.x.f.c.ReasoningField...)
		s.buf = append(s.buf, `":`...)
		s.buf = appendString(s.buf, d.Reasoning)
		s.buf = append(s.buf, `},"logprobs":null,"finish_reason":null}`...)
		s.buf = append(s.buf, s.tail...)
	}
	if shown := contentLogprobs(d) && len(d.Logprobs) > 0; d.Text != "" || shown {
		s.open(choice)
		s.buf = append(s.buf, `"delta":{"content":`...)
		s.buf = appendString(s.buf, d.Text)
		s.buf = append(s.buf, `},"logprobs":`...)
		s.buf = s.c.appendChatLogprobs(s.buf, d.Logprobs)
		s.buf = append(s.buf, `,"finish_reason":null}`...)
		s.buf = append(s.buf, s.tail...)
	}
	if len(d.Calls) > 0 {
		s.open(choice)
		s.buf = append(s.buf, `"delta":{"tool_calls":[`...)
		for i := range d.Calls {
			s.buf = appendCall(comma(s.buf, i), &d.Calls[i])
		}
		s.buf = append(s.buf, `]},"logprobs":null,"finish_reason":null}`...)
		s.buf = append(s.buf, s.tail...)
	}
	if finish != "" {
		s.open(choice)
		s.buf = append(s.buf, `"delta":{},"logprobs":null,"finish_reason":"`...)
		s.buf = append(s.buf, finish...)
		s.buf = append(s.buf, `"}`...)
		s.buf = append(s.buf, s.tail...)
	}
}

// appendCall appends what a call gained. Clients begin a call with each id that they see, so it comes once.
func appendCall(b []byte, c *llm.CallDelta) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, int64(c.Index), 10)
	if c.ID != "" || c.Name != "" {
		b = append(b, `,"id":`...)
		b = appendString(b, c.ID)
		b = append(b, `,"type":"function","function":{"name":`...)
		b = appendString(b, c.Name)
		b = append(b, ',')
	} else {
		b = append(b, `,"function":{`...)
	}
	b = append(b, `"arguments":`...)
	return append(appendString(b, c.Arguments), `}}`...)
}

func (s *stream) completion(choice int, d *llm.ChatDelta) {
	if d.Text == "" && len(d.Logprobs) == 0 && d.Finish == "" {
		return
	}
	s.open(choice)
	s.buf = append(s.buf, `"text":`...)
	s.buf = appendString(s.buf, d.Text)
	s.buf = append(s.buf, `,"logprobs":`...)
	if s.c.logprobs && len(d.Logprobs) > 0 {
		s.buf = appendClassicLogprobs(s.buf, d.Logprobs)
	} else {
		s.buf = append(s.buf, "null"...)
	}
	s.buf = append(s.buf, `,"finish_reason":`...)
	if d.Finish == "" {
		s.buf = append(s.buf, "null}"...)
	} else {
		s.buf = append(s.buf, '"')
		s.buf = append(s.buf, d.Finish...)
		s.buf = append(s.buf, `"}`...)
	}
	s.buf = append(s.buf, s.tail...)
}

// open begins a chunk with one choice.
func (s *stream) open(choice int) {
	s.buf = append(s.buf, s.head...)
	s.buf = append(s.buf, `{"index":`...)
	s.buf = strconv.AppendInt(s.buf, int64(choice), 10)
	s.buf = append(s.buf, ',')
}

func (s *stream) end(u llm.Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	s.buf = s.buf[:0]
	if s.c.usage {
		s.buf = append(s.buf, s.head...)
		s.buf = append(s.buf, `],"usage":`...)
		s.buf = appendUsage(s.buf, u)
		s.buf = append(s.buf, "}\n\n"...)
	}
	s.buf = append(s.buf, "data: [DONE]\n\n"...)
	s.write()
	s.gone = true
}

func (s *stream) broken(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	status, body := describe(err)
	s.x.log(status, flow.AsError(err))
	s.buf = append(s.buf[:0], "data: "...)
	s.buf = append(s.buf, body...)
	s.buf = append(s.buf, "\n\n"...)
	s.write()
	s.gone = true
}
