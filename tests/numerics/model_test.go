// Package numerics proves on the real model what the native engine promises: its logits are right, and they are the same bits however they
// are computed. DYNAMO_TEST_MODEL is a SmolLM2-135M-Instruct GGUF file, DYNAMO_TEST_PYTHON a Python with numpy.
package numerics

import (
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/dynamograph/dynamo/nodes/engine/native/llama"
)

// model is the path of the real model.
func model(t testing.TB) string {
	t.Helper()
	p := os.Getenv("DYNAMO_TEST_MODEL")
	if p == "" {
		t.Skip("NOT RUN: set DYNAMO_TEST_MODEL to a SmolLM2-135M-Instruct GGUF file")
	}
	return p
}

// cache keeps the repacked weights for all tests of a run.
var cache string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "numerics-")
	if err != nil {
		panic(err)
	}
	cache = filepath.Join(dir, "weights")
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func open(t testing.TB, o llama.Options) *llama.Model {
	t.Helper()
	o.Path, o.CacheDir = model(t), cache
	m, err := llama.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// slab is memory for n blocks.
func slab(m *llama.Model, n int) []byte {
	b := make([]byte, n*m.Info().BlockBytes+64)
	at := int(-uintptr(unsafe.Pointer(&b[0])) & 63)
	return b[at : at+n*m.Info().BlockBytes]
}

// rows are n rows of logits.
func rows(m *llama.Model, n int) [][]float32 {
	out := make([][]float32, n)
	for i := range out {
		out[i] = make([]float32, m.Info().Vocab)
	}
	return out
}

// bits views float32 as bytes.
func bits(f []float32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&f[0])), 4*len(f)) }

func argmax(row []float32) uint32 {
	best := 0
	for i, v := range row {
		if v > row[best] {
			best = i
		}
	}
	return uint32(best)
}
