package kindtest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Metrics is a kind.Metrics that keeps values for tests. A histogram keeps the number of observations.
type Metrics struct {
	mu     sync.Mutex
	values map[string]float64
}

// Value returns what an instrument holds for label values; 0 where nothing was recorded.
func (m *Metrics) Value(name string, labels ...string) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key(name, labels)]
}

func key(name string, labels []string) string {
	return strings.Join(append([]string{name}, labels...), "|")
}

func (m *Metrics) bind(name string, labels []string, apply func(old, v float64) float64) func(...string) func(float64) {
	return func(values ...string) func(float64) {
		if len(values) != len(labels) {
			panic(fmt.Sprintf("metric %s: %d values for labels %v", name, len(values), labels))
		}
		k := key(name, values)
		return func(v float64) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.values == nil {
				m.values = map[string]float64{}
			}
			m.values[k] = apply(m.values[k], v)
		}
	}
}

// Counter makes a counter.
func (m *Metrics) Counter(name, _ string, labels ...string) func(...string) func(float64) {
	return m.bind(name, labels, func(old, v float64) float64 { return old + v })
}

// Gauge makes a gauge.
func (m *Metrics) Gauge(name, _ string, labels ...string) func(...string) func(float64) {
	return m.bind(name, labels, func(_, v float64) float64 { return v })
}

// Histogram makes a histogram, of which only the count is kept.
func (m *Metrics) Histogram(name, _ string, _ []float64, labels ...string) func(...string) func(float64) {
	return m.bind(name, labels, func(old, _ float64) float64 { return old + 1 })
}

// Handler writes all values, sorted by name.
func (m *Metrics) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, k := range slices.Sorted(maps.Keys(m.values)) {
			_, _ = fmt.Fprintf(w, "%s %v\n", k, m.values[k])
		}
	})
}
