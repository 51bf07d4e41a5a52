package sample

import "math"

// uniform is the n-th number of stream seed, in [0, 1): a counter-based generator, so that no state moves with a sequence. Two rounds
// of the splitmix64 finaliser over both words.
func uniform(seed, n uint64) float64 {
	x := mix(seed + 0x9e3779b97f4a7c15)
	x = mix(x ^ (n+1)*0xd1342543de82ef95)
	return float64(x>>11) * (1.0 / (1 << 53))
}

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// weight is e^(d*inv) for d <= 0.
func weight(d float32, inv float64) float64 {
	if !(d > -1e30) {
		return 0
	}
	// float64(d) by hand: the instruction that converts merges into its target, so that each of a loop's exponentials would wait for the
	// one before; this is four times as fast.
	b := math.Float32bits(d)
	if b&0x7f800000 == 0 { // 0, or next to it
		return 1
	}
	x := math.Float64frombits(uint64(b>>31)<<63 | (uint64(b&0x7fffffff)<<29 + 896<<52))
	return expNeg(x * inv)
}

// expNeg is e^x for x <= 0, to about 1e-12. math.Exp differs in the last place between processors (it may fuse multiply and add); this
// does not: each product is rounded.
func expNeg(x float64) float64 {
	if !(x > -708) {
		return 0
	}
	const (
		log2e = 1.44269504088896338700
		ln2hi = 6.93147180369123816490e-01
		ln2lo = 1.90821492927058770002e-10
	)
	k := math.Floor(float64(x*log2e) + 0.5)
	r := x - float64(k*ln2hi)
	r -= float64(k * ln2lo)
	// Taylor to r^11/11! on |r| <= ln2/2, by pairs to shorten the chain.
	r2 := float64(r * r)
	r4 := float64(r2 * r2)
	a := 1 + r
	b := float64(r2 * (0.5 + float64(r*(1.0/6))))
	c := 1.0/24 + float64(r*(1.0/120)) + float64(r2*(1.0/720+float64(r*(1.0/5040))))
	d := 1.0/40320 + float64(r*(1.0/362880)) + float64(r2*(1.0/3628800+float64(r*(1.0/39916800))))
	p := a + b + float64(r4*(c+float64(r4*d)))
	return p * math.Float64frombits(uint64(int64(k)+1023)<<52)
}
