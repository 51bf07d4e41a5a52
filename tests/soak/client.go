package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
)

// answer is all that must not change: the text and reason of each choice, log-probabilities as they are written, and usage.
type answer struct {
	text, finish, logprobs [2]string
	prompt, completion     int
}

// reply is what came of a request.
type reply struct {
	answer
	status int
	retry  string // header Retry-After
	whole  bool   // the answer came to its end
}

type wire struct {
	Choices []struct {
		Index    int
		Text     string
		Message  struct{ Content string }
		Delta    struct{ Content string }
		Finish   string `json:"finish_reason"`
		Logprobs *struct{ Content []json.RawMessage }
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	}
	Error *struct{ Message string }
}

func (a *answer) take(b []byte) error {
	var v wire
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("%q: %w", b, err)
	}
	if v.Error != nil {
		return fmt.Errorf("error frame: %s", v.Error.Message)
	}
	for _, c := range v.Choices {
		if c.Index < 0 || c.Index >= len(a.text) {
			return fmt.Errorf("choice %d", c.Index)
		}
		a.text[c.Index] += c.Text + c.Message.Content + c.Delta.Content
		a.finish[c.Index] += c.Finish
		if c.Logprobs != nil {
			for _, l := range c.Logprobs.Content {
				a.logprobs[c.Index] += string(l) + "\n"
			}
		}
	}
	if v.Usage != nil {
		a.prompt, a.completion = v.Usage.Prompt, v.Usage.Completion
	}
	return nil
}

var errCancel = errors.New("cancelled by the client")

// ask sends a request. Where it is streamed, heard is called after each frame; an error of it ends the request.
func (g *graph) ask(ctx context.Context, path string, q map[string]any, streamed bool, heard func(frames int) error) (reply, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q = maps.Clone(q)
	if streamed {
		q["stream"], q["stream_options"] = true, map[string]any{"include_usage": true}
	}
	b, err := json.Marshal(q)
	if err != nil {
		return reply{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+path, bytes.NewReader(b))
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("content-type", "application/json")
	resp, err := g.http.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	a := reply{status: resp.StatusCode, retry: resp.Header.Get("Retry-After")}
	if a.status != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
		return a, errors.Join(err, fmt.Errorf("status %d: %s", a.status, bytes.TrimSpace(text)))
	}
	if !streamed {
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			return a, err
		}
		a.whole = true
		return a, a.take(b)
	}
	s := bufio.NewScanner(resp.Body)
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); {
		data, ok := strings.CutPrefix(s.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			a.whole = true
			return a, nil
		}
		if err := a.take([]byte(data)); err != nil {
			return a, err
		}
		if err := heard(n); err != nil {
			return a, err
		}
		n++
	}
	if s.Err() != nil {
		return a, s.Err()
	}
	return a, errors.New("the stream ended without [DONE]")
}
