package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"
)

// said is all that an answer says: texts and log-probabilities as they are written in JSON, digit by digit.
type said struct {
	text, finish string
	logprobs     string
	cached       int
}

type wireChoice struct {
	Text    string
	Message struct{ Content string }
	Delta   struct{ Content string }
	Finish  string `json:"finish_reason"`
	// Logprobs of a chat (content) or of a completion: arrays with an element a token.
	Logprobs map[string]json.RawMessage
}

type wireAnswer struct {
	Choices []wireChoice
	Usage   *struct {
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
	Error *struct{ Message string }
}

// probe asks and collects, streamed or whole.
func (r *running) probe(ctx context.Context, path string, q map[string]any, streamed bool) (said, error) {
	q = maps.Clone(q)
	if streamed {
		q["stream"], q["stream_options"] = true, map[string]any{"include_usage": true}
	}
	body, err := r.post(ctx, path, q)
	if err != nil {
		return said{}, err
	}
	defer body.Close()
	var a said
	lists := map[string][]json.RawMessage{}
	take := func(b []byte) error {
		var v wireAnswer
		if err := json.Unmarshal(b, &v); err != nil {
			return fmt.Errorf("%s: %w", b, err)
		}
		if v.Error != nil {
			return errors.New(v.Error.Message)
		}
		for _, c := range v.Choices {
			a.text += c.Text + c.Message.Content + c.Delta.Content
			a.finish += c.Finish
			for name, raw := range c.Logprobs {
				var l []json.RawMessage
				if err := json.Unmarshal(raw, &l); err != nil {
					return err
				}
				lists[name] = append(lists[name], l...)
			}
		}
		if v.Usage != nil {
			a.cached = v.Usage.Details.Cached
		}
		return nil
	}
	if streamed {
		s := bufio.NewScanner(body)
		s.Buffer(nil, 1<<20)
		done := false
		for s.Scan() {
			data, ok := bytes.CutPrefix(s.Bytes(), []byte("data: "))
			if done = string(data) == "[DONE]"; done || !ok {
				continue
			}
			if err := take(data); err != nil {
				return a, err
			}
		}
		if s.Err() != nil {
			return a, s.Err()
		}
	} else {
		var b bytes.Buffer
		if _, err := b.ReadFrom(body); err != nil {
			return a, err
		}
		if err := take(b.Bytes()); err != nil {
			return a, err
		}
	}
	delete(lists, "refusal")
	b, err := json.Marshal(lists) // keeps the digits of what is raw
	a.logprobs = string(b)
	return a, err
}

var mill = strings.Repeat("The river runs past the old mill, and the miller counts his sacks. ", 24)

// probes are requests whose answers must not depend on anything but themselves.
var probes = map[string]struct {
	path string
	q    map[string]any
}{
	"greedy chat": {"/v1/chat/completions", map[string]any{"model": "smollm2", "temperature": 0, "max_tokens": 24, "ignore_eos": true, "logprobs": true, "top_logprobs": 5,
		"messages": []map[string]any{{"role": "user", "content": "Name three rivers."}}}},
	"greedy long chat": {"/v1/chat/completions", map[string]any{"model": "smollm2", "temperature": 0, "max_tokens": 24, "ignore_eos": true, "logprobs": true, "top_logprobs": 5,
		"messages": []map[string]any{{"role": "user", "content": mill + "What does the miller count?"}}}},
	"seeded chat": {"/v1/chat/completions", map[string]any{"model": "smollm2", "temperature": 1.1, "top_p": 0.95, "seed": 7, "max_tokens": 24, "ignore_eos": true,
		"frequency_penalty": 0.5, "logprobs": true, "top_logprobs": 3, "messages": []map[string]any{{"role": "user", "content": "Tell me a story."}}}},
	"echo": {"/v1/completions", map[string]any{"model": "smollm2", "temperature": 0, "max_tokens": 8, "echo": true, "logprobs": 3, "prompt": "Grüße aus Köln 👋: the capital of France is"}},
}

// Text and log-probabilities are equal to the last digit alone, again (with a prefix found in the cache), streamed, among others, without the
// cache, and on both graphs.
func TestSameBits(t *testing.T) {
	want := map[string]said{}
	for _, spec := range []string{agg, disagg} {
		t.Run(strings.TrimSuffix(spec[strings.LastIndex(spec, "/")+1:], ".cue"), func(t *testing.T) {
			r := start(t, spec)
			ctx := within(t, 5*time.Minute)
			check := func(name, how string, streamed bool, change map[string]any) {
				p := probes[name]
				q := maps.Clone(p.q)
				maps.Copy(q, change)
				got, err := r.probe(ctx, p.path, q, streamed)
				if err != nil {
					t.Errorf("%s, %s: %v", name, how, err)
					return
				}
				w, ok := want[name]
				if !ok {
					t.Errorf("%s: nothing to compare with", name)
				} else if w.text != got.text || w.finish != got.finish {
					t.Errorf("%s, %s: %q (%s), want %q (%s)", name, how, got.text, got.finish, w.text, w.finish)
				} else if w.logprobs != got.logprobs {
					t.Errorf("%s, %s: log-probabilities\n%s\nwant\n%s", name, how, got.logprobs, w.logprobs)
				}
				if how == "again" && name == "greedy long chat" && got.cached < 256 {
					t.Errorf("%s: %d tokens cached: the prefix was not found", name, got.cached)
				}
			}
			for name, p := range probes {
				if _, ok := want[name]; !ok {
					a, err := r.probe(ctx, p.path, p.q, false)
					if err != nil || a.text == "" || len(a.logprobs) < 500 {
						t.Fatalf("%s: %v: %+v", name, err, a)
					}
					want[name] = a
				}
				check(name, "first", false, nil)
				check(name, "again", false, nil)
				check(name, "streamed", true, nil)
			}
			// Among 15 others that come and go, with and without what the cache holds.
			for round := range 2 {
				others, stop := context.WithCancel(ctx)
				var wg sync.WaitGroup
				for i := range 15 {
					wg.Go(func() {
						for n := 0; others.Err() == nil; n++ {
							q := ask(fmt.Sprintf("%s Number %d of round %d: and then?", mill[:(i*97+n*31)%900], i, n), 4+i)
							_, _ = r.stream(others, q, nil)
						}
					})
				}
				var probing sync.WaitGroup
				for name := range probes {
					for k, change := range []map[string]any{nil, {"cache_salt": fmt.Sprint("salt", round)}} {
						probing.Go(func() {
							check(name, fmt.Sprintf("among others, round %d, change %v", round, change), (round+k)%2 == 0, change)
						})
					}
				}
				probing.Wait()
				stop()
				wg.Wait()
			}
		})
	}
}
