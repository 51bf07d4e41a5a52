package compiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// modelMismatch finds KV that goes to another model, and tokens that another model's tokenizer made.
func modelMismatch(s *state) diag.List {
	var list diag.List
	for _, e := range s.edges(isKV) {
		a, b := s.g.Nodes[e.From.Node], s.g.Nodes[e.To.Node]
		if a.Model == "" || b.Model == "" || s.same(a.Model, b.Model) {
			continue
		}
		d := s.edgeAt(e, whole, "model-mismatch", fmt.Sprintf("%s has model %q, but %s has %q: KV of one means nothing to the other", a.Name, a.Model, b.Name, b.Model))
		d.Related = append(s.related(a, modelTerm(a)), s.related(b, modelTerm(b))...)
		d.Hint = "give both the same model"
		if field, places := s.differ(a.Model, b.Model); field != "" {
			d.Msg += "; their " + field + " differs"
			d.Related = append(d.Related, places...)
		}
		list.Add(d)
	}
	for _, name := range s.names() {
		top := s.g.Nodes[name]
		if k := s.kinds[name]; k == nil || k.Converts[0] == "" || top.Model == "" || top.Inserted {
			continue
		}
		for _, m := range s.below(name) {
			if m == top.Model || s.same(m, top.Model) {
				continue
			}
			d := nodeAt(top, "model", "model-mismatch", fmt.Sprintf("it reads requests for model %q, but leads to nodes of model %q", top.Model, m))
			d.Hint = "lead each model's path from a node of its own"
			list.Add(d)
		}
	}
	return list
}

// severalModels finds where the requests of several models take one path: below a tokenizer nobody can tell them apart.
func severalModels(s *state) diag.List {
	var list diag.List
	if len(s.g.Models) < 2 {
		return nil
	}
	for _, name := range s.names() {
		models := s.below(name)
		if len(models) < 2 || slices.ContainsFunc(s.callees(name, func(string) bool { return true }), func(c string) bool { return len(s.below(c)) > 1 }) {
			continue
		}
		n := s.g.Nodes[name]
		if !slices.ContainsFunc(s.joined().out[name], func(e *graph.Edge) bool { return graph.IsCall(e.Type) && !s.named(e.Type) }) {
			continue // its requests name their model
		}
		if k := s.kinds[name]; k == nil || n.Model != "" || len(s.callees(name, func(string) bool { return true })) < 2 {
			continue // a model of its own: model-mismatch
		}
		if slices.ContainsFunc(s.edges(isKV), func(e *graph.Edge) bool {
			a, b := s.g.Nodes[e.From.Node].Model, s.g.Nodes[e.To.Node].Model
			return !s.same(a, b) && slices.Contains(s.callers(e.To.Node), name)
		}) {
			continue // told at the kv edge
		}
		if slices.ContainsFunc(models, func(m string) bool { return !s.same(m, models[0]) }) {
			d := nodeAt(n, "", "several-models", fmt.Sprintf("it leads to nodes of models %s, and a %s cannot tell their requests apart", diag.And(diag.Quote(models)), n.Kind))
			d.Hint = fmt.Sprintf("write one %s, and a path to it, for each model", n.Kind)
			list.Add(d)
		}
	}
	return list
}

// named reports whether requests of a call type name their model: those above a tokenizer do.
func (s *state) named(typ string) bool {
	return slices.ContainsFunc(s.o.Registry.All(), func(k *kind.Entry) bool { return k.Converts[0] == typ })
}

// same reports whether two models of the graph are the same bytes: by their hash, or by where they come from.
func (s *state) same(a, b string) bool {
	m, n := s.g.Models[a], s.g.Models[b]
	if a == b || m == nil || n == nil {
		return a == b
	}
	if m.SHA256 != "" && n.SHA256 != "" {
		return m.SHA256 == n.SHA256
	}
	return m.Revision == n.Revision && slices.Equal(m.Sources, n.Sources)
}

// differ says in what two models of one source differ, with the places; "" where they are of two sources.
func (s *state) differ(a, b string) (string, []diag.Related) {
	m, n := s.g.Models[a], s.g.Models[b]
	if m == nil || n == nil || !slices.ContainsFunc(m.Sources, func(src string) bool { return slices.Contains(n.Sources, src) }) {
		return "", nil
	}
	for _, f := range []struct{ field, a, b string }{{"sha256", m.SHA256, n.SHA256}, {"revision", m.Revision, n.Revision}} {
		if f.a == f.b {
			continue
		}
		var r []diag.Related
		for _, x := range []struct{ model, v string }{{a, f.a}, {b, f.b}} {
			if pos, ok := s.g.Fields["models."+x.model+"."+f.field]; ok {
				r = append(r, diag.Related{Pos: pos, Msg: fmt.Sprintf("models.%s.%s is %q", x.model, f.field, x.v)})
			}
		}
		return f.field, r
	}
	return "", nil
}

// contractMismatch compares what both ends of a data edge say of it. Where something that an author wrote differs, what differs by default
// follows from it and is not told.
func contractMismatch(s *state) diag.List {
	var list diag.List
	for _, e := range s.good() {
		a, b := s.g.Nodes[e.From.Node], s.g.Nodes[e.To.Node]
		from, to := s.terms(e)
		var written, defaults diag.List
		for _, x := range from {
			y, ok := term(to, x.Name)
			if len(x.Values) == 0 && x.Rule != kind.Meet || !ok && y.Rule != kind.Meet || y.Name == "" || x.Fits(y) {
				continue
			}
			d := s.edgeAt(e, whole, "contract-mismatch", fmt.Sprintf("%s of %s is %s, but that of %s is %s", x.Name, a.Name, said(x), b.Name, said(y)))
			d.Hint = x.Rule.Remedy()
			d.Related = append(s.related(a, x), s.related(b, y)...)
			if len(d.Related) > 0 {
				written.Add(d)
			} else {
				defaults.Add(d)
			}
		}
		if len(written) == 0 {
			written = defaults
		}
		list = append(list, written...)
	}
	return list
}

// said shows what a term says: `"a"`, or `"a" or "b"`.
func said(t kind.Term) string {
	if len(t.Values) == 0 {
		return "none"
	}
	return diag.Or(diag.Quote(t.Values))
}

func modelTerm(n *graph.Node) kind.Term {
	return kind.Term{Name: "model", Field: "model", Values: []string{n.Model}}
}

// related points at a field, where its author set it: at the node, or at the one that it follows.
func (s *state) related(n *graph.Node, t kind.Term) []diag.Related {
	if by, said := s.saidBy(n.Name, t); by != n.Name {
		r := s.related(s.g.Nodes[by], said)
		for i := range r {
			r[i].Msg += fmt.Sprintf(", which %s follows", n.Name)
		}
		return r
	}
	pos, ok := n.Fields[t.Field]
	if !ok {
		return nil
	}
	return []diag.Related{{Pos: pos, Msg: fmt.Sprintf("nodes.%s.%s is %s", n.Name, t.Field, said(t))}}
}

// badTransport finds transports that the edge's type or the processes of its ends do not allow.
func badTransport(s *state) diag.List {
	var list diag.List
	home := map[string]string{}
	for _, g := range s.p.Groups {
		for _, u := range g.Units {
			home[u.Node] = g.Name
		}
	}
	for _, e := range s.good() {
		if graph.IsCall(e.Type) || graph.IsStream(e.Type) {
			if home[e.From.Node] == "" || home[e.To.Node] == "" {
				continue // not placed
			}
			if want := s.natural(e, home); e.Transport != "" && e.Transport != want {
				a, b, _ := strings.Cut(s.labels[e], " -> ") // as the author wrote it: nodes may have been inserted between
				a, _, _ = strings.Cut(a, ".")
				b, _, _ = strings.Cut(b, ".")
				why := fmt.Sprintf("%s and %s run in one process", a, b)
				if want == "grpc" {
					why = fmt.Sprintf("%s and %s run in two processes", a, b)
				}
				d := s.edgeField(e, "transport", "bad-transport", fmt.Sprintf("transport %q cannot be: %s", e.Transport, why))
				d.Hint = fmt.Sprintf("leave it out, or write %q", want)
				list.Add(d)
			}
			continue
		}
		if d, ok := s.badDataTransport(e); ok && isKV(e.Type) {
			list.Add(d)
		}
	}
	return list
}

// badDataTransport finds a transport that one end does not have, or that needs one machine where there cannot be one.
func (s *state) badDataTransport(e *graph.Edge) (d diag.Diagnostic, bad bool) {
	if e.Transport == "" {
		return d, false
	}
	may, from, to := s.transportsOf(e)
	if len(may) == 0 {
		return d, false // they have none in common: contract-mismatch
	}
	if slices.Contains(may, e.Transport) {
		if !oneMachine(e.Transport) || !s.apart(e.From.Node, e.To.Node) {
			return d, false
		}
		class := s.g.Devices[s.home[e.From.Node].Needs.DeviceClass]
		d = s.edgeField(e, "transport", "bad-transport", fmt.Sprintf("transport %q is within one machine, but a machine has %d %s: too few for one replica of %s and one of %s",
			e.Transport, class.Count, class.Name, e.From.Node, e.To.Node))
		if far := slices.DeleteFunc(may, oneMachine); len(far) > 0 {
			d.Hint = "leave it out, or use " + diag.Or(diag.Quote(far))
		}
		d.Related = []diag.Related{{Pos: class.Pos, Len: len(class.Name), Msg: "the machines are described here"}}
		return d, true
	}
	lacks := fmt.Sprintf("a %s edge between them has no transport %q", e.Type, e.Transport)
	var related []diag.Related
	for _, end := range []struct {
		node string
		term kind.Term
	}{{e.From.Node, from}, {e.To.Node, to}} {
		if len(end.term.Values) > 0 && !slices.Contains(end.term.Values, e.Transport) {
			lacks = fmt.Sprintf("%s has no transport %q: it has %s", end.node, e.Transport, said(end.term))
			n := s.g.Nodes[end.node]
			if related = s.related(n, end.term); len(related) == 0 {
				related = []diag.Related{{Pos: n.Pos, Len: len(n.Name), Msg: fmt.Sprintf("%s %q is here", n.Kind, n.Name)}}
			}
		}
	}
	d = s.edgeField(e, "transport", "bad-transport", lacks)
	d.Related = related
	d.Hint = "leave it out, or use " + diag.Or(diag.Quote(may))
	return d, true
}

// oneMachine reports whether a transport does not leave the machine.
func oneMachine(transport string) bool { return slices.Contains([]string{"shm", "ipc"}, transport) }
