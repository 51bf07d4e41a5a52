package kernel

import (
	"sync"

	"golang.org/x/sys/cpu"
)

var sets = sync.OnceValue(func() []*Set {
	var out []*Set
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA && hasF16C() {
		if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ {
			out = append(out, avx512Set)
		}
		out = append(out, avx2Set)
	}
	return append(out, portableSet)
})

// hasF16C: every processor with AVX2 has it, but a hypervisor may hide it; x/sys/cpu does not tell.
func hasF16C() bool {
	_, _, c, _ := cpuid(1, 0)
	return c>>29&1 == 1
}

var avx512Set = &Set{
	name: "avx512",
	quant: [3][maxCols + 1]quantFunc{
		{1: avx512Q41x1, 2: avx512Q41x2, 3: avx512Q41x3, 4: avx512Q41x4, 6: avx512Q41x6, 8: avx512Q41x8},
		{1: avx512Q40x1, 2: avx512Q40x2, 3: avx512Q40x3, 4: avx512Q40x4, 6: avx512Q40x6, 8: avx512Q40x8},
		{1: avx512Q80x1, 2: avx512Q80x2, 3: avx512Q80x3, 4: avx512Q80x4, 6: avx512Q80x6, 8: avx512Q80x8},
	},
	float: [3][maxCols + 1]floatFunc{
		{1: avx512F32x1, 2: avx512F32x2, 3: avx512F32x3, 4: avx512F32x4, 6: avx512F32x6, 8: avx512F32x8},
		{1: avx512F16x1, 2: avx512F16x2, 3: avx512F16x3, 4: avx512F16x4, 6: avx512F16x6, 8: avx512F16x8},
		{1: avx512BF16x1, 2: avx512BF16x2, 3: avx512BF16x3, 4: avx512BF16x4, 6: avx512BF16x6, 8: avx512BF16x8},
	},
	sumSquares: avx512SumSquares, norm: avx512Norm, scale: avx512Scale, add: avx512Add, silu: avx512Silu, rope: avx512Rope,
	half: avx512Half, softmaxScale: avx512SoftmaxScale, softmaxExp: avx512SoftmaxExp, quantise: avx512Quantise,
}

var avx2Set = &Set{
	name: "avx2",
	quant: [3][maxCols + 1]quantFunc{
		{1: avx2Q41x1, 2: avx2Q41x2, 3: avx2Q41x3, 4: avx2Q41x4},
		{1: avx2Q40x1, 2: avx2Q40x2, 3: avx2Q40x3, 4: avx2Q40x4},
		{1: avx2Q80x1, 2: avx2Q80x2, 3: avx2Q80x3, 4: avx2Q80x4},
	},
	float: [3][maxCols + 1]floatFunc{
		{1: avx2F32x1, 2: avx2F32x2, 3: avx2F32x3, 4: avx2F32x4},
		{1: avx2F16x1, 2: avx2F16x2, 3: avx2F16x3, 4: avx2F16x4},
		{1: avx2BF16x1, 2: avx2BF16x2, 3: avx2BF16x3, 4: avx2BF16x4},
	},
	sumSquares: avx2SumSquares, norm: avx2Norm, scale: avx2Scale, add: avx2Add, silu: avx2Silu, rope: avx2Rope, half: avx2Half,
	softmaxScale: avx2SoftmaxScale, softmaxExp: avx2SoftmaxExp, quantise: avx2Quantise,
}
