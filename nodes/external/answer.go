package external

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// maxEvent is the longest event that a server may send, in bytes.
const maxEvent = 1 << 20

// chunk is what an event of a stream holds of what we pass on.
type chunk struct {
	Choices []struct {
		Text  string // of completions
		Delta struct {
			Content   string
			Thought   string     `json:"reasoning_content"`
			Reasoning string     // a newer name
			Calls     []fragment `json:"tool_calls"`
		}
		Finish   *string `json:"finish_reason"`
		Logprobs *struct {
			Content []logprob
		}
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    *struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		More *struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	Error json.RawMessage
}

type logprob struct {
	Token   string
	Bytes   []int
	Logprob float32
	Top     []logprob `json:"top_logprobs"`
}

// read gives what a server streams, the reason of the end last, with the usage that comes behind it. A stream that ends without a reason is
// an error, never a shorter answer.
func read(body io.Reader, q *llm.ChatRequest, yield func(*llm.ChatDelta, error) bool) error {
	broken := func(format string, args ...any) error {
		return flow.Errorf(flow.BackendProtocol, "external.stream", format, args...)
	}
	var last llm.ChatDelta
	var calls calls
	s := bufio.NewScanner(body)
	s.Buffer(make([]byte, 0, 16<<10), maxEvent)
	for s.Scan() {
		data, ok := bytes.CutPrefix(s.Bytes(), []byte("data:"))
		if data = bytes.TrimSpace(data); !ok || len(data) == 0 {
			continue // comments, other fields and the end of an event
		}
		if string(data) == "[DONE]" {
			break
		}
		var c chunk
		if err := json.Unmarshal(data, &c); err != nil {
			return broken("the server sent an event that is not JSON")
		}
		if len(c.Error) > 0 && string(c.Error) != "null" {
			return broken("the server failed in its answer%s", message(data))
		}
		if u := c.Usage; u != nil {
			last.Usage = &llm.Usage{Prompt: u.Prompt, Completion: u.Completion}
			if u.Details != nil {
				last.Usage.Cached = u.Details.Cached
			}
			if u.More != nil {
				last.Usage.Reasoning = u.More.Reasoning
			}
		}
		if len(c.Choices) == 0 {
			continue
		}
		if last.Finish != "" {
			return broken("the server went on after the end of its answer")
		}
		ch := c.Choices[0]
		thought := ch.Delta.Thought
		if thought == "" { // some servers send both
			thought = ch.Delta.Reasoning
		}
		if thought != "" && !yield(&llm.ChatDelta{Reasoning: thought}, nil) {
			return nil
		}
		d := llm.ChatDelta{Text: ch.Text + ch.Delta.Content}
		if ch.Logprobs != nil && q.Logprobs >= 0 {
			d.Logprobs = logprobs(ch.Logprobs.Content)
		}
		if ch.Finish != nil && *ch.Finish != "" {
			last.Finish = llm.FinishStop // of a call, too: who asked knows what the answer held
			if *ch.Finish == "length" {
				last.Finish = llm.FinishLength
			}
		}
		if (d.Text != "" || len(d.Logprobs) > 0) && !yield(&d, nil) {
			return nil
		}
		if len(ch.Delta.Calls) == 0 {
			continue
		}
		list, what := calls.add(ch.Delta.Calls)
		if what != "" {
			return broken("the server sent a tool call %s", what)
		}
		if !yield(&llm.ChatDelta{Calls: list}, nil) {
			return nil
		}
	}
	if err := s.Err(); err != nil && last.Finish == "" {
		return &flow.Error{Class: flow.BackendProtocol, Reason: "external.stream", Msg: "the server's answer broke off", Err: err}
	}
	if last.Finish == "" {
		return broken("the server's answer ended without a reason")
	}
	yield(&last, nil)
	return nil
}

func logprobs(list []logprob) []llm.TextLogprob {
	out := make([]llm.TextLogprob, len(list))
	for i, l := range list {
		out[i] = llm.TextLogprob{Text: l.Token, Logprob: l.Logprob, Bytes: []byte(l.Token)}
		if l.Bytes != nil {
			out[i].Bytes = make([]byte, len(l.Bytes))
			for k, b := range l.Bytes {
				out[i].Bytes[k] = byte(b)
			}
		}
		if len(l.Top) > 0 {
			out[i].Top = logprobs(l.Top)
		}
	}
	return out
}

// message returns ": " and what an error of OpenAI's form says, cut where it is long; "" where it says nothing.
func message(body []byte) string {
	var e struct {
		Error   json.RawMessage
		Message string
		Detail  string
	}
	if json.Unmarshal(body, &e) != nil {
		return ""
	}
	var inner struct{ Message string }
	text := e.Message + e.Detail
	if json.Unmarshal(e.Error, &inner) == nil && inner.Message != "" {
		text = inner.Message
	} else if s := ""; json.Unmarshal(e.Error, &s) == nil && s != "" {
		text = s
	}
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	if r := []rune(text); len(r) > 300 {
		text = string(r[:300]) + "…"
	}
	return ": " + text
}
