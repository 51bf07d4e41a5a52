package external

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/inflight"
)

// Node sends chats to the server and reads its answers. It has no goroutines of its own, and is safe for concurrent use.
type Node struct {
	c      Config
	h      kind.Host
	client *http.Client
	calls  *inflight.Group
	pause  time.Duration // before the first retry; doubled for each
}

// New returns a node that does not serve yet.
func New(c Config, h kind.Host) *Node {
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     time.Minute,
	}
	return &Node{
		c: c, h: h, calls: inflight.New(h.Node()), pause: 200 * time.Millisecond,
		client: &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// Start serves port "in". Whether the server is there shows with the first request.
func (n *Node) Start(context.Context) error {
	if n.calls.Shut() {
		return fmt.Errorf("node %s: started after close", n.h.Node())
	}
	if _, err := n.key(); err != nil {
		return fmt.Errorf("node %s: %w", n.h.Node(), err)
	}
	info := map[string]string{"models": "*"} // the key is the frontend's; a star takes the names that nobody else has
	if len(n.c.Models) > 0 {
		info["models"] = strings.Join(slices.Sorted(maps.Keys(n.c.Models)), "\n")
	}
	if err := kind.Serve(n.h, llm.Chat, "in", flow.AsyncEngine[*llm.ChatRequest, *llm.ChatDelta](n), info); err != nil {
		return err
	}
	n.h.Report(kind.Ready, "")
	return nil
}

// Drain takes no new requests and waits for those in flight.
func (n *Node) Drain(ctx context.Context) error {
	n.h.Report(kind.Draining, "")
	return n.calls.Drain(ctx)
}

// Close ends the requests in flight and waits for them.
func (n *Node) Close() error {
	n.calls.Close()
	n.client.CloseIdleConnections()
	return nil
}

// key reads the API key anew: it may have been replaced.
func (n *Node) key() (string, error) {
	if n.c.Key == "" {
		return "", nil
	}
	b, err := n.h.Secret(n.c.Key)
	if err != nil {
		return "", fmt.Errorf("key: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// Generate sends the request and gives what the server streams. What could not be taken is sent again, as long as nothing was given.
func (n *Node) Generate(ctx context.Context, q *llm.ChatRequest) iter.Seq2[*llm.ChatDelta, error] {
	return func(yield func(*llm.ChatDelta, error) bool) {
		ctx, done, err := n.calls.Begin(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		defer done()
		if d := n.c.Timeout.Std(); d > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, d, &flow.Error{
				Class: flow.DeadlineExceeded, Reason: "external.timeout", Msg: fmt.Sprintf("the server took longer than %v", d),
			})
			defer cancel()
		}
		ctx, span := kind.StartSpan(ctx, n.h, q.Trace, "external")
		yield, end := kind.Follow(span, yield)
		defer end()
		body, path, err := n.request(q)
		if err != nil {
			yield(nil, err)
			return
		}
		resp, err := n.send(ctx, path, body, q)
		if err != nil {
			yield(nil, n.failure(ctx, err))
			return
		}
		defer resp.Body.Close() //nolint:errcheck // it was read
		if err := read(resp.Body, q, yield); err != nil {
			yield(nil, n.failure(ctx, err))
		}
	}
}

// send posts the body until the server takes it, or refuses it for good.
func (n *Node) send(ctx context.Context, path string, body []byte, q *llm.ChatRequest) (*http.Response, error) {
	pause := n.pause
	for try := 0; ; try++ {
		resp, err := n.post(ctx, path, body, q)
		if err == nil && resp.StatusCode == http.StatusOK {
			return resp, nil
		}
		if err == nil {
			err = refusal(resp)
		}
		var f *flow.Error
		if errors.As(err, &f) && (f.Retry || f.Class == flow.CapacityExhausted) && try < n.c.Retries && ctx.Err() == nil {
			wait := max(pause, f.RetryAfter)
			if wait > 10*time.Second { // better to tell the client, who knows how long it can wait
				return nil, err
			}
			pause *= 2
			select {
			case <-time.After(wait):
				continue
			case <-ctx.Done():
			}
		}
		return nil, err
	}
}

func (n *Node) post(ctx context.Context, path string, body []byte, q *llm.ChatRequest) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(n.c.URL, "/")+path, strings.NewReader(string(body)))
	if err != nil {
		return nil, flow.Errorf(flow.Internal, "external.url", "the URL of node %s is wrong", n.h.Node())
	}
	key, err := n.key()
	if err != nil {
		return nil, &flow.Error{Class: flow.Internal, Reason: "external.key", Msg: fmt.Sprintf("node %s has no API key", n.h.Node()), Err: err}
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("X-Request-Id", q.ID)
	resp, err := n.client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &flow.Error{Class: flow.Unavailable, Reason: "external.unreachable", Msg: fmt.Sprintf("the server of node %s cannot be reached", n.h.Node()), Retry: true}
	}
	return resp, nil
}

// failure completes an error; the end of the context comes first.
func (n *Node) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	f := *flow.AsError(err)
	if f.Instance == "" {
		f.Instance = n.h.Instance()
	}
	return &f
}

// refusal makes an error of an answer that is none.
func refusal(resp *http.Response) error {
	defer resp.Body.Close() //nolint:errcheck // nothing more is wanted of it
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		b = nil
	}
	said := message(b)
	e := &flow.Error{Reason: "external.status_" + strconv.Itoa(resp.StatusCode), Msg: fmt.Sprintf("the server answered %s%s", resp.Status, said)}
	switch s := resp.StatusCode; {
	case s == http.StatusUnauthorized || s == http.StatusForbidden: // our key, not the client's
		e.Class, e.Msg = flow.Unavailable, fmt.Sprintf("the server refused our API key with status %d", s)
		e.Reason = "external.key"
	case s == http.StatusNotFound:
		e.Class = flow.NotFound
	case s == http.StatusRequestEntityTooLarge:
		e.Class = flow.PayloadTooLarge
	case s == http.StatusTooManyRequests:
		e.Class, e.RetryAfter = flow.CapacityExhausted, retryAfter(resp)
	case s == http.StatusNotImplemented:
		e.Class = flow.NotImplemented
	case s == http.StatusGatewayTimeout || s == http.StatusRequestTimeout:
		e.Class = flow.DeadlineExceeded
	case s >= 500:
		e.Class, e.Retry, e.RetryAfter = flow.Unavailable, true, retryAfter(resp)
	case s >= 400:
		e.Class = flow.InvalidRequest
	default: // no success that we know, or a redirect: the key goes nowhere else
		e.Class = flow.BackendProtocol
	}
	return e
}

func retryAfter(resp *http.Response) time.Duration {
	s, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || s < 0 {
		return 0
	}
	return time.Duration(s) * time.Second
}
