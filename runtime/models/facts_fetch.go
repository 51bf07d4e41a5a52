package models

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/dynamograph/dynamo/graph/model"
)

// facts asks the source for what its files say about themselves.
func (t *try) facts(ctx context.Context) (*model.Facts, error) {
	header := http.Header{}
	f := &hubFolder{c: t.Cache, ctx: ctx, header: header}
	var name, token string
	var err error
	if t.src.Scheme == "hf" {
		token, err = t.hubToken()
		f.base, name = t.hubURL(""), t.src.File
	} else {
		u, perr := url.Parse(t.src.URL)
		if perr != nil {
			return nil, perr
		}
		token, err = t.token(t.src.Token)
		dir, base := path.Split(u.Path)
		name = base
		if f.query = u.RawQuery; f.query != "" {
			f.only = base
		}
		u.Path, u.RawQuery, u.RawPath = dir, "", ""
		f.base = u.String()
	}
	if err != nil {
		return nil, err
	}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	client, done := t.client(transport{})
	defer done()
	f.client = client
	return factsIn(f, name)
}

// hubFolder is a folder behind HTTP, read by ranges.
type hubFolder struct {
	c      *Cache
	ctx    context.Context // of the one call of FetchFacts that made it
	client *http.Client
	header http.Header
	base   string // URL with a final slash
	query  string // of the source's own URL
	only   string // the one file that may be asked for, because a signature in query is for it; "" for any
}

func (f *hubFolder) open(name string) (io.ReaderAt, int64, func(), error) {
	if f.only != "" && name != f.only {
		return nil, 0, nil, os.ErrNotExist
	}
	r := &ranged{f: f, url: f.base + escape(name)}
	if f.query != "" {
		r.url += "?" + f.query
	}
	// The first bytes tell whether it is there and how large it is.
	first := make([]byte, 64<<10)
	n, size, err := r.get(first, 0)
	if err != nil {
		return nil, 0, nil, err
	}
	r.first = first[:n]
	return r, size, func() {}, nil
}

// ranged is a file behind HTTP.
type ranged struct {
	f     *hubFolder
	url   string
	first []byte
}

func (r *ranged) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	if off >= 0 && off < int64(len(r.first)) {
		n = copy(p, r.first[off:])
	}
	if n == len(p) {
		return n, nil
	}
	m, _, err := r.get(p[n:], off+int64(n))
	if n += m; err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// get fills p from off, as far as the file goes, and returns the file's size, -1 where the server does not tell.
func (r *ranged) get(p []byte, off int64) (int, int64, error) {
	h := r.f.header.Clone()
	h.Set("Range", fmt.Sprintf("bytes=%d-%d", off, off+int64(len(p))-1))
	resp, err := r.f.c.get(r.f.ctx, r.f.client, r.url, h)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	size := int64(-1)
	switch resp.StatusCode {
	case http.StatusPartialContent:
		_, total, _ := strings.Cut(resp.Header.Get("Content-Range"), "/")
		if v, err := strconv.ParseInt(total, 10, 64); err == nil {
			size = v
		}
	case http.StatusOK: // no ranges: what comes first is the file's beginning
		if size = resp.ContentLength; off > 0 {
			return 0, size, errors.New("the server does not answer with ranges")
		}
	case http.StatusRequestedRangeNotSatisfiable:
		return 0, size, io.EOF
	case http.StatusNotFound, http.StatusGone:
		return 0, 0, fmt.Errorf("%s: %w", cleanText(r.url), os.ErrNotExist)
	default:
		return 0, 0, newStatusError(resp)
	}
	n, err := io.ReadFull(resp.Body, p)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // the file ends
	}
	return n, size, err
}

func escape(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}
