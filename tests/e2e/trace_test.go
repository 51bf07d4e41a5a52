package e2e

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/runtime/telemetry/tracetest"
)

const mockDisagg = "../../specs/mock-disagg.cue"

// say sends one chat and returns the answer's header x-request-id.
func (r *running) say(text string, header ...string) string {
	r.t.Helper()
	q, err := http.NewRequestWithContext(within(r.t, 30*time.Second), http.MethodPost, r.url+"/v1/chat/completions",
		bytes.NewReader([]byte(`{"model":"mock","max_tokens":8,"messages":[{"role":"user","content":"`+text+`"}]}`)))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("content-type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		r.t.Fatalf("status %d", resp.StatusCode)
	}
	return resp.Header.Get("x-request-id")
}

// One request is one trace through every process: each span's parent is the span that called it.
func TestTrace(t *testing.T) {
	c := tracetest.New(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	r := start(t, mockDisagg)
	const trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	id := r.say(strings.Repeat("many words ", 20), "traceparent", "00-"+trace+"-"+caller+"-01", "x-request-id", "mine-7")
	if id != "mine-7" {
		t.Errorf("x-request-id %q, want the client's", id)
	}
	// What each span is, and which is above it.
	want := map[string]string{
		"frontend of api": "", "preprocess of api": "frontend of api", "attempt of api": "preprocess of api", "route of api": "attempt of api",
		"prefill: dispatch of api": "route of api", "prefill: engine of prefill": "prefill: dispatch of api",
		"decode: dispatch of api": "route of api", "decode: engine of decode": "decode: dispatch of api",
		"fetch of decode": "decode: engine of decode",
	}
	name := func(s tracetest.Span) string {
		process, _, _ := strings.Cut(s.Attrs["dynamo.process"], "-")
		n := s.Name + " of " + process
		if p := s.Attrs["dynamo.phase"]; p != "" {
			n = p + ": " + n
		}
		return n
	}
	ours := func(all []tracetest.Span) map[string]tracetest.Span {
		out := map[string]tracetest.Span{}
		for _, s := range all {
			if s.Trace == trace {
				out[name(s)] = s
			}
		}
		return out
	}
	got := ours(c.Wait(t, 10*time.Second, func(all []tracetest.Span) bool { return len(ours(all)) >= len(want) }))
	for n, above := range want {
		s, ok := got[n]
		parent := caller
		if above != "" {
			parent = got[above].ID
		}
		if !ok || s.Parent != parent {
			t.Errorf("%s: there: %v, below %q, want %q (%s)", n, ok, s.Parent, parent, above)
			continue
		}
		if s.Error != "" || s.End.Before(s.Start) {
			t.Errorf("%s: error %q, from %v to %v", n, s.Error, s.Start, s.End)
		}
		if rid := s.Attrs["dynamo.request.id"]; !strings.HasPrefix(rid, "mine-7~") && !strings.HasPrefix(n, "fetch") {
			t.Errorf("%s: request id %q", n, rid)
		}
	}
	for n, attrs := range map[string]map[string]string{
		"frontend of api":            {"http.route": "/v1/chat/completions", "http.response.status_code": "200", "gen_ai.usage.output_tokens": "8", "service.name": "dynamo", "dynamo.graph": "mock-disagg"},
		"prefill: dispatch of api":   {"dynamo.peer": "prefill-0"},
		"prefill: engine of prefill": {"dynamo.instance": "prefill-0"},
		"decode: engine of decode":   {"dynamo.handoff.peer": "prefill-0", "dynamo.finish": "length", "gen_ai.usage.output_tokens": "8"},
		"fetch of decode":            {"dynamo.peer": "prefill-0", "dynamo.handoff.blocks": got["fetch of decode"].Attrs["dynamo.handoff.blocks_wanted"]},
	} {
		for k, v := range attrs {
			if got[n].Attrs[k] != v || v == "" {
				t.Errorf("%s: %s=%q, want %q", n, k, got[n].Attrs[k], v)
			}
		}
	}
	if e := got["decode: engine of decode"].Events; len(e) != 1 || e[0] != "first token" {
		t.Errorf("events of decode: %q", e)
	}
	if a, b := got["decode: dispatch of api"].Attrs["dynamo.peer"], got["decode: engine of decode"].Attrs["dynamo.instance"]; a != b || a == "" {
		t.Errorf("sent to %q, computed by %q", a, b)
	}
}

// The request id that the client sees is in the log of every process that worked on the request, whoever chose it.
func TestRequestID(t *testing.T) {
	r := start(t, mockDisagg, "--log-level", "debug")
	for _, c := range []struct{ send, want string }{{"mine-8", "mine-8"}, {"", ""}, {"no spaces allowed", ""}} {
		from := r.mark()
		id := r.say("hello", "x-request-id", c.send)
		if c.want != "" && id != c.want || c.want == "" && (len(id) != 24 || id == c.send) {
			t.Errorf("sent %q, got %q", c.send, id)
		}
		for _, process := range []string{"api-", "prefill-", "decode-"} {
			r.waitFrom(from, "a line of "+process+" with "+id, 5*time.Second, func(e event) bool {
				return e.Event == "log" && strings.HasPrefix(e.Child, process) && strings.Contains(e.Text, "request="+id)
			})
		}
	}
}
