// Package tracetest receives spans as a collector does, by OTLP over HTTP, for tests of what is traced.
package tracetest

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span as it arrived. Ids are hex; Parent is "" where there is none.
type Span struct {
	Trace, ID, Parent string
	Name              string
	Attrs             map[string]string // the resource's too; values as text
	Events            []string
	Error             string // of the status
	Start, End        time.Time
}

// Receiver is a collector in this process.
type Receiver struct {
	URL string // for OTEL_EXPORTER_OTLP_ENDPOINT

	mu    sync.Mutex
	spans []Span
	news  chan struct{} // closed and replaced when spans arrive
	bad   error
}

// New starts a receiver, which ends with the test.
func New(t testing.TB) *Receiver {
	r := &Receiver{news: make(chan struct{})}
	s := httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(func() {
		s.Close()
		if r.bad != nil {
			t.Errorf("a process sent what is no trace: %v", r.bad)
		}
	})
	r.URL = s.URL
	return r
}

func (r *Receiver) serve(w http.ResponseWriter, q *http.Request) {
	spans, err := read(q)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.bad = err
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.spans = append(r.spans, spans...)
	close(r.news)
	r.news = make(chan struct{})
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func read(q *http.Request) ([]Span, error) {
	if q.URL.Path != "/v1/traces" || q.Method != http.MethodPost {
		return nil, fmt.Errorf("%s %s", q.Method, q.URL.Path)
	}
	var body io.Reader = q.Body
	if strings.EqualFold(q.Header.Get("Content-Encoding"), "gzip") {
		z, err := gzip.NewReader(q.Body)
		if err != nil {
			return nil, err
		}
		body = z
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	var m collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	var out []Span
	for _, rs := range m.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				x := Span{
					Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId),
					Name: s.Name, Attrs: map[string]string{}, Error: s.Status.GetMessage(),
					Start: time.Unix(0, int64(s.StartTimeUnixNano)), End: time.Unix(0, int64(s.EndTimeUnixNano)),
				}
				fill(x.Attrs, rs.Resource.GetAttributes())
				fill(x.Attrs, s.Attributes)
				for _, e := range s.Events {
					x.Events = append(x.Events, e.Name)
				}
				out = append(out, x)
			}
		}
	}
	return out, nil
}

func fill(to map[string]string, from []*common.KeyValue) {
	for _, kv := range from {
		switch v := kv.Value.GetValue().(type) {
		case *common.AnyValue_StringValue:
			to[kv.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			to[kv.Key] = fmt.Sprint(v.IntValue)
		case *common.AnyValue_BoolValue:
			to[kv.Key] = fmt.Sprint(v.BoolValue)
		}
	}
}

// Spans returns what has arrived, and a channel that is closed when more does.
func (r *Receiver) Spans() ([]Span, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Span(nil), r.spans...), r.news
}

// Wait returns what has arrived as soon as ok says that it is enough; it fails the test after limit.
func (r *Receiver) Wait(t testing.TB, limit time.Duration, ok func([]Span) bool) []Span {
	t.Helper()
	deadline := time.After(limit)
	for {
		spans, news := r.Spans()
		if ok(spans) {
			return spans
		}
		select {
		case <-news:
		case <-deadline:
			for _, s := range spans {
				t.Logf("%+v", s)
			}
			t.Fatalf("the spans that were waited for did not come within %v", limit)
		}
	}
}
