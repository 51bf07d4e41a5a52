package kernel

import (
	"encoding/binary"
	"math"
	"unsafe"
)

var portableSet = newPortable()

func newPortable() *Set {
	s := &Set{
		name: "portable", sumSquares: goSumSquares, norm: goNorm, scale: goScale, add: goAdd, silu: goSilu, rope: goRope, half: goHalf,
		softmaxScale: goSoftmaxScale, softmaxExp: goSoftmaxExp, quantise: goQuantise,
	}
	for f := Q41; f <= Q80; f++ {
		s.quant[f][1] = func(w, x, out *byte, blocks, ldx, ldo int) { goQuant(f, w, x, out, blocks) }
	}
	for f := F32; f <= BF16; f++ {
		s.float[f-F32][1] = func(w, x, out *byte, k, ldw, ldx, ldo, add int) { goFloat(f, w, x, out, k, ldw, add) }
	}
	return s
}

func bytesAt(p *byte, n int) []byte        { return unsafe.Slice(p, n) }
func floatsAt(p *float32, n int) []float32 { return unsafe.Slice(p, n) }
func lanesAt(p *byte) *[Lanes]float32      { return (*[Lanes]float32)(unsafe.Pointer(p)) }

func goQuant(f Format, w, x, out *byte, blocks int) {
	group, row := bytesAt(w, f.GroupBytes(blocks*32)), bytesAt(x, blocks*RowBlock)
	stride := f.GroupBytes(32)
	var acc [Lanes]float32
	for b := range blocks {
		g, a := group[b*stride:(b+1)*stride], row[b*RowBlock:(b+1)*RowBlock]
		var q [32]int32
		for i := range q {
			q[i] = int32(int16(binary.LittleEndian.Uint16(a[i*2:])))
		}
		scale := math.Float32frombits(binary.LittleEndian.Uint32(a[64:]))
		low := math.Float32frombits(binary.LittleEndian.Uint32(a[68:]))
		eight := int32(binary.LittleEndian.Uint32(a[72:]))
		for r := range acc {
			var sum int32
			if f == Q80 {
				for j := range 16 {
					sum += q[2*j]*int32(int8(g[j*32+r*2])) + q[2*j+1]*int32(int8(g[j*32+r*2+1]))
				}
				acc[r] = fma(float32(float32(sum)*scale), half(g[512+r*2:]), acc[r])
				continue
			}
			for j := range 4 {
				v := binary.LittleEndian.Uint32(g[j*64+r*4:])
				for p := range 4 {
					sum += q[8*j+2*p]*int32(v&15) + q[8*j+2*p+1]*int32(v>>16&15)
					v >>= 4
				}
			}
			if f == Q40 {
				sum += eight
			}
			acc[r] = fma(float32(float32(sum)*scale), half(g[256+r*2:]), acc[r])
			if f == Q41 {
				acc[r] = fma(low, half(g[288+r*2:]), acc[r])
			}
		}
	}
	*lanesAt(out) = acc
}

func goFloat(f Format, w, x, out *byte, k, ldw, add int) {
	var acc [Lanes]float32
	if add != 0 {
		acc = *lanesAt(out)
	}
	if k == 0 {
		*lanesAt(out) = acc
		return
	}
	row := bytesAt(w, (k-1)*ldw+f.laneBytes())
	for i, xi := range unsafe.Slice((*float32)(unsafe.Pointer(x)), k) {
		g := row[i*ldw:]
		for r := range acc {
			var v float32
			switch f {
			case F32:
				v = math.Float32frombits(binary.LittleEndian.Uint32(g[r*4:]))
			case F16:
				v = half(g[r*2:])
			default:
				v = math.Float32frombits(uint32(binary.LittleEndian.Uint16(g[r*2:])) << 16)
			}
			acc[r] = fma(v, xi, acc[r])
		}
	}
	*lanesAt(out) = acc
}

func goSumSquares(x, out *float32, n int) {
	var acc [Lanes]float32
	for i, v := range floatsAt(x, n) {
		acc[i%Lanes] = fma(v, v, acc[i%Lanes])
	}
	copy(floatsAt(out, Lanes), acc[:])
}

func goNorm(x, w, out *float32, n int, s float32) {
	ws, os := floatsAt(w, n), floatsAt(out, n)
	for i, v := range floatsAt(x, n) {
		os[i] = float32(v*s) * ws[i]
	}
}

func goScale(x, out *float32, n int, s float32) {
	os := floatsAt(out, n)
	for i, v := range floatsAt(x, n) {
		os[i] = v * s
	}
}

func goAdd(x, y *float32, n int) {
	xs := floatsAt(x, n)
	for i, v := range floatsAt(y, n) {
		xs[i] += v
	}
}

// maxOf and minOf choose as the processor does: b where either is no number.
func maxOf(a, b float32) float32 {
	if a > b {
		return a
	}
	return b
}

func minOf(a, b float32) float32 {
	if a < b {
		return a
	}
	return b
}

// toInt rounds to the nearest integer, ties to even, and gives the processor's "indefinite" where there is none.
func toInt(x float32) int32 {
	f := math.RoundToEven(float64(x))
	if f >= -(1<<31) && f < 1<<31 {
		return int32(f)
	}
	return math.MinInt32
}

func exp(x float32) float32 {
	x = minOf(maxOf(x, -87), 88)
	n := float32(math.RoundToEven(float64(float32(x * 1.44269504088896341))))
	r := fma(n, -0.693359375, x)
	r = fma(n, 2.12194440e-4, r)
	p := float32(1.9875691500e-4)
	p = fma(p, r, 1.3981999507e-3)
	p = fma(p, r, 8.3334519073e-3)
	p = fma(p, r, 4.1665795894e-2)
	p = fma(p, r, 1.6666665459e-1)
	p = fma(p, r, 5.0000001201e-1)
	p = fma(p, float32(r*r), r) + 1
	return float32(p) * math.Float32frombits(uint32(int32(n)+127)<<23)
}

func goSilu(g, u *float32, n int) {
	gs, us := floatsAt(g, n), floatsAt(u, n)
	for i, v := range gs {
		gs[i] = float32(v/float32(exp(-v)+1)) * us[i]
	}
}

func goRope(x, c, s, out *float32, n int) {
	xs, cs, ss, os := floatsAt(x, n), floatsAt(c, n), floatsAt(s, n), floatsAt(out, n)
	for i := 0; i < n; i += 2 {
		a, b := xs[i], xs[i+1]
		os[i] = fma(a, cs[i], float32(b*ss[i]))
		os[i+1] = fma(b, cs[i+1], float32(a*ss[i+1]))
	}
}

func goHalf(x *float32, out *byte, n int) {
	os := bytesAt(out, 2*n)
	for i, v := range floatsAt(x, n) {
		binary.LittleEndian.PutUint16(os[2*i:], floatToHalf(minOf(maxOf(v, -65504), 65504)))
	}
}

func goSoftmaxScale(x, out *float32, n int, s float32) {
	var m [Lanes]float32
	for i := range m {
		m[i] = float32(math.Inf(-1))
	}
	xs := floatsAt(x, n)
	for i, v := range xs {
		xs[i] = v * s
		m[i%Lanes] = maxOf(m[i%Lanes], xs[i])
	}
	copy(floatsAt(out, Lanes), m[:])
}

func goSoftmaxExp(x, out, mask *float32, n int, m float32) {
	xs, ms := floatsAt(x, n), floatsAt(mask, Lanes)
	var sum [Lanes]float32
	for i, v := range xs {
		e := exp(v - m)
		if i >= n-Lanes && math.Float32bits(ms[i-(n-Lanes)]) == 0 {
			e = 0
		}
		xs[i] = e
		sum[i%Lanes] += e
	}
	copy(floatsAt(out, Lanes), sum[:])
}

func goQuantise(x *float32, out *byte, blocks int) {
	xs, os := floatsAt(x, blocks*32), bytesAt(out, blocks*RowBlock)
	for b := range blocks {
		v, o := xs[b*32:(b+1)*32], os[b*RowBlock:(b+1)*RowBlock]
		var m [Lanes]float32
		for i := range m {
			m[i] = maxOf(abs(v[i]), abs(v[i+16]))
		}
		for n := Lanes / 2; n > 0; n /= 2 {
			for i := range n {
				m[i] = maxOf(m[i], m[i+n])
			}
		}
		var scale, inv float32
		if top := m[0]; top >= 0x1p-100 {
			scale, inv = top/32767, 32767/top
		}
		var sum int32
		for i, f := range v {
			q := toInt(f * inv)
			sum += q
			binary.LittleEndian.PutUint16(o[i*2:], uint16(int16(min(max(q, -32768), 32767))))
		}
		binary.LittleEndian.PutUint32(o[64:], math.Float32bits(scale))
		binary.LittleEndian.PutUint32(o[68:], math.Float32bits(float32(sum)*scale))
		binary.LittleEndian.PutUint32(o[72:], uint32(-8*sum))
		clear(o[76:80])
	}
}

func abs(f float32) float32 { return math.Float32frombits(math.Float32bits(f) & 0x7fffffff) }
