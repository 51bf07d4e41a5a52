package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Bytes of one block of 32 activations: 32 int16, scale, scale times sum, -8 times sum, unused (see kernel.Row).
const (
	rowBlock = 80
	offScale = 64
	offMin   = 68
	offEight = 72
)

// columns addresses rows of activations that lie ld bytes apart.
type columns struct{ base, ld, ld3, ld5, ld7 GPVirtual }

func newColumns(base, ld GPVirtual, nc int) columns {
	c := columns{base: base, ld: ld}
	if nc > 2 {
		c.ld3 = GP64()
		LEAQ(Mem{Base: ld, Index: ld, Scale: 2}, c.ld3)
	}
	if nc > 4 {
		c.ld5, c.ld7 = GP64(), GP64()
		LEAQ(Mem{Base: ld, Index: ld, Scale: 4}, c.ld5)
		LEAQ(Mem{Base: c.ld3, Index: ld, Scale: 4}, c.ld7)
	}
	return c
}

func (c columns) at(i, disp int) Mem {
	m := Mem{Base: c.base, Disp: disp}
	switch i {
	case 1, 2, 4:
		m.Index, m.Scale = c.ld, uint8(i)
	case 3:
		m.Index, m.Scale = c.ld3, 1
	case 5:
		m.Index, m.Scale = c.ld5, 1
	case 6:
		m.Index, m.Scale = c.ld3, 2
	case 7:
		m.Index, m.Scale = c.ld7, 1
	}
	return m
}

func vreg() VecVirtual {
	if wide {
		return ZMM()
	}
	return YMM()
}

func vregs(n int) []VecVirtual {
	v := make([]VecVirtual, n)
	for i := range v {
		v[i] = vreg()
	}
	return v
}

func clear1(v VecVirtual) {
	if wide {
		VPXORD(v, v, v)
	} else {
		VXORPS(v, v, v)
	}
}

// halves is the passes over 16 rows: AVX2 does 8 rows at a time.
func halves() int { return 64 / size() }

// quantGemm multiplies 16 rows of quantised weights with nc rows of int16 activations. A block of weights is 4x64 bytes of nibbles
// (lane = row, eight k a lane, nibbles p and p+4 are k = 2p and 2p+1) or 16x32 bytes (lane = row, two k a lane), then 16 float16
// scales, then for Q4_1 16 float16 minima. Sums of a block are exact integers.
func quantGemm(kind string, nc int) {
	text(fmt.Sprintf("%sx%d", kind, nc), "func(w, x, out *byte, blocks, ldx, ldo int)")
	four := kind != "Q80"
	scales, stride := 512, 544
	if four {
		scales, stride = 256, 288
	}
	if kind == "Q41" {
		stride = 320
	}
	for h := range halves() {
		w, x, n := param("w"), param("x"), param("blocks")
		cols := newColumns(x, param("ldx"), nc)
		acc, sum := vregs(nc), vregs(nc)
		for c := range acc {
			clear1(acc[c])
		}
		var mask VecVirtual
		if four {
			mask = vreg()
			r := GP32()
			MOVL(U32(0x000f000f), r)
			t := XMM()
			VMOVD(r, t)
			VPBROADCASTD(t, mask)
		}
		raw, wv, b := vreg(), vreg(), vreg()
		loop := fmt.Sprintf("loop%d", h)
		Label(loop)
		pairs := func(k int) {
			for c := range sum {
				VPBROADCASTD(cols.at(c, k*2), b)
				if k == 0 {
					VPMADDWD(b, wv, sum[c])
				} else {
					VPMADDWD(b, wv, b)
					VPADDD(b, sum[c], sum[c])
				}
			}
		}
		andMask := func(a VecVirtual) {
			if wide {
				VPANDD(mask, a, wv)
			} else {
				VPAND(mask, a, wv)
			}
		}
		if four {
			for j := range 4 {
				VMOVUPS(Mem{Base: w, Disp: j*64 + h*32}, raw)
				for v := range 4 {
					switch v {
					case 0:
						andMask(raw)
					case 3:
						VPSRLW(U8(12), raw, wv)
					default:
						VPSRLW(U8(uint8(4*v)), raw, wv)
						andMask(wv)
					}
					pairs(8*j + 2*v)
				}
			}
		} else {
			for j := range 16 {
				VPMOVSXBW(Mem{Base: w, Disp: j*32 + h*16}, wv)
				pairs(2 * j)
			}
		}
		d, m := raw, wv
		VCVTPH2PS(Mem{Base: w, Disp: scales + h*16}, d)
		if kind == "Q41" {
			VCVTPH2PS(Mem{Base: w, Disp: scales + 32 + h*16}, m)
		}
		for c := range sum {
			if kind == "Q40" {
				if wide {
					VPADDD_BCST(cols.at(c, offEight), sum[c], sum[c])
				} else {
					VPBROADCASTD(cols.at(c, offEight), b)
					VPADDD(b, sum[c], sum[c])
				}
			}
			VCVTDQ2PS(sum[c], sum[c])
			if wide {
				VMULPS_BCST(cols.at(c, offScale), sum[c], sum[c])
			} else {
				VBROADCASTSS(cols.at(c, offScale), b)
				VMULPS(b, sum[c], sum[c])
			}
			VFMADD231PS(sum[c], d, acc[c])
			if kind == "Q41" {
				if wide {
					VFMADD231PS_BCST(cols.at(c, offMin), m, acc[c])
				} else {
					VBROADCASTSS(cols.at(c, offMin), b)
					VFMADD231PS(b, m, acc[c])
				}
			}
		}
		ADDQ(U32(uint32(stride)), w)
		ADDQ(U32(rowBlock), x)
		DECQ(n)
		JNE(LabelRef(loop))
		out, ldo := param("out"), param("ldo")
		for c := range acc {
			VMOVUPS(acc[c], Mem{Base: out, Disp: h * 32})
			if c < nc-1 {
				ADDQ(ldo, out)
			}
		}
	}
	ret()
}

// floatGemm multiplies k x 16 weights, rows of 16 ldw bytes apart, with nc rows of float32; it adds to out when add is not 0.
func floatGemm(kind string, nc int) {
	text(fmt.Sprintf("%sx%d", kind, nc), "func(w, x, out *byte, k, ldw, ldx, ldo, add int)")
	w, x, n, ldw := param("w"), param("x"), param("k"), param("ldw")
	out, ldo := param("out"), param("ldo")
	cols := newColumns(x, param("ldx"), nc)
	acc := make([]lanes, nc)
	for c := range acc {
		acc[c] = newLanes()
		zero(acc[c])
	}
	// places calls f with the place of each column's result; it leaves p behind the last.
	places := func(p GPVirtual, f func(c int, m Mem)) {
		for c := range acc {
			f(c, Mem{Base: p})
			if c < nc-1 {
				ADDQ(ldo, p)
			}
		}
	}
	flag := param("add")
	TESTQ(flag, flag)
	JEQ(LabelRef("fresh"))
	o := GP64()
	MOVQ(out, o)
	places(o, func(c int, m Mem) {
		for i := range acc[c] {
			VMOVUPS(at(m, i, 4), acc[c][i])
		}
	})
	Label("fresh")
	wv, b := newLanes(), vreg()
	step := func(i int) {
		for j := range wv {
			switch kind {
			case "F32":
				VMOVUPS(at(mem(w), j, 4), wv[j])
			case "F16":
				VCVTPH2PS(at(mem(w), j, 2), wv[j])
			case "BF16":
				VPMOVZXWD(at(mem(w), j, 2), wv[j])
				VPSLLD(U8(16), wv[j], wv[j])
			}
		}
		for c := range acc {
			if wide {
				VFMADD231PS_BCST(cols.at(c, i*4), wv[0], acc[c][0])
				continue
			}
			VBROADCASTSS(cols.at(c, i*4), b)
			for j := range wv {
				VFMADD231PS(b, wv[j], acc[c][j])
			}
		}
		ADDQ(ldw, w)
	}
	Label("four")
	CMPQ(n, U8(4))
	JLT(LabelRef("one"))
	for i := range 4 {
		step(i)
	}
	ADDQ(U8(16), x)
	SUBQ(U8(4), n)
	JMP(LabelRef("four"))
	Label("one")
	TESTQ(n, n)
	JEQ(LabelRef("done"))
	step(0)
	ADDQ(U8(4), x)
	DECQ(n)
	JMP(LabelRef("one"))
	Label("done")
	places(out, func(c int, m Mem) { store(acc[c], m) })
	ret()
}
