package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/runtime/telemetry"
	"github.com/dynamograph/dynamo/runtime/telemetry/tracetest"
)

func TestTraceEnv(t *testing.T) {
	const e = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for name, tt := range map[string]struct {
		env   map[string]string
		on    bool
		want  string // endpoint, service and ratio
		error string
	}{
		"nothing":        {env: nil},
		"endpoint":       {env: map[string]string{e: "http://c:4318/"}, on: true, want: "http://c:4318/v1/traces dynamo 1"},
		"exporter alone": {env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, on: true, want: "http://localhost:4318/v1/traces dynamo 1"},
		"of traces":      {env: map[string]string{e: "http://c", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://d/x"}, on: true, want: "https://d/x dynamo 1"},
		"none":           {env: map[string]string{e: "http://c", "OTEL_TRACES_EXPORTER": "none"}},
		"disabled":       {env: map[string]string{e: "http://c", "OTEL_SDK_DISABLED": "true"}},
		"name and ratio": {env: map[string]string{e: "http://c", "OTEL_SERVICE_NAME": "x", "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"}, on: true, want: "http://c/v1/traces x 0.25"},
		"always off":     {env: map[string]string{e: "http://c", "OTEL_TRACES_SAMPLER": "always_off"}, on: true, want: "http://c/v1/traces dynamo 0"},
		"exporter":       {env: map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, error: `OTEL_TRACES_EXPORTER "zipkin": want otlp or none`},
		"protocol":       {env: map[string]string{e: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, error: `OTEL_EXPORTER_OTLP_PROTOCOL "grpc": want http/protobuf`},
		"no URL":         {env: map[string]string{e: "collector:4318"}, error: "want a URL"},
		"sampler":        {env: map[string]string{e: "http://c", "OTEL_TRACES_SAMPLER": "odd"}, error: "OTEL_TRACES_SAMPLER"},
		"ratio":          {env: map[string]string{e: "http://c", "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"}, error: "want a number from 0 to 1"},
	} {
		o, on, err := telemetry.TraceEnv(func(k string) string { return tt.env[k] })
		if tt.error != "" {
			if err == nil || !strings.Contains(err.Error(), tt.error) || on {
				t.Errorf("%s: %v %v, want %s", name, on, err, tt.error)
			}
			continue
		}
		got := strings.TrimSpace(o.Endpoint + " " + o.Service + " " + strings.TrimSuffix(ratio(o.Ratio), ".0"))
		if err != nil || on != tt.on || on && got != tt.want {
			t.Errorf("%s: %v %q %v, want %v %q", name, on, got, err, tt.on, tt.want)
		}
	}
}

func ratio(f float64) string {
	switch f {
	case 0:
		return "0"
	case 1:
		return "1"
	}
	return "0.25"
}

func newTracer(t *testing.T, o telemetry.TraceOptions) *telemetry.Tracer {
	t.Helper()
	o.Service, o.Process = "dynamo", "decode-0"
	tr, err := telemetry.NewTracer(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return tr
}

func TestTracer(t *testing.T) {
	c := tracetest.New(t)
	tr := newTracer(t, telemetry.TraceOptions{Endpoint: c.URL + "/v1/traces", Graph: "g", Ratio: 1})
	const trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	ctx, a := tr.Start(t.Context(), "00-"+trace+"-"+caller+"-01", "a")
	a.Str("k", "v")
	a.Int("n", 7)
	a.Event("first")
	_, b := tr.Start(ctx, "00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-01", "b") // ctx counts
	_, other := tr.Start(t.Context(), a.Traceparent(), "c")                               // in another process
	_, unsampled := tr.Start(t.Context(), "00-"+trace+"-"+caller+"-00", "d")
	b.End(&flow.Error{Class: flow.Unavailable, Reason: "transport.lost", Msg: "lost"})
	other.End(flow.AsError(context.Canceled))
	unsampled.End(nil)
	a.End(nil)
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, _ := c.Spans()
	got := map[string]tracetest.Span{}
	for _, s := range all {
		got[s.Name] = s
	}
	if len(all) != 3 || a.TraceID() != trace || a.Traceparent() != "00-"+trace+"-"+got["a"].ID+"-01" {
		t.Fatalf("%d spans; %s: %+v", len(all), a.Traceparent(), all)
	}
	if s := got["a"]; s.Trace != trace || s.Parent != caller || s.Attrs["k"] != "v" || s.Attrs["n"] != "7" || s.Events[0] != "first" || s.Error != "" ||
		s.Attrs["service.name"] != "dynamo" || s.Attrs["service.instance.id"] != "decode-0" || s.Attrs["dynamo.graph"] != "g" {
		t.Errorf("a: %+v", s)
	}
	if s := got["b"]; s.Parent != got["a"].ID || s.Error != "lost" || s.Attrs["error.type"] != "transport.lost" {
		t.Errorf("b: %+v", s)
	}
	if s := got["c"]; s.Parent != got["a"].ID || s.Error != "" || s.Attrs["dynamo.cancelled"] != "true" {
		t.Errorf("c: %+v", s)
	}
}

// A collector that is away costs spans and one line, nothing else.
func TestCollectorAway(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "200") // ms
	heard := make(chan error, 10)
	tr := newTracer(t, telemetry.TraceOptions{Endpoint: "http://127.0.0.1:1/v1/traces", Ratio: 1, OnError: func(err error) { heard <- err }})
	for range 3 {
		_, s := tr.Start(t.Context(), "", "a")
		s.End(errors.New("x"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := tr.Close(ctx); err == nil && len(heard) != 1 {
		t.Errorf("nobody heard of it: %d lines", len(heard))
	}
}

func TestMergeConflict(t *testing.T) {
	var b bytes.Buffer
	err := telemetry.Merge(&b, []telemetry.ProcessText{
		{Process: "a", Text: []byte("# TYPE dynamo_x_tokens gauge\ndynamo_x_tokens{process=\"liar\"} 1\n"), Restarts: 2},
		{Process: "b", Text: []byte("# TYPE dynamo_x_tokens histogram\ndynamo_x_tokens_sum 1\ndynamo_x_tokens_count 1\n")},
		{Process: "c"},
		{Process: "d", Text: []byte{}},
	})
	want := map[string]bool{
		`dynamo_x_tokens{process="a"} 1`: true, `dynamo_process_up{process="a"} 1`: true, `dynamo_process_up{process="b"} 0`: true,
		`dynamo_process_up{process="c"} 0`: true, `dynamo_process_up{process="d"} 1`: true, `dynamo_process_restarts_total{process="a"} 2`: true,
		`dynamo_process_restarts_total{process="b"} 0`: true, `dynamo_process_restarts_total{process="c"} 0`: true, `dynamo_process_restarts_total{process="d"} 0`: true,
	}
	got := map[string]bool{}
	for line := range strings.Lines(b.String()) {
		if !strings.HasPrefix(line, "#") {
			got[strings.TrimSpace(line)] = true
		}
	}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func BenchmarkSpan(b *testing.B) {
	c := tracetest.New(b)
	tr, err := telemetry.NewTracer(b.Context(), telemetry.TraceOptions{Endpoint: c.URL + "/v1/traces", Ratio: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		_, s := kind.Tracer(tr).Start(b.Context(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a")
		s.Str("k", "v")
		s.End(nil)
	}
	b.StopTimer()
	_ = tr.Close(context.Background())
}
