package status_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/runtime/status"
	"github.com/dynamograph/dynamo/runtime/supervise"
	"github.com/dynamograph/dynamo/runtime/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var children = []supervise.Child{{Name: "decode-0", Nodes: []string{"decode"}}, {Name: "api-0", Nodes: []string{"api", "route"}}}

func TestBoard(t *testing.T) {
	b := status.New("g", nil, children, nil)
	at := time.Unix(1000, 0)
	changed := func(child, node, state, reason string) supervise.Event {
		return supervise.Event{Time: at, Kind: supervise.Changed, Child: child, Status: supervise.Status{Node: node, State: state, Reason: reason, Addr: "a"}}
	}
	for _, step := range []struct {
		event  supervise.Event
		reason string
	}{
		{supervise.Event{Kind: supervise.Logged, Child: "other"}, "process api-0 is not started yet"},
		{supervise.Event{Time: at, Kind: supervise.Started, Child: "api-0", PID: 7}, "process api-0: node api is starting"},
		{changed("api-0", "api", "ready", ""), "process api-0: node route is starting"},
		{changed("api-0", "route", "starting", "waits"), "process api-0: node route is starting: waits"},
		{changed("api-0", "route", "degraded", "no prefill"), "process decode-0 is not started yet"},
		{supervise.Event{Time: at, Kind: supervise.Started, Child: "decode-0", PID: 8}, "process decode-0: node decode is starting"},
		{changed("decode-0", "decode", "ready", ""), ""},
		{supervise.Event{Time: at, Kind: supervise.Exited, Child: "decode-0", Text: "killed by signal 9"}, "process decode-0 is down: killed by signal 9"},
		{supervise.Event{Time: at, Kind: supervise.Started, Child: "decode-0", PID: 9}, "process decode-0: node decode is starting"},
		{changed("decode-0", "decode", "ready", ""), ""},
	} {
		b.Observe(step.event)
		if s := b.Status(); s.Reason != step.reason || s.Ready != (step.reason == "") {
			t.Errorf("after %+v: %v %q, want %q", step.event, s.Ready, s.Reason, step.reason)
		}
	}
	s := b.Status()
	if p := s.Processes[1]; s.Graph != "g" || p.Name != "decode-0" || p.PID != 9 || p.Restarts != 1 || !p.Since.Equal(at) || p.Ended != "killed by signal 9" ||
		p.Nodes[0] != (status.Node{Name: "decode", State: kind.Ready, Address: "a"}) {
		t.Errorf("%+v", s)
	}
	s.Processes[0].Nodes[0].State = kind.Failed // the caller's copy
	if !b.Status().Ready {
		t.Error("a copy leads back")
	}
}

// socket serves h at a unix socket.
func socket(t *testing.T, h http.Handler) string {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return "unix:" + path
}

func TestHTTP(t *testing.T) {
	process := func(n float64) http.Handler {
		m := telemetry.NewMetrics()
		m.Counter("dynamo_output_tokens_total", "Tokens.", "model")("tiny")(n)
		return m.Handler()
	}
	hang := make(chan struct{})
	defer close(hang)
	sockets := map[string]string{
		"api-0": socket(t, process(1)), "decode-0": socket(t, process(2)), "gone-0": "unix:/nowhere",
		"wrong-0": socket(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "no metrics {") })),
		"hangs-0": socket(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang })),
	}
	all := append([]supervise.Child{{Name: "gone-0"}, {Name: "wrong-0"}, {Name: "hangs-0"}, {Name: "store"}}, children...)
	b := status.New("g", []byte(`{"version":1}`), all, sockets)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := b.Serve(l, func(err error) { t.Error(err) })
	defer stop()
	defer http.DefaultClient.CloseIdleConnections()
	get := func(path string) (int, string) {
		resp, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	if code, text := get("/live"); code != 200 || text != "live\n" {
		t.Errorf("/live: %d %q", code, text)
	}
	if code, text := get("/ready"); code != 503 || text != "process api-0 is not started yet\n" {
		t.Errorf("/ready: %d %q", code, text)
	}
	if code, text := get("/plan"); code != 200 || text != `{"version":1}` {
		t.Errorf("/plan: %d %q", code, text)
	}
	var s status.Status
	if code, text := get("/status"); code != 200 || json.Unmarshal([]byte(text), &s) != nil || s.Graph != "g" || len(s.Processes) != 6 {
		t.Errorf("/status: %d %q", code, text)
	}
	begin := time.Now()
	_, text := get("/metrics")
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("a process that hangs held it up for %v", took)
	}
	for _, want := range []string{
		`dynamo_output_tokens_total{model="tiny",process="api-0"} 1` + "\n", `dynamo_output_tokens_total{model="tiny",process="decode-0"} 2` + "\n",
		`dynamo_process_up{process="api-0"} 1`, `dynamo_process_up{process="gone-0"} 0`, `dynamo_process_up{process="wrong-0"} 0`,
		`dynamo_process_up{process="hangs-0"} 0`, `go_goroutines{process="decode-0"}`, `dynamo_process_restarts_total{process="api-0"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %s in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "# TYPE dynamo_output_tokens_total counter"); n != 1 || strings.Contains(text, `"store"`) {
		t.Errorf("the type of a metric stands %d times:\n%s", n, text)
	}
}

func ExampleBoard() {
	b := status.New("hello", nil, []supervise.Child{{Name: "api-0", Nodes: []string{"api"}}}, nil)
	fmt.Println(b.Status().Reason)
	b.Observe(supervise.Event{Kind: supervise.Started, Child: "api-0", PID: 42})
	b.Observe(supervise.Event{Kind: supervise.Changed, Child: "api-0", Status: supervise.Status{Node: "api", State: "ready"}})
	fmt.Println(b.Status().Ready)
	// Output:
	// process api-0 is not started yet
	// true
}
