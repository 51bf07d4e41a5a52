package frontend

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/kind"
)

const (
	pathChat        = "/v1/chat/completions"
	pathCompletions = "/v1/completions"
	pathModels      = "/v1/models"
)

// methods are the routes; a path ending in "/" takes what follows.
var methods = map[string]string{
	pathChat: "POST", pathCompletions: "POST", pathModels: "GET", pathModels + "/": "GET",
	"/health": "GET", "/live": "GET", "/ready": "GET", "/metrics": "GET",
}

// ServeHTTP answers one request. A panic costs that request only.
func (f *Frontend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{f: f, w: w, r: r, begin: time.Now(), route: "other", id: newID()}
	w.Header().Set("X-Request-Id", x.clientID())
	defer func() {
		p := recover()
		if p == nil {
			x.done()
			return
		}
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			x.done()
			panic(p)
		}
		f.host.Log().Error("request panicked", "request", x.requestID(), "panic", p, "stack", string(debug.Stack()))
		if x.status != 0 {
			x.done()
			panic(http.ErrAbortHandler)
		}
		x.fail(&flow.Error{Class: flow.Internal, Reason: "frontend.panic", Msg: "internal error"})
		x.done()
	}()
	x.serve()
}

// exchange is one request and its answer.
type exchange struct {
	f      *Frontend
	w      http.ResponseWriter
	r      *http.Request
	begin  time.Time
	route  string
	id     string // ours: unique
	status int    // 0: nothing sent yet
	held   int64  // bytes of the body
	tenant string // "": all clients are one
	span   kind.Span
	err    error // what the request failed with
}

func newID() string {
	var b [12]byte
	rand.Read(b[:]) //nolint:errcheck // crypto/rand.Read never fails
	return hex.EncodeToString(b[:])
}

// clientID is what the client calls the request, or our id: the answer's header x-request-id.
func (x *exchange) clientID() string {
	id := x.r.Header.Get("X-Request-Id")
	if id == "" || len(id) > 128 || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return x.id
	}
	return id
}

// requestID is what every log line and span of the request has: the header x-request-id, and our id behind it where that is the client's,
// because clients may use theirs twice.
func (x *exchange) requestID() string {
	if c := x.clientID(); c != x.id {
		return c + "~" + x.id
	}
	return x.id
}

func (x *exchange) done() {
	status := x.status
	if status == 0 {
		status = 499 // the client left before we said anything
	}
	took := time.Since(x.begin)
	x.f.metrics.finished(x.route, status, took)
	if log := x.f.host.Log(); x.r.Method == http.MethodPost && log.Enabled(x.r.Context(), slog.LevelDebug) {
		log.Debug("request", "request", x.requestID(), "route", x.route, "status", status, "ms", took.Milliseconds(), "trace", x.span.TraceID())
	}
	if x.span.On() {
		x.span.Str("http.request.method", x.r.Method)
		x.span.Str("http.route", x.route)
		x.span.Int("http.response.status_code", status)
		if x.err != nil && status >= 400 && status < 500 { // the client's fault, not a failed span
			x.span.Str("error.type", flow.AsError(x.err).Reason)
			x.err = nil
		}
		x.span.End(x.err)
	}
}

func (x *exchange) serve() {
	path := "/" + strings.Trim(x.r.URL.Path, "/")
	route := path
	if rest, ok := strings.CutPrefix(path, pathModels+"/"); ok && rest != "" {
		route = pathModels + "/"
	}
	method, ok := methods[route]
	if !ok {
		hint := diag.Suggest(path, []string{pathChat, pathCompletions, pathModels, "/health", "/live", "/ready", "/metrics"})
		x.refuse(http.StatusNotFound, "unknown_url", "", strings.TrimSpace(fmt.Sprintf("unknown path %q: %s", clip(path), hint)))
		return
	}
	x.route = route
	x.w.Header().Set("Cache-Control", "no-store")
	switch m := x.r.Method; {
	case m == http.MethodOptions:
		x.w.Header().Set("Allow", method+", OPTIONS")
		x.header(http.StatusNoContent)
		return
	case m != method && !(m == http.MethodHead && method == http.MethodGet):
		x.w.Header().Set("Allow", method+", OPTIONS")
		x.refuse(http.StatusMethodNotAllowed, "method_not_allowed", "", fmt.Sprintf("%s takes %s, not %s", path, method, clip(m)))
		return
	}
	if !x.let(route) {
		return
	}
	switch route {
	case pathChat:
		x.post(parseChat)
	case pathCompletions:
		x.post(parseCompletions)
	case pathModels:
		x.models()
	case pathModels + "/":
		x.model()
	case "/live":
		x.json(http.StatusOK, map[string]string{"status": "live"})
	case "/health", "/ready":
		if why := x.f.unmet(); why != "" {
			x.json(http.StatusServiceUnavailable, map[string]string{"status": "not ready", "reason": why})
			return
		}
		x.json(http.StatusOK, map[string]string{"status": "ready"})
	case "/metrics":
		x.status = http.StatusOK
		x.f.host.Metrics().Handler().ServeHTTP(x.w, x.r)
	}
}

// let asks for a key. Probes need none.
func (x *exchange) let(route string) bool {
	k := x.f.keys
	if k == nil || route == "/live" || route == "/ready" || route == "/health" {
		return true
	}
	if name, ok := k.name(x.r); ok {
		if x.f.c.Tenants == "key" {
			x.tenant = name
		}
		return true
	}
	x.w.Header().Set("WWW-Authenticate", "Bearer")
	if x.r.Method == http.MethodPost {
		x.w.Header().Set("Connection", "close") // the body is not read
	}
	x.refuse(http.StatusUnauthorized, "invalid_api_key", "", "no valid API key: send the header \"Authorization: Bearer KEY\"")
	return false
}

// post reads a body, parses it and answers.
func (x *exchange) post(parse func(*exchange, *fields) *call) {
	f := x.f
	ctx := x.r.Context()
	ctx, x.span = kind.StartSpan(ctx, f.host, traceparent(x.r.Header.Get("traceparent")), "frontend")
	if x.span.On() {
		x.span.Str("dynamo.request.id", x.requestID())
	}
	if f.draining.Load() {
		x.w.Header().Set("Connection", "close")
		x.fail(&flow.Error{Class: flow.Unavailable, Reason: "frontend.draining", Msg: "the server is shutting down", RetryAfter: time.Second})
		return
	}
	select {
	case f.slots <- struct{}{}:
	default:
		x.fail(&flow.Error{
			Class: flow.CapacityExhausted, Reason: "frontend.too_many_requests", RetryAfter: time.Second,
			Msg: fmt.Sprintf("%d requests are in progress already", f.c.Requests),
		})
		return
	}
	defer func() { f.held.Add(-x.held); <-f.slots }()
	body, ok := x.body()
	if !ok {
		return
	}
	in := newFields(body)
	c := parse(x, in)
	if in.err != nil {
		x.fail(in.err)
		return
	}
	if x.span.On() {
		x.span.Str("gen_ai.request.model", c.model)
		for _, q := range c.requests {
			q.Trace = x.span.Traceparent()
		}
	}
	if d := f.c.Timeout.Std(); d > 0 {
		deadline := x.begin.Add(d)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
		for _, q := range c.requests {
			q.Deadline = deadline
		}
	}
	x.answer(ctx, c)
}

// bodyTime is how long a client may take to send its request.
const bodyTime = time.Minute

func (x *exchange) body() ([]byte, bool) {
	if ct := x.r.Header.Get("Content-Type"); ct != "" {
		t, _, err := mime.ParseMediaType(ct)
		if err != nil || t != "application/json" && !strings.HasSuffix(t, "+json") {
			x.refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "",
				fmt.Sprintf("the body must be JSON: send the header \"Content-Type: application/json\", not %q", clip(ct)))
			return nil, false
		}
	}
	if ce := x.r.Header.Get("Content-Encoding"); ce != "" && ce != "identity" {
		x.refuse(http.StatusUnsupportedMediaType, "unsupported_content_encoding", "", fmt.Sprintf("the body must not be encoded, it is %q", clip(ce)))
		return nil, false
	}
	limit := x.f.c.Body
	rc := http.NewResponseController(x.w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTime)) // a writer without deadlines (a test's) cannot be slow
	b, err := io.ReadAll(metered{x, http.MaxBytesReader(x.w, x.r.Body, limit)})
	_ = rc.SetReadDeadline(time.Time{})
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		x.discard()
		x.fail(flow.Errorf(flow.PayloadTooLarge, "request.too_large", "the body is longer than %d bytes", limit))
	case errors.Is(err, errBodies):
		x.discard()
		x.fail(errBodies)
	case err != nil:
		x.w.Header().Set("Connection", "close")
		x.refuse(http.StatusBadRequest, "incomplete_body", "", "the body could not be read to its end")
	}
	return b, err == nil
}

// discard reads on for a while and keeps nothing: a client that still sends when the connection closes never sees our answer.
func (x *exchange) discard() {
	x.w.Header().Set("Connection", "close")
	rc := http.NewResponseController(x.w)
	_ = rc.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.CopyN(io.Discard, x.r.Body, 4*x.f.c.Body)
	_ = rc.SetReadDeadline(time.Time{})
}

// bodies is how many of the longest bodies all requests in progress may hold together: memory must not depend on how many clients send long
// ones at once.
const bodies = 4

var errBodies = &flow.Error{
	Class: flow.CapacityExhausted, Reason: "frontend.too_many_bytes", Msg: "the requests in progress are too long together", RetryAfter: time.Second,
}

// metered counts what is read against what all requests may hold.
type metered struct {
	x *exchange
	r io.Reader
}

func (m metered) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.x.held += int64(n)
	if f := m.x.f; f.held.Add(int64(n)) > bodies*f.c.Body {
		return n, errBodies
	}
	return n, err
}

func (x *exchange) models() {
	type list struct {
		Object string      `json:"object"`
		Data   []modelCard `json:"data"`
	}
	l := list{Object: "list", Data: []modelCard{}}
	names, _ := x.f.names()
	if len(names) == 0 { // any name will do: offer one
		names = []string{x.f.host.Graph()}
	}
	for _, name := range names {
		l.Data = append(l.Data, x.f.card(name))
	}
	x.json(http.StatusOK, l)
}

type modelCard struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	Context int    `json:"max_model_len,omitempty"`
}

func (f *Frontend) card(name string) modelCard {
	c := 0
	if m := f.models[name]; m != nil {
		c = cmp.Or(m.Context, m.Facts.Context)
	}
	return modelCard{ID: name, Object: "model", Created: f.created, OwnedBy: "dynamo", Context: c}
}

func (x *exchange) model() {
	name, _ := strings.CutPrefix(x.r.URL.EscapedPath(), pathModels+"/") // a name may hold slashes, escaped or not
	if n, err := url.PathUnescape(name); err == nil {
		name = n
	}
	if !x.f.known(name) {
		x.fail(x.f.unknownModel(name))
		return
	}
	x.json(http.StatusOK, x.f.card(name))
}

// header sends the status line; only the first call counts.
func (x *exchange) header(status int) {
	if x.status == 0 {
		x.status = status
		x.w.WriteHeader(status)
	}
}

func (x *exchange) json(status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		x.fail(&flow.Error{Class: flow.Internal, Reason: "frontend.encode", Msg: "internal error", Err: err})
		return
	}
	x.send(status, append(b, '\n'))
}

func (x *exchange) send(status int, b []byte) {
	x.w.Header().Set("Content-Type", "application/json")
	_ = http.NewResponseController(x.w).SetWriteDeadline(x.f.writeDeadline())
	x.header(status)
	_, _ = x.w.Write(b) // a client that left is noticed by its context
}

func (f *Frontend) writeDeadline() time.Time {
	if d := f.c.SlowClient.Std(); d > 0 {
		return time.Now().Add(d)
	}
	return time.Time{}
}

// clip shortens what a client sent before it is quoted.
func clip(s string) string {
	if len(s) > 100 {
		return strings.ToValidUTF8(s[:100], "") + "…"
	}
	return s
}
