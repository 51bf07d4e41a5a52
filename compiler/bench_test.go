package compiler_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/compiler/compilertest"
	"github.com/dynamograph/dynamo/graph"
)

// wide is one router before n workers, deep are n/5 frontends with a pair each.
func wide(n int) string {
	var b strings.Builder
	b.WriteString("graph wide\nmodel default file:tiny.gguf\nnode api frontend\nnode route router\nedge \"api -> route\"\n")
	for i := range n - 2 {
		fmt.Fprintf(&b, "node w%d worker\nedge \"route.worker -> w%d\"\n", i, i)
	}
	return b.String()
}

func deep(n int) string {
	var b strings.Builder
	b.WriteString("graph deep\nmodel default file:tiny.gguf\n")
	for i := range n / 5 {
		fmt.Fprintf(&b, "node api%[1]d frontend {\"listen\": \"127.0.0.1:%[2]d\"}\nnode route%[1]d router\nnode p%[1]d prefill\nnode d%[1]d decode\nnode e%[1]d decode\n"+
			"edge \"api%[1]d -> route%[1]d\"\nedge \"route%[1]d.prefill -> p%[1]d\"\nedge \"route%[1]d.decode -> d%[1]d\"\nedge \"route%[1]d.decode -> e%[1]d\"\n"+
			"edge \"p%[1]d.kv -> d%[1]d.kv\"\nedge \"p%[1]d.kv -> e%[1]d.kv\"\n", i, 10000+i)
	}
	return b.String()
}

func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{5, 50, 200, 1000} {
		for name, src := range map[string]string{"wide": wide(n), "deep": deep(n)} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				g := parse(b, src)
				r := compilertest.Registry()
				b.ReportAllocs()
				for b.Loop() {
					if _, l := compiler.Compile(g, compiler.Options{Registry: r}); l.Failed() {
						b.Fatal(l)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n)/1000, "µs/node")
			})
		}
	}
}

// fataler is testing.TB or rapid.T.
type fataler interface {
	Helper()
	Fatal(...any)
}

func parse(t fataler, src string) *graph.Graph {
	t.Helper()
	g, err := compilertest.Parse("spec", src)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
