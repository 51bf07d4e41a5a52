package models

import (
	"net/http"
	"path/filepath"
	"testing"
)

func TestHub(t *testing.T) {
	data := weights(1)
	blob := serve(t, content(data, `"blob"`))
	var linked string
	w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/org/repo/resolve/v1/d/m x.gguf" {
			http.NotFound(rw, r)
			return
		}
		if r.Header.Get("Authorization") != "Bearer hub" {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		rw.Header().Set("X-Linked-Etag", `"`+linked+`"`)
		http.Redirect(rw, r, blob.URL, http.StatusFound)
	})
	e := env{"HF_ENDPOINT": w.URL + "/", "HF_TOKEN": "hub"}
	linked = hashOf(data)
	c := newCache(t, e)
	m := mod("", "hf:org/repo@v1/d/m x.gguf")
	want(t, c, m, data)
	w.Close()
	want(t, c, m, data)

	linked = hashOf(weights(2))
	w2 := serve(t, w.Config.Handler.ServeHTTP)
	wantError(t, newCache(t, env{"HF_ENDPOINT": w2.URL, "HF_TOKEN": "hub"}), m, "the hub pins "+linked)
	wantError(t, newCache(t, env{"HF_ENDPOINT": w2.URL}), m, "401 Unauthorized")
	wantError(t, newCache(t, env{"HF_ENDPOINT": w2.URL}), mod("", "hf:org/repo/m.gguf"), w2.URL+"/org/repo/resolve/main/m.gguf: the server answers 404")

	// The token of the hub's own tools, and the mirror as an option.
	home := t.TempDir()
	write(t, filepath.Join(home, ".cache", "huggingface", "token"), []byte("hub\n"))
	linked = ""
	c = newCache(t, env{"HOME": home})
	c.o.HubURL = w2.URL
	want(t, c, m, data)
}

func TestHubCache(t *testing.T) {
	data := weights(1)
	home := t.TempDir()
	repo := filepath.Join(home, "hub", "models--org--repo")
	write(t, filepath.Join(repo, "refs", "main"), []byte("abc123"))
	path := write(t, filepath.Join(repo, "snapshots", "abc123", "m.gguf"), data)
	c := newCache(t, env{"HF_HOME": home})
	for _, source := range []string{"hf:org/repo/m.gguf", "hf:org/repo@abc123/m.gguf"} {
		if f := want(t, c, mod(hashOf(data), source), data); f.Path != path {
			t.Errorf("path %s", f.Path)
		}
	}
	for _, source := range []string{"hf:org/repo@v2/m.gguf", "hf:org/repo/x.gguf", "hf:org/other/m.gguf"} {
		if f, ok := c.Find(mod("", source)); ok {
			t.Errorf("%s: found %+v", source, f)
		}
	}
	write(t, filepath.Join(repo, "refs", "evil"), []byte("../../../x"))
	if f, ok := c.Find(mod("", "hf:org/repo@evil/m.gguf")); ok {
		t.Errorf("found %+v", f)
	}
}
