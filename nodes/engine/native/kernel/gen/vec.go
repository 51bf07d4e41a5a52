package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// lanes is 16 float32 or int32 lanes: one ZMM or two YMM.
type lanes []VecVirtual

func newLanes() lanes {
	if wide {
		return lanes{ZMM()}
	}
	return lanes{YMM(), YMM()}
}

// size is the bytes of one register.
func size() int {
	if wide {
		return 64
	}
	return 32
}

// at is the place of part i of 16 lanes of elem bytes at m.
func at(m Mem, i, elem int) Mem {
	return m.Offset(i * size() * elem / 4)
}

func load(m Mem) lanes {
	v := newLanes()
	for i := range v {
		VMOVUPS(at(m, i, 4), v[i])
	}
	return v
}

func store(v lanes, m Mem) {
	for i := range v {
		VMOVUPS(v[i], at(m, i, 4))
	}
}

// each applies a two-operand instruction.
func each(f func(...Op), a, dst lanes) {
	for i := range dst {
		f(a[i], dst[i])
	}
}

// op adapts a three-operand instruction of avo to lanes: dst = f(b, a) in Go's order of operands.
func op3(f func(...Op), a, b, dst lanes) {
	for i := range dst {
		f(a[i], b[i], dst[i])
	}
}

// constant is a float32 or a word in all lanes: in a register for AVX-512, in memory for AVX2, which has only 16 registers.
type constant struct {
	reg VecVirtual
	mem Mem
}

var constants = map[uint32]Mem{}

// word places bits v in every lane.
func word(v uint32) constant {
	m, ok := constants[v]
	if !ok {
		m = GLOBL(fmt.Sprintf("%sc%08x", isa, v), attr.RODATA|attr.NOPTR)
		for i := range 8 {
			DATA(i*4, U32(v))
		}
		constants[v] = m
	}
	if !wide {
		return constant{mem: m}
	}
	z := ZMM()
	VPBROADCASTD(m, z)
	return constant{reg: z}
}

func float(f float32) constant { return word(math.Float32bits(f)) }

// operand is the constant as the first (memory) operand of an instruction.
func (c constant) operand() Op {
	if wide {
		return c.reg
	}
	return c.mem
}

// opc is op3 with a constant as first operand.
func opc(f func(...Op), c constant, b, dst lanes) {
	for i := range dst {
		f(c.operand(), b[i], dst[i])
	}
}

// broadcast puts the float32 at m in all lanes.
func broadcast(m Mem) lanes {
	v := newLanes()
	for i := range v {
		VBROADCASTSS(m, v[i])
	}
	return v
}

func zero(v lanes) {
	for i := range v {
		if wide {
			VPXORD(v[i], v[i], v[i])
		} else {
			VXORPS(v[i], v[i], v[i])
		}
	}
}

func round(a, dst lanes) {
	for i := range dst {
		if wide {
			VRNDSCALEPS(U8(0), a[i], dst[i])
		} else {
			VROUNDPS(U8(0), a[i], dst[i])
		}
	}
}

func and(c constant, b, dst lanes) {
	for i := range dst {
		if wide {
			VPANDD(c.operand(), b[i], dst[i])
		} else {
			VPAND(c.operand(), b[i], dst[i])
		}
	}
}

func text(name, sig string) {
	TEXT(isa+name, attr.NOSPLIT, sig)
	Pragma("noescape")
}

func param(name string) GPVirtual { return Load(Param(name), GP64()).(GPVirtual) }

func ret() {
	VZEROUPPER()
	RET()
}
