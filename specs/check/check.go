// Package check holds a graph that was built in Go to the schemas that specs are held to, which say more than Go's types: ranges, words,
// forms of names.
package check

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/load"
	"github.com/dynamograph/dynamo/specs/write"
)

// Graph returns what load.File would find wrong with the spec of g, at the places of g. A nil registry is kind.Default. The error is for
// what kept g from being checked: ctx, a folder for temporary files that cannot be written.
func Graph(ctx context.Context, g *graph.Graph, r *kind.Registry) (diag.List, error) {
	spec, err := write.Spec(g, "json", write.Options{Registry: r})
	if err != nil { // a kind that is not known, or a config that is none: the compiler says it at its place
		return nil, nil //nolint:nilerr // see above
	}
	dir, err := os.MkdirTemp("", "dynamo-check-")
	if err != nil {
		return nil, fmt.Errorf("graph %q: %w", g.Name, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "graph.json"), spec, 0o600); err != nil {
		return nil, fmt.Errorf("graph %q: %w", g.Name, err)
	}
	_, list, err := load.File(ctx, "graph.json", load.Options{Registry: r, Dir: dir})
	if err != nil {
		return nil, err
	}
	for i := range list {
		d := &list[i]
		if d.Pos, d.Len = g.Place(d.Path), 0; !d.Pos.IsValid() {
			d.Pos = g.Pos
		}
		d.Related = nil // of a file that nobody has
	}
	list.Sort()
	return list, nil
}
