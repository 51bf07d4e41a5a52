package mod

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// transport tells how much of long bodies has gone through.
type transport struct {
	next     http.RoundTripper
	tell     func(Progress)
	refusals *refusals
}

// refusals notes which requests were refused for want of rights. CUE takes that for "not found", as some registries say it of what they do
// not have; we tell of it where nothing else explains what is missing.
type refusals struct {
	mu sync.Mutex
	at map[string]bool // by host and path
}

func (r *refusals) note(u *url.URL, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := u.Host + u.Path; status == http.StatusUnauthorized || status == http.StatusForbidden {
		r.at[k] = true
	} else {
		delete(r.at, k) // the second try, with a token
	}
}

// any reports whether host refused something.
func (r *refusals) any(host string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.at {
		if strings.HasPrefix(k, host+"/") {
			return true
		}
	}
	return false
}

// long is from how many bytes on a body is worth telling of.
const long = 1 << 20

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.tell != nil && r.Body != nil && r.ContentLength >= long {
		r = r.Clone(r.Context())
		r.Body = &counted{ReadCloser: r.Body, tell: t.tell, p: Progress{Host: r.URL.Host, Push: true, Total: r.ContentLength}}
	}
	resp, err := t.next.RoundTrip(r)
	if err == nil {
		t.refusals.note(r.URL, resp.StatusCode)
	}
	if err == nil && t.tell != nil && r.Method == http.MethodGet && (resp.ContentLength >= long || resp.ContentLength < 0) {
		resp.Body = &counted{ReadCloser: resp.Body, tell: t.tell, p: Progress{Host: r.URL.Host, Total: max(0, resp.ContentLength)}}
	}
	return resp, err
}

// counted is a body of which some has been read.
type counted struct {
	io.ReadCloser
	tell func(Progress)
	p    Progress
}

// Read implements io.Reader.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.p.Done += int64(n)
	if c.p.Done >= long || c.p.Total > 0 && c.p.Done == c.p.Total {
		c.tell(c.p)
	}
	return n, err
}
