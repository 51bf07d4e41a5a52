package compiler

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
)

// proposals are single settings with which one replica of g takes no more than have at some places, as "nodes.d.kv.tokens to 8192 or less".
func (s *state) proposals(g *plan.Group, have int64, at ...plan.Place) (out []string) {
	for _, p := range g.Needs.Parts {
		if !slices.Contains(at, p.Place) || p.Node == "" {
			continue
		}
		n := s.g.Nodes[p.Node]
		if m := s.g.Models[n.Model]; m != nil {
			if c := s.longest(g, n, have, at); c > 0 {
				out = append(out, fmt.Sprintf("models.%s.context to %d or less", n.Model, c))
			}
		}
		if count := p.Field != "" && p.Each > 0; count {
			rest := have - (total(g.Needs, at...).all - p.Bytes)
			if v := rest / p.Each / 16 * 16; v >= 16 && s.allows(g, n, p.Field, v, have, at) {
				out = append(out, fmt.Sprintf("nodes.%s.%s to %d or less", n.Name, p.Field, v))
			}
		}
		if p.Spread != "" {
			for v := 2 * max(g.Needs.DeviceGroup, 1); v <= 64; v *= 2 {
				if s.allows(g, n, p.Spread, int64(v), have, at) {
					out = append(out, fmt.Sprintf("nodes.%s.%s to %d", n.Name, p.Spread, v))
					break
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// longest is the longest context, in whole KiB of tokens, with which g fits and the node's kind has nothing to say; 0 where none does, or
// it is no shorter than now.
func (s *state) longest(g *plan.Group, n *graph.Node, have int64, at []plan.Place) int {
	f := s.facts(n)
	if f == nil || f.Context == 0 && s.g.Models[n.Model].Context == 0 {
		return 0
	}
	now := s.sized(n, *f)
	for lo, hi := 0, now.Context>>10; ; {
		if lo+1 >= hi {
			return lo << 10
		}
		mid := (lo + hi) / 2
		try := now
		try.Context = mid << 10
		if s.with(g, n, s.kinds[n.Name].Size(n.Config, try), at).all <= have {
			lo = mid
		} else {
			hi = mid
		}
	}
}

// allows reports whether g fits with a field of n set to v, and n's kind finds nothing more to say than now.
func (s *state) allows(g *plan.Group, n *graph.Node, field string, v, have int64, at []plan.Place) bool {
	f := s.facts(n)
	raw, err := withJSON(n.Config, strings.Split(field, "."), json.RawMessage(strconv.FormatInt(v, 10)))
	if f == nil || err != nil {
		return false
	}
	k := s.kinds[n.Name]
	if s.with(g, n, k.Size(raw, s.sized(n, *f)), at).all > have {
		return false
	}
	try := *n
	try.Config = raw
	now := k.Check(n.Config, kind.Site{Graph: s.g, Node: n, Facts: f})
	return len(k.Check(raw, kind.Site{Graph: s.g, Node: &try, Facts: f})) <= len(now)
}

// with is what g takes where the node's share is another.
func (s *state) with(g *plan.Group, n *graph.Node, needs plan.Needs, at []plan.Place) sums {
	return total(g.Needs, at...).plus(total(s.needs[n.Name], at...), -1).plus(total(needs, at...), 1)
}
