package compiler

import (
	"slices"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// rule finds one sort of mistake on the graph as it will run.
type rule struct {
	code string // of diag.Codes: all that it finds has this code, but for the rule "kind"
	run  func(*state) diag.List
	// whole says that the rule is about what is missing. It is left out while an edge is wrong: that edge may be what is missing.
	whole bool
}

// rules is the list of checks. But for the first their order does not matter.
var rules = []rule{
	{code: "kind", run: byKind}, // first: what a kind says of its own edges need not be said again
	{code: "bad-name", run: badName},
	{code: "long-name", run: longName},
	{code: "bad-value", run: badSource},
	{code: "cycle", run: cycle},
	{code: "cycle", run: callsItself},
	{code: "no-entry", run: noEntry, whole: true},
	{code: "unreachable", run: unreachable, whole: true},
	{code: "missing-kv", run: missingKV, whole: true},
	{code: "lone-prefill", run: lonePrefill, whole: true},
	{code: "lone-decode", run: loneDecode, whole: true},
	{code: "split-pair", run: splitPair, whole: true},
	{code: "model-mismatch", run: modelMismatch},
	{code: "several-models", run: severalModels},
	{code: "contract-mismatch", run: contractMismatch},
	{code: "contract-mismatch", run: sharedMismatch},
	{code: "bad-transport", run: badTransport},
	{code: "no-replicas", run: noReplicas},
	{code: "no-effect", run: replicasWithoutEffect},
	{code: "listen-conflict", run: listenConflict},
	{code: "context-too-long", run: contextTooLong},
	{code: "facts-mismatch", run: factsMismatch},
	{code: "memory-fit", run: memoryFit},
	{code: "memory-fit", run: deviceFit},
	{code: "device-count", run: deviceCount},
	{code: "disk-fit", run: diskFit},
	{code: "tier-order", run: tierOrder},
	{code: "duplicate-name", run: servedTwice},
	{code: "unused-model", run: unusedModel, whole: true},
	{code: "not-runnable", run: notRunnable},
	{code: "no-effect", run: scaleWithoutEffect},
	{code: "missing-signal", run: missingSignal},
	{code: "unsupported-feature", run: unsupportedFeature},
	{code: "open-listener", run: openListener},
	{code: "shared-kv", run: sharedKV},
	{code: "secret-in-spec", run: secretInSpec},
	{code: "limit-chain", run: limitChain},
	{code: "body-limit", run: bodyLimit},
	{code: "limit-below", run: limitBelow},
	{code: "thread-fit", run: threadFit},
}

func check(s *state) diag.List {
	var list diag.List
	for _, r := range rules {
		if !r.whole || len(s.bad) == 0 {
			list = append(list, r.run(s)...)
		}
	}
	return list
}

// byKind asks the kinds, but for nodes at a wrong edge: what is around them is not what the author means.
func byKind(s *state) diag.List {
	at := map[string]bool{}
	for e := range s.bad {
		at[e.From.Node], at[e.To.Node] = true, true
	}
	var list diag.List
	for _, name := range s.names() {
		if k, n := s.kinds[name], s.g.Nodes[name]; k != nil && !at[name] {
			found := k.Check(n.Config, kind.Site{Graph: s.g, Node: n, Facts: s.facts(n), Gives: s.gives, Limits: s.limits, Names: s.namesOf})
			found = slices.DeleteFunc(found, func(d diag.Diagnostic) bool {
				return s.proposed[name] && d.Code == "missing-edge" && d.Path == "nodes."+name
			})
			for _, d := range found {
				if s.told[name] == nil {
					s.told[name] = map[string]bool{}
				}
				s.told[name][d.Code] = true
				if d.Path == "nodes."+name { // of the node as a whole: of its edges
					s.lacking[name] = true
				}
			}
			list = append(list, found...)
		}
	}
	return list
}

// gives returns the signals that a node gives at its outputs, and limits its limits, for kinds that judge other nodes by them.
func (s *state) gives(node string) []string {
	var out []string
	for _, p := range s.ports[node] {
		if p.Dir == kind.Out {
			out = append(out, p.Signals...)
		}
	}
	return out
}

func (s *state) limits(node string) []kind.Limit {
	l, ok := s.bounded[node]
	if k := s.kinds[node]; k != nil && !ok {
		l = k.Limits(s.g.Nodes[node].Config)
		s.bounded[node] = l
	}
	return l
}

func (s *state) namesOf(node string) map[string]string {
	if k := s.kinds[node]; k != nil {
		return k.Names(s.g.Nodes[node].Config)
	}
	return nil
}

// calls returns the resolved edges that carry requests.
func (s *state) calls() []*graph.Edge { return s.edges(graph.IsCall) }

func (s *state) edges(typ func(string) bool) []*graph.Edge {
	var out []*graph.Edge
	for _, e := range s.good() {
		if typ(e.Type) {
			out = append(out, e)
		}
	}
	return out
}

func isKV(typ string) bool { return typ == "kv" }

// has reports whether the node has a port of a type in a direction.
func (s *state) has(node string, dir kind.Dir, typ func(string) bool) bool {
	return hasPort(s.ports[node], dir, typ)
}

func hasPort(ps []kind.Port, dir kind.Dir, typ func(string) bool) bool {
	for _, p := range ps {
		if p.Dir == dir && typ(p.Type) {
			return true
		}
	}
	return false
}
