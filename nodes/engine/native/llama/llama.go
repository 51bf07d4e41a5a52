// Package llama computes models of the Llama architecture (Llama 2 and 3, SmolLM2 and others that GGUF calls "llama") from GGUF files. It
// is the compute half of the native engine: weights, keys and values, one forward step over a batch. It knows no requests, no sampling
// and no scheduling, and it owns no memory for keys and values.
//
// A result does not depend on how it came about: the logits of a token and the bytes of its keys and values are the same whatever stands
// beside it in the batch, however the prompt was cut, on any number of threads, in any blocks, and with any of the instruction sets of
// package kernel.
package llama

import (
	"fmt"
	"os"

	"github.com/dynamograph/dynamo/graph/model/gguf"
	"github.com/dynamograph/dynamo/nodes/engine/native/kernel"
)

// BlockTokens is the number of tokens in a block of keys and values.
const BlockTokens = kernel.Lanes

// Options says what to open and how.
type Options struct {
	Path     string           // the GGUF file
	SHA256   string           // its content, hex; it names the cache file; empty: computed
	CacheDir string           // where the repacked weights are kept; empty or not writable: repacked into memory at each start
	Threads  int              // 0: DefaultThreads
	Context  int              // longest sequence, tokens; 0: what the model was trained for
	Kernels  string           // "avx512", "avx2" or "portable"; empty: the best that the processor has
	Progress func(msg string) // told about long steps; may be nil
}

// Info describes an open model.
type Info struct {
	Context     int    // longest sequence, tokens
	Vocab       int    // token ids are below it; length of a row of logits
	Layers      int    //
	Heads       int    // of queries
	KVHeads     int    // of keys and values
	HeadDim     int    //
	BlockTokens int    // 16
	BlockBytes  int    // all layers of one block of keys and values
	Numerics    string // what two engines must share for equal results
	Layout      string // order of bytes in a block
	DType       string // "f16"
	Kernels     string // "avx512", "avx2" or "portable"
	Threads     int    //
	Warning     string // for the user, empty if all is well: the cache folder could not be used, kernels are slow
}

// Model is an open model. Info is safe for concurrent use; Forward is not.
type Model struct {
	info    Info
	shape   shape
	layers  []layer
	embed   *matrix
	output  *matrix
	outNorm []float32
	freqs   []float64
	weights *weights
	set     *kernel.Set
	pool    *pool
	work    work
}

type layer struct {
	attnNorm, ffnNorm []float32
	q, k, v, o        *matrix
	gate, up, down    *matrix
}

// Open maps the repacked weights of the file, making them first where they are absent or damaged.
func Open(o Options) (*Model, error) {
	f, err := os.Open(o.Path)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	defer func() { _ = f.Close() }()
	m, err := open(f, o)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", o.Path, err)
	}
	return m, nil
}

func open(f *os.File, o Options) (*Model, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Threads < 0 || o.Threads > maxThreads {
		return nil, fmt.Errorf("threads %d: must be from 0 to %d", o.Threads, maxThreads)
	}
	set := kernel.Best()
	if o.Kernels != "" {
		if set = kernel.Named(o.Kernels); set == nil {
			return nil, fmt.Errorf("kernels %q: this processor does not have them", o.Kernels)
		}
	}
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file")
	}
	file, err := gguf.Read(f, st.Size())
	if err != nil {
		return nil, err
	}
	s, err := readShape(file)
	if err != nil {
		return nil, err
	}
	if err := s.limitContext(o.Context); err != nil {
		return nil, err
	}
	l, err := newLayout(file, s)
	if err != nil {
		return nil, err
	}
	threads := o.Threads
	if threads == 0 {
		threads = DefaultThreads()
	}
	w, warning, err := openWeights(f, l, o, threads)
	if err != nil {
		return nil, err
	}
	m := &Model{shape: s, weights: w, set: set}
	m.bind(l)
	if set == kernel.Portable() {
		warning = join(warning, "portable kernels: 50 to 80 times slower than with AVX2")
	}
	m.freqs = s.frequencies(m.ropeFactors(l))
	m.pool = newPool(threads)
	m.info = Info{
		Context: s.context, Vocab: s.vocab, Layers: s.layers, Heads: s.heads, KVHeads: s.kvHeads, HeadDim: s.headDim,
		BlockTokens: BlockTokens, BlockBytes: s.blockBytes(), DType: "f16", Kernels: m.set.Name(), Threads: threads, Warning: warning,
		Numerics: fmt.Sprintf("native/k%d/act-int16-b32/kv-f16", kernel.Version),
		Layout:   fmt.Sprintf("native/b%d/l%d/k[%d][%d][16]/v[%d][16][%d]", BlockTokens, s.layers, s.kvHeads, s.headDim, s.kvHeads, s.headDim),
	}
	m.initWork()
	return m, nil
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// Info describes the model.
func (m *Model) Info() Info { return m.info }

// Close ends the workers and unmaps the weights. The model must not be used afterwards; a second Close does nothing.
func (m *Model) Close() error {
	if m.pool == nil {
		return nil
	}
	m.pool.close()
	m.pool = nil
	return m.weights.close()
}
