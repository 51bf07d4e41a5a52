package load_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/specs/load"
)

// wide is a graph of n workers.
func wide(t testing.TB, n int) (dir string) {
	t.Helper()
	var s strings.Builder
	s.WriteString("package p\n\nimport \"dynamo.graph/spec\"\n\nspec.#Graph & {\n\tname: \"p\"\n\tnodes: {\n\t\tapi: spec.#Frontend\n")
	for i := range n {
		fmt.Fprintf(&s, "\t\tw%d: spec.#Worker & {replicas: int | *%d @tag(w%d,type=int), threads: 2, kv: tokens: 4096}\n", i, i%7, i)
	}
	s.WriteString("\t}\n\tedges: {\n")
	for i := range n {
		fmt.Fprintf(&s, "\t\t\"api -> w%d\": {}\n", i)
	}
	s.WriteString("\t}\n}\n")
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.cue"), []byte(s.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// loads returns the CPU time of one load.
func loads(t testing.TB, dir, spec string) time.Duration {
	t.Helper()
	before := cpuTime()
	if _, list, err := load.File(context.Background(), spec, load.Options{Registry: testKinds(), Dir: dir}); err != nil || list.Failed() {
		t.Fatal(err, list)
	}
	return cpuTime() - before
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// TestLinear: a node of a large graph costs what one of a small graph does, in allocations. Times are for the benchmarks.
func TestLinear(t *testing.T) {
	each := func(n int) float64 {
		dir := wide(t, n)
		return testing.AllocsPerRun(1, func() { loads(t, dir, "p.cue") }) / float64(n)
	}
	some, many := each(100), each(600)
	t.Logf("allocations a node: %.0f of 100, %.0f of 600", some, many)
	if many > 1.2*some {
		t.Errorf("a node takes %.0f allocations of 100 and %.0f of 600: not linear", some, many)
	}
}

func BenchmarkDisagg(b *testing.B) {
	var cpu time.Duration
	for b.Loop() {
		cpu += loads(b, "..", "llama-disagg.cue")
	}
	b.ReportMetric(float64(cpu.Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

func BenchmarkNodes(b *testing.B) {
	for _, n := range []int{6, 50, 200, 1000} {
		dir := wide(b, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var cpu time.Duration
			for b.Loop() {
				cpu += loads(b, dir, "p.cue")
			}
			b.ReportMetric(float64(cpu.Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}
