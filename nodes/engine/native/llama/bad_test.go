package llama

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/model/gguf"
	"github.com/dynamograph/dynamo/graph/model/gguf/gguftest"
)

// small is a model for tests of files rather than of sums.
var small = tiny{name: "small", dim: 32, ff: 64, layers: 2, heads: 4, kvHeads: 2, headDim: 16, vocab: 40,
	types: []gguf.Type{gguf.Q4_1, gguf.Q8_0, gguf.F16}}

// edit is a change of a model's parts.
type edit func(kvs []gguftest.KV, ts []gguftest.Tensor) ([]gguftest.KV, []gguftest.Tensor)

func setKey(key string, v any) edit {
	return func(kvs []gguftest.KV, ts []gguftest.Tensor) ([]gguftest.KV, []gguftest.Tensor) {
		for i := range kvs {
			if kvs[i].Key == key {
				kvs[i].Value = v
				return kvs, ts
			}
		}
		return append(kvs, gguftest.K(key, v)), ts
	}
}

func dropKey(key string) edit {
	return func(kvs []gguftest.KV, ts []gguftest.Tensor) ([]gguftest.KV, []gguftest.Tensor) {
		for i := range kvs {
			if kvs[i].Key == key {
				return append(kvs[:i], kvs[i+1:]...), ts
			}
		}
		panic(key)
	}
}

func setTensor(name string, change func(*gguftest.Tensor)) edit {
	return func(kvs []gguftest.KV, ts []gguftest.Tensor) ([]gguftest.KV, []gguftest.Tensor) {
		for i := range ts {
			if ts[i].Name == name {
				change(&ts[i])
				return kvs, ts
			}
		}
		panic(name)
	}
}

func dropTensor(name string) edit {
	return func(kvs []gguftest.KV, ts []gguftest.Tensor) ([]gguftest.KV, []gguftest.Tensor) {
		for i := range ts {
			if ts[i].Name == name {
				return kvs, append(ts[:i], ts[i+1:]...)
			}
		}
		panic(name)
	}
}

func addTensor(t gguftest.Tensor) edit {
	return func(kvs []gguftest.KV, ts []gguftest.Tensor) ([]gguftest.KV, []gguftest.Tensor) {
		return kvs, append(ts, t)
	}
}

// TestRefusals: what the engine does not know or cannot trust is one clear error.
func TestRefusals(t *testing.T) {
	const arch, eps = "general.architecture", "llama.attention.layer_norm_rms_epsilon"
	for _, c := range []struct {
		name string
		edit edit
		opts Options
		want string
	}{
		{"architecture", setKey(arch, "qwen2"), Options{}, `architecture "qwen2": not supported; the native engine knows llama`},
		{"tensor type", setTensor("blk.1.ffn_up.weight", func(t *gguftest.Tensor) { // 32x64 values, as Q5_0 stores them
			t.Type, t.Data = gguf.Q5_0, make([]byte, 64*22)
		}), Options{}, `tensor "blk.1.ffn_up.weight" has type Q5_0: not supported; the native engine knows F32, F16, BF16, Q8_0, Q4_0 and Q4_1`},
		{"missing tensor", dropTensor("blk.1.attn_k.weight"), Options{}, `tensor "blk.1.attn_k.weight" is missing`},
		{"bias", addTensor(gguftest.F32("blk.0.attn_q.bias", []int64{64}, make([]float32, 64))), Options{},
			`tensor "blk.0.attn_q.bias": not supported by the native engine (1 such tensors)`},
		{"shape", setTensor("blk.0.attn_norm.weight", func(t *gguftest.Tensor) { t.Dims, t.Data = []int64{16}, t.Data[:64] }), Options{},
			`tensor "blk.0.attn_norm.weight" has shape [16]: must be [32]`},
		{"quantised vector", setTensor("output_norm.weight", func(t *gguftest.Tensor) { t.Type, t.Data = gguf.Q8_0, make([]byte, 34) }), Options{},
			`tensor "output_norm.weight" has type Q8_0: a vector must be F32, F16 or BF16`},
		{"experts", setKey("llama.expert_count", uint32(8)), Options{}, `key "llama.expert_count" is 8: not supported by the native engine`},
		{"yarn", setKey("llama.rope.scaling.type", "yarn"), Options{},
			`key "llama.rope.scaling.type" is "yarn": not supported; the native engine knows none and linear`},
		{"no epsilon", dropKey(eps), Options{}, `key "llama.attention.layer_norm_rms_epsilon": must be there, from 0 to 1`},
		{"NaN epsilon", setKey(eps, float32(math.NaN())), Options{}, `key "llama.attention.layer_norm_rms_epsilon": must be there, from 0 to 1`},
		{"head size", setKey("llama.attention.key_length", uint32(24)), Options{}, `head size 24: not supported; must be a multiple of 16, at most 512`},
		{"value size", setKey("llama.attention.value_length", uint32(32)), Options{},
			`key "llama.attention.value_length" is 32: must equal the size of keys, 16`},
		{"ratio", setKey("llama.attention.head_count_kv", uint32(3)), Options{}, `4 heads for 3 key-value heads: not a whole ratio`},
		{"layers of different shape", setKey("llama.attention.head_count_kv", []uint32{2, 1}), Options{},
			`key "llama.attention.head_count_kv" is of type array of uint32: layers of different shape are not supported`},
		{"rotated", setKey("llama.rope.dimension_count", uint32(17)), Options{},
			`key "llama.rope.dimension_count" is 17: must be even and at most the size of a head, 16`},
		{"many layers", setKey("llama.block_count", uint32(1<<14)), Options{}, `block_count 16384: not supported; must be a multiple of 1, at most 1024`},
		{"more layers than tensors", setKey("llama.block_count", uint32(1000)), Options{}, `tensor "blk.2.attn_norm.weight" is missing`},
		{"huge embedding", setKey("llama.embedding_length", uint32(1<<24)), Options{},
			`embedding_length 16777216: not supported; must be a multiple of 32, at most 131072`},
		{"no context", dropKey("llama.context_length"), Options{}, `key "llama.context_length" is missing: say how long the context shall be`},
		{"context", setKey(arch, "llama"), Options{Context: 300}, `context 300: the model was trained for 256 tokens`},
		{"threads", setKey(arch, "llama"), Options{Threads: -1}, `threads -1: must be from 0 to 256`},
		{"sha256", setKey(arch, "llama"), Options{SHA256: "xyz"}, `sha256 "xyz": must be 64 hexadecimal digits`},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.opts.Path = writeFile(t, gguftest.Build(c.edit(small.parts())))
			c.opts.CacheDir = t.TempDir()
			_, err := Open(c.opts)
			if err == nil {
				t.Fatal("opened")
			}
			if want := "model " + c.opts.Path + ": " + c.want; err.Error() != want {
				t.Errorf("got:\n  %v\nwant:\n  %s", err, want)
			}
			if left, _ := os.ReadDir(c.opts.CacheDir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestDamagedFiles: files cut anywhere, or with wrong magic, are refused without large allocations.
func TestDamagedFiles(t *testing.T) {
	whole := gguftest.Build(small.parts())
	r := rand.New(rand.NewPCG(1, 1))
	try := func(b []byte) error {
		var before, after runtime.MemStats
		p := writeFile(t, b)
		runtime.ReadMemStats(&before)
		m, err := Open(Options{Path: p, Threads: 1})
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
			t.Errorf("allocated %d bytes for a file of %d", grown, len(b))
		}
		if err == nil {
			usable(t, m)
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
		return err
	}
	for _, n := range []int{0, 1, 4, 23, 24, 100, len(whole) / 2, len(whole) - 1} {
		if try(whole[:n]) == nil {
			t.Errorf("a file cut to %d of %d bytes was opened", n, len(whole))
		}
	}
	b := append([]byte("GGML"), whole[4:]...)
	if err := try(b); err == nil || !strings.Contains(err.Error(), "GGUF") {
		t.Errorf("wrong magic: %v", err)
	}
	for range 300 {
		b := append([]byte{}, whole...)
		for range 1 + r.IntN(3) {
			at := r.IntN(3000)
			switch r.IntN(3) {
			case 0:
				b[at] ^= 1 << r.IntN(8)
			case 1:
				b[at] = byte(r.Uint32())
			default:
				binary.LittleEndian.PutUint32(b[at:], 0xffffffff)
			}
		}
		_ = try(b) // an error or a usable model: no panic
	}
	if _, err := Open(Options{Path: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Open(Options{Path: filepath.Join(t.TempDir(), "absent")}); !os.IsNotExist(unwrapAll(err)) {
		t.Errorf("an absent file: %v", err)
	}
}

func unwrapAll(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok || u.Unwrap() == nil {
			return err
		}
		err = u.Unwrap()
	}
}

// usable runs a few tokens; a model of damaged numbers may say anything, but not panic.
func usable(t *testing.T, m *Model) {
	t.Helper()
	info := m.Info()
	if info.BlockBytes > 1<<20 || info.Context < 3 {
		return
	}
	kv := alignedBytes(info.BlockBytes)
	if err := m.Forward(kv, []Seq{{Tokens: []uint32{0, uint32(info.Vocab - 1)}, Blocks: []int32{0}, Logits: logitRows(1, info.Vocab)}}); err != nil {
		t.Error(err)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(gguftest.Build(tiny{name: "least", dim: 32, ff: 32, layers: 1, heads: 2, kvHeads: 1, headDim: 16, vocab: 16, types: small.types}.parts()))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Open(Options{Path: writeFile(t, b), Threads: 1})
		if err == nil {
			usable(t, m)
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestForwardRefuses: what would read or write outside is an error.
func TestForwardRefuses(t *testing.T) {
	m := mustOpen(t, Options{Path: small.write(t), Threads: 1})
	kv := alignedBytes(4 * m.Info().BlockBytes)
	many := make([]uint32, 100)
	for _, c := range []struct {
		want string
		s    Seq
	}{
		{"token 40 is not in the vocabulary of 40", Seq{Tokens: []uint32{40}, Blocks: []int32{0}}},
		{"block 4 is not among 4", Seq{Tokens: []uint32{1}, Blocks: []int32{4}}},
		{"block -1 is not among 4", Seq{Tokens: []uint32{1}, Blocks: []int32{-1}}},
		{"2 blocks do not cover 33 tokens", Seq{Tokens: []uint32{1}, Pos: 32, Blocks: []int32{0, 1}}},
		{"0 blocks do not cover 1 tokens", Seq{Tokens: []uint32{1}}},
		{"1 tokens at position -1 exceed the context of 256", Seq{Tokens: []uint32{1}, Pos: -1, Blocks: []int32{0}}},
		{"100 tokens at position 200 exceed the context of 256", Seq{Tokens: many, Pos: 200, Blocks: make([]int32, 20)}},
		{"2 rows of logits for 1 tokens", Seq{Tokens: []uint32{1}, Blocks: []int32{0}, Logits: logitRows(2, 40)}},
		{"a row of 39 logits for a vocabulary of 40", Seq{Tokens: []uint32{1}, Blocks: []int32{0}, Logits: logitRows(1, 39)}},
	} {
		good := Seq{Tokens: []uint32{1}, Blocks: []int32{1}}
		err := m.Forward(kv, []Seq{good, c.s})
		if err == nil || err.Error() != "sequence 1: "+c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	for i, b := range kv {
		if b != 0 {
			t.Fatalf("a refused step wrote at %d", i)
		}
	}
	if err := m.Forward(nil, nil); err != nil {
		t.Errorf("an empty batch: %v", err)
	}
}

// TestForwardDoesNotAllocate holds in the steady state, on one thread and on two.
func TestForwardDoesNotAllocate(t *testing.T) {
	for _, threads := range []int{1, 2} {
		m := mustOpen(t, Options{Path: small.write(t), Threads: threads})
		kv := alignedBytes(4 * m.Info().BlockBytes)
		batch := []Seq{{Tokens: randTokens(30, 40, 1), Blocks: []int32{0, 1}, Logits: logitRows(2, 40)},
			{Tokens: randTokens(1, 40, 2), Pos: 20, Blocks: []int32{2, 3}, Logits: logitRows(1, 40)}}
		n := testing.AllocsPerRun(50, func() {
			if err := m.Forward(kv, batch); err != nil {
				t.Fatal(err)
			}
		})
		if n > 0 {
			t.Errorf("%d threads: %v allocations a step", threads, n)
		}
	}
}
