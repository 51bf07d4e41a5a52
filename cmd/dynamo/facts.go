package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/runtime/models"
)

// facts are what the headers of g's models say that are on this machine; nobody is asked. A header that cannot be read is a warning.
func facts(cache *models.Cache, g *graph.Graph) (map[string]*model.Facts, diag.List) {
	out, list := map[string]*model.Facts{}, diag.List(nil)
	for _, key := range slices.Sorted(maps.Keys(g.Models)) {
		var source *model.SourceError
		f, err := cache.Facts(planModel(g.Models[key]))
		switch {
		case err == nil:
			out[key] = f
		case errors.As(err, &source):
			if m := g.Models[key]; source.Whole && m.Stated == nil { // else the compiler tells, or knows the sizes
				path := "models." + key + ".source"
				pos, ok := g.Fields[path]
				if !ok {
					pos = m.Pos
				}
				list.Add(diag.Diagnostic{Code: "unreadable-model", Severity: diag.Warning, Pos: pos, Path: path,
					Msg: fmt.Sprintf("models.%s: its sizes are not checked: %q %s", key, source.Source, source.Msg), Hint: source.Hint + ", or say models.NAME.facts"})
			}
		case !models.NotHere(err):
			m := g.Models[key]
			list.Add(diag.Diagnostic{Code: "unreadable-model", Severity: diag.Warning, Pos: m.Pos, Path: "models." + key,
				Msg: fmt.Sprintf("models.%s: its sizes are not checked: %v", key, err), Hint: "correct the source, or fetch the file again"})
		}
	}
	return out, list
}

// fetchFacts asks the sources of g's models for headers, where none is on this machine. They are kept in the cache.
func fetchFacts(ctx context.Context, cache *models.Cache, g *graph.Graph) error {
	for _, key := range slices.Sorted(maps.Keys(g.Models)) {
		if _, err := cache.FetchFacts(ctx, planModel(g.Models[key])); err != nil && !models.NotHere(err) {
			return cli.Fail(cli.Unreachable, "graph %s: model %q: its header: %v", g.Name, key, err)
		}
	}
	return nil
}

func planModel(m *graph.Model) plan.Model {
	return plan.Model{Sources: m.Sources, SHA256: m.SHA256, Context: m.Context, Names: m.Names}
}

// headersOnly takes the models out of pl's that no node of this build can compute with, and returns them: of those a header is all that is
// of use here.
func headersOnly(g *graph.Graph, pl *plan.Plan) *graph.Graph {
	run := map[string]bool{}
	for _, group := range pl.Groups {
		for _, u := range group.Units {
			if k := kind.Default.Lookup(u.Kind); k != nil && k.New != nil && len(k.Lacks(u.Config)) == 0 && !u.Inserted {
				run[u.Model] = true
			}
		}
	}
	out := &graph.Graph{Name: g.Name, Models: map[string]*graph.Model{}}
	for name, m := range g.Models {
		if !run[name] {
			out.Models[name] = m
			delete(pl.Models, name)
		}
	}
	return out
}
