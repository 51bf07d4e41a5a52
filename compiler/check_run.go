package compiler

import (
	"fmt"

	"github.com/dynamograph/dynamo/graph/diag"
)

// notRunnable finds what the schema takes and this build cannot run.
func notRunnable(s *state) diag.List {
	var list diag.List
	for _, name := range s.names() {
		n, k := s.g.Nodes[name], s.kinds[name]
		if k == nil {
			continue
		}
		add := func(field, msg string) {
			d := nodeAt(n, field, "not-runnable", msg)
			if !s.o.Run {
				d.Severity = diag.Note
			}
			list.Add(d)
		}
		if k.New == nil {
			add("", fmt.Sprintf("a node of kind %s is checked, but not run yet", n.Kind))
			continue
		}
		for _, l := range k.Lacks(n.Config) {
			add(l.Field, l.Msg)
		}
	}
	return list
}
