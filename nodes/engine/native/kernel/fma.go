package kernel

import "math"

// fma is a*b+c rounded once to float32, as the processor's instruction does it. The product of two float32 is exact in float64; their sum
// with c is rounded to odd, which leaves the last rounding to float32 nothing to get wrong (53 >= 24+2 bits).
func fma(a, b, c float32) float32 {
	p, z := float64(a)*float64(b), float64(c)
	s := p + z
	bits := math.Float64bits(s)
	if bits&0x1fffffff != 0x10000000 && bits&(1<<63-1) > 0x3820000000000000 {
		return float32(s) // not half-way between two float32 (normal range): the first rounding cannot matter
	}
	return fmaOdd(p, z, s)
}

// fmaOdd rounds p+z, whose nearest float64 is s, to odd and then to float32.
func fmaOdd(p, z, s float64) float32 {
	if math.IsInf(s, 0) || math.IsNaN(s) {
		return float32(s)
	}
	t := s - p
	e := float64(p-float64(s-t)) + float64(z-t) // exact error of the sum (Knuth)
	bits := math.Float64bits(s)
	if e != 0 && bits&1 == 0 {
		if (e > 0) == (s > 0) {
			bits++
		} else {
			bits--
		}
	}
	return float32(math.Float64frombits(bits))
}
