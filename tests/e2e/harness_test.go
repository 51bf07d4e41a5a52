// Package e2e runs the shipped binary with the real model, as a user does: over its command line, its HTTP port and its process ids.
package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// need returns an environment variable that the test command sets. Without it the suite cannot run, which is a failure here: `make test`
// always sets it.
func need(t *testing.T, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("NOT RUN: %s is not set; run it by: make test", name)
	}
	return v
}

// event is a line of graph run --output json.
type event struct {
	Event, Child, Node, State, Reason, Addr, Text, Status string
	PID                                                   int
}

// running is a graph under test.
type running struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone and its output read
	err  error         // of Wait; valid after done

	mu     sync.Mutex
	events []event
	news   chan struct{} // closed and replaced at each event
	url    string
	pids   map[string]int
	stderr bytes.Buffer
}

// start runs spec with the model under test and waits until it is ready.
func start(t *testing.T, spec string, args ...string) *running {
	t.Helper()
	r := launch(t, spec, args...)
	r.wait("the graph is ready", 120*time.Second, func(e event) bool { return e.Event == "ready" })
	return r
}

// launch is start without waiting.
func launch(t *testing.T, spec string, args ...string) *running {
	t.Helper()
	args = append([]string{"graph", "run", spec, "--output", "json", "-t", "listen=127.0.0.1:0"}, args...)
	r := &running{t: t, cmd: exec.Command(need(t, "DYNAMO_TEST_BINARY"), args...), done: make(chan struct{}), news: make(chan struct{}), pids: map[string]int{}}
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r.cmd.Stderr = &lockedWriter{mu: &r.mu, b: &r.stderr}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.done)
		s := bufio.NewScanner(out)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			var e event
			if json.Unmarshal(s.Bytes(), &e) == nil {
				r.add(e)
			}
		}
		r.err = r.cmd.Wait()
	}()
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("stderr of graph run:\n%s", r.errText())
			for _, e := range r.seen() {
				if e.Event != "state" || e.Reason != "" {
					t.Logf("%+v", e)
				}
			}
		}
	})
	return r
}

type lockedWriter struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (r *running) errText() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stderr.String()
}

func (r *running) seen() []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]event(nil), r.events...)
}

func (r *running) add(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	if e.Event == "started" {
		r.pids[e.Child] = e.PID
	}
	if strings.HasPrefix(e.Addr, "http") {
		r.url = e.Addr
	}
	close(r.news)
	r.news = make(chan struct{})
}

// wait blocks until an event, past or future, satisfies ok.
func (r *running) wait(what string, limit time.Duration, ok func(event) bool) event {
	r.t.Helper()
	return r.waitFrom(0, what, limit, ok)
}

// mark returns a place in the list of events, for waitFrom.
func (r *running) mark() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events)
}

func (r *running) waitFrom(from int, what string, limit time.Duration, ok func(event) bool) event {
	r.t.Helper()
	deadline := time.After(limit)
	for {
		r.mu.Lock()
		news := r.news
		for ; from < len(r.events); from++ {
			if ok(r.events[from]) {
				e := r.events[from]
				r.mu.Unlock()
				return e
			}
		}
		r.mu.Unlock()
		select {
		case <-news:
		case <-r.done:
			r.t.Fatalf("%s: graph run ended (%v):\n%s", what, r.err, r.errText())
		case <-deadline:
			r.t.Fatalf("%s: not within %v", what, limit)
		}
	}
}

func (r *running) pid(child string) int {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.pids[child]
	if !ok {
		r.t.Fatalf("no child %q; there are %v", child, r.pids)
	}
	return p
}

func (r *running) signal(child string, s syscall.Signal) {
	r.t.Helper()
	if err := syscall.Kill(r.pid(child), s); err != nil {
		r.t.Fatalf("%s: %v", child, err)
	}
}

// stop ends the graph as Ctrl-C does, and kills it where it does not end.
func (r *running) stop() {
	select {
	case <-r.done:
		return
	default:
	}
	_ = r.cmd.Process.Signal(os.Interrupt)
	select {
	case <-r.done:
	case <-time.After(60 * time.Second):
		r.t.Errorf("graph run did not drain within 60 s")
		_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
		<-r.done
	}
}

// alive reports whether pid runs; a zombie does not.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	i := bytes.LastIndexByte(b, ')')
	return i > 0 && len(b) > i+2 && b[i+2] != 'Z'
}

// answer is what the tests need of a completion.
type answer struct {
	Text   string
	Finish string
	Usage  struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	}
	Deltas int
}

type chatReq struct {
	Model       string           `json:"model"`
	Messages    []map[string]any `json:"messages"`
	MaxTokens   int              `json:"max_tokens,omitempty"`
	Temperature *float64         `json:"temperature,omitempty"`
	Seed        *int             `json:"seed,omitempty"`
	Stream      bool             `json:"stream,omitempty"`
	Options     map[string]any   `json:"stream_options,omitempty"`
	Ignore      bool             `json:"ignore_eos,omitempty"`
}

func ask(text string, tokens int) chatReq {
	zero := 0.0
	return chatReq{Model: "smollm2", Messages: []map[string]any{{"role": "user", "content": text}}, MaxTokens: tokens, Temperature: &zero, Ignore: true}
}

// chat sends a request that is not streamed.
func (r *running) chat(ctx context.Context, q chatReq) (answer, error) {
	var a answer
	b, err := r.post(ctx, "/v1/chat/completions", q)
	if err != nil {
		return a, err
	}
	defer b.Close()
	var v struct {
		Choices []struct {
			Message struct{ Content string }
			Finish  string `json:"finish_reason"`
		}
		Usage json.RawMessage
	}
	if err := json.NewDecoder(b).Decode(&v); err != nil {
		return a, err
	}
	if len(v.Choices) != 1 {
		return a, fmt.Errorf("%d choices", len(v.Choices))
	}
	a.Text, a.Finish = v.Choices[0].Message.Content, v.Choices[0].Finish
	return a, json.Unmarshal(v.Usage, &a.Usage)
}

// stream sends a streamed request; onDelta, where set, is called with the number of each delta that has text.
func (r *running) stream(ctx context.Context, q chatReq, onDelta func(n int)) (answer, error) {
	var a answer
	q.Stream, q.Options = true, map[string]any{"include_usage": true}
	body, err := r.post(ctx, "/v1/chat/completions", q)
	if err != nil {
		return a, err
	}
	defer body.Close()
	s := bufio.NewScanner(body)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		data, ok := strings.CutPrefix(s.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			return a, nil
		}
		var v struct {
			Choices []struct {
				Delta  struct{ Content string }
				Finish string `json:"finish_reason"`
			}
			Usage json.RawMessage
			Error *struct{ Message string }
		}
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			return a, fmt.Errorf("%q: %w", data, err)
		}
		if v.Error != nil {
			return a, fmt.Errorf("error frame: %s", v.Error.Message)
		}
		for _, c := range v.Choices {
			a.Text += c.Delta.Content
			if c.Finish != "" {
				a.Finish = c.Finish
			}
			if c.Delta.Content != "" {
				a.Deltas++
				if onDelta != nil {
					onDelta(a.Deltas)
				}
			}
		}
		if len(v.Usage) > 0 && string(v.Usage) != "null" {
			if err := json.Unmarshal(v.Usage, &a.Usage); err != nil {
				return a, err
			}
		}
	}
	if err := s.Err(); err != nil {
		return a, err
	}
	return a, errors.New("the stream ended without [DONE]")
}

func (r *running) post(ctx context.Context, path string, v any) (io.ReadCloser, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	url := r.url
	r.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	req.Header.Set("content-type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
		return nil, fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	return resp.Body, nil
}

// within is a context that ends with the test or after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}
