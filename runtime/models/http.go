package models

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// transport is what a source asks of the connection, beyond the user's defaults.
type transport struct {
	tls   *tls.Config // nil: the system's roots
	proxy *url.URL    // nil: HTTP_PROXY and the like
}

// client makes a client for one attempt. The returned function lets its connections go.
func (c *Cache) client(o transport) (*http.Client, func()) {
	out := &http.Client{CheckRedirect: redirect}
	if c.o.HTTP != nil {
		*out = *c.o.HTTP
		out.CheckRedirect = redirect
	}
	base, ok := out.Transport.(*http.Transport)
	switch {
	case out.Transport != nil && !ok:
		return out, func() {} // the caller's own: it knows what it does
	case ok:
		base = base.Clone()
	default:
		env := func(name string) string {
			if v := c.o.Getenv(strings.ToLower(name)); v != "" {
				return v
			}
			return c.o.Getenv(name)
		}
		proxies := (&httpproxy.Config{HTTPProxy: env("HTTP_PROXY"), HTTPSProxy: env("HTTPS_PROXY"), NoProxy: env("NO_PROXY")}).ProxyFunc()
		base = &http.Transport{
			Proxy:             func(r *http.Request) (*url.URL, error) { return proxies(r.URL) },
			DialContext:       (&net.Dialer{}).DialContext,
			ForceAttemptHTTP2: true,
		}
	}
	base.DisableCompression = true // weights do not compress, and ranges count bytes as stored
	base.ResponseHeaderTimeout = c.lim.stall
	if o.tls != nil {
		base.TLSClientConfig = o.tls
	}
	if o.proxy != nil {
		base.Proxy = http.ProxyURL(o.proxy)
	}
	out.Transport = base
	return out, base.CloseIdleConnections
}

// redirect keeps tokens at their host and https at https.
func redirect(r *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	from := via[len(via)-1].URL
	if from.Scheme == "https" && r.URL.Scheme != "https" {
		return fmt.Errorf("redirected from https to %s", cleanURL(r.URL))
	}
	if r.URL.Host != via[0].URL.Host {
		r.Header.Del("Authorization")
	}
	return nil
}

var errStalled = errors.New("no byte came for a while")

// get sends a GET. Being connected, each redirect's host too, may take c.lim.connect; a gap between two bytes c.lim.stall. The caller
// closes the body.
func (c *Cache) get(ctx context.Context, client *http.Client, u string, header http.Header) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := fmt.Errorf("%w within %v", ErrConnect, c.lim.connect)
	limit := time.AfterFunc(c.lim.connect, func() { cancel(late) })
	limit.Stop() // it runs while a connection is waited for
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { limit.Reset(c.lim.connect) },
		GotConn: func(httptrace.GotConnInfo) { limit.Stop() },
	})
	fail := func(err error) (*http.Response, error) {
		limit.Stop()
		cause := context.Cause(ctx)
		cancel(nil)
		if cause != nil && cause != context.Canceled { //nolint:errorlint // exactly that one
			err = cause
		}
		return nil, cleanError(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return fail(err)
	}
	if header != nil {
		r.Header = header.Clone()
	}
	r.Header.Set("User-Agent", "dynamo")
	r.Header.Set("Accept-Encoding", "identity")
	resp, err := client.Do(r)
	if err != nil {
		return fail(err)
	}
	limit.Stop()
	stall := time.AfterFunc(c.lim.stall, func() { cancel(fmt.Errorf("%w (%v)", errStalled, c.lim.stall)) })
	resp.Body = &watched{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, stall: stall, limit: c.lim.stall}
	return resp, nil
}

// watched is a body whose gaps are limited.
type watched struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	stall  *time.Timer
	limit  time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	w.stall.Reset(w.limit)
	n, err := w.ReadCloser.Read(p)
	w.stall.Stop()
	if err != nil && err != io.EOF { //nolint:errorlint // Read returns it bare
		if cause := context.Cause(w.ctx); cause != nil {
			err = cause
		}
	}
	return n, err
}

func (w *watched) Close() error {
	w.stall.Stop()
	err := w.ReadCloser.Close()
	w.cancel(nil)
	return err
}

// cleanError drops the URL from an error, which may hold secrets and stands in the message anyway, and marks failures to connect.
func cleanError(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	var op *net.OpError
	var dns *net.DNSError
	var tlsErr *tls.CertificateVerificationError
	if !errors.Is(err, ErrConnect) && (errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") || errors.As(err, &dns) || errors.As(err, &tlsErr)) {
		return fmt.Errorf("%w: %w", ErrConnect, err)
	}
	return err
}

// statusError is an answer that is not the file.
type statusError struct {
	code  int
	retry time.Duration // what the server asks for
	what  string
}

func (e *statusError) Error() string {
	s := fmt.Sprintf("the server answers %d %s", e.code, http.StatusText(e.code))
	switch e.code {
	case http.StatusUnauthorized, http.StatusForbidden:
		s += " (a token can be named with #token=env:NAME or #token=file:PATH)"
	}
	return s + e.what
}

func (e *statusError) Is(target error) bool {
	return target == ErrNotFound && (e.code == http.StatusNotFound || e.code == http.StatusGone)
}

func newStatusError(r *http.Response) *statusError {
	e := &statusError{code: r.StatusCode}
	if d, err := time.ParseDuration(r.Header.Get("Retry-After") + "s"); err == nil && d > 0 {
		e.retry = min(d, 30*time.Second)
	}
	return e
}

// cleanURL is a URL for messages: without user and query.
func cleanURL(u *url.URL) string {
	v := *u
	v.User, v.Fragment = nil, ""
	if v.RawQuery != "" {
		v.RawQuery = ""
		return v.String() + "?…"
	}
	return v.String()
}

func cleanText(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "a URL that cannot be read"
	}
	return cleanURL(u)
}

// token resolves a reference; an empty one is no token.
func (c *Cache) token(ref string) (string, error) {
	where, name, _ := strings.Cut(ref, ":")
	var v string
	switch where {
	case "":
		return "", nil
	case "env":
		v = c.o.Getenv(name)
	case "file":
		b, err := os.ReadFile(c.expand(name))
		if err != nil {
			return "", fmt.Errorf("token: %w", err)
		}
		v = string(b)
	}
	if v = strings.TrimSpace(v); v == "" {
		return "", fmt.Errorf("token: %s is empty", ref)
	}
	return v, nil
}
