package models

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// request is a file to download.
type request struct {
	client *http.Client
	url    string
	header http.Header
	want   string // sha256; "" where nobody told
	by     string // who told: "the graph", "the index"
	size   int64  // bytes; 0 where nobody told

	// answered sees the headers of the first answer that brings bytes; it may set want and by.
	answered func(*request, *http.Response)
}

// partial is what is known of a download that is not complete.
type partial struct {
	URL  string `json:"url"` // without secrets
	ETag string `json:"etag,omitempty"`
	Time string `json:"lastModified,omitempty"`
	Size int64  `json:"size,omitempty"` // 0: not known

	path string
	f    *os.File
	sum  hash.Hash
	have int64
}

func (p *partial) record() string { return p.path + ".json" }

func (p *partial) close() error {
	if p.f == nil {
		return nil
	}
	err := p.f.Close()
	p.f = nil
	return err
}

// drop removes the partial file.
func (p *partial) drop() {
	_ = p.close()             // it goes
	_ = os.Remove(p.path)     // maybe not there
	_ = os.Remove(p.record()) // maybe not there
}

// download brings a file to this machine and hands its path and hash to use, which may take the file away. What came before an
// interruption is kept, across runs, and only the rest is fetched, as long as the server says that the file is the same.
func (t *try) download(ctx context.Context, r request, use func(path, sum string) (File, error)) (File, error) {
	t.where = cleanText(r.url)
	key := keyOf(r.url)
	unlock, err := t.lock(ctx, "part-"+key, t.src)
	if err != nil {
		return File{}, err
	}
	defer unlock()
	for {
		p := &partial{path: t.dir("partial", key)}
		sum, resumed, err := t.whole(ctx, &r, p)
		if err != nil {
			if p.have == 0 || errors.Is(err, ErrDiskFull) {
				p.drop() // nothing to go on from, or it would keep the disk full
			}
			_ = p.close()
			return File{}, err
		}
		if r.want != "" && sum != r.want {
			p.drop()
			if resumed {
				t.o.Log.Warn("a resumed download has a wrong sha256; it is fetched anew", "source", t.src.Redacted(), "sha256", sum)
				continue
			}
			return File{}, &hashError{got: sum, want: r.want, by: r.by}
		}
		if err := errors.Join(p.f.Sync(), p.close()); err != nil {
			return File{}, cacheError(err)
		}
		f, err := use(p.path, sum)
		if ctx.Err() == nil {
			p.drop() // taken, or of no use; when interrupted, the next run needs no download
		}
		return f, err
	}
}

// whole makes p complete and returns its hash.
func (t *try) whole(ctx context.Context, r *request, p *partial) (sum string, resumed bool, err error) {
	if err := t.resume(ctx, p); err != nil {
		return "", false, err
	}
	resumed = p.have > 0
	if err := t.bytes(ctx, r, p); err != nil {
		return "", resumed, err
	}
	return hex.EncodeToString(p.sum.Sum(nil)), resumed, nil
}

// resume opens the partial file and hashes what is there.
func (t *try) resume(ctx context.Context, p *partial) error {
	if b, err := os.ReadFile(p.record()); err != nil || json.Unmarshal(b, p) != nil {
		*p = partial{path: p.path}
		_ = os.Remove(p.path) // nothing is known of it
	}
	var err error
	if p.f, err = os.OpenFile(p.path, os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return cacheError(err)
	}
	p.sum = sha256.New()
	st, err := p.f.Stat()
	if err != nil {
		return cacheError(err)
	}
	if st.Size() == 0 {
		return nil
	}
	m := t.meter(Progress{Source: t.src.Redacted(), Step: "verify", Total: st.Size()})
	p.have = st.Size()
	if _, err := io.Copy(p.sum, &meterReader{ctx: ctx, r: p.f, m: m}); err != nil {
		return err
	}
	m.end()
	return nil
}

// bytes fetches until the file is complete. An interruption is tried again after a pause that grows while nothing new comes.
func (t *try) bytes(ctx context.Context, r *request, p *partial) error {
	wait, tries := t.lim.backoff, t.lim.tries
	for {
		if p.Size > 0 && p.have == p.Size {
			return nil
		}
		before := p.have
		err := t.once(ctx, r, p)
		if err == nil {
			return nil
		}
		var status *statusError
		isStatus := errors.As(err, &status)
		if ctx.Err() != nil || errors.Is(err, ErrConnect) || final(err) || isStatus && status.code < 500 && status.code != http.StatusTooManyRequests {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}
		if p.have > before {
			wait, tries = t.lim.backoff, t.lim.tries
		}
		if tries--; tries == 0 {
			return fmt.Errorf("%w (after %d attempts; %d bytes are kept and the next run goes on from there)", err, t.lim.tries, p.have)
		}
		if isStatus {
			wait = max(wait, status.retry)
		}
		t.o.Log.Warn("download interrupted", "source", t.src.Redacted(), "bytes", p.have, "retryIn", wait, "err", err)
		if err := pause(ctx, wait); err != nil {
			return err
		}
		wait *= 2
	}
}

// once sends one request and copies its answer.
func (t *try) once(ctx context.Context, r *request, p *partial) error {
	h := r.header.Clone()
	if h == nil {
		h = http.Header{}
	}
	if p.have > 0 {
		// Without a validator the parts may be of different files: then only a known hash can tell.
		switch {
		case p.ETag != "" && !strings.HasPrefix(p.ETag, "W/"):
			h.Set("If-Range", p.ETag)
		case p.Time != "":
			h.Set("If-Range", p.Time)
		case r.want == "":
			if err := p.restart(); err != nil {
				return err
			}
		}
	}
	if p.have > 0 {
		h.Set("Range", fmt.Sprintf("bytes=%d-", p.have))
	}
	t.o.Progress(Progress{Source: t.src.Redacted(), Step: "connect", Done: p.have, Total: p.Size})
	resp, err := t.get(ctx, r.client, r.url, h)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var size int64
	switch resp.StatusCode {
	case http.StatusOK:
		if p.have > 0 {
			t.o.Log.Info("the server sends the file anew", "source", t.src.Redacted(), "had", p.have)
		}
		if err := p.restart(); err != nil {
			return err
		}
		size = resp.ContentLength
	case http.StatusPartialContent:
		from, total, ok := contentRange(resp.Header.Get("Content-Range"))
		if !ok || from != p.have || p.Size > 0 && total > 0 && total != p.Size {
			_ = p.restart() // the next attempt tells
			return fmt.Errorf("the server answers another range: %q", resp.Header.Get("Content-Range"))
		}
		size = total
	case http.StatusRequestedRangeNotSatisfiable:
		if err := p.restart(); err != nil {
			return err
		}
		return &statusError{code: http.StatusServiceUnavailable, what: " (it has less than the part that is here: fetched anew)"}
	default:
		return newStatusError(resp)
	}
	if r.size > 0 && size > 0 && r.size != size {
		return fmt.Errorf("has %d bytes, %s says %d", size, r.by, r.size)
	}
	if r.answered != nil {
		r.answered(r, resp)
	}
	p.URL, p.ETag, p.Time, p.Size = cleanText(r.url), resp.Header.Get("ETag"), resp.Header.Get("Last-Modified"), max(size, 0)
	if err := writeJSON(p.record(), p); err != nil {
		return cacheError(err)
	}
	if err := t.room(size - p.have); err != nil {
		return err
	}
	return t.copy(ctx, resp.Body, p)
}

func (t *try) copy(ctx context.Context, body io.Reader, p *partial) error {
	m := t.meter(Progress{Source: t.src.Redacted(), Step: "download", Done: p.have, Total: p.Size})
	defer m.end()
	buf := make([]byte, 256<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if p.Size > 0 && p.have+int64(n) > p.Size {
				return fmt.Errorf("more than the %d bytes that were announced came", p.Size)
			}
			if _, err := p.f.WriteAt(buf[:n], p.have); err != nil {
				return cacheError(err)
			}
			_, _ = p.sum.Write(buf[:n])
			p.have += int64(n)
			m.add(n)
		}
		switch {
		case err == io.EOF && (p.Size == 0 || p.have == p.Size): //nolint:errorlint // Read returns it bare
			return nil
		case err == io.EOF: //nolint:errorlint // Read returns it bare
			return fmt.Errorf("the connection ended after %d of %d bytes: %w", p.have, p.Size, io.ErrUnexpectedEOF)
		case errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("the connection ended after %d of %d bytes: %w", p.have, p.Size, err)
		case err != nil:
			return cleanError(err)
		}
	}
}

// restart forgets what has come.
func (p *partial) restart() error {
	had := p.have
	p.have, p.Size, p.ETag, p.Time = 0, 0, "", ""
	p.sum.Reset()
	if had == 0 {
		return nil
	}
	return cacheError(p.f.Truncate(0))
}

// contentRange reads "bytes FROM-TO/TOTAL"; total is 0 for "*".
func contentRange(s string) (from, total int64, ok bool) {
	s, ok = strings.CutPrefix(s, "bytes ")
	if !ok {
		return 0, 0, false
	}
	span, size, ok := strings.Cut(s, "/")
	first, _, ok2 := strings.Cut(span, "-")
	from, err := strconv.ParseInt(first, 10, 64)
	if !ok || !ok2 || err != nil {
		return 0, 0, false
	}
	if size == "*" {
		return from, 0, true
	}
	total, err = strconv.ParseInt(size, 10, 64)
	return from, total, err == nil && total > 0
}

// https fetches a plain URL.
func (t *try) https(ctx context.Context) (File, error) {
	token, err := t.token(t.src.Token)
	if err != nil {
		return File{}, err
	}
	client, done := t.client(transport{})
	defer done()
	r := request{client: client, url: t.src.URL, want: t.pin, by: "the graph", header: http.Header{}}
	if token != "" {
		r.header.Set("Authorization", "Bearer "+token)
	}
	return t.download(ctx, r, t.publish)
}
