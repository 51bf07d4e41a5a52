package compiler

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// A request meets one bound after the other, and each must leave room for those inside of it: who waits outside longer than inside is told
// why a request failed, who waits shorter only leaves work behind that goes on for nobody. Of two bounds that merely follow from defaults
// nothing is said, nor of one default against what the author sets: it cannot be known that it is meant to count.

// bound is a limit where it stands.
type bound struct {
	path  string // "nodes.api.timeout", "timeouts.client"
	value int64
	pos   diag.Pos // of the field, or the node where the author did not set it
	set   bool     // by the author, to another value than the default
	node  *graph.Node
}

// shown reports whether there is a place to show.
func (b bound) shown() bool { return b.node == nil || b.pos != b.node.Pos }

func (b bound) time() string { return graph.Duration(b.value).String() }

// bounds returns the limits of some sorts that a node has and that are not unbounded.
func (s *state) bounds(node string, sorts ...kind.Bound) []bound {
	var out []bound
	for _, l := range s.limits(node) {
		if !slices.Contains(sorts, l.Bound) || l.Value <= 0 {
			continue
		}
		n := s.g.Nodes[node]
		b := bound{path: "nodes." + node + "." + l.Field, value: l.Value, pos: n.Pos, node: n}
		if pos, ok := n.Fields[l.Field]; ok { // a default that is written out stays one: `export` writes all of them
			b.pos, b.set = pos, !slices.Contains(s.usual(n.Kind), l)
		}
		out = append(out, b)
	}
	return out
}

// usual returns the limits of a kind where nothing is set.
func (s *state) usual(name string) []kind.Limit {
	l, ok := s.defaults[name]
	if k := s.o.Registry.Lookup(name); k != nil && !ok {
		l = k.Limits(nil)
		s.defaults[name] = l
	}
	return l
}

// timeout returns a bound of the graph itself; ok only where the author set it.
func (s *state) timeout(name string, d graph.Duration) (b bound, ok bool) {
	return s.ofGraph("timeouts."+name, d)
}

func (s *state) ofGraph(path string, d graph.Duration) (b bound, ok bool) {
	pos, ok := s.g.Fields[path]
	return bound{path: path, value: int64(d), pos: pos, set: true}, ok && d > 0
}

// under returns the nodes that calls through node reach, itself first, in the order of calls.
func (s *state) under(node string) []string {
	seen := map[string]bool{node: true}
	out := []string{node}
	for i := 0; i < len(out); i++ {
		for _, e := range s.joined().out[out[i]] {
			if graph.IsCall(e.Type) && !seen[e.To.Node] {
				seen[e.To.Node] = true
				out = append(out, e.To.Node)
			}
		}
	}
	return out
}

// limitChain finds bounds that end before one inside of them.
func limitChain(s *state) diag.List {
	list := s.badTimeouts()
	client, hasClient := s.timeout("client", s.g.Timeouts.Client)
	worst := map[string]diag.Diagnostic{} // by the outer bound: one finding, the longest inner first
	longest := map[string]int64{}
	compare := func(outer, inner bound, why string) {
		if outer.value >= inner.value {
			return
		}
		d, again := worst[outer.path]
		also := diag.Related{Pos: inner.pos, Msg: fmt.Sprintf("%s is %s", inner.path, inner.time())}
		if again && (inner.value <= longest[outer.path] || slices.Contains(d.Related, also)) {
			if inner.shown() && !slices.Contains(d.Related, also) {
				d.Related = append(d.Related, also)
				worst[outer.path] = d
			}
			return
		}
		others := d.Related
		d = outer.finding("limit-chain", fmt.Sprintf("%s: %s, but %s is %s: %s", outer.path, outer.time(), inner.path, inner.time(), why))
		d.Hint = fmt.Sprintf("raise it to %s or more, or lower %s to %s or less", inner.time(), inner.path, outer.time())
		if outer.node != nil && outer.node.Inserted {
			d.Hint = fmt.Sprintf("write a node of kind %s there with a longer time, or lower %s to %s or less", outer.node.Kind, inner.path, outer.time())
		}
		if inner.shown() {
			d.Related = []diag.Related{also}
		}
		d.Related = append(d.Related, others...)
		worst[outer.path], longest[outer.path] = d, inner.value
	}
	const (
		forNobody = "what waits inside goes on after it was given up outside"
		never     = "no request would ever be answered in time"
	)
	ttft, hasTTFT := s.ofGraph("slo.ttft", s.g.SLO.TTFT)
	if hasClient && hasTTFT {
		compare(client, ttft, "clients give up before the target is missed")
	}
	for _, top := range s.names() {
		if hasClient {
			for _, in := range s.bounds(top, kind.Total, kind.Queue) {
				if in.set {
					compare(client, in, forNobody)
				}
			}
			for _, in := range s.bounds(top, kind.First, kind.Step) {
				compare(client, in, never)
			}
		}
		for _, t := range s.bounds(top, kind.Total) {
			if hasTTFT && t.set {
				compare(t, ttft, "requests are given up before they miss the target")
			}
		}
		total, begin, stall := s.bounds(top, kind.Total), s.bounds(top, kind.Begin), s.bounds(top, kind.Stall)
		if len(total)+len(begin)+len(stall) == 0 {
			continue
		}
		for _, below := range s.under(top) {
			for _, t := range total {
				for _, in := range s.bounds(below, kind.Total, kind.Queue) {
					if t.set && in.set {
						compare(t, in, forNobody)
					}
				}
				for _, in := range s.bounds(below, kind.First, kind.Step) {
					compare(t, in, never)
				}
			}
			for _, t := range begin {
				for _, in := range s.bounds(below, kind.First) {
					compare(t, in, "a request counts as failed before its answer begins")
				}
			}
			for _, t := range stall {
				for _, in := range s.bounds(below, kind.Step) {
					compare(t, in, "a stream counts as failed between two of its tokens")
				}
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(worst)) {
		list.Add(worst[path])
	}
	return append(list, s.drainChain()...)
}

// finding starts one at the bound.
func (b bound) finding(code, msg string) diag.Diagnostic {
	d := diag.Diagnostic{Code: code, Pos: b.pos, Path: b.path, Msg: msg}
	if !b.shown() && !b.node.Inserted {
		d.Len = len(b.node.Name)
	}
	return d
}

// badTimeouts finds times and targets below zero, and those that are none. The schema takes any duration.
func (s *state) badTimeouts() diag.List {
	var list diag.List
	for _, t := range []struct {
		name string
		d    graph.Duration
	}{
		{"timeouts.client", s.g.Timeouts.Client}, {"timeouts.drain", s.g.Timeouts.Drain}, {"timeouts.grace", s.g.Timeouts.Grace},
		{"slo.ttft", s.g.SLO.TTFT}, {"slo.itl", s.g.SLO.ITL},
	} {
		path := t.name
		if _, set := s.g.Fields[path]; t.d < 0 || set && t.d == 0 {
			list.Add(diag.Diagnostic{Code: "bad-value", Pos: s.g.Field(path), Path: path, Msg: fmt.Sprintf("%s: %q is not above zero", path, t.d.Std())})
		}
	}
	return list
}

// drainChain compares what a stopped process is given with what its streams may take.
func (s *state) drainChain() diag.List {
	var list diag.List
	drain, isSet := s.timeout("drain", s.g.Timeouts.Drain)
	if isSet {
		for _, name := range s.names() {
			for _, t := range s.bounds(name, kind.Total) {
				if !t.set || t.value <= drain.value {
					continue
				}
				d := drain.finding("limit-chain", fmt.Sprintf("timeouts.drain: %s, but %s lets a request take %s: a stop would cut such streams", drain.time(), t.path, t.time()))
				d.Hint = fmt.Sprintf("raise it to %s or more, or leave it out: it then follows from %s", t.time(), t.path)
				d.Related = []diag.Related{{Pos: t.pos, Msg: fmt.Sprintf("%s is %s", t.path, t.time())}}
				list.Add(d)
			}
		}
	}
	grace, ok := s.timeout("grace", s.g.Timeouts.Grace)
	need, _ := s.drain()
	if !ok || grace.value >= int64(need) {
		return list
	}
	why := fmt.Sprintf("timeouts.drain is %s", graph.Duration(need))
	if !isSet {
		why = fmt.Sprintf("the drain is %s", graph.Duration(need))
	}
	d := grace.finding("limit-chain", fmt.Sprintf("timeouts.grace: %s, but %s: processes would be killed while they finish their streams", grace.time(), why))
	d.Hint = fmt.Sprintf("raise it to %s or more, or leave it out", graph.Duration(need+beyondDrain))
	if isSet {
		d.Related = []diag.Related{{Pos: drain.pos, Msg: fmt.Sprintf("timeouts.drain is %s", drain.time())}}
	} else {
		d.Hint += ", or lower timeouts.drain"
	}
	list.Add(d)
	return list
}

// bytesOfToken is what a token of text takes in a request, in bytes: tokenizers of byte-level BPE take one at least, and about four of
// English.
const bytesOfToken = 4

// bodyLimit finds request bodies in which the longest prompt that the model takes has no room.
func bodyLimit(s *state) diag.List {
	var list diag.List
	for _, name := range s.names() {
		for _, b := range s.bounds(name, kind.Body) {
			if !b.set {
				continue
			}
			for _, m := range s.below(name) {
				context, path := s.context(m)
				if b.value >= int64(context)*bytesOfToken {
					continue
				}
				d := b.finding("body-limit", fmt.Sprintf("%s: %d bytes, but %s is %d tokens: ", b.path, b.value, path, context))
				if b.value < int64(context) {
					d.Msg += "a prompt of that length has no room, as a token takes a byte or more"
				} else {
					d.Severity = diag.Warning
					d.Msg += fmt.Sprintf("a prompt of that length has no room where a token takes about %d bytes, as in English text", bytesOfToken)
				}
				d.Hint = fmt.Sprintf("raise it to %d or more, or lower models.%s.context", context*bytesOfToken, m)
				if pos, ok := s.g.Fields["models."+m+".context"]; ok {
					d.Related = []diag.Related{{Pos: pos, Msg: fmt.Sprintf("models.%s.context is %d", m, context)}}
				}
				list.Add(d)
			}
		}
	}
	return list
}

// context returns the longest sequence of a model in tokens, and who says so; 0 where nobody does.
func (s *state) context(name string) (int, string) {
	if m := s.g.Models[name]; m != nil && m.Context > 0 {
		return m.Context, "models." + name + ".context"
	}
	if f := s.known[name]; f != nil {
		return f.Context, "the model's own context"
	}
	return 0, ""
}

// limitBelow finds nodes that can never be full, because less is let in above them.
func limitBelow(s *state) diag.List {
	var list diag.List
	type gate struct {
		admit bound
		all   int64 // of all replicas
	}
	gates := map[string][]gate{} // by the node below
	for _, top := range s.names() {
		admit := s.bounds(top, kind.Admit)
		if len(admit) == 0 {
			continue
		}
		for _, below := range s.under(top)[1:] {
			for _, a := range admit {
				gates[below] = append(gates[below], gate{a, a.value * int64(s.replicas(top))})
			}
		}
	}
	for _, name := range s.names() {
		for _, run := range s.bounds(name, kind.Run) {
			var in int64
			for _, g := range gates[name] {
				in += g.all
			}
			full := run.value * int64(s.replicas(name))
			if len(gates[name]) == 0 || in >= full || !run.set || slices.ContainsFunc(gates[name], func(g gate) bool { return !g.admit.set }) {
				continue
			}
			first := gates[name][0].admit
			d := first.finding("limit-below", fmt.Sprintf("%s: %d requests at once are let in, but %s lets %d run at once: it can never be full", first.path, in, run.path, full))
			d.Severity = diag.Warning
			d.Hint = fmt.Sprintf("raise it to %d or more, or lower %s", full, run.path)
			d.Related = []diag.Related{{Pos: run.pos, Msg: fmt.Sprintf("%s is %d, with %d replicas", run.path, run.value, s.replicas(name))}}
			list.Add(d)
		}
	}
	return list
}

// replicas returns the most that a node may have.
func (s *state) replicas(node string) int {
	if g := s.home[node]; g != nil {
		return g.Replicas.Max
	}
	return 1
}
