package llama

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph/model/gguf"
	"github.com/dynamograph/dynamo/nodes/engine/native/kernel"
)

// tensor is a part of the repacked weights.
type tensor struct {
	src    gguf.Tensor
	format kernel.Format // of a matrix
	vector bool          // plain float32 values instead
	k, n   int           // columns (contiguous) and rows; a vector has one row
	off    int64         // bytes from the start of the repacked file
	size   int64         // bytes, repacked
}

// matrix is a tensor in memory.
type matrix struct {
	format kernel.Format
	k, n   int
	groups int // of 16 rows
	stride int // bytes of a group
	data   []byte
}

// layout says which tensors a model has and where they lie in the repacked file. It follows from the GGUF header alone.
type layout struct {
	tensors map[string]*tensor
	order   []*tensor
	header  int64 // bytes before the first tensor
	size    int64
	pieces  []piece
	id      [sha256.Size]byte
}

// piece is what is packed, summed and checked as one: some groups of a matrix, or a vector.
type piece struct {
	t      *tensor
	g0, g1 int
	off    int64
	size   int64
}

const pieceBytes = 1 << 20

var formats = map[gguf.Type]kernel.Format{gguf.Q4_1: kernel.Q41, gguf.Q4_0: kernel.Q40, gguf.Q8_0: kernel.Q80, gguf.F32: kernel.F32,
	gguf.F16: kernel.F16, gguf.BF16: kernel.BF16}

func newLayout(f *gguf.File, s shape) (*layout, error) {
	l := &layout{tensors: map[string]*tensor{}}
	have := map[string]gguf.Tensor{}
	for _, t := range f.Tensors {
		have[t.Name] = t
	}
	take := func(name string, k, n int, vector, optional bool) error {
		t, ok := have[name]
		if !ok {
			if optional {
				return nil
			}
			return fmt.Errorf("tensor %q is missing", name)
		}
		delete(have, name)
		return l.add(t, k, n, vector)
	}
	var errs []error
	try := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	try(take("token_embd.weight", s.dim, s.vocab, false, false))
	for i := range s.layers {
		p := fmt.Sprintf("blk.%d.", i)
		try(take(p+"attn_norm.weight", s.dim, 1, true, false))
		try(take(p+"attn_q.weight", s.dim, s.qDim(), false, false))
		try(take(p+"attn_k.weight", s.dim, s.kvDim(), false, false))
		try(take(p+"attn_v.weight", s.dim, s.kvDim(), false, false))
		try(take(p+"attn_output.weight", s.qDim(), s.dim, false, false))
		try(take(p+"ffn_norm.weight", s.dim, 1, true, false))
		try(take(p+"ffn_gate.weight", s.dim, s.ff, false, false))
		try(take(p+"ffn_up.weight", s.dim, s.ff, false, false))
		try(take(p+"ffn_down.weight", s.ff, s.dim, false, false))
		if len(errs) > 0 {
			return nil, errs[0]
		}
	}
	try(take("output_norm.weight", s.dim, 1, true, false))
	try(take("output.weight", s.dim, s.vocab, false, true))
	try(take("rope_freqs.weight", s.rotated/2, 1, true, true))
	if len(errs) > 0 {
		return nil, errs[0]
	}
	var rest []string
	for name := range have {
		if !strings.HasSuffix(name, ".attn_rot_embd") { // old files carry what is computed here
			rest = append(rest, name)
		}
	}
	if len(rest) > 0 {
		slices.Sort(rest)
		return nil, fmt.Errorf("tensor %q: not supported by the native engine (%d such tensors)", rest[0], len(rest))
	}
	l.place()
	return l, nil
}

// add checks the tensor's type and shape.
func (l *layout) add(t gguf.Tensor, k, n int, vector bool) error {
	format, ok := formats[t.Type]
	if !ok {
		return fmt.Errorf("tensor %q has type %s: not supported; the native engine knows F32, F16, BF16, Q8_0, Q4_0 and Q4_1", t.Name, t.Type)
	}
	if vector && format.Quantised() {
		return fmt.Errorf("tensor %q has type %s: a vector must be F32, F16 or BF16", t.Name, t.Type)
	}
	want := []int64{int64(k), int64(n)}
	if vector {
		want = want[:1]
	}
	dims := t.Dims
	for len(dims) > len(want) && dims[len(dims)-1] == 1 {
		dims = dims[:len(dims)-1]
	}
	if !slices.Equal(dims, want) {
		return fmt.Errorf("tensor %q has shape %v: must be %v", t.Name, t.Dims, want)
	}
	if t.Size != int64(n)*int64(format.SourceBytes(k)) {
		return fmt.Errorf("tensor %q has %d bytes: must be %d", t.Name, t.Size, int64(n)*int64(format.SourceBytes(k)))
	}
	p := &tensor{src: t, format: format, vector: vector, k: k, n: n}
	p.size = int64((n+15)/16) * int64(format.GroupBytes(k))
	if vector {
		p.size = int64(k) * 4
	}
	l.tensors[t.Name] = p
	l.order = append(l.order, p)
	return nil
}

// place gives every tensor its offset, cuts the pieces and names the whole.
func (l *layout) place() {
	h := sha256.New()
	_, _ = fmt.Fprintln(h, cacheVersion)
	var off int64
	for _, t := range l.order {
		off = (off + 63) &^ 63
		t.off = off
		off += t.size
		_, _ = fmt.Fprintf(h, "%s %d %t %d %d %d %d\n", t.src.Name, t.format, t.vector, t.k, t.n, t.off, t.size)
	}
	h.Sum(l.id[:0])
	for _, t := range l.order {
		if t.vector {
			l.pieces = append(l.pieces, piece{t: t, off: t.off, size: t.size})
			continue
		}
		gb, groups := int64(t.format.GroupBytes(t.k)), (t.n+15)/16
		step := int(max(1, pieceBytes/gb))
		for g := 0; g < groups; g += step {
			end := min(groups, g+step)
			l.pieces = append(l.pieces, piece{t: t, g0: g, g1: end, off: t.off + int64(g)*gb, size: int64(end-g) * gb})
		}
	}
	l.header = (headerBytes + int64(len(l.pieces))*4 + 4095) &^ 4095
	for _, t := range l.order {
		t.off += l.header
	}
	for i := range l.pieces {
		l.pieces[i].off += l.header
	}
	l.size = l.header + off
}

// bind takes the tensors out of the mapped weights.
func (m *Model) bind(l *layout) {
	mat := func(name string) *matrix {
		t := l.tensors[name]
		if t == nil {
			return nil
		}
		return &matrix{format: t.format, k: t.k, n: t.n, groups: (t.n + 15) / 16, stride: t.format.GroupBytes(t.k),
			data: m.weights.data[t.off : t.off+t.size : t.off+t.size]}
	}
	for i := range m.shape.layers {
		p := fmt.Sprintf("blk.%d.", i)
		m.layers = append(m.layers, layer{
			attnNorm: m.vector(l, p+"attn_norm.weight"), ffnNorm: m.vector(l, p+"ffn_norm.weight"),
			q: mat(p + "attn_q.weight"), k: mat(p + "attn_k.weight"), v: mat(p + "attn_v.weight"), o: mat(p + "attn_output.weight"),
			gate: mat(p + "ffn_gate.weight"), up: mat(p + "ffn_up.weight"), down: mat(p + "ffn_down.weight"),
		})
	}
	m.embed, m.outNorm = mat("token_embd.weight"), m.vector(l, "output_norm.weight")
	if m.output = mat("output.weight"); m.output == nil {
		m.output = m.embed
	}
}

// vector is a tensor's float32 values, or nil where it is absent.
func (m *Model) vector(l *layout, name string) []float32 {
	t := l.tensors[name]
	if t == nil {
		return nil
	}
	return floats(m.weights.data[t.off : t.off+t.size])
}

func (m *Model) ropeFactors(l *layout) []float32 { return m.vector(l, "rope_freqs.weight") }
