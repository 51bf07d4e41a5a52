package compiler

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// unsupportedFeature finds what clients may rely on and a node behind the model does not have. A kind that tells it itself knows more.
func unsupportedFeature(s *state) diag.List {
	var list diag.List
	for _, name := range s.names() {
		n, k := s.g.Nodes[name], s.kinds[name]
		m := s.g.Models[n.Model]
		if k == nil || k.Features == nil || m == nil || s.told[name]["unsupported-feature"] {
			continue
		}
		have, known := k.Features(n.Config)
		if !known {
			continue
		}
		missing := func(feature, field, why string) {
			if slices.Contains(have, feature) {
				return
			}
			path := "models." + m.Name + "." + field
			d := nodeAt(n, "", "unsupported-feature", fmt.Sprintf("%s, but %s %q has no %s", why, n.Kind, name, kind.Features[feature]))
			d.Hint = "remove it there, or serve the model by nodes that have it"
			if others := s.having(n.Model, feature); len(others) > 0 {
				d.Hint = fmt.Sprintf("remove it there, or serve the model by %s alone", diag.And(diag.Quote(others)))
			}
			if pos, ok := s.g.Fields[path]; ok {
				d.Related = []diag.Related{{Pos: pos, Msg: "it is asked for here"}}
			}
			list.Add(d)
		}
		for _, f := range m.Features {
			missing(f, "features", fmt.Sprintf("models.%s.features has %q", m.Name, f))
		}
		if names := slices.Sorted(maps.Keys(m.Adapters)); len(names) > 0 && !slices.Contains(m.Features, "lora") {
			missing("lora", "adapters."+names[0], fmt.Sprintf("models.%s.adapters has %s", m.Name, diag.And(diag.Quote(names))))
		}
	}
	return list
}

// having returns the nodes of a model that have a feature.
func (s *state) having(model, feature string) []string {
	var out []string
	for _, name := range s.names() {
		n, k := s.g.Nodes[name], s.kinds[name]
		if n.Model != model || k == nil || k.Features == nil {
			continue
		}
		if have, known := k.Features(n.Config); known && slices.Contains(have, feature) {
			out = append(out, name)
		}
	}
	return out
}
