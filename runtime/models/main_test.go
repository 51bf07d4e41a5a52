package models

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/graph/model/gguf/gguftest"
	"github.com/dynamograph/dynamo/graph/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// weights is a model of about 1 MB; equal seeds give equal bytes.
func weights(seed float32) []byte {
	values := make([]float32, 1<<18)
	for i := range values {
		values[i] = seed + float32(i%977)
	}
	return gguftest.Build([]gguftest.KV{
		gguftest.K("general.architecture", "llama"),
		gguftest.K("general.name", "tiny"),
	}, []gguftest.Tensor{gguftest.F32("token_embd.weight", []int64{1 << 10, 1 << 8}, values)})
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// wheel is a zip with the given members.
func wheel(t *testing.T, members map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, data := range members {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type env map[string]string

func (e env) get(name string) string { return e[name] }

// newCache is a cache with short limits, an environment of its own and no configuration of the machine.
func newCache(t *testing.T, e env) *Cache {
	t.Helper()
	if e == nil {
		e = env{}
	}
	c := New(Options{CacheDir: t.TempDir(), Getenv: e.get})
	c.root = t.TempDir()
	c.lim = limits{connect: time.Second, stall: 5 * time.Second, backoff: time.Millisecond, tries: 3}
	return c
}

// web serves files and remembers the requests.
type web struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
}

func serve(t *testing.T, h http.HandlerFunc) *web {
	t.Helper()
	w := &web{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.requests = append(w.requests, r.Clone(context.Background()))
		w.mu.Unlock()
		h(rw, r)
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *web) seen() []*http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*http.Request(nil), w.requests...)
}

// content answers like a file server, ranges and If-Range too.
func content(data []byte, etag string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if etag != "" {
			w.Header().Set("ETag", etag)
		}
		http.ServeContent(w, r, "x.bin", time.Time{}, bytes.NewReader(data))
	}
}

// cut answers with the first n bytes of data and breaks off.
func cut(w http.ResponseWriter, data []byte, n int, etag string) {
	w.Header().Set("ETag", etag)
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	w.Write(data[:n]) //nolint:errcheck // a test's server
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func want(t *testing.T, c *Cache, m plan.Model, data []byte) File {
	t.Helper()
	f, err := c.Get(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, data) || f.SHA256 != hashOf(data) || f.Size != int64(len(data)) || f.Facts.Architecture != "llama" {
		t.Fatalf("got %+v with %d bytes, want %d bytes %s", f, len(got), len(data), hashOf(data))
	}
	left, err := os.ReadDir(c.dir("partial"))
	if err == nil && len(left) > 0 {
		t.Errorf("left in partial/: %v", left)
	}
	return f
}

func wantError(t *testing.T, c *Cache, m plan.Model, parts ...string) error {
	t.Helper()
	f, err := c.Get(t.Context(), m)
	if err == nil {
		t.Fatalf("no error but %+v", f)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("got  %v\nwant %s", err, p)
		}
	}
	return err
}

func mod(pin string, sources ...string) plan.Model {
	return plan.Model{Names: []string{"tiny"}, SHA256: pin, Sources: sources}
}

func write(t *testing.T, path string, data []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
