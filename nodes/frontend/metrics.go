package frontend

import (
	"strconv"
	"time"

	"github.com/dynamograph/dynamo/graph/kind"
)

// metrics are the frontend's instruments, bound once.
type metrics struct {
	requests func(...string) func(float64)
	duration func(...string) func(float64)
	ttft     func(float64)
	itl      func(float64)
	prompt   func(float64)
	output   func(float64)
	cached   func(float64)
}

func newMetrics(m kind.Metrics) metrics {
	fine := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	return metrics{
		requests: m.Counter("dynamo_http_requests_total", "HTTP requests by route and status; 499: the client left.", "route", "status"),
		duration: m.Histogram("dynamo_http_request_seconds", "Time from the request's headers to the answer's end.", fine, "route"),
		ttft:     m.Histogram("dynamo_ttft_seconds", "Time from the request's headers to the first token of a choice.", fine)(),
		itl:      m.Histogram("dynamo_itl_seconds", "Time between two deltas of a choice.", fine)(),
		prompt:   m.Counter("dynamo_prompt_tokens_total", "Prompt tokens of answered requests.")(),
		output:   m.Counter("dynamo_output_tokens_total", "Output tokens of answered requests.")(),
		cached:   m.Counter("dynamo_cached_tokens_total", "Prompt tokens whose KV was found.")(),
	}
}

func (m *metrics) finished(route string, status int, took time.Duration) {
	m.requests(route, strconv.Itoa(status))(1)
	m.duration(route)(took.Seconds())
}
