package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// loop repeats body n/16 times; body gets nothing and advances no pointer: the pointers advance by 64 bytes a turn.
func loop(label string, n GPVirtual, body func(), ptrs ...GPVirtual) {
	Label(label)
	body()
	for _, p := range ptrs {
		ADDQ(U8(64), p)
	}
	SUBQ(U8(16), n)
	JNE(LabelRef(label))
}

func mem(r Register) Mem { return Mem{Base: r} }

// sumSquares leaves 16 partial sums of squares.
func sumSquares() {
	text("SumSquares", "func(x, out *float32, n int)")
	x, out, n := param("x"), param("out"), param("n")
	acc := newLanes()
	zero(acc)
	loop("loop", n, func() {
		v := load(mem(x))
		op3(VFMADD231PS, v, v, acc)
	}, x)
	store(acc, mem(out))
	ret()
}

// norm does out = (x*s)*w.
func norm() {
	text("Norm", "func(x, w, out *float32, n int, s float32)")
	x, w, out, n := param("x"), param("w"), param("out"), param("n")
	s := scalarParam("s")
	loop("loop", n, func() {
		v, u := load(mem(x)), load(mem(w))
		op3(VMULPS, s, v, v)
		op3(VMULPS, u, v, v)
		store(v, mem(out))
	}, x, w, out)
	ret()
}

// scale does out = x*s.
func scale() {
	text("Scale", "func(x, out *float32, n int, s float32)")
	x, out, n := param("x"), param("out"), param("n")
	s := scalarParam("s")
	loop("loop", n, func() {
		v := load(mem(x))
		op3(VMULPS, s, v, v)
		store(v, mem(out))
	}, x, out)
	ret()
}

func scalarParam(name string) lanes {
	a, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return broadcast(a.Addr)
}

// add does x += y.
func add() {
	text("Add", "func(x, y *float32, n int)")
	x, y, n := param("x"), param("y"), param("n")
	loop("loop", n, func() {
		v, u := load(mem(x)), load(mem(y))
		op3(VADDPS, u, v, v)
		store(v, mem(x))
	}, x, y)
	ret()
}

// exponential computes e^x for x in [-87, 88] (clamped to it) in place.
type exponential struct {
	low, high, log2e, ln2a, ln2b, bias, one constant
	p                                       [6]constant
}

func newExponential() exponential {
	e := exponential{low: float(-87), high: float(88), log2e: float(1.44269504088896341), ln2a: float(-0.693359375),
		ln2b: float(2.12194440e-4), bias: word(127), one: float(1)}
	for i, c := range []float32{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1} {
		e.p[i] = float(c)
	}
	return e
}

func (e exponential) apply(x lanes) {
	opc(VMAXPS, e.low, x, x)
	opc(VMINPS, e.high, x, x)
	n, p, r2 := newLanes(), newLanes(), newLanes()
	opc(VMULPS, e.log2e, x, n)
	round(n, n)
	opc(VFMADD231PS, e.ln2a, n, x)
	opc(VFMADD231PS, e.ln2b, n, x)
	for i := range p {
		VMOVUPS(e.p[0].operand(), p[i])
	}
	for i := 1; i < 6; i++ { // p = p*r + c
		opc(VFMADD213PS, e.p[i], x, p)
	}
	op3(VMULPS, x, x, r2)
	op3(VFMADD213PS, x, r2, p) // p = p*r2 + r
	opc(VADDPS, e.one, p, p)
	each(VCVTPS2DQ, n, n)
	opc(VPADDD, e.bias, n, n)
	for i := range n {
		VPSLLD(U8(23), n[i], n[i])
	}
	op3(VMULPS, n, p, x)
}

// silu does g = g/(1+e^-g) * u.
func silu() {
	text("Silu", "func(x, u *float32, n int)")
	g, u, n := param("x"), param("u"), param("n")
	e := newExponential()
	sign := word(0x80000000)
	loop("loop", n, func() {
		v, x := load(mem(g)), newLanes()
		for i := range v {
			if wide {
				VPXORD(sign.operand(), v[i], x[i])
			} else {
				VPXOR(sign.operand(), v[i], x[i])
			}
		}
		e.apply(x)
		opc(VADDPS, e.one, x, x)
		op3(VDIVPS, x, v, v)
		up := load(mem(u))
		op3(VMULPS, up, v, v)
		store(v, mem(g))
	}, g, u)
	ret()
}

// rope turns pairs: out = x*c + swap(x)*s.
func rope() {
	text("Rope", "func(x, c, s, out *float32, n int)")
	x, c, s, out, n := param("x"), param("c"), param("s"), param("out"), param("n")
	loop("loop", n, func() {
		v, cc, ss, t := load(mem(x)), load(mem(c)), load(mem(s)), newLanes()
		for i := range v {
			VPERMILPS(U8(0xb1), v[i], t[i])
		}
		op3(VMULPS, ss, t, t)
		op3(VFMADD213PS, t, cc, v) // v = v*cc + t
		store(v, mem(out))
	}, x, c, s, out)
	ret()
}

// half rounds float32 to float16 after clamping to its finite range.
func half() {
	text("Half", "func(x *float32, out *byte, n int)")
	x, out, n := param("x"), param("out"), param("n")
	low, high := float(-65504), float(65504)
	loop("loop", n, func() {
		v := load(mem(x))
		opc(VMAXPS, low, v, v)
		opc(VMINPS, high, v, v)
		for i := range v {
			VCVTPS2PH(U8(0), v[i], at(mem(out), i, 2))
		}
		ADDQ(U8(32), out)
	}, x)
	ret()
}

// softmaxScale does x *= s and leaves 16 partial maxima.
func softmaxScale() {
	text("SoftmaxScale", "func(x, out *float32, n int, s float32)")
	x, out, n := param("x"), param("out"), param("n")
	s := scalarParam("s")
	m := newLanes()
	inf := word(0xff800000)
	for i := range m {
		VMOVUPS(inf.operand(), m[i])
	}
	loop("loop", n, func() {
		v := load(mem(x))
		op3(VMULPS, s, v, v)
		store(v, mem(x))
		op3(VMAXPS, v, m, m)
	}, x)
	store(m, mem(out))
	ret()
}

// softmaxExp does x = e^(x-m), the last 16 lanes masked, and leaves 16 partial sums.
func softmaxExp() {
	text("SoftmaxExp", "func(x, out, mask *float32, n int, m float32)")
	x, out, mask, n := param("x"), param("out"), param("mask"), param("n")
	m := scalarParam("m")
	e := newExponential()
	sum := newLanes()
	zero(sum)
	SUBQ(U8(16), n)
	JEQ(LabelRef("last"))
	loop("loop", n, func() {
		v := load(mem(x))
		op3(VSUBPS, m, v, v)
		e.apply(v)
		store(v, mem(x))
		op3(VADDPS, v, sum, sum)
	}, x)
	Label("last")
	v := load(mem(x))
	op3(VSUBPS, m, v, v)
	e.apply(v)
	for i := range v {
		if wide {
			VPANDD(at(mem(mask), i, 4), v[i], v[i])
		} else {
			VPAND(at(mem(mask), i, 4), v[i], v[i])
		}
	}
	store(v, mem(x))
	op3(VADDPS, v, sum, sum)
	store(sum, mem(out))
	ret()
}

// quantise turns blocks of 32 float32 into blocks of int16 with scale and sums; blocks below 2^-100 become zero.
func quantise() {
	text("Quantise", "func(x *float32, out *byte, blocks int)")
	x, out, n := param("x"), param("out"), param("blocks")
	abs := word(0x7fffffff)
	full := scalarConst(0x46fffe00) // 32767
	tiny := scalarConst(0x0d800000) // 2^-100
	Label("loop")
	a, b := load(mem(x)), load(Mem{Base: x, Disp: 64})
	m, t := newLanes(), newLanes()
	and(abs, a, m)
	and(abs, b, t)
	op3(VMAXPS, t, m, m)
	top := reduce(m, func(a, b, dst Op) { VMAXPS(a, b, dst) })
	keep := XMM()
	VCMPSS(U8(13), tiny, top, keep) // top >= tiny
	s, inv := XMM(), XMM()
	VDIVSS(full, top, s)
	VDIVSS(top, full, inv)
	VANDPS(keep, s, s)
	VANDPS(keep, inv, inv)
	iv := newLanes()
	for i := range iv {
		VBROADCASTSS(inv, iv[i])
	}
	for _, v := range []lanes{a, b} {
		op3(VMULPS, iv, v, v)
		each(VCVTPS2DQ, v, v)
	}
	for k, v := range []lanes{a, b} {
		for i := range v {
			if wide {
				VPMOVSDW(v[i], Mem{Base: out, Disp: k * 32})
			} else {
				y := YMM()
				VPACKSSDW(v[i], v[i], y)
				VPERMQ(U8(0x08), y, y)
				VMOVDQU(y.AsX(), Mem{Base: out, Disp: k*32 + i*16})
			}
		}
	}
	op3(VPADDD, b, a, a)
	sum := reduce(a, func(a, b, dst Op) { VPADDD(a, b, dst) })
	VMOVSS(s, Mem{Base: out, Disp: offScale})
	f := XMM()
	VCVTDQ2PS(sum, f)
	VMULSS(s, f, f)
	VMOVSS(f, Mem{Base: out, Disp: offMin})
	VPSLLD(U8(3), sum, sum)
	z := XMM()
	VXORPS(z, z, z)
	VPSUBD(sum, z, sum)
	VMOVD(sum, Mem{Base: out, Disp: offEight})
	VMOVSS(z, Mem{Base: out, Disp: offEight + 4})
	ADDQ(U32(128), x)
	ADDQ(U8(rowBlock), out)
	DECQ(n)
	JNE(LabelRef("loop"))
	ret()
}

func scalarConst(bits uint32) VecVirtual {
	r, v := GP32(), XMM()
	MOVL(U32(bits), r)
	VMOVD(r, v)
	return v
}

// reduce folds 16 lanes: i with i+8, then i+4, then i+2, then i+1.
func reduce(v lanes, f func(a, b, dst Op)) VecVirtual {
	y := YMM()
	if wide {
		VEXTRACTF64X4(U8(1), v[0], y)
		f(y, v[0].AsY(), y)
	} else {
		f(v[1], v[0], y)
	}
	x, t := XMM(), XMM()
	VEXTRACTF128(U8(1), y, x)
	f(x, y.AsX(), x)
	VPERMILPS(U8(0x4e), x, t)
	f(t, x, x)
	VPERMILPS(U8(0xb1), x, t)
	f(t, x, x)
	return x
}
