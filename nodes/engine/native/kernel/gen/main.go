// Command gen writes the assembly of package kernel with avo: one file an instruction set, from one description, so that all of them do
// the same operations in the same order. Run it by `go generate ./nodes/engine/native/kernel`.
package main

import (
	"flag"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/reg"
)

// wide is true for AVX-512, where 16 lanes are one register, and false for AVX2, where they are two.
var wide bool

// isa is the prefix of every function.
var isa string

func main() {
	flag.StringVar(&isa, "isa", "avx512", "instruction set: avx512 or avx2")
	flag.Parse()
	wide = isa == "avx512"
	ConstraintExpr("amd64")
	cols := []int{1, 2, 3, 4}
	if wide {
		cols = append(cols, 6, 8)
	}
	for _, nc := range cols {
		quantGemm("Q41", nc)
		quantGemm("Q40", nc)
		quantGemm("Q80", nc)
		floatGemm("F32", nc)
		floatGemm("F16", nc)
		floatGemm("BF16", nc)
	}
	if wide {
		cpuid()
	}
	sumSquares()
	norm()
	scale()
	add()
	silu()
	rope()
	half()
	softmaxScale()
	softmaxExp()
	quantise()
	Generate()
}

// cpuid runs the instruction of that name; it is not in the standard library.
func cpuid() {
	TEXT("cpuid", attr.NOSPLIT, "func(leaf, sub uint32) (a, b, c, d uint32)")
	Load(Param("leaf"), EAX)
	Load(Param("sub"), ECX)
	CPUID()
	Store(EAX, Return("a"))
	Store(EBX, Return("b"))
	Store(ECX, Return("c"))
	Store(EDX, Return("d"))
	RET()
}
