package compiler

import (
	"fmt"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/plan"
)

// tierOrder finds tiers of another node that hold less than the node which offloads to them: what it drops they have dropped already. A
// kind compares its own.
func tierOrder(s *state) diag.List {
	var list diag.List
	for _, e := range s.edges(func(typ string) bool { return typ == "tier" }) {
		from, to := s.needs[e.From.Node], s.needs[e.To.Node]
		var above, below *plan.Part
		for i := range from.Parts {
			if from.Parts[i].Keeps {
				above = &from.Parts[i]
			}
		}
		for i := range to.Parts {
			if to.Parts[i].Keeps && below == nil {
				below = &to.Parts[i]
			}
		}
		if above == nil || below == nil || above.Guess || below.Guess {
			continue // what it really keeps is not known
		}
		bytes := above.Bytes
		if above.Place == plan.OnDevice {
			bytes *= int64(from.Devices)
		}
		if below.Bytes >= bytes {
			continue
		}
		d := nodeIs(s.g.Nodes[e.To.Node], diag.Diagnostic{Code: "tier-order",
			Msg:  fmt.Sprintf("its %s has %s, but one replica of %s, which offloads to it, keeps %s (%s)", below.Name, plan.Bytes(below.Bytes), e.From.Node, plan.Bytes(bytes), above.Name),
			Hint: fmt.Sprintf("make it at least %s, or remove the edge", plan.Bytes(bytes))})
		d.Related = []diag.Related{{Pos: e.Pos, Len: e.Len, Msg: "offloads here"}}
		list.Add(d)
	}
	return list
}
