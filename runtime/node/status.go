package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/dynamograph/dynamo/graph/kind"
)

// statusHandler answers /live, /ready and /metrics: to a kubelet, to the supervisor, to Prometheus.
func (p *process) statusHandler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /live", func(w http.ResponseWriter, _ *http.Request) {
		if why := p.hung(); why != "" {
			say(w, http.StatusServiceUnavailable, why)
			return
		}
		say(w, http.StatusOK, "live")
	})
	m.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if why := p.unmet(""); why != "" {
			say(w, http.StatusServiceUnavailable, why)
			return
		}
		say(w, http.StatusOK, "ready")
	})
	m.Handle("GET /metrics", p.Metrics.Handler())
	return m
}

func say(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n") // who left does not care
}

// unmet says what the first node that cannot serve waits for, or "". except is not asked. Callers are asked about before callees are.
func (p *process) unmet(except string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.group.Units {
		s, ok := p.states[u.Node]
		if u.Node == except || ok && (s.state == kind.Ready || s.state == kind.Degraded) {
			continue
		}
		if !ok {
			s.state = kind.Starting
		}
		if s.reason == "" {
			return fmt.Sprintf("node %s is %s", u.Node, s.state)
		}
		return fmt.Sprintf("node %s is %s: %s", u.Node, s.state, s.reason)
	}
	return ""
}

// serveStatus answers at l until stop is called.
func (p *process) serveStatus(l net.Listener) (stop func()) {
	s := &http.Server{Handler: p.statusHandler(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(p.Log.Handler(), slog.LevelDebug)}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			p.Log.Error("the status is not served any more", "err", err)
		}
	})
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) // a scrape under way is finished
		defer cancel()
		if s.Shutdown(ctx) != nil {
			_ = s.Close()
		}
		wg.Wait()
	}
}
