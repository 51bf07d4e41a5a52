package models

import (
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const wheelName = "tiny_model-1.0-py3-none-any.whl"

// index serves a package index over wheels, in one of its two forms.
func index(t *testing.T, form string, files map[string][]byte, sums map[string]string) *web {
	return serve(t, func(rw http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/files/")
		if data, ok := files[name]; ok {
			content(data, `"`+name+`"`)(rw, r)
			return
		}
		if r.URL.Path != "/simple/tiny-model/" {
			http.NotFound(rw, r)
			return
		}
		if !strings.Contains(r.Header.Get("Accept"), "application/vnd.pypi.simple.v1+json") {
			t.Errorf("Accept: %s", r.Header.Get("Accept"))
		}
		var rows []string
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if form == "json" {
				rows = append(rows, fmt.Sprintf(`{"filename": %q, "url": "../../files/%s", "hashes": {"sha256": %q}, "size": %d}`, name, name, sums[name], len(files[name])))
			} else {
				rows = append(rows, fmt.Sprintf(`<a href="%s#sha256=%s" data-requires-python="&gt;=3">%s</a><br/>`, name, sums[name], name))
			}
		}
		if form == "json" {
			rw.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
			fmt.Fprintf(rw, `{"meta": {"api-version": "1.0"}, "files": [%s]}`, strings.Join(rows, ","))
			return
		}
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(rw, `<!DOCTYPE html><html><head><base href="/files/"></head><body>%s</body></html>`, strings.Join(rows, "\n"))
	})
}

func TestIndex(t *testing.T) {
	data := weights(1)
	whl := wheel(t, map[string][]byte{"tiny_model/m.gguf": data, "tiny_model/__init__.py": nil})
	files := map[string][]byte{
		wheelName:                            whl,
		"tiny_model-0.9-py3-none-any.whl":    []byte("old"),
		"tiny_model-1.0-cp39-cp39-linux.whl": []byte("other"),
		"tiny_model-1.0.tar.gz":              []byte("source"),
		"tiny_model-2.0.tar.gz":              []byte("source"),
		"unrelated.txt":                      nil,
	}
	sums := map[string]string{}
	for name, b := range files {
		sums[name] = hashOf(b)
	}
	for _, form := range []string{"json", "html"} {
		t.Run(form, func(t *testing.T) {
			w := index(t, form, files, sums)
			e := env{"PIP_INDEX_URL": w.URL + "/simple"}
			src := "pypi:Tiny.Model==1.0.0/tiny_model/m.gguf"
			c := newCache(t, e)
			want(t, c, mod(hashOf(data), src), data)
			n := len(w.seen())
			want(t, c, mod(hashOf(data), src), data)
			want(t, c, mod("", src), data)
			if len(w.seen()) != n {
				t.Error("the index was asked again")
			}
			want(t, newCache(t, e), mod("", src), data)
			wantError(t, newCache(t, e), mod("", "pypi:tiny-model==3.0/m.gguf"), "index "+w.URL+"/simple: not found: no wheel of tiny-model 3.0; there are 0.9, 1.0")
			wantError(t, newCache(t, e), mod("", "pypi:tiny-model==2.0/m.gguf"), "tiny-model 2.0 has a source archive only")
			wantError(t, newCache(t, e), mod("", "pypi:tiny-model==1.0/m.gguf"), "the wheel has no m.gguf; it has tiny_model/m.gguf")
			wantError(t, newCache(t, e), mod("", "pypi:tiny-model==0.9/m.gguf"), "tiny_model-0.9-py3-none-any.whl: is no wheel", "zip")
			wantError(t, newCache(t, e), mod("", "pypi:absent==1/m.gguf"), "index "+w.URL+"/simple: the server answers 404 Not Found")
			wantError(t, newCache(t, e), mod(hashOf(weights(2)), src), "sha256 is "+hashOf(data)+", the graph pins "+hashOf(weights(2)))

			bad := map[string]string{wheelName: hashOf([]byte("x"))}
			w2 := index(t, form, files, bad)
			c = newCache(t, env{"PIP_INDEX_URL": w2.URL + "/simple"})
			wantError(t, c, mod(hashOf(data), src), wheelName+": sha256 is "+hashOf(whl)+", the index pins "+bad[wheelName])
			// The next place that pip knows has the right one.
			want(t, newCache(t, env{"PIP_INDEX_URL": w2.URL + "/simple", "PIP_EXTRA_INDEX_URL": w.URL + "/simple/"}), mod("", src), data)
		})
	}
}

func TestFindLinks(t *testing.T) {
	data := weights(1)
	dir := t.TempDir()
	write(t, filepath.Join(dir, wheelName), wheel(t, map[string][]byte{"tiny_model/m.gguf": data}))
	src := "pypi:tiny-model==1.0/tiny_model/m.gguf"
	page := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".whl") {
			http.ServeFile(rw, r, filepath.Join(dir, filepath.Base(r.URL.Path)))
			return
		}
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(rw, `<a href=%s>x</a>`, wheelName)
	})
	for _, place := range []string{dir, "file://" + dir, filepath.Join(dir, wheelName), "/nowhere " + dir, page.URL + "/all.html"} {
		want(t, newCache(t, env{"PIP_FIND_LINKS": place, "PIP_NO_INDEX": "true"}), mod(hashOf(data), src), data)
	}
	wantError(t, newCache(t, env{"PIP_FIND_LINKS": "/nowhere " + dir, "PIP_NO_INDEX": "1"}), mod("", "pypi:tiny-model==2/x"),
		"find-links /nowhere: stat /nowhere: no such file", "find-links "+dir+": not found: no wheel of tiny-model 2; there are 1.0")
	wantError(t, newCache(t, env{"PIP_NO_INDEX": "1"}), mod("", src), "there is no place to look")
	// A wheel that is cut.
	write(t, filepath.Join(dir, "tiny_model-3-py3-none-any.whl"), wheel(t, map[string][]byte{"tiny_model/m.gguf": data})[:1000])
	wantError(t, newCache(t, env{"PIP_FIND_LINKS": dir, "PIP_NO_INDEX": "1"}), mod("", "pypi:tiny-model==3/x"), "tiny_model-3-py3-none-any.whl: is no wheel")
}

// TestPipTLS has an index with a certificate of its own and a password.
func TestPipTLS(t *testing.T) {
	data := weights(1)
	whl := wheel(t, map[string][]byte{"m.gguf": data})
	plain := index(t, "json", map[string][]byte{wheelName: whl}, map[string]string{wheelName: hashOf(whl)})
	srv := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if user, pass, _ := r.BasicAuth(); user != "u" || pass != "pw" {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		plain.Config.Handler.ServeHTTP(rw, r)
	}))
	defer srv.Close()
	cert := write(t, filepath.Join(t.TempDir(), "ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	u := strings.Replace(srv.URL, "https://", "https://u:pw@", 1) + "/simple"
	m := mod(hashOf(data), "pypi:tiny-model==1.0/m.gguf")
	want(t, newCache(t, env{"PIP_INDEX_URL": u, "PIP_CERT": cert}), m, data)
	want(t, newCache(t, env{"PIP_INDEX_URL": u, "PIP_TRUSTED_HOST": "other.example 127.0.0.1"}), m, data)
	err := wantError(t, newCache(t, env{"PIP_INDEX_URL": u}), m, "cannot connect", "certificate")
	if strings.Contains(err.Error(), "pw") {
		t.Errorf("the password is shown: %v", err)
	}
	wantError(t, newCache(t, env{"PIP_INDEX_URL": u, "PIP_CERT": "/nowhere"}), m, "pip's cert: open /nowhere")
	wantError(t, newCache(t, env{"PIP_INDEX_URL": "http://example.com/simple"}), m, "http is used for hosts in pip's trusted-host only")
	wantError(t, newCache(t, env{"PIP_INDEX_URL": srv.URL + "/simple", "PIP_CERT": cert}), m, "401 Unauthorized")
}

func TestPipProxy(t *testing.T) {
	data := weights(1)
	whl := wheel(t, map[string][]byte{"m.gguf": data})
	w := index(t, "json", map[string][]byte{wheelName: whl}, map[string]string{wheelName: hashOf(whl)})
	e := env{"PIP_INDEX_URL": "http://pypi.example/simple", "PIP_TRUSTED_HOST": "pypi.example", "PIP_PROXY": strings.TrimPrefix(w.URL, "http://")}
	want(t, newCache(t, e), mod("", "pypi:tiny-model==1.0/m.gguf"), data)
	delete(e, "PIP_PROXY")
	e["http_proxy"] = w.URL
	want(t, newCache(t, e), mod("", "pypi:tiny-model==1.0/m.gguf"), data)
}
