package compiler

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
)

// callName is what clients call a model, or a model with an adapter.
type callName struct {
	model, adapter string // keys of the graph
	path           string // of what says it: "models.a.names"
	pos            diag.Pos
}

// servedTwice finds names that stand for two models behind one entry: nobody could tell which one a client means. A name that two adapters
// of one model have, or an adapter and its model, is one too.
func servedTwice(s *state) diag.List {
	var list diag.List
	told := map[[2]string]bool{}
	for _, entry := range s.entries() {
		first := map[string]callName{}
		for _, key := range s.below(entry) {
			m := s.g.Models[key]
			if m == nil {
				continue
			}
			for _, c := range names(s.g, key, m) {
				f, taken := first[c.name]
				if !taken {
					first[c.name] = c.callName
					continue
				}
				if told[[2]string{f.path, c.path}] || f.adapter == "" && c.adapter == "" && s.same(f.model, c.model) {
					continue
				}
				told[[2]string{f.path, c.path}] = true
				list.Add(diag.Diagnostic{
					Code: "duplicate-name", Pos: c.pos, Path: c.path,
					Msg:     fmt.Sprintf("%s: clients of %s call two models %q", c.path, entry, c.name),
					Hint:    "give one of them other names",
					Related: []diag.Related{{Pos: f.pos, Msg: fmt.Sprintf("%s is called so, too", f.what())}},
				})
			}
		}
	}
	return list
}

func (c callName) what() string {
	if c.adapter != "" {
		return fmt.Sprintf("adapter %q of model %q", c.adapter, c.model)
	}
	return fmt.Sprintf("model %q", c.model)
}

type named struct {
	name string
	callName
}

// names returns what clients call a model and its adapters.
func names(g *graph.Graph, key string, m *graph.Model) []named {
	var out []named
	add := func(list []string, adapter, field string, at diag.Pos) {
		path := "models." + key + field
		if pos, ok := g.Fields[path+".names"]; ok {
			path, at = path+".names", pos
		}
		for _, n := range list {
			out = append(out, named{n, callName{key, adapter, path, at}})
		}
	}
	add(served(key, m), "", "", m.Pos)
	for _, a := range slices.Sorted(maps.Keys(m.Adapters)) {
		list := m.Adapters[a].Names
		if len(list) == 0 {
			list = []string{a}
		}
		add(list, a, ".adapters."+a, m.Adapters[a].Pos)
	}
	return out
}
