package load_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
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

// TestSpeed holds the budget of a load, in CPU time: 25 ms for the disaggregated spec, 2.5 ms a node, twice that for slower processors; and no
// more a node for 600 nodes than for 100.
func TestSpeed(t *testing.T) {
	if bi, ok := debug.ReadBuildInfo(); ok {
		for _, s := range bi.Settings {
			if s.Key == "-race" && s.Value == "true" {
				t.Skip("NOT RUN: the race detector makes it slower")
			}
		}
	}
	least := func(dir, spec string) time.Duration {
		d := loads(t, dir, spec)
		for range 2 {
			d = min(d, loads(t, dir, spec))
		}
		return d
	}
	if d := least("..", "llama-disagg.cue"); d > 2*25*time.Millisecond {
		t.Errorf("llama-disagg.cue takes %v", d)
	}
	some, many := least(wide(t, 100), "p.cue")/100, least(wide(t, 600), "p.cue")/600
	if many > 2*2500*time.Microsecond {
		t.Errorf("a node of 600 takes %v", many)
	}
	if many > 2*some {
		t.Errorf("a node takes %v of 100 and %v of 600: not linear", some, many)
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
	for _, n := range []int{50, 200, 1000} {
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
