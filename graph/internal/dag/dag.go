// Package dag sorts small directed graphs of names. It is the only importer of dominikbraun/graph, so that replacing the library touches
// one file. All results are deterministic: names are compared as strings.
package dag

import (
	"errors"
	"slices"
	"strings"

	lib "github.com/dominikbraun/graph"
)

// ErrCycle is returned by Sort for a graph that has no order.
var ErrCycle = errors.New("the graph has a cycle")

// Graph is a directed graph. The zero Graph is empty and ready to use; it is not safe for concurrent change.
type Graph struct {
	names []string
	next  map[string][]string
	has   map[[2]string]bool
}

// Vertex adds a vertex; adding it twice changes nothing.
func (g *Graph) Vertex(name string) {
	if g.next == nil {
		g.next, g.has = map[string][]string{}, map[[2]string]bool{}
	}
	if _, ok := g.next[name]; !ok {
		g.next[name] = nil
		g.names = append(g.names, name)
	}
}

// Edge adds an edge, and its ends where they are missing. Repeated edges count once.
func (g *Graph) Edge(from, to string) {
	g.Vertex(from)
	g.Vertex(to)
	if key := [2]string{from, to}; !g.has[key] {
		g.has[key] = true
		g.next[from] = append(g.next[from], to)
	}
}

// library hands over to the library; an edge from a vertex to itself is left to the caller.
func (g *Graph) library() lib.Graph[string, string] {
	l := lib.New(lib.StringHash, lib.Directed())
	for _, n := range g.names {
		must(l.AddVertex(n))
	}
	for _, n := range g.names {
		for _, m := range g.next[n] {
			if n != m {
				must(l.AddEdge(n, m))
			}
		}
	}
	return l
}

// must panics: the library fails only for repeated or unknown vertices, which Vertex and Edge exclude.
func must(err error) {
	if err != nil {
		panic("dag: " + err.Error())
	}
}

func (g *Graph) loops(n string) bool { return g.has[[2]string{n, n}] }

// Sort returns all names so that each edge leads to the right, by name where the edges leave a choice. A cycle is ErrCycle. The library
// sorts in time that grows with the square of the graph; this does not.
func (g *Graph) Sort() ([]string, error) {
	before := map[string]int{} // edges that lead to a name from one that is not in out yet
	for _, n := range g.names {
		for _, m := range g.next[n] {
			before[m]++
		}
	}
	var out []string
	free := func(names []string) {
		at := len(out)
		for _, n := range names {
			if before[n] == 0 {
				out = append(out, n)
			}
		}
		slices.Sort(out[at:])
	}
	free(g.names)
	for i := 0; i < len(out); i++ {
		for _, m := range g.next[out[i]] {
			before[m]--
		}
		free(g.next[out[i]])
	}
	if len(out) < len(g.names) {
		return nil, ErrCycle
	}
	return out, nil
}

// Cycles returns one shortest cycle of each strongly connected part, each beginning at its smallest name and ordered by it. A cycle
// a → b → a is [a b].
func (g *Graph) Cycles() [][]string {
	parts, err := lib.StronglyConnectedComponents(g.library())
	must(err)
	var out [][]string
	for _, part := range parts {
		slices.Sort(part)
		switch {
		case g.loops(part[0]):
			out = append(out, part[:1])
		case len(part) > 1:
			out = append(out, g.around(part))
		}
	}
	slices.SortFunc(out, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return out
}

// around walks from the smallest vertex of a strongly connected part back to it by breadth.
func (g *Graph) around(part []string) []string {
	start := part[0]
	inside := map[string]bool{}
	for _, n := range part {
		inside[n] = true
	}
	from := map[string]string{}
	for queue := []string{start}; ; queue = queue[1:] {
		at := queue[0]
		next := slices.Sorted(slices.Values(g.next[at]))
		for _, n := range next {
			if n == start {
				path := []string{at}
				for at != start {
					at = from[at]
					path = append(path, at)
				}
				slices.Reverse(path)
				return path
			}
			if _, seen := from[n]; !seen && inside[n] {
				from[n] = at
				queue = append(queue, n)
			}
		}
	}
}

// Reach returns the vertices that edges lead to from roots, roots included.
func (g *Graph) Reach(roots ...string) map[string]bool {
	seen := map[string]bool{}
	for todo := slices.Clone(roots); len(todo) > 0; todo = todo[1:] {
		if seen[todo[0]] {
			continue
		}
		seen[todo[0]] = true
		todo = append(todo, g.next[todo[0]]...)
	}
	return seen
}
