//go:build unix

package llama

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// report gives tokens a second of wall clock and of processor time: the second is steadier on a busy machine.
func report(b *testing.B, tokens int, cpu time.Duration) {
	b.ReportMetric(float64(tokens*b.N)/b.Elapsed().Seconds(), "tokens/s")
	b.ReportMetric(float64(tokens*b.N)/cpu.Seconds(), "tokens/cpu-s")
}

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
			cpu := cpuTime()
			for b.Loop() {
				forward(b, []Seq{prompt})
			}
			report(b, 256, cpuTime()-cpu)
		})
		for _, seqs := range []int{1, 8} {
			for i := range seqs {
				s := prompt
				s.Blocks, s.Logits = table(i), nil
				forward(b, []Seq{s})
			}
			batch, tables := make([]Seq, seqs), make([][]int32, seqs)
			for i := range tables {
				tables[i] = table(i)
			}
			b.Run(fmt.Sprintf("tg/seqs=%d/threads=%d", seqs, threads), func(b *testing.B) {
				b.ReportAllocs()
				step, cpu := 0, cpuTime()
				for b.Loop() {
					for i := range batch {
						batch[i] = Seq{Tokens: prompt.Tokens[:1], Pos: 256 + step%32, Blocks: tables[i], Logits: rows[i : i+1]}
					}
					forward(b, batch)
					step++
				}
				report(b, seqs, cpuTime()-cpu)
			})
		}
	}
}

// realModel is the path of the real model that the environment names.
func realModel(t testing.TB) string {
	t.Helper()
	p := os.Getenv("DYNAMO_TEST_MODEL")
	if p == "" {
		t.Skip("NOT RUN: set DYNAMO_TEST_MODEL to a SmolLM2-135M-Instruct GGUF file")
	}
	return p
}

// openReal opens the real model with its repacked weights in a folder that all tests of this process share.
func openReal(t testing.TB, o Options) *Model {
	t.Helper()
	o.Path, o.CacheDir = realModel(t), sharedCache
	m, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// BenchmarkOpen measures a start with and without the repacked file, and the memory of the process after a step.
func BenchmarkOpen(b *testing.B) {
	path := realModel(b)
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			m, err := Open(Options{Path: path, CacheDir: b.TempDir(), SHA256: strings.Repeat("0", 64), Threads: 2})
			if err != nil {
				b.Fatal(err)
			}
			_ = m.Close()
		}
	})
	b.Run("warm", func(b *testing.B) {
		o := Options{Path: path, CacheDir: b.TempDir(), SHA256: strings.Repeat("0", 64), Threads: 2}
		if m, err := Open(o); err != nil {
			b.Fatal(err)
		} else if err := m.Close(); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			m, err := Open(o)
			if err != nil {
				b.Fatal(err)
			}
			_ = m.Close()
		}
		m := mustOpen(b, o)
		kv := alignedBytes(16 * m.Info().BlockBytes)
		prompt := Seq{Tokens: randTokens(256, 40000, 1), Blocks: []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}
		if err := m.Forward(kv, []Seq{prompt}); err != nil {
			b.Fatal(err)
		}
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return // not Linux
		}
		for _, f := range []string{"RssAnon", "RssFile"} {
			_, after, _ := strings.Cut(string(status), f+":")
			var kb float64
			if _, err := fmt.Sscan(after, &kb); err == nil {
				b.ReportMetric(kb/1024, f+"-MiB")
			}
		}
	})
}
