package node

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
	"github.com/dynamograph/dynamo/graph/plan"
)

func TestStatus(t *testing.T) {
	p := &process{Options: Options{Metrics: &kindtest.Metrics{}, Log: slog.New(slog.DiscardHandler)},
		group: &plan.Group{Units: []*plan.Unit{{Node: "api"}, {Node: "route"}}}, states: map[string]state{}}
	h := p.statusHandler()
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	for _, c := range []struct {
		node   string
		state  kind.State
		reason string
		code   int
		want   string
	}{
		{"", "", "", 503, "node api is starting"},
		{"api", kind.Ready, "", 503, "node route is starting"},
		{"route", kind.Starting, `waits for an instance of node "decode"`, 503, `node route is starting: waits for an instance of node "decode"`},
		{"route", kind.Degraded, "no prefill", 200, "ready"},
		{"api", kind.Draining, "", 503, "node api is draining"},
		{"api", kind.Failed, "port taken", 503, "node api is failed: port taken"},
	} {
		if c.node != "" {
			p.report(c.node, c.state, c.reason)
		}
		if code, text := get("/ready"); code != c.code || text != c.want {
			t.Errorf("%s %s: %d %q, want %d %q", c.node, c.state, code, text, c.code, c.want)
		}
	}
	if code, text := get("/live"); code != 200 || text != "live" {
		t.Errorf("/live: %d %q", code, text)
	}
	busy := &hanging{}
	p.made("route", busy)
	for d, want := range map[time.Duration]string{0: "live", hungAfter: "live", 150 * time.Second: "node route has made no progress for 2m30s"} {
		busy.d = d
		if code, text := get("/live"); text != want || (code == 200) != (want == "live") {
			t.Errorf("/live of a process that is stuck for %v: %d %q, want %q", d, code, text, want)
		}
	}
	if code, _ := get("/metrics"); code != 200 {
		t.Errorf("/metrics: %d", code)
	}
	if code, _ := get("/other"); code != 404 {
		t.Errorf("/other: %d", code)
	}
}

type hanging struct {
	kind.Component
	d time.Duration
}

func (h *hanging) Stuck() time.Duration { return h.d }

func TestServeStatus(t *testing.T) {
	p := &process{Options: Options{Metrics: &kindtest.Metrics{}, Log: slog.New(slog.DiscardHandler)}, group: &plan.Group{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := p.serveStatus(l)
	resp, err := http.Get("http://" + l.Addr().String() + "/ready")
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || string(b) != "ready\n" {
		t.Errorf("%q %v", b, err)
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
		c.Close()
		t.Error("it still listens")
	}
}
