package compiler

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/model"
)

// known joins what the weights say with what the author states: the weights count. A model of which neither says anything is missing.
func known(g *graph.Graph, weights map[string]*model.Facts) map[string]*model.Facts {
	out := map[string]*model.Facts{}
	for name, m := range g.Models {
		f := weights[name]
		switch {
		case f != nil && m.Stated != nil:
			both := m.Stated.Fill(*f)
			f = &both
		case m.Stated != nil:
			stated := m.Stated.Facts()
			f = &stated
		}
		if f != nil {
			out[name] = f
		}
	}
	return out
}

// facts returns what is known of the node's model, or nil.
func (s *state) facts(n *graph.Node) *model.Facts {
	if n.Model == "" {
		return nil
	}
	return s.known[n.Model]
}

// sized are facts with the context that the graph allows, for sizes.
func (s *state) sized(n *graph.Node, f model.Facts) model.Facts {
	if m := s.g.Models[n.Model]; m != nil && m.Context > 0 && (f.Context == 0 || m.Context < f.Context) {
		f.Context = m.Context
	}
	return f
}

// factsMismatch finds what an author states of a model and its weights say otherwise.
func factsMismatch(s *state) diag.List {
	var list diag.List
	for _, name := range slices.Sorted(maps.Keys(s.g.Models)) {
		m, f := s.g.Models[name], s.o.Facts[name]
		if m.Stated == nil || f == nil {
			continue
		}
		for _, d := range m.Stated.Compare(*f) {
			path := "models." + name + ".facts." + d.Field
			pos, ok := s.g.Fields[path]
			if !ok {
				pos = m.Pos
			}
			list.Add(diag.Diagnostic{Code: "facts-mismatch", Pos: pos, Path: path,
				Msg:  fmt.Sprintf("%s: %v, but the model's %s says %v", path, d.Stated, source(f), d.Real),
				Hint: fmt.Sprintf("write %v, or leave it out: on this machine the file itself is read", d.Real)})
		}
	}
	return list
}

// source is where facts come from, in words.
func source(f *model.Facts) string {
	switch f.Format {
	case "config":
		return "config.json"
	case "":
		return "file"
	}
	return f.Format + " header"
}
