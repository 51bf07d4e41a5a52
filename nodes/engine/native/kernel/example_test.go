package kernel_test

import (
	"fmt"
	"unsafe"

	"github.com/dynamograph/dynamo/nodes/engine/native/kernel"
)

// Sixteen rows of 32 weights, all 1.0 in row 3 and zero elsewhere, times one row of activations.
func ExampleSet_Gemm() {
	const k = 32
	rows := make([]byte, kernel.Lanes*kernel.F16.SourceBytes(k))
	for i := range k {
		rows[3*k*2+2*i+1] = 0x3c // float16 1.0
	}
	group := make([]byte, kernel.F16.GroupBytes(k))
	kernel.F16.Pack(group, rows, k, kernel.Lanes)

	var x [k]float32
	for i := range x {
		x[i] = float32(i)
	}
	var out [kernel.Lanes]float32
	at := func(f *float32) *byte { return (*byte)(unsafe.Pointer(f)) }
	kernel.Best().Gemm(kernel.F16, &group[0], k, at(&x[0]), k*4, 1, at(&out[0]), len(out)*4)
	fmt.Println(out[2:5])
	// Output: [0 496 0]
}
