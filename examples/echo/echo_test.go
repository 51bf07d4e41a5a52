package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
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
