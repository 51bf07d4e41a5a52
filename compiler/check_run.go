package compiler

import (
	"fmt"
	"maps"
	"slices"

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
	for _, name := range slices.Sorted(maps.Keys(s.g.Models)) {
		m := s.g.Models[name]
		add := func(field, msg string) {
			d := diag.Diagnostic{Code: "not-runnable", Pos: m.Pos, Path: "models." + name + "." + field}
			d.Msg = d.Path + ": " + msg
			if pos, ok := s.g.Fields[d.Path]; ok {
				d.Pos = pos
			}
			if !s.o.Run {
				d.Severity = diag.Note
			}
			list.Add(d)
		}
		for _, f := range []struct{ field, value, what string }{
			{"tools", m.Tools, "tool calls of this form are"}, {"reasoning", m.Reasoning, "reasoning of this form is"},
		} {
			if f.value != "" && !s.parses(f.field, f.value) {
				add(f.field, fmt.Sprintf("%q: %s not read out of answers yet: leave it out, and clients get the text as it is", f.value, f.what))
			}
		}
	}
	return list
}

// parses reports whether a node of the graph reads a format.
func (s *state) parses(what, format string) bool {
	for _, k := range s.kinds {
		if k != nil && k.Parses != nil && k.Parses(what, format) {
			return true
		}
	}
	return false
}
