package dag

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func of(edges string) *Graph {
	g := &Graph{}
	for e := range strings.FieldsSeq(edges) {
		from, to, ok := strings.Cut(e, ">")
		if !ok {
			g.Vertex(from)
			continue
		}
		g.Edge(from, to)
	}
	return g
}

func TestSort(t *testing.T) {
	for _, tt := range []struct{ edges, want string }{
		{"", ""},
		{"b a c", "a b c"},
		{"c>b b>a", "c b a"},
		{"z>a b>a", "b z a"},
		{"a>b a>b", "a b"},
		{"a>c b>c c>d d>e a>e", "a b c d e"},
	} {
		got, err := of(tt.edges).Sort()
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%q: got %v, %v; want %s", tt.edges, got, err, tt.want)
		}
	}
	for _, edges := range []string{"a>a", "a>b b>a", "x>a a>b b>c c>a"} {
		if got, err := of(edges).Sort(); !errors.Is(err, ErrCycle) {
			t.Errorf("%q: got %v, %v; want ErrCycle", edges, got, err)
		}
	}
}

func TestCycles(t *testing.T) {
	for _, tt := range []struct{ edges, want string }{
		{"a>b b>c a>c", "[]"},
		{"a>a a>b", "[[a]]"},
		{"b>a a>b", "[[a b]]"},
		{"x>c c>b b>a a>c", "[[a c b]]"},
		{"d>e e>d a>b b>c c>a c>b", "[[a b c] [d e]]"},
		{"a>b b>c c>d d>a c>a", "[[a b c]]"}, // the shortest
	} {
		if got := fmt.Sprint(of(tt.edges).Cycles()); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.edges, got, tt.want)
		}
	}
}

func TestReach(t *testing.T) {
	got := of("a>b b>c d>c e").Reach("b", "e")
	if len(got) != 3 || !got["b"] || !got["c"] || !got["e"] {
		t.Errorf("got %v", got)
	}
}

// Each graph either sorts, with every edge to the right, or has a cycle whose every step is an edge.
func TestSortOrCycle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		g := &Graph{}
		for i := range n {
			g.Vertex(fmt.Sprint(i))
		}
		for range rapid.IntRange(0, 12).Draw(t, "edges") {
			g.Edge(fmt.Sprint(rapid.IntRange(0, n-1).Draw(t, "from")), fmt.Sprint(rapid.IntRange(0, n-1).Draw(t, "to")))
		}
		order, err := g.Sort()
		cycles := g.Cycles()
		if (err == nil) != (len(cycles) == 0) {
			t.Fatalf("sort says %v, cycles are %v", err, cycles)
		}
		for _, c := range cycles {
			for i, v := range c {
				if !slices.Contains(g.next[v], c[(i+1)%len(c)]) {
					t.Fatalf("cycle %v: no edge from %s", c, v)
				}
			}
		}
		for from, next := range g.next {
			for _, to := range next {
				if err == nil && slices.Index(order, from) > slices.Index(order, to) {
					t.Fatalf("order %v breaks %s>%s", order, from, to)
				}
			}
		}
	})
}
