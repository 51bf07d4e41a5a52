package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// The example runs, answers with the prompt, and ends with its context.
func TestEcho(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var out output
	done := make(chan error, 1)
	go func() { done <- run(ctx, &out, []string{"listen=127.0.0.1:0"}) }()
	url := ""
	for deadline := time.Now().Add(20 * time.Second); url == ""; time.Sleep(5 * time.Millisecond) {
		if m := regexp.MustCompile(`http://\S+`).FindString(out.String()); m != "" {
			url = m
		}
		if time.Now().After(deadline) {
			t.Fatalf("not ready:\n%s", out.String())
		}
	}
	resp, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"model":"echo","prompt":"hello","max_tokens":5}`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != 200 || !strings.Contains(string(b), `"hello"`) {
		t.Errorf("%v, status %d: %s", err, resp.StatusCode, b)
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// The kind's own check speaks like those of the standard set: with a place in the spec.
func TestCheck(t *testing.T) {
	var out bytes.Buffer
	if _, err := compile(t.Context(), &out, filepath.Join(t.TempDir(), "echo.cue"), []string{"delay=-1s"}); err == nil {
		t.Fatal("a delay below zero was taken")
	}
	if s := out.String(); !strings.Contains(s, "echo.cue:11:23: error: nodes.echo.delay: \"-1s\" is below zero [bad-value]") {
		t.Errorf("got %s", s)
	}
}

// What the kind says of its size is in the plan.
func TestSize(t *testing.T) {
	p, err := compile(t.Context(), io.Discard, filepath.Join(t.TempDir(), "echo.cue"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if g := p.GroupOf("echo"); g == nil || g.Needs.MemoryBytes != 16<<20 || g.Replicas.Want != 2 {
		t.Errorf("got %+v", g)
	}
}
