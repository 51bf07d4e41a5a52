package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/dynamograph/dynamo/runtime/telemetry"
)

const (
	scrapeTime = time.Second // that a process may take to tell its metrics
	scrapeSize = 16 << 20    // bytes of it
)

// Handler answers /status and /plan with JSON, /ready with 200 or with 503 and the reason, /live, and /metrics with the metrics of all
// processes, each with the label process. A process that does not answer within a second is left out: dynamo_process_up is then 0.
func (b *Board) Handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /live", func(w http.ResponseWriter, _ *http.Request) {
		write(w, 200, "text/plain; charset=utf-8", []byte("live\n"))
	})
	m.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if s := b.Status(); !s.Ready {
			write(w, http.StatusServiceUnavailable, "text/plain; charset=utf-8", []byte(s.Reason+"\n"))
			return
		}
		write(w, http.StatusOK, "text/plain; charset=utf-8", []byte("ready\n"))
	})
	m.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		j, err := json.MarshalIndent(b.Status(), "", "  ")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		write(w, http.StatusOK, "application/json", append(j, '\n'))
	})
	m.HandleFunc("GET /plan", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, "application/json", b.plan) })
	m.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		var text bytes.Buffer
		if err := telemetry.Merge(&text, b.scrape(r.Context())); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		write(w, http.StatusOK, telemetry.ContentType, text.Bytes())
	})
	return m
}

func write(w http.ResponseWriter, code int, typ string, b []byte) {
	w.Header().Set("Content-Type", typ)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(b) // who left does not care
}

// scrape asks all processes at once.
func (b *Board) scrape(ctx context.Context) []telemetry.ProcessText {
	ctx, cancel := context.WithTimeout(ctx, scrapeTime)
	defer cancel()
	var out []telemetry.ProcessText
	var sockets []string
	for _, p := range b.Status().Processes {
		if p.Metrics != "" {
			out = append(out, telemetry.ProcessText{Process: p.Name, Restarts: p.Restarts})
			sockets = append(sockets, p.Metrics)
		}
	}
	var wg sync.WaitGroup
	for i, s := range sockets {
		wg.Go(func() {
			if t, err := metrics(ctx, s); err == nil { // why it is silent, its log says
				out[i].Text = t
			}
		})
	}
	wg.Wait()
	return out
}

// metrics asks the process behind a socket "unix:/path".
func metrics(ctx context.Context, socket string) ([]byte, error) {
	path, ok := strings.CutPrefix(socket, "unix:")
	if !ok {
		return nil, fmt.Errorf("%q is no unix socket", socket)
	}
	c := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
	}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://process/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	return io.ReadAll(io.LimitReader(resp.Body, scrapeSize))
}

// Serve answers at l until stop is called, which waits for what is in progress. failed hears why it ended by itself.
func (b *Board) Serve(l net.Listener, failed func(error)) (stop func()) {
	s := &http.Server{Handler: b.Handler(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			failed(err)
		}
	})
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*scrapeTime)
		defer cancel()
		if s.Shutdown(ctx) != nil {
			_ = s.Close()
		}
		wg.Wait()
	}
}
