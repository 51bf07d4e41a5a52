// Package kernel holds the inner loops of the native engine: products of quantised or float weights with rows of activations, and the
// element-wise functions between them. Every function exists for AVX-512, for AVX2 with FMA and F16C, and in plain Go; all of them do the
// same roundings in the same order, so their results are equal bit for bit.
//
// Order of operations: an output row is one of 16 lanes and walks its k in order; sums over a vector go to 16 lanes by index modulo 16 and
// are folded i with i+8, i+4, i+2, i+1; what is written as a fused multiply-add rounds once. Columns (activation rows) never meet.
//
// The package knows no model and no threads. Functions check nothing where they take pointers: callers vouch for lengths, which are
// multiples of 16 (32 for blocks).
package kernel

//go:generate go run ./gen -isa avx512 -out kernel_avx512_amd64.s -stubs stub_avx512_amd64.go -pkg kernel
//go:generate go run ./gen -isa avx2 -out kernel_avx2_amd64.s -stubs stub_avx2_amd64.go -pkg kernel

import "unsafe"

// Version changes when any result changes by a bit. It is part of the identity of cached keys and values.
const Version = 1

// Lanes is the number of rows in a group of weights, and the scratch of functions that fold.
const Lanes = 16

// RowBlock is the size of a block of 32 activations for quantised weights (the Row layout): 32 int16, then float32 scale, scale times the
// sum of the 32, int32 -8 times their sum, and 4 bytes of zero.
const RowBlock = 80

// RowBytes is the size of a row of k activations for quantised weights.
func RowBytes(k int) int { return k / 32 * RowBlock }

type (
	quantFunc func(w, x, out *byte, blocks, ldx, ldo int)
	floatFunc func(w, x, out *byte, k, ldw, ldx, ldo, add int)
)

// Set is one implementation of all functions. It is immutable and safe for concurrent use.
type Set struct {
	name         string
	quant        [3][maxCols + 1]quantFunc // by format and columns; nil where there is no such width
	float        [3][maxCols + 1]floatFunc
	sumSquares   func(x, out *float32, n int)
	norm         func(x, w, out *float32, n int, s float32)
	scale        func(x, out *float32, n int, s float32)
	add          func(x, y *float32, n int)
	silu         func(g, u *float32, n int)
	rope         func(x, c, s, out *float32, n int)
	half         func(x *float32, out *byte, n int)
	softmaxScale func(x, out *float32, n int, s float32)
	softmaxExp   func(x, out, mask *float32, n int, m float32)
	quantise     func(x *float32, out *byte, blocks int)
}

// Name is "avx512", "avx2" or "portable".
func (s *Set) Name() string { return s.name }

// Best is the fastest set that this processor has.
func Best() *Set { return sets()[0] }

// Portable is the plain Go set.
func Portable() *Set { return portableSet }

// Named is the set of that name, or nil where this processor lacks it.
func Named(name string) *Set {
	for _, s := range sets() {
		if s.name == name {
			return s
		}
	}
	return nil
}

// All lists the sets that this processor can run, fastest first; the last is Portable.
func All() []*Set { return sets() }

// maxCols is the most columns of one call.
const maxCols = 8

// widest is the most columns of one call that are at most cols.
func widest[F quantFunc | floatFunc](f *[maxCols + 1]F, cols int) int {
	n := min(cols, maxCols)
	for f[n] == nil {
		n--
	}
	return n
}

// Gemm multiplies one group of 16 rows of weights, packed in format f, with cols rows of activations that lie ldx bytes apart (RowBlock
// layout for quantised formats, else float32), and writes 16 float32 for each, ldo bytes apart.
func (s *Set) Gemm(f Format, w *byte, k int, x *byte, ldx, cols int, out *byte, ldo int) {
	if !f.Quantised() {
		s.float1(f, w, x, out, k, f.laneBytes(), ldx, ldo, cols, 0)
		return
	}
	fs := &s.quant[f]
	for cols > 0 {
		n := widest(fs, cols)
		fs[n](w, x, out, k/32, ldx, ldo)
		if cols -= n; cols > 0 {
			x, out = ptr(x, ldx*n), ptr(out, ldo*n)
		}
	}
}

func (s *Set) float1(f Format, w, x, out *byte, k, ldw, ldx, ldo, cols, add int) {
	fs := &s.float[f-F32]
	for cols > 0 {
		n := widest(fs, cols)
		fs[n](w, x, out, k, ldw, ldx, ldo, add)
		if cols -= n; cols > 0 {
			x, out = ptr(x, ldx*n), ptr(out, ldo*n)
		}
	}
}

// Half16 multiplies k rows of 16 float16, ldw bytes apart, with cols rows of float32, ldx bytes apart; it writes, or with add adds to, 16
// float32 for each, ldo bytes apart.
func (s *Set) Half16(w, x, out *byte, k, ldw, ldx, ldo, cols int, add bool) {
	flag := 0
	if add {
		flag = 1
	}
	s.float1(F16, w, x, out, k, ldw, ldx, ldo, cols, flag)
}

// ptr moves p by n bytes, within its object.
func ptr(p *byte, n int) *byte { return (*byte)(unsafe.Add(unsafe.Pointer(p), n)) }
