package main

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
	"time"
)

// graph is a subject that runs as users run it: dynamo graph run, over HTTP.
type graph struct {
	spec  string
	cmd   *exec.Cmd
	pids  map[string]int
	url   string
	ready time.Duration // from the start of the command
	http  *http.Client
	gone  chan struct{}

	mu  sync.Mutex
	log bytes.Buffer // stderr, and what is remarkable of the events
}

// Write takes stderr.
func (g *graph) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.log.Write(b)
}

// said is the log so far.
func (g *graph) said() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.log.String()
}

func openGraph(threads int, binary, spec string) func(context.Context) (subject, error) {
	return func(ctx context.Context) (subject, error) {
		cmd := pinned(ctx, threads, binary, "graph", "run", spec, "--output", "json", "-t", "listen=127.0.0.1:0")
		return startGraph(cmd, spec)
	}
}

// startGraph waits until the graph is ready.
func startGraph(cmd *exec.Cmd, spec string) (*graph, error) {
	g := &graph{spec: spec, cmd: cmd, pids: map[string]int{}, gone: make(chan struct{}),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	cmd.Stderr = g
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	g.pids["supervisor"] = cmd.Process.Pid
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Event, Child, Addr string
			PID                int
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue
		}
		if e.Event == "started" {
			g.pids[e.Child] = e.PID
		}
		if strings.HasPrefix(e.Addr, "http") {
			g.url = e.Addr
		}
		if e.Event == "ready" && g.url != "" {
			g.ready = time.Since(began)
			go func() {
				defer close(g.gone)
				for lines.Scan() {
					_, _ = g.Write(append(lines.Bytes(), '\n'))
				}
			}()
			return g, nil
		}
	}
	close(g.gone)
	return nil, fmt.Errorf("%s ended before it was ready: %w\n%s", spec, cmd.Wait(), g.said())
}

func (g *graph) processes() map[string]int { return g.pids }

func (g *graph) about() string {
	return fmt.Sprintf("dynamo graph run %s, %d processes, HTTP with server-sent events", g.spec, len(g.pids))
}

// stop ends the graph as Ctrl-C does.
func (g *graph) stop() error {
	g.http.CloseIdleConnections()
	_ = g.cmd.Process.Signal(os.Interrupt)
	<-g.gone
	return g.cmd.Wait()
}

func (g *graph) run(ctx context.Context, prompts [][]uint32, output int) ([]stream, error) {
	bodies := make([][]byte, len(prompts))
	for i, p := range prompts {
		b, err := json.Marshal(map[string]any{
			"model": "smollm2", "prompt": p, "max_tokens": output, "temperature": 0, "ignore_eos": true, "stream": true,
			"skip_special_tokens": false, "stream_options": map[string]any{"include_usage": true},
		})
		if err != nil {
			return nil, err
		}
		bodies[i] = b
	}
	streams := make([]stream, len(prompts))
	errs := make([]error, len(prompts))
	var wg sync.WaitGroup
	start := time.Now()
	for i := range prompts {
		wg.Go(func() { streams[i], errs[i] = g.stream(ctx, bodies[i], start) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("%w\nlog of %s since it was ready:\n%s", err, g.spec, g.said())
	}
	return streams, nil
}

func (g *graph) stream(ctx context.Context, body []byte, start time.Time) (stream, error) {
	var s stream
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return s, err
	}
	req.Header.Set("content-type", "application/json")
	resp, err := g.http.Do(req)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
		return s, fmt.Errorf("status %d: %s", resp.StatusCode, b)
	}
	return s, s.read(resp.Body, start)
}

// read reads server-sent events. Lines are kept and understood after the end, so that the client costs little meanwhile.
func (s *stream) read(r io.Reader, start time.Time) error {
	var lines [][]byte
	var at []float64
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		if data, ok := bytes.CutPrefix(in.Bytes(), []byte("data: ")); ok {
			lines, at = append(lines, bytes.Clone(data)), append(at, time.Since(start).Seconds())
		}
	}
	if err := in.Err(); err != nil {
		return err
	}
	if len(lines) == 0 || string(lines[len(lines)-1]) != "[DONE]" {
		return errors.New("the stream ended without [DONE]")
	}
	var text strings.Builder
	for i, l := range lines[:len(lines)-1] {
		var v struct {
			Choices []struct{ Text string }
			Usage   *struct {
				Completion int `json:"completion_tokens"`
			}
			Error *struct{ Message string }
		}
		if err := json.Unmarshal(l, &v); err != nil {
			return fmt.Errorf("%q: %w", l, err)
		}
		if v.Error != nil {
			return errors.New(v.Error.Message)
		}
		if len(v.Choices) > 0 && v.Choices[0].Text != "" {
			s.At = append(s.At, at[i])
			text.WriteString(v.Choices[0].Text)
		}
		if v.Usage != nil {
			s.Count = v.Usage.Completion
		}
	}
	s.Text = text.String()
	return nil
}
