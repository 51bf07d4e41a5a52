package compiler

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
)

// size begins the plan: models, and what one replica of each node takes. Of a node whose model is unknown
// only the number of devices is: a part of its memory would mislead.
func size(s *state) diag.List {
	s.p = &plan.Plan{Version: plan.Version, Graph: s.g.Name, Models: map[string]*plan.Model{}}
	for _, name := range slices.Sorted(maps.Keys(s.g.Models)) {
		m := s.g.Models[name]
		s.p.Models[name] = planned(name, m)
	}
	for name, k := range s.kinds {
		n := s.g.Nodes[name]
		f := s.facts(n)
		if f == nil && (n.Model != "" || k.NeedsModel) {
			all := k.Size(n.Config, model.Facts{})
			s.needs[name] = plan.Needs{Devices: all.Devices, DeviceClass: all.DeviceClass, DeviceGroup: all.DeviceGroup, DeviceShare: all.DeviceShare}
			continue
		}
		if f == nil {
			f = &model.Facts{}
		}
		s.needs[name] = k.Size(n.Config, s.sized(n, *f))
	}
	return nil
}

// planned is a model as the plan has it.
func planned(name string, m *graph.Model) *plan.Model {
	out := &plan.Model{
		Sources: m.Sources, SHA256: m.SHA256, Context: m.Context, Names: served(name, m),
		Revision: m.Revision, Family: m.Family, Tools: m.Tools, Reasoning: m.Reasoning, Features: m.Features,
	}
	for key, a := range m.Adapters {
		if out.Adapters == nil {
			out.Adapters = map[string]*plan.Adapter{}
		}
		names := a.Names
		if len(names) == 0 {
			names = []string{key}
		}
		out.Adapters[key] = &plan.Adapter{Sources: a.Sources, SHA256: a.SHA256, Rank: a.Rank, Names: names}
	}
	return out
}

// served returns what clients call a model: as the graph says, or by its key, or, where that is only the shorthand's "default", by the
// name of its file. It does not depend on facts, so that a plan is the same before and after a download.
func served(key string, m *graph.Model) []string {
	if len(m.Names) > 0 {
		return m.Names
	}
	if key != "default" || len(m.Sources) == 0 {
		return []string{key}
	}
	file, _, _ := strings.Cut(m.Sources[0], "?")
	base := path.Base(file)
	if i := strings.LastIndex(base, ":"); i >= 0 {
		base = base[i+1:]
	}
	base = strings.TrimSuffix(base, path.Ext(base))
	if base == "" || base == "." || base == "/" {
		return []string{key}
	}
	return []string{base}
}
