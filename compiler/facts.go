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

// factsMismatch finds what an author states of a model and its weights say otherwise, or that cannot be so.
func factsMismatch(s *state) diag.List {
	var list diag.List
	for _, name := range slices.Sorted(maps.Keys(s.g.Models)) {
		m, f := s.g.Models[name], s.o.Facts[name]
		if m.Stated == nil {
			continue
		}
		at := func(field string) (diag.Pos, bool) {
			pos, ok := s.g.Fields["models."+name+".facts."+field]
			return pos, ok
		}
		add := func(code, field, msg, hint string) *diag.Diagnostic {
			path := "models." + name + ".facts." + field
			pos, ok := at(field)
			if !ok {
				pos = m.Pos
			}
			list.Add(diag.Diagnostic{Code: code, Pos: pos, Path: path, Msg: path + ": " + msg, Hint: hint})
			return &list[len(list)-1]
		}
		for _, x := range m.Stated.Faults() {
			code := "facts-mismatch"
			if x.Idle {
				code = "no-effect"
			}
			d := add(code, x.Field, x.Msg, x.Hint)
			if pos, ok := at(x.Other); ok {
				d.Related = []diag.Related{{Pos: pos, Msg: "stated here"}}
			}
		}
		if f == nil {
			continue
		}
		for _, x := range m.Stated.Compare(*f) {
			add("facts-mismatch", x.Field, fmt.Sprintf("%v, but the model's %s says %v", x.Stated, source(f), x.Real),
				fmt.Sprintf("write %v, or leave it out: on this machine the file itself is read", x.Real))
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
