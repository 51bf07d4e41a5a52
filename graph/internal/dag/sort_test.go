package dag_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	lib "github.com/dominikbraun/graph"

	"github.com/dynamograph/dynamo/graph/internal/dag"
)

// Sort gives the order that the library gives, on graphs with and without cycles.
func TestSortAsTheLibrary(t *testing.T) {
	cycles := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		g, l := &dag.Graph{}, lib.New(lib.StringHash, lib.Directed())
		n := 1 + r.IntN(12)
		for i := range n {
			g.Vertex(fmt.Sprint(i))
			if err := l.AddVertex(fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		for range r.IntN(2 * n) {
			a, b := r.IntN(n), r.IntN(n)
			if a == b || seed%3 > 0 && a > b { // two of three have no cycle
				continue
			}
			g.Edge(fmt.Sprint(a), fmt.Sprint(b))
			if err := l.AddEdge(fmt.Sprint(a), fmt.Sprint(b)); err != nil && !errors.Is(err, lib.ErrEdgeAlreadyExists) {
				t.Fatal(err)
			}
		}
		want, err1 := lib.StableTopologicalSort(l, func(a, b string) bool { return a < b })
		got, err2 := g.Sort()
		if (err1 == nil) != (err2 == nil) || err1 == nil && !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v %v, the library says %v %v", seed, got, err2, want, err1)
		}
		if err1 != nil {
			cycles++
		}
	}
	if cycles == 0 || cycles == 300 {
		t.Errorf("%d of 300 graphs have cycles", cycles)
	}
}
