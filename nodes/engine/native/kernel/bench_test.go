package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkGemm multiplies 576 rows of 576 weights with 1 and 64 rows of activations.
func BenchmarkGemm(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	const k, groups = 576, 36
	for _, s := range All() {
		for f := Q41; f <= BF16; f++ {
			for _, cols := range []int{1, 64} {
				if s == Portable() && cols > 1 {
					continue
				}
				b.Run(fmt.Sprintf("%s/%s/%d", s.Name(), f, cols), func(b *testing.B) {
					src := randRows(r, f, k, 16)
					gb := f.GroupBytes(k)
					w := make([]byte, groups*gb)
					for g := range groups {
						f.Pack(w[g*gb:(g+1)*gb], src, k, 16)
					}
					x, out := randFloats(r, cols*k, 1), make([]float32, cols*groups*16)
					xp, ldx := bytePtr(x), k*4
					if f.Quantised() {
						q := make([]byte, cols*RowBytes(k))
						for c := range cols {
							s.Quantise(x[c*k:(c+1)*k], q[c*RowBytes(k):])
						}
						xp, ldx = &q[0], RowBytes(k)
					}
					for b.Loop() {
						for c := 0; c < cols; c += 8 {
							for g := range groups {
								s.Gemm(f, &w[g*gb], k, ptr(xp, c*ldx), ldx, min(8, cols-c), bytePtr(out[c*groups*16+g*16:]), groups*64)
							}
						}
					}
					b.ReportMetric(2*float64(k*groups*16*cols)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	}
}
