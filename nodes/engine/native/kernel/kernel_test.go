package kernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// fast lists the sets to compare with Portable.
func fast(t testing.TB) []*Set {
	all := All()
	if len(all) == 1 {
		t.Skip("NOT RUN: this processor has only the portable kernels")
	}
	return all[:len(all)-1]
}

func randFloats(r *rand.Rand, n int, spread float64) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(r.NormFloat64() * math.Exp(r.NormFloat64()*spread))
	}
	return out
}

// randRows makes rows of k weights as GGUF stores them.
func randRows(r *rand.Rand, f Format, k, rows int) []byte {
	out := make([]byte, rows*f.SourceBytes(k))
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	put16 := func(at int) {
		binary.LittleEndian.PutUint16(out[at:], floatToHalf(float32(r.NormFloat64()*0.01)))
	}
	switch f {
	case Q41, Q40, Q80:
		step := f.SourceBytes(32)
		for at := 0; at < len(out); at += step {
			put16(at)
			if f == Q41 {
				put16(at + 2)
			}
		}
	case F32:
		for at := 0; at < len(out); at += 4 {
			binary.LittleEndian.PutUint32(out[at:], math.Float32bits(float32(r.NormFloat64()*0.05)))
		}
	case F16:
		for at := 0; at < len(out); at += 2 {
			put16(at)
		}
	case BF16:
		for at := 0; at < len(out); at += 2 {
			binary.LittleEndian.PutUint16(out[at:], uint16(math.Float32bits(float32(r.NormFloat64()*0.05))>>16))
		}
	}
	return out
}

func bytePtr(f []float32) *byte { return (*byte)(unsafe.Pointer(&f[0])) }

func asBytes(f []float32) []byte { return unsafe.Slice(bytePtr(f), len(f)*4) }

// TestGemmBits compares every set with the portable one, and that with a float64 product, for every format and number of columns.
func TestGemmBits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for f := Q41; f <= BF16; f++ {
		for _, k := range []int{32, 64, 576} {
			t.Run(fmt.Sprint(f, "/", k), func(t *testing.T) {
				src := randRows(r, f, k, 16)
				group := make([]byte, f.GroupBytes(k))
				f.Pack(group, src, k, 16)
				const cols, ldo = 15, 80
				x := randFloats(r, cols*k, 1)
				xp, ldx := bytePtr(x), k*4
				if f.Quantised() {
					q := make([]byte, cols*RowBytes(k))
					for c := range cols {
						Portable().Quantise(x[c*k:(c+1)*k], q[c*RowBytes(k):])
					}
					xp, ldx = &q[0], RowBytes(k)
				}
				want := make([]float32, cols*ldo/4)
				Portable().Gemm(f, &group[0], k, xp, ldx, cols, bytePtr(want), ldo)
				row := make([]float32, k)
				for lane := range 16 {
					f.Row(group, k, lane, row)
					for c := range cols {
						var sum, size float64
						for i, w := range row {
							sum += float64(w) * float64(x[c*k+i])
							size += math.Abs(float64(w) * float64(x[c*k+i]))
						}
						if got := float64(want[c*ldo/4+lane]); math.Abs(got-sum) > 1e-4*size+1e-9 {
							t.Fatalf("lane %d column %d: got %v, exact %v", lane, c, got, sum)
						}
					}
				}
				for _, s := range fast(t) {
					for n := 1; n <= cols; n++ {
						got := make([]float32, cols*ldo/4)
						s.Gemm(f, &group[0], k, xp, ldx, n, bytePtr(got), ldo)
						if !bytes.Equal(asBytes(got)[:n*ldo], asBytes(want)[:n*ldo]) {
							t.Fatalf("%s, %d columns: bits differ from portable", s.Name(), n)
						}
					}
				}
			})
		}
	}
}

// TestHalf16 covers odd k, strides and accumulation, as attention uses them.
func TestHalf16(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, k := range []int{1, 2, 3, 4, 5, 7, 16, 80} {
		const cols, ldw, ldo = 11, 160, 96
		w := make([]byte, k*ldw)
		for i := 0; i < len(w); i += 2 {
			binary.LittleEndian.PutUint16(w[i:], floatToHalf(float32(r.NormFloat64())))
		}
		x := randFloats(r, cols*(k+3), 0.5)
		start := randFloats(r, cols*ldo/4, 0.5)
		for _, add := range []bool{false, true} {
			want := append([]float32{}, start...)
			Portable().Half16(&w[0], bytePtr(x), bytePtr(want), k, ldw, (k+3)*4, ldo, cols, add)
			for _, s := range fast(t) {
				got := append([]float32{}, start...)
				s.Half16(&w[0], bytePtr(x), bytePtr(got), k, ldw, (k+3)*4, ldo, cols, add)
				if !bytes.Equal(asBytes(got), asBytes(want)) {
					t.Errorf("%s k=%d add=%v: bits differ from portable", s.Name(), k, add)
				}
			}
		}
	}
}

// elementwise runs every element-wise function on x, y and w (same length, a multiple of 32) and returns all results as bytes.
func elementwise(s *Set, x, y, w []float32, valid int) []byte {
	var out []byte
	var tmp [Lanes]float32
	keep := func(f []float32) { out = append(out, asBytes(f)...) }
	o := make([]float32, len(x))
	s.Norm(x, w, o, 1e-5, &tmp)
	keep(o)
	s.Scale(x, o, y[0])
	keep(o)
	a := append([]float32{}, x...)
	s.Add(a, y)
	keep(a)
	a = append(a[:0], x...)
	s.Silu(a, y)
	keep(a)
	s.Rope(x, y, w, o)
	keep(o)
	a = append(a[:0], x...)
	inv := s.Softmax(a, valid, 0.125, &tmp)
	keep(append(a, inv))
	h := make([]byte, 2*len(x))
	s.Half(x, h)
	out = append(out, h...)
	q := make([]byte, RowBytes(len(x)))
	s.Quantise(x, q)
	return append(out, q...)
}

func TestElementwiseBits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for round := range 200 {
		n := 32 * (1 + round%20)
		spread := float64(round % 7)
		x, y, w := randFloats(r, n, spread), randFloats(r, n, spread), randFloats(r, n, 1)
		switch round {
		case 50:
			clear(x)
		case 51:
			for i := range x {
				x[i] *= 1e-37
			}
		case 52:
			for i := range x {
				x[i] *= 1e30
			}
		}
		valid := n - r.IntN(16)
		want := elementwise(Portable(), x, y, w, valid)
		for _, s := range fast(t) {
			if got := elementwise(s, x, y, w, valid); !bytes.Equal(got, want) {
				for i := range got {
					if got[i] != want[i] {
						t.Fatalf("round %d, %s: byte %d of %d (n=%d) differs from portable", round, s.Name(), i, len(want), n)
					}
				}
			}
		}
	}
}

// TestExp bounds the error of the polynomial.
func TestExp(t *testing.T) {
	worst := 0.0
	for x := float32(-87); x < 88; x += 0.00371 {
		want := math.Exp(float64(x))
		worst = max(worst, math.Abs(float64(exp(x))-want)/want)
	}
	if worst > 2e-7 {
		t.Errorf("relative error %.3g, want at most 2e-7", worst)
	}
}

func TestHalfConversions(t *testing.T) {
	for h := range 1 << 16 {
		if h>>10&31 == 31 {
			continue
		}
		f := HalfToFloat(uint16(h))
		if got := floatToHalf(f); got != uint16(h) {
			t.Fatalf("%#04x -> %v -> %#04x", h, f, got)
		}
	}
}

// exactFMA computes a*b+c with unlimited precision and one rounding.
func exactFMA(a, b, c float32) float32 {
	x := new(big.Float).SetPrec(2000).SetFloat64(float64(a))
	x.Mul(x, new(big.Float).SetPrec(2000).SetFloat64(float64(b)))
	x.Add(x, new(big.Float).SetPrec(2000).SetFloat64(float64(c)))
	f, _ := x.Float32()
	return f
}

// hardwareFMA runs the fused multiply-add of a set's float kernel.
func hardwareFMA(s *Set, a, b, c float32) float32 {
	var w, out [Lanes]float32
	w[0], out[0] = a, c
	s.float[0][1](bytePtr(w[:]), bytePtr([]float32{b}), bytePtr(out[:]), 1, 64, 4, 64, 1)
	return out[0]
}

func FuzzFMA(f *testing.F) {
	f.Add(uint32(0x3f800001), uint32(0x3f800001), uint32(0x33800000))
	f.Add(uint32(0x3f800001), uint32(0x34000001), uint32(0x3f800000))
	f.Add(uint32(1), uint32(0x3f000000), uint32(0x80000001))
	f.Add(uint32(0x7f7fffff), uint32(0x40000000), uint32(0xff7fffff))
	f.Fuzz(func(t *testing.T, ab, bb, cb uint32) {
		checkFMA(t, math.Float32frombits(ab), math.Float32frombits(bb), math.Float32frombits(cb))
	})
}

func checkFMA(t *testing.T, a, b, c float32) {
	t.Helper()
	got := fma(a, b, c)
	for _, x := range []float32{a, b, c} {
		if x != x || math.IsInf(float64(x), 0) {
			if g := float64(a)*float64(b) + float64(c); math.IsNaN(g) != math.IsNaN(float64(got)) {
				t.Fatalf("fma(%v, %v, %v) = %v", a, b, c, got)
			}
			return
		}
	}
	if want := exactFMA(a, b, c); want != got {
		t.Fatalf("fma(%x, %x, %x) = %x, exact %x", a, b, c, got, want)
	}
	for _, s := range All() {
		if hw := hardwareFMA(s, a, b, c); math.Float32bits(hw) != math.Float32bits(got) {
			t.Fatalf("fma(%x, %x, %x) = %x, %s %x", a, b, c, got, s.Name(), hw)
		}
	}
}

// TestFMA aims at half-way cases: sums whose nearest float64 lies in the middle between two float32 while the exact sum does not, so that
// rounding twice would go wrong.
func TestFMA(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	wrong := 0
	try := func(a, b, c float32) {
		t.Helper()
		checkFMA(t, a, b, c)
		if float32(math.FMA(float64(a), float64(b), float64(c))) != fma(a, b, c) {
			wrong++
		}
	}
	sign := func() float32 { return float32(2*r.IntN(2) - 1) }
	for range 5000 { // the product is odd and has 25 bits; c is far below
		a, b := uint32(r.IntN(1<<12))|1|1<<12, uint32(r.IntN(1<<12))|1|1<<12
		if a*b >= 1<<25 {
			continue
		}
		try(sign()*float32(a), float32(b), sign()*float32(math.Exp2(-float64(29+r.IntN(90)))))
	}
	for range 5000 { // the product is half a unit of c, and a little more or less
		d := float32(math.Exp2(-float64(1 + r.IntN(23))))
		c := math.Float32frombits(0x3f800000 | uint32(r.IntN(1<<23)))
		try(sign()*(1+d), (1-d)*0x1p-24, sign()*c)
		try(sign()*(1+d), (1+0x1p-23)*0x1p-24, sign()*c)
	}
	for range 20000 { // anything
		a, b := math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32())
		c := math.Float32frombits(math.Float32bits(a*b)&^uint32(r.IntN(1<<12)) + uint32(r.IntN(30)-15)<<23)
		try(a, b, sign()*c)
	}
	for range 5000 { // the same about subnormal c
		d := float32(math.Exp2(-float64(1 + r.IntN(23))))
		try(sign()*(1+d)*0x1p-75, (1-d)*0x1p-75, sign()*math.Float32frombits(uint32(r.IntN(1<<23))))
	}
	for range 5000 { // subnormal results
		a, b := math.Float32frombits(uint32(r.IntN(1<<24)+30<<23)), math.Float32frombits(uint32(r.IntN(1<<24)+80<<23))
		try(a, b, math.Float32frombits(uint32(r.IntN(1<<24))))
	}
	if wrong < 1000 { // else the cases above do not test what they should
		t.Errorf("rounding twice is wrong in %d cases only", wrong)
	}
}
