package compiler

import (
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/model"
)

// noReplicas finds groups that would never run: those without a replica that nobody scales up again.
func noReplicas(s *state) diag.List {
	var list diag.List
	for _, name := range s.names() {
		n := s.g.Nodes[name]
		scaled := slices.ContainsFunc(s.joined().in[name], func(e *graph.Edge) bool { return e.Type == "scale" })
		if n.Replicas != nil && *n.Replicas < 1 && !scaled {
			d := nodeAt(n, "replicas", "no-replicas", fmt.Sprintf("%d: the node would never run", *n.Replicas))
			d.Hint = "write 1 or more, join a node that scales it, or remove it"
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
		g := s.home[name]
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
		f := s.known[name]
		if f == nil || f.Context == 0 || m.Context <= f.Context {
			continue
		}
		pos, ok := s.g.Fields["models."+name+".context"]
		if !ok {
			pos = m.Pos
		}
		list.Add(diag.Diagnostic{Code: "context-too-long", Pos: pos, Path: "models." + name + ".context",
			Msg:  fmt.Sprintf("models.%s.context: %d tokens, but the model was trained on %d", name, m.Context, f.Context),
			Hint: fmt.Sprintf("write %d or less, or leave it out", f.Context)})
	}
	return list
}

// threadFit warns of processes with more threads than the machine has cores: they would wait for each other.
func threadFit(s *state) diag.List {
	var list diag.List
	for _, g := range s.p.Groups {
		for _, u := range g.Units {
			have := s.g.Machine.Cores
			if have <= 0 {
				return nil
			}
			n := s.kinds[u.Node].Size(s.g.Nodes[u.Node].Config, model.Facts{}).Threads // the config says them, not the model
			if n <= have {
				continue
			}
			d := nodeAt(s.g.Nodes[u.Node], "", "thread-fit", fmt.Sprintf("a replica computes with %d threads, but a machine has %d cores: they would wait for each other", n, have))
			d.Severity = diag.Warning
			d.Hint = fmt.Sprintf("use %d threads or fewer, or correct machine.cores", have)
			if pos, ok := s.g.Fields["machine.cores"]; ok {
				d.Related = []diag.Related{{Pos: pos, Msg: fmt.Sprintf("machine.cores is %d", have)}}
			}
			list.Add(d)
		}
	}
	return list
}
