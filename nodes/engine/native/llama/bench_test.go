package llama

import (
	"fmt"
	"testing"
)

// BenchmarkForward measures a prompt of 256 tokens and steps of one token (1 and 8 sequences) after it, on the real model.
func BenchmarkForward(b *testing.B) {
	realModel(b)
	for _, threads := range []int{1, 2} {
		m := openReal(b, Options{Threads: threads})
		kv := alignedBytes(8 * 20 * m.Info().BlockBytes)
		table := func(i int) []int32 {
			out := make([]int32, 20)
			for j := range out {
				out[j] = int32(20*i + j)
			}
			return out
		}
		rows := logitRows(8, m.Info().Vocab)
		forward := func(b *testing.B, batch []Seq) {
			if err := m.Forward(kv, batch); err != nil {
				b.Fatal(err)
			}
		}
		prompt := Seq{Tokens: randTokens(256, 40000, 1), Blocks: table(0), Logits: rows[:1]}
		b.Run(fmt.Sprintf("pp256/threads=%d", threads), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				forward(b, []Seq{prompt})
			}
			b.ReportMetric(256*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
		for _, seqs := range []int{1, 8} {
			for i := range seqs {
				s := prompt
				s.Blocks, s.Logits = table(i), nil
				forward(b, []Seq{s})
			}
			batch := make([]Seq, seqs)
			b.Run(fmt.Sprintf("tg/seqs=%d/threads=%d", seqs, threads), func(b *testing.B) {
				b.ReportAllocs()
				step := 0
				for b.Loop() {
					for i := range batch {
						batch[i] = Seq{Tokens: prompt.Tokens[:1], Pos: 256 + step%32, Blocks: table(i), Logits: rows[i : i+1]}
					}
					forward(b, batch)
					step++
				}
				b.ReportMetric(float64(seqs*b.N)/b.Elapsed().Seconds(), "tokens/s")
			})
		}
	}
}
