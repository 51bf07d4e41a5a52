// Package telemetry is how a process tells about itself: metrics for Prometheus and logs. What is counted is said by the nodes, through
// kind.Metrics; nothing here knows a node.
package telemetry

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dynamograph/dynamo/graph/kind"
)

// Metrics implements kind.Metrics over a registry of its own, which also has the figures of the Go runtime and of the process. It is safe
// for concurrent use. A name or use that breaks the rules of Check panics: that is a programmer's mistake, found by the first test of the node.
type Metrics struct {
	reg   *prometheus.Registry
	mu    sync.Mutex
	known map[string]instrument
}

type instrument struct {
	typ     string // "counter", "gauge" or "histogram"
	labels  []string
	buckets []float64
	bind    func(values ...string) func(float64)
}

var _ kind.Metrics = (*Metrics)(nil)

// NewMetrics makes an empty set.
func NewMetrics() *Metrics {
	m := &Metrics{reg: prometheus.NewRegistry(), known: map[string]instrument{}}
	m.reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Counter is a number that only grows; add must not be negative.
func (m *Metrics) Counter(name, help string, labels ...string) func(values ...string) func(add float64) {
	return m.instrument("counter", name, labels, nil, func() (prometheus.Collector, func(...string) func(float64)) {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		return v, func(values ...string) func(float64) { return v.WithLabelValues(values...).Add }
	})
}

// Gauge is a number that is set.
func (m *Metrics) Gauge(name, help string, labels ...string) func(values ...string) func(set float64) {
	return m.instrument("gauge", name, labels, nil, func() (prometheus.Collector, func(...string) func(float64)) {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
		return v, func(values ...string) func(float64) { return v.WithLabelValues(values...).Set }
	})
}

// Histogram counts observations in buckets, which are upper bounds in rising order; none means Prometheus' default (for seconds).
func (m *Metrics) Histogram(name, help string, buckets []float64, labels ...string) func(values ...string) func(observe float64) {
	return m.instrument("histogram", name, labels, buckets, func() (prometheus.Collector, func(...string) func(float64)) {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
		return v, func(values ...string) func(float64) { return v.WithLabelValues(values...).Observe }
	})
}

// Handler answers with the text of every metric.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.reg, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

func (m *Metrics) instrument(typ, name string, labels []string, buckets []float64, build func() (prometheus.Collector, func(...string) func(float64))) func(...string) func(float64) {
	if err := Check(typ, name, labels...); err != nil {
		panic(err.Error())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.known[name]; ok {
		if old.typ != typ || !slices.Equal(old.labels, labels) || !slices.Equal(old.buckets, buckets) {
			panic(fmt.Sprintf("metric %q: is a %s with labels %q and buckets %v, asked for as a %s with labels %q and buckets %v",
				name, old.typ, old.labels, old.buckets, typ, labels, buckets))
		}
		return old.bind
	}
	c, bind := build()
	m.reg.MustRegister(c)
	if len(labels) == 0 {
		bind() // so that it is there from the start, as 0
	}
	m.known[name] = instrument{typ: typ, labels: slices.Clone(labels), buckets: slices.Clone(buckets), bind: bind}
	return bind
}

var (
	nameForm  = regexp.MustCompile(`^dynamo(_[a-z][a-z0-9]*){2,}$`)
	labelForm = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

	// Labels whose values have no end: each value is a time series for ever.
	endless = []string{"request", "request_id", "prompt", "user", "session", "session_id", "trace_id"}
	// Names that Prometheus gives to a histogram's parts.
	reserved = []string{"_bucket", "_count", "_sum", "_created"}
	// Units that are not the base unit.
	units = map[string]string{"ms": "seconds", "us": "seconds", "ns": "seconds", "milliseconds": "seconds", "microseconds": "seconds",
		"kb": "bytes", "mb": "bytes", "mib": "bytes", "gb": "bytes", "gib": "bytes", "percent": "ratio"}
)

// Check says what is wrong with a metric's name, nil if nothing is: it is dynamo_<noun>_<unit> in lower case and base units, a counter and
// only a counter ends in _total, and no label's values are without end. typ is "counter", "gauge" or "histogram".
func Check(typ, name string, labels ...string) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("metric %q: %s", name, fmt.Sprintf(format, args...))
	}
	if !nameForm.MatchString(name) {
		return fail("want dynamo_<noun>_<unit>, lower case")
	}
	if total := strings.HasSuffix(name, "_total"); total != (typ == "counter") {
		if total {
			return fail("a %s does not end in _total", typ)
		}
		return fail("a counter ends in _total")
	}
	for _, r := range reserved {
		if strings.HasSuffix(name, r) {
			return fail("%s is kept for the parts of histograms", r)
		}
	}
	for word := range strings.SplitSeq(name, "_") {
		if base, ok := units[word]; ok {
			return fail("%q is no base unit: use %s", word, base)
		}
	}
	for i, l := range labels {
		switch {
		case !labelForm.MatchString(l) || l == "le":
			return fail("label %q: want lower case words, not \"le\"", l)
		case slices.Contains(endless, l):
			return fail("label %q has values without end: put it in the log", l)
		case slices.Contains(labels[:i], l):
			return fail("label %q comes twice", l)
		}
	}
	return nil
}
