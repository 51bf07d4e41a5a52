package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/runtime/status"
	"github.com/dynamograph/dynamo/runtime/telemetry/tracetest"
)

const mockDisagg = "../../specs/mock-disagg.cue"

// say sends one chat of 8 tokens and returns the answer's header x-request-id.
func (r *running) say(model, text string, header ...string) string {
	r.t.Helper()
	q, err := http.NewRequestWithContext(within(r.t, 30*time.Second), http.MethodPost, r.url+"/v1/chat/completions",
		bytes.NewReader([]byte(`{"model":"`+model+`","max_tokens":8,"ignore_eos":true,"messages":[{"role":"user","content":"`+text+`"}]}`)))
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
	for _, c := range []struct{ name, spec, model, graph string }{
		{"mock", mockDisagg, "mock", "mock-disagg"}, {"native", disagg, "smollm2", "llama-disagg"},
	} {
		t.Run(c.name, func(t *testing.T) { trace(t, c.spec, c.model, c.graph) })
	}
}

func trace(t *testing.T, spec, model, graph string) {
	c := tracetest.New(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	r := start(t, spec)
	const trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	id := r.say(model, strings.Repeat("many words ", 20), "traceparent", "00-"+trace+"-"+caller+"-01", "x-request-id", "mine-7")
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
		"frontend of api":            {"http.route": "/v1/chat/completions", "http.response.status_code": "200", "gen_ai.usage.output_tokens": "8", "service.name": "dynamo", "dynamo.graph": graph},
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
		id := r.say("mock", "hello", "x-request-id", c.send)
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

// The status API of a run: what runs, the metrics of all processes, and what changes when one dies.
func TestStatusAPI(t *testing.T) {
	r := start(t, mockDisagg)
	url := r.wait("the status API is told", 0, func(e event) bool { return e.Event == "ready" }).Status
	get := func(path string) (int, string) {
		t.Helper()
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	r.say("mock", "hello")
	if code, text := get("/ready"); code != 200 {
		t.Errorf("/ready: %d %s", code, text)
	}
	_, text := get("/metrics")
	for _, want := range []string{
		`dynamo_output_tokens_total{process="api-0"} 8`, `dynamo_process_up{process="decode-1"} 1`, `dynamo_process_up{process="prefill-0"} 1`,
		`dynamo_routed_requests_total{instance="prefill-0",process="api-0",role="prefill"} 1`, `process_resident_memory_bytes{process="decode-0"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %s:\n%s", want, text)
		}
	}
	from := r.mark()
	r.signal("decode-1", syscall.SIGKILL)
	r.waitFrom(from, "decode-1 is up again", 20*time.Second, func(e event) bool { return e.Child == "decode-1" && e.State == "ready" })
	var s status.Status
	if _, text := get("/status"); json.Unmarshal([]byte(text), &s) != nil || s.Graph != "mock-disagg" || !s.Ready || len(s.Processes) != 5 {
		t.Fatalf("/status: %s", text)
	}
	for _, p := range s.Processes {
		want := 0
		if p.Name == "decode-1" {
			want = 1
		}
		if p.Restarts != want || p.PID != r.pid(p.Name) || !alive(p.PID) {
			t.Errorf("%+v: want %d restarts and pid %d", p, want, r.pid(p.Name))
		}
	}
	if _, text := get("/metrics"); !strings.Contains(text, `dynamo_process_restarts_total{process="decode-1"} 1`) {
		t.Error("the restart is not counted")
	}
	if _, text := get("/plan"); !strings.Contains(text, `"graph": "mock-disagg"`) {
		t.Errorf("/plan: %.200s", text)
	}
	r.stop()
	if _, err := http.Get(url + "/live"); err == nil {
		t.Error("the status API outlives the run")
	}
}
