package kernel

import "math"

// fold adds 16 lanes in the package's order.
func fold(v *[Lanes]float32) float32 {
	for n := Lanes / 2; n > 0; n /= 2 {
		for i := range n {
			v[i] += v[i+n]
		}
	}
	return v[0]
}

// Norm writes x/sqrt(mean(x*x)+eps) * w to out (RMS norm). tmp is scratch.
func (s *Set) Norm(x, w, out []float32, eps float32, tmp *[Lanes]float32) {
	n := len(x)
	_, _ = w[n-1], out[n-1]
	s.sumSquares(&x[0], &tmp[0], n)
	mean := fold(tmp) / float32(n)
	inv := 1 / float32(math.Sqrt(float64(mean+eps)))
	s.norm(&x[0], &w[0], &out[0], n, inv)
}

// Scale writes x*by to out.
func (s *Set) Scale(x, out []float32, by float32) {
	_ = out[len(x)-1]
	s.scale(&x[0], &out[0], len(x), by)
}

// Add adds y to x.
func (s *Set) Add(x, y []float32) {
	_ = y[len(x)-1]
	s.add(&x[0], &y[0], len(x))
}

// Silu replaces g by g/(1+e^-g) * u.
func (s *Set) Silu(g, u []float32) {
	_ = u[len(g)-1]
	s.silu(&g[0], &u[0], len(g))
}

// Rope turns neighbouring pairs of x: out = x*cos + swap(x)*sin, where sin has the sign of the first of a pair reversed.
func (s *Set) Rope(x, cos, sin, out []float32) {
	n := len(x)
	_, _, _ = cos[n-1], sin[n-1], out[n-1]
	s.rope(&x[0], &cos[0], &sin[0], &out[0], n)
}

// Half rounds x to float16 after clamping it to what float16 can hold.
func (s *Set) Half(x []float32, out []byte) {
	_ = out[2*len(x)-1]
	s.half(&x[0], &out[0], len(x))
}

// masks has 16 words of ones before 16 words of zero.
var masks = func() (m [2 * Lanes]float32) {
	for i := range Lanes {
		m[i] = math.Float32frombits(math.MaxUint32)
	}
	return m
}()

// Softmax replaces the first n values of x by e^(x*scale - max), the rest by zero, and returns 1 over their sum. len(x) is n rounded up to
// a multiple of 16. tmp is scratch.
func (s *Set) Softmax(x []float32, n int, scale float32, tmp *[Lanes]float32) float32 {
	for i := n; i < len(x); i++ {
		x[i] = float32(math.Inf(-1))
	}
	s.softmaxScale(&x[0], &tmp[0], len(x), scale)
	m := tmp[0]
	for _, v := range tmp[1:] {
		if v > m {
			m = v
		}
	}
	s.softmaxExp(&x[0], &tmp[0], &masks[len(x)-n], len(x), m)
	return 1 / fold(tmp)
}

// Quantise writes x, a multiple of 32 values, in the Row layout.
func (s *Set) Quantise(x []float32, out []byte) {
	_ = out[RowBytes(len(x))-1]
	s.quantise(&x[0], &out[0], len(x)/32)
}
