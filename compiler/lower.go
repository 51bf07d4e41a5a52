package compiler

import (
	"cmp"
	"slices"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/plan"
)

// lower completes the plan from the checked graph.
func lower(s *state) diag.List {
	s.p.Status = s.g.Status
	if slo := s.g.SLO; slo.TTFT != 0 || slo.ITL != 0 {
		s.p.SLO = &plan.SLO{}
		if slo.TTFT != 0 {
			s.p.SLO.TTFT = slo.TTFT.Std().String()
		}
		if slo.ITL != 0 {
			s.p.SLO.ITL = slo.ITL.Std().String()
		}
	}
	drain, grace := s.drain()
	s.p.DrainSeconds, s.p.GraceSeconds = seconds(drain), seconds(grace)
	for _, g := range s.p.Groups {
		for _, u := range g.Units {
			u.Config = s.g.Nodes[u.Node].Config
			u.Listen = s.kinds[u.Node].Listen(u.Config)
			u.Guard = s.kinds[u.Node].Guard(u.Config)
			u.Calls = s.kinds[u.Node].Calls(u.Config)
		}
	}
	for _, e := range s.g.Edges {
		s.p.Edges = append(s.p.Edges, &plan.Edge{
			From: e.From.Node, FromPort: e.From.Port, To: e.To.Node, ToPort: e.To.Port,
			Type: e.Type, Transport: e.Transport, Inserted: e.Inserted,
		})
	}
	slices.SortFunc(s.p.Edges, func(a, b *plan.Edge) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.FromPort, b.FromPort), cmp.Compare(a.To, b.To), cmp.Compare(a.ToPort, b.ToPort))
	})
	return nil
}
