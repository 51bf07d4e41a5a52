package compiler

import (
	"github.com/dynamograph/dynamo/graph/diag"
)

// defaults completes the configuration of every node from its kind.
func defaults(s *state) diag.List {
	var list diag.List
	for _, name := range s.names() {
		n := s.g.Nodes[name]
		k := s.o.Registry.Lookup(n.Kind)
		if k == nil {
			continue
		}
		c, err := k.Config(n.Config)
		if err != nil { // the loader checks configurations against the schema; graphs built in Go meet it here
			list.Add(nodeAt(n, "", "bad-value", err.Error()))
			continue
		}
		n.Config = c
	}
	return list
}
