package compiler

import (
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/plan"
)

// noReplicas finds groups that would never run. Scaling to zero needs somebody who scales up again; no kind does so yet.
func noReplicas(s *state) diag.List {
	var list diag.List
	for _, name := range s.names() {
		n := s.g.Nodes[name]
		if n.Replicas != nil && *n.Replicas < 1 {
			d := nodeAt(n, "replicas", "no-replicas", fmt.Sprintf("%d: the node would never run", *n.Replicas))
			d.Hint = "write 1 or more, or remove the node"
			list.Add(d)
		}
	}
	return list
}

// replicasWithoutEffect finds replicas of nodes that live in another node's process.
func replicasWithoutEffect(s *state) diag.List {
	var list diag.List
	for _, name := range s.names() {
		n := s.g.Nodes[name]
		if n.Replicas == nil {
			continue
		}
		g := s.p.GroupOf(name)
		if g == nil || g.Name == name {
			continue
		}
		d := nodeAt(n, "replicas", "no-effect", fmt.Sprintf("kind %s runs in the process of %q and has no replicas of its own", n.Kind, g.Name))
		d.Hint = fmt.Sprintf("set nodes.%s.replicas", g.Name)
		list.Add(d)
	}
	return list
}

// listenConflict finds addresses that two nodes bind, and warns where replicas of one would on one machine.
func listenConflict(s *state) diag.List {
	var list diag.List
	type bound struct{ node, field, host, port string }
	var all []bound
	for _, g := range s.p.Groups {
		for _, u := range g.Units {
			n := s.g.Nodes[u.Node]
			on := s.kinds[u.Node].Listen(n.Config)
			for _, field := range slices.Sorted(maps.Keys(on)) {
				host, port, err := net.SplitHostPort(on[field])
				if err != nil || port == "0" {
					continue // the kind checks the form; 0 is any free port
				}
				for _, b := range all {
					if b.port != port || b.host != host && !wild(b.host) && !wild(host) {
						continue
					}
					d := nodeAt(n, field, "listen-conflict", fmt.Sprintf("%q is taken: nodes.%s.%s binds port %s too", on[field], b.node, b.field, port))
					if pos, ok := s.g.Nodes[b.node].Fields[b.field]; ok {
						d.Related = []diag.Related{{Pos: pos, Msg: "the first"}}
					}
					d.Hint = "use another port"
					list.Add(d)
				}
				all = append(all, bound{u.Node, field, host, port})
				if g.Replicas.Max > 1 {
					d := nodeAt(n, field, "listen-conflict", fmt.Sprintf("on one machine only one of %d replicas can bind %q", g.Replicas.Max, on[field]))
					d.Severity = diag.Warning
					list.Add(d)
				}
			}
		}
	}
	return list
}

func wild(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }

// contextTooLong finds contexts beyond what the model was made for.
func contextTooLong(s *state) diag.List {
	var list diag.List
	for name, m := range s.g.Models {
		f := s.o.Facts[name]
		if f == nil || f.Context == 0 || m.Context <= f.Context {
			continue
		}
		list.Add(diag.Diagnostic{Code: "context-too-long", Pos: m.Pos, Path: "models." + name + ".context",
			Msg:  fmt.Sprintf("models.%s.context: %d tokens, but the model was trained on %d", name, m.Context, f.Context),
			Hint: fmt.Sprintf("write %d or less, or leave it out", f.Context)})
	}
	return list
}

// memoryFit adds up what all processes take. Where a model is unknown the sum is too small, so that a finding is still true.
func memoryFit(s *state) diag.List {
	if s.o.MemoryBytes == 0 {
		return nil
	}
	var total int64
	shared := map[string]int64{}
	var notes []string
	var biggest *plan.Group
	for _, g := range s.p.Groups {
		own := g.Needs.MemoryBytes * int64(g.Replicas.Want)
		total += own
		if biggest == nil || own > biggest.Needs.MemoryBytes*int64(biggest.Replicas.Want) {
			biggest = g
		}
		if own > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d × %s", g.Name, g.Replicas.Want, human(g.Needs.MemoryBytes)))
		}
		for _, u := range g.Units {
			shared[u.Model] = max(shared[u.Model], s.needs[u.Node].SharedBytes)
		}
	}
	for _, m := range slices.Sorted(maps.Keys(shared)) {
		if shared[m] > 0 {
			total += shared[m]
			notes = append(notes, fmt.Sprintf("weights of model %s, shared: %s", m, human(shared[m])))
		}
	}
	if total <= s.o.MemoryBytes {
		return nil
	}
	d := nodeAt(s.g.Nodes[biggest.Name], "", "memory-fit", fmt.Sprintf("the graph needs %s of memory, this machine has %s", human(total), human(s.o.MemoryBytes)))
	d.Hint = "use fewer replicas, a smaller KV capacity or a shorter context; the largest part is here"
	d.Notes = notes
	return diag.List{d}
}

// human prints bytes with a binary unit and two digits behind the point.
func human(n int64) string {
	const units = "KMGT"
	f, u := float64(n)/1024, 0
	for f >= 1024 && u < len(units)-1 {
		f, u = f/1024, u+1
	}
	return fmt.Sprintf("%.2f %ciB", f, units[u])
}
