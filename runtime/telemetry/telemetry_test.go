package telemetry_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/runtime/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func scrape(m *telemetry.Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func TestMetrics(t *testing.T) {
	m := telemetry.NewMetrics()
	requests := m.Counter("dynamo_http_requests_total", "Requests.", "route", "status")
	ok := requests("chat", "200")
	m.Gauge("dynamo_queue_requests", "Waiting.")()(7)
	m.Histogram("dynamo_ttft_seconds", "To the first token.", []float64{.1, 1})()(.5)
	m.Counter("dynamo_migrations_total", "Moves.")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				ok(1)
				m.Counter("dynamo_http_requests_total", "Requests.", "route", "status")("chat", "500")(.5)
			}
		})
	}
	wg.Wait()
	text := scrape(m)
	for _, want := range []string{
		`dynamo_http_requests_total{route="chat",status="200"} 800`,
		`dynamo_http_requests_total{route="chat",status="500"} 400`,
		"# TYPE dynamo_http_requests_total counter",
		"# HELP dynamo_queue_requests Waiting.",
		"dynamo_queue_requests 7",
		`dynamo_ttft_seconds_bucket{le="0.1"} 0`,
		`dynamo_ttft_seconds_bucket{le="1"} 1`,
		"dynamo_ttft_seconds_sum 0.5",
		"dynamo_migrations_total 0",
		"go_goroutines ",
		"process_resident_memory_bytes ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %s in\n%s", want, text)
		}
	}
	if other := scrape(telemetry.NewMetrics()); strings.Contains(other, "dynamo_") {
		t.Error("a new set is not empty")
	}
}

func TestBoundIsCheap(t *testing.T) {
	m := telemetry.NewMetrics()
	add := m.Counter("dynamo_output_tokens_total", "Tokens.", "model")("tiny")
	observe := m.Histogram("dynamo_itl_seconds", "Gaps.", nil)()
	if n := testing.AllocsPerRun(1000, func() { add(1); observe(.1) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMisuse(t *testing.T) {
	for name, tt := range map[string]struct {
		use  func(m *telemetry.Metrics)
		want string
	}{
		"other type":   {func(m *telemetry.Metrics) { m.Gauge("dynamo_a_seconds", ""); m.Histogram("dynamo_a_seconds", "", nil) }, "is a gauge"},
		"other labels": {func(m *telemetry.Metrics) { m.Gauge("dynamo_a_seconds", ""); m.Gauge("dynamo_a_seconds", "", "x") }, `with labels ["x"]`},
		"other buckets": {func(m *telemetry.Metrics) {
			m.Histogram("dynamo_a_seconds", "", nil)
			m.Histogram("dynamo_a_seconds", "", []float64{1})
		}, "buckets [1]"},
		"name": {func(m *telemetry.Metrics) { m.Counter("requests_total", "") }, "want dynamo_<noun>_<unit>"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, tt.want) {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			}()
			tt.use(telemetry.NewMetrics())
		})
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		typ, name string
		labels    []string
		want      string
	}{
		{"counter", "dynamo_http_requests_total", []string{"route"}, ""},
		{"histogram", "dynamo_ttft_seconds", nil, ""},
		{"gauge", "dynamo_kv_free_blocks", []string{"node"}, ""},
		{"counter", "dynamo_requests", nil, "want dynamo_<noun>_<unit>"},
		{"counter", "dynamo_http_requests", nil, "a counter ends in _total"},
		{"gauge", "dynamo_requests_total", nil, "a gauge does not end in _total"},
		{"gauge", "dynamo_Requests_waiting", nil, "lower case"},
		{"histogram", "dynamo_ttft_ms", nil, `"ms" is no base unit: use seconds`},
		{"counter", "dynamo_moved_mb_total", nil, `"mb" is no base unit: use bytes`},
		{"gauge", "dynamo_ttft_count", nil, "_count is kept"},
		{"gauge", "dynamo_kv_blocks", []string{"Tier"}, `label "Tier"`},
		{"gauge", "dynamo_kv_blocks", []string{"le"}, `label "le"`},
		{"gauge", "dynamo_kv_blocks", []string{"a", "a"}, `label "a" comes twice`},
		{"gauge", "dynamo_kv_blocks", []string{"request_id"}, "values without end"},
	} {
		err := telemetry.Check(tt.typ, tt.name, tt.labels...)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s %v: got %v, want %q", tt.typ, tt.name, tt.labels, err, tt.want)
		}
	}
}

func TestLog(t *testing.T) {
	line := func(o telemetry.LogOptions) string {
		var b bytes.Buffer
		log := telemetry.NewLog(&b, o)
		log.Debug("hidden")
		log.Info("ready", "took", "2 s")
		return b.String()
	}
	if got := line(telemetry.LogOptions{Format: telemetry.JSON, Node: "decode-1"}); !strings.HasSuffix(got, `"level":"INFO","msg":"ready","node":"decode-1","took":"2 s"}`+"\n") {
		t.Errorf("json: %s", got)
	}
	if got := line(telemetry.LogOptions{Node: "decode-1"}); !strings.HasSuffix(got, `level=INFO msg=ready node=decode-1 took="2 s"`+"\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("auto to a buffer: %s", got)
	}
	if got := line(telemetry.LogOptions{Format: telemetry.Human, NoColor: true, Node: "decode-1"}); !strings.HasSuffix(got, ` INF ready node=decode-1 took="2 s"`+"\n") {
		t.Errorf("human: %q", got)
	}
	if got := line(telemetry.LogOptions{Format: telemetry.Human}); !strings.Contains(got, "\x1b[") {
		t.Errorf("human is not coloured: %q", got)
	}
	var level slog.LevelVar
	level.Set(slog.LevelDebug)
	if got := line(telemetry.LogOptions{Level: &level}); !strings.Contains(got, "hidden") {
		t.Errorf("debug: %s", got)
	}
	r, w, err := os.Pipe() // a file, but no terminal
	if err != nil {
		t.Fatal(err)
	}
	telemetry.NewLog(w, telemetry.LogOptions{}).Info("ready")
	w.Close()
	b, err := io.ReadAll(r)
	if err != nil || !strings.HasSuffix(string(b), "level=INFO msg=ready\n") {
		t.Errorf("pipe: %s %v", b, err)
	}
}

func ExampleMetrics() {
	m := telemetry.NewMetrics()
	routed := m.Counter("dynamo_routed_requests_total", "Requests sent to an instance.", "instance")
	toFirst := routed("decode-1") // bound once
	toFirst(1)
	toFirst(1)
	for line := range strings.Lines(scrape(m)) {
		if strings.HasPrefix(line, "dynamo_") {
			fmt.Print(line)
		}
	}
	// Output: dynamo_routed_requests_total{instance="decode-1"} 2
}
