package llama

import "math"

// The angles of RoPE are computed in float64 with every product rounded by an explicit conversion, so that no compiler fuses them: the
// result is the same on every processor.

// frequencies are the angles of one step of position, by pair of dimensions; factors, where given, divide them (Llama 3).
func (s *shape) frequencies(factors []float32) []float64 {
	out := make([]float64, s.rotated/2)
	lnBase := ln(s.base)
	for i := range out {
		out[i] = exp(-float64(lnBase*float64(2*i))/float64(s.rotated)) / s.linear
		if factors != nil && factors[i] != 0 {
			out[i] /= float64(factors[i])
		}
	}
	return out
}

// angles writes cos and sin of every dimension of a head at position pos, as kernel.Rope takes them; dimensions that are not turned get 1
// and 0.
func angles(freqs []float64, pos int, cos, sin []float32) {
	for i, f := range freqs {
		s, c := sincos(float64(pos) * f)
		cos[2*i], cos[2*i+1] = float32(c), float32(c)
		sin[2*i], sin[2*i+1] = float32(-s), float32(s)
	}
	for i := 2 * len(freqs); i < len(cos); i++ {
		cos[i], sin[i] = 1, 0
	}
}

// ln for x >= 1: x = m*2^e with m in [0.5, 1), then 2*atanh((m-1)/(m+1)).
func ln(x float64) float64 {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m *= 2
		e--
	}
	t := (m - 1) / (m + 1)
	t2 := float64(t * t)
	sum := 0.0
	for i := 41; i >= 1; i -= 2 {
		sum = float64(sum*t2) + 1/float64(i)
	}
	const hi, lo = 0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45 // ln 2
	return float64(float64(e)*hi) + (float64(float64(2*t)*sum) + float64(float64(e)*lo))
}

// exp for moderate x.
func exp(x float64) float64 {
	n := math.RoundToEven(float64(x * math.Log2E))
	const hi, lo = 0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45
	r := (x - float64(n*hi)) - float64(n*lo)
	sum := 0.0
	for i := 18; i >= 1; i-- {
		sum = float64(r/float64(i)) * (1 + sum)
		sum = float64(sum)
	}
	return math.Ldexp(1+sum, int(n))
}

// sincos for 0 <= x < 2^21: reduced by quarters of a turn in three parts, then Taylor.
func sincos(x float64) (sin, cos float64) {
	const p1, p2, p3 = 0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2e037073p-69 // pi/2
	k := math.RoundToEven(float64(x * (2 / math.Pi)))
	r := ((x - float64(k*p1)) - float64(k*p2)) - float64(k*p3)
	r2 := float64(r * r)
	var s, c float64
	for i := 21; i >= 3; i -= 2 {
		s = -float64(float64(r2/float64(i*(i-1))) * (1 + s))
		c = -float64(float64(r2/float64((i-1)*(i-2))) * (1 + c))
	}
	s, c = float64(r*(1+s)), 1+c
	switch int64(k) & 3 {
	case 0:
		return s, c
	case 1:
		return c, -s
	case 2:
		return -s, -c
	default:
		return -c, s
	}
}
