// Package nodetest is the conformance suite that every kind of node runs: its schema and defaults, its life from New to Close, and what a
// call gets when it is cancelled or the node goes away. It knows no kind; the kind's own tests say what the node computes.
package nodetest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
)

// Options says what a kind needs to run.
type Options struct {
	Config string                 // JSON with which the node starts; "" is the default
	Host   func(h *kindtest.Host) // sets what the node dials; may be nil
}

// Run runs the suite on the kind called name, which must be registered.
func Run(t *testing.T, name string, o Options) {
	e := kind.Default.Lookup(name)
	if e == nil {
		t.Fatalf("kind %q is not registered", name)
	}
	t.Run("schema", func(t *testing.T) { schema(t, e) })
	t.Run("config", func(t *testing.T) { config(t, e, o) })
	t.Run("ports", func(t *testing.T) { ports(t, e, o) })
	t.Run("words", func(t *testing.T) { words(t, e, o) })
	if e.New == nil {
		return // checked, not run yet: it has no life
	}
	t.Run("life", func(t *testing.T) { life(t, e, o) })
	t.Run("calls", func(t *testing.T) { calls(t, e, o) })
}

func schema(t *testing.T, e *kind.Entry) {
	def := "#" + strings.ToUpper(e.Name[:1]) + e.Name[1:]
	if !strings.Contains(e.Schema, "\n"+def+": {") || !strings.Contains(e.Schema, fmt.Sprintf("kind: %q", e.Name)) {
		t.Errorf("the schema must define %s with kind: %q", def, e.Name)
	}
	if !strings.Contains(e.Schema, "// "+def+" ") {
		t.Errorf("%s has no comment that begins with its name", def)
	}
	if strings.Contains(strings.ReplaceAll(e.Schema, "*/", ""), "| *") {
		t.Error("defaults belong to the kind, not to the schema")
	}
	if e.Summary == "" {
		t.Error("no summary")
	}
}

func config(t *testing.T, e *kind.Entry, o Options) {
	if _, err := e.Config(json.RawMessage(`{"noSuchField":1}`)); err == nil || !strings.Contains(err.Error(), "noSuchField") {
		t.Errorf("an unknown field gave %v", err)
	}
	first, err := e.Config(nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := e.Config(first)
	if err != nil || string(again) != string(first) {
		t.Errorf("defaults are not stable: %s, then %s (%v)", first, again, err)
	}
	if o.Config == "" {
		return
	}
	full, err := e.Config(json.RawMessage(o.Config))
	if err != nil {
		t.Fatal(err)
	}
	var def, set map[string]json.RawMessage
	if json.Unmarshal(first, &def) != nil || json.Unmarshal(full, &set) != nil {
		t.Fatalf("no objects: %s, %s", first, full)
	}
	for k := range def {
		if _, ok := set[k]; !ok {
			t.Errorf("default of %q is not applied: %s", k, full)
		}
	}
}

var portName = regexp.MustCompile(`^[a-z]+$`)

func ports(t *testing.T, e *kind.Entry, o Options) {
	list, err := e.Ports(json.RawMessage(o.Config))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, p := range list {
		key := string(p.Dir) + " " + p.Name
		if !portName.MatchString(p.Name) || seen[key] || p.Dir != kind.In && p.Dir != kind.Out {
			t.Errorf("port %+v: bad or repeated", p)
		}
		seen[key] = true
		switch p.Type {
		case "chat", "tokens", "kv", "tier", "events", "load", "scale", "media":
		default:
			t.Errorf("port %+v: unknown type", p)
		}
		for _, s := range p.Signals {
			if kind.Signals[s] == "" || p.Type != "load" && p.Type != "events" {
				t.Errorf("port %+v: signal %q is not in the catalogue, or the port is not of type load or events", p, s)
			}
		}
	}
}

// words checks that what the kind says of its config names fields that it has, and words that there are.
func words(t *testing.T, e *kind.Entry, o Options) {
	raw := json.RawMessage(o.Config)
	has := func(what, field string) {
		if field == "" {
			return
		}
		b := "null"
		parts := strings.Split(field, ".")
		for i := len(parts) - 1; i >= 0; i-- {
			b = fmt.Sprintf("{%q:%s}", parts[i], b)
		}
		if _, err := e.Config(json.RawMessage(b)); err != nil && strings.Contains(err.Error(), "unknown field") {
			t.Errorf("%s: no field %q: %v", what, field, err)
		}
	}
	ps, err := e.Ports(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range ps {
		for _, term := range e.Contract(raw, p.Name) {
			has("contract of port "+p.Name, term.Field)
			if term.Name == "" || term.Rule != kind.Meet && len(term.Values) != 1 && (len(term.Values) > 1 || term.Field == "") {
				t.Errorf("contract of port %s: %+v: no name, or not one value", p.Name, term)
			}
		}
	}
	for _, l := range e.Lacks(raw) {
		has("lacks", l.Field)
		if l.Msg == "" || strings.HasSuffix(l.Msg, ".") {
			t.Errorf("lacks: %+v: want a clause", l)
		}
	}
	bounds := []kind.Bound{kind.Body, kind.Admit, kind.Total, kind.Queue, kind.Begin, kind.First, kind.Stall, kind.Step, kind.Run, kind.Wait}
	for _, l := range e.Limits(raw) {
		has("limits", l.Field)
		if l.Value < 0 || !slices.Contains(bounds, l.Bound) {
			t.Errorf("limits: %+v: below zero, or an unknown bound", l)
		}
	}
	for field := range e.Listen(raw) {
		has("listen", field)
	}
	for _, u := range e.Calls(raw) {
		if p, err := url.Parse(u); err != nil || !p.IsAbs() || p.Host == "" {
			t.Errorf("calls: %q is not an absolute URL (%v)", u, err)
		}
	}
	for node, r := range e.Scales(raw) {
		if r.Min < 0 || r.Max < r.Min {
			t.Errorf("scales: %q: %+v", node, r)
		}
	}
	if g := e.Guard(raw); g != "" && g != "keys" && g != "mtls" && g != "insecure" {
		t.Errorf("guard %q is none", g)
	}
	does, field := e.Tenants(raw)
	has("tenants", field)
	if does != "" && does != "tells" && does != "mixes" {
		t.Errorf("tenants: %q is none", does)
	}
	if e.Features != nil {
		have, _ := e.Features(raw)
		for _, f := range have {
			if kind.Features[f] == "" {
				t.Errorf("feature %q is not in the catalogue", f)
			}
		}
	}
}

// open makes a node and its host.
func open(t *testing.T, e *kind.Entry, o Options) (kind.Component, *kindtest.Host) {
	t.Helper()
	h := kindtest.NewHost(t, e.Name, e.Name+"-0", nil)
	if o.Host != nil {
		o.Host(h)
	}
	c, err := e.New(json.RawMessage(o.Config), h)
	if err != nil {
		t.Fatal(err)
	}
	return c, h
}

func await(t *testing.T, h *kindtest.Host) {
	t.Helper()
	limit := time.After(10 * time.Second)
	for {
		r, changed := h.Reports()
		if n := len(r); n > 0 && r[n-1].State != kind.Starting {
			if r[n-1].State == kind.Failed {
				t.Fatalf("failed: %s", r[n-1].Reason)
			}
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("not ready after 10 s: %v", r)
		}
	}
}

func life(t *testing.T, e *kind.Entry, o Options) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("close before start", func(t *testing.T) {
		c, _ := open(t, e, o)
		for range 2 {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := c.Start(t.Context()); err == nil {
			t.Error("started after close")
			_ = c.Close()
		}
	})
	t.Run("close while starting", func(t *testing.T) {
		c, _ := open(t, e, o)
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("start, drain, close", func(t *testing.T) {
		c, h := open(t, e, o)
		ctx, cancel := context.WithCancel(t.Context())
		if err := c.Start(ctx); err != nil {
			t.Fatal(err)
		}
		cancel() // Start's context is not the component's life
		await(t, h)
		if s := h.State(); s != kind.Ready && s != kind.Degraded {
			t.Errorf("state %q after start", s)
		}
		if err := c.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if s := h.State(); s != kind.Draining {
			t.Errorf("state %q after drain", s)
		}
		for range 2 {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// Hang is an engine that never answers; it ends with its context, as every engine must.
func Hang[Req, Resp any]() flow.AsyncEngine[Req, Resp] {
	return flow.EngineFunc[Req, Resp](func(ctx context.Context, _ Req) iter.Seq2[Resp, error] {
		return func(yield func(Resp, error) bool) {
			<-ctx.Done()
			var zero Resp
			yield(zero, flow.AsError(context.Cause(ctx)))
		}
	})
}

// calls checks what calls of port "in" get. The node must be configured, and what it dials must be made, so that a call hangs.
func calls(t *testing.T, e *kind.Entry, o Options) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	start := func(t *testing.T) (kind.Component, func(context.Context) error) {
		c, h := open(t, e, o)
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		await(t, h)
		switch in := h.Served["in"].(type) {
		case flow.AsyncEngine[*llm.TokensRequest, *llm.TokensDelta]:
			return c, func(ctx context.Context) error {
				for _, err := range in.Generate(ctx, &llm.TokensRequest{ID: "r", Tokens: []uint32{1, 2, 3}, Logprobs: -1}) {
					if err != nil {
						return err
					}
				}
				return nil
			}
		case flow.AsyncEngine[*llm.ChatRequest, *llm.ChatDelta]:
			return c, func(ctx context.Context) error {
				for _, err := range in.Generate(ctx, &llm.ChatRequest{ID: "r", Model: "m", Prompt: "abc", Logprobs: -1}) {
					if err != nil {
						return err
					}
				}
				return nil
			}
		}
		return c, nil
	}
	t.Run("cancel", func(t *testing.T) {
		c, call := start(t)
		defer c.Close()
		if call == nil {
			return // answers nobody inside of the graph
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		begin := time.Now()
		err := call(ctx)
		if e := flow.AsError(err); e == nil || e.Class != flow.Cancelled && e.Class != flow.DeadlineExceeded {
			t.Errorf("a cancelled call gave %v", err)
		}
		if d := time.Since(begin); d > time.Second {
			t.Errorf("a cancelled call took %v", d)
		}
	})
	t.Run("close ends calls", func(t *testing.T) {
		c, call := start(t)
		if call == nil {
			_ = c.Close()
			return
		}
		ended := make(chan error, 1)
		go func() { ended <- call(t.Context()) }()
		select {
		case err := <-ended:
			t.Fatalf("the call did not hang: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		select {
		case err := <-ended:
			if e := flow.AsError(err); e == nil || e.Class != flow.Unavailable || !e.Retry {
				t.Errorf("a call that close ended gave %#v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("close does not end the call")
		}
		if err := call(t.Context()); flow.AsError(err) == nil || flow.AsError(err).Class != flow.Unavailable {
			t.Errorf("a call after close gave %v", err)
		}
	})
}
