package e2e

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
	"strconv"
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

// tight has so little room that sequences lose theirs to others and start again, and prompts come in small pieces.
const tight = "testdata/tight.cue"

// Text and log-probabilities are equal to the last digit alone, again (with a prefix found in the cache), streamed, among others that come and
// leave, without the cache, on both graphs, and on one without room.
func TestSameBits(t *testing.T) {
	want := map[string]said{}
	for _, spec := range []string{agg, disagg, tight} {
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
			long, tokens, stay := 900, 20, 4000*time.Millisecond // what the others send and ask for, and how long they wait for it
			if spec == tight {                                   // as many as fit, which then grow
				long, tokens, stay = 60, 200, time.Minute
			}
			// Among 15 others that come and go, with and without what the cache holds.
			for round := range 2 {
				others, stop := context.WithCancel(ctx)
				var wg sync.WaitGroup
				for i := range 15 {
					wg.Go(func() {
						for n := 0; others.Err() == nil; n++ {
							one, leave := context.WithTimeout(others, stay/8+time.Duration(i*337+n*211)*time.Millisecond%stay)
							_, _ = r.stream(one, ask(fmt.Sprintf("%s Number %d of round %d: and then?", mill[:(i*97+n*31)%long], i, n), tokens+4*i), nil)
							leave()
						}
					})
				}
				if spec == tight {
					time.Sleep(4 * time.Second) // they have grown
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
			if spec == tight {
				if n := r.sum(t, "dynamo_engine_preemptions_total"); n == 0 {
					t.Error("no sequence lost its room: the case did not happen")
				} else {
					t.Logf("%v sequences lost their room", n)
				}
			}
		})
	}
}

// sum adds up a metric over all processes and labels.
func (r *running) sum(t *testing.T, name string) float64 {
	t.Helper()
	resp, err := http.Get(r.wait("the status API is told", 0, func(e event) bool { return e.Event == "ready" }).Status + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == '{' || rest[0] == ' ') {
			v, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndex(rest, " "):]), 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += v
		}
	}
	return sum
}
