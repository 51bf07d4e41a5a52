package compiler

import (
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
)

// part is what a finding about an edge points at.
type part int

const (
	whole part = iota
	fromHalf
	toHalf
	fromPort
	toPort
)

// edgeAt starts a finding about e. The label may be quoted: the place is then that of the quote, and two bytes of the length are quotes.
func (s *state) edgeAt(e *graph.Edge, p part, code, msg string) diag.Diagnostic {
	label := s.labels[e]
	d := diag.Diagnostic{Code: code, Path: "edges." + quote(label), Pos: e.Pos, Len: e.Len, Msg: "edge " + quote(label) + ": " + msg}
	from, to, _ := strings.Cut(label, " -> ")
	quotes := e.Len - len(label)
	if p == whole || !e.Pos.IsValid() || e.Len == 0 || quotes < 0 || quotes%2 != 0 {
		return d
	}
	at, text := quotes/2, from
	if p == toHalf || p == toPort {
		at, text = at+len(from)+len(" -> "), to
	}
	if p == fromPort || p == toPort {
		if node, port, ok := strings.Cut(text, "."); ok {
			at, text = at+len(node)+1, port
		}
	} else if i := strings.Index(text, "."); i >= 0 && code == "unknown-node" {
		text = text[:i]
	}
	d.Pos.Col += at
	d.Len = len(text)
	return d
}

// edgeField starts a finding about a field of e that the author set.
func (s *state) edgeField(e *graph.Edge, field, code, msg string) diag.Diagnostic {
	d := s.edgeAt(e, whole, code, msg)
	if pos, ok := e.Fields[field]; ok {
		d.Pos, d.Len = pos, 0
	}
	d.Path += "." + field
	return d
}

// nodeAt starts a finding about n. field is a path below it, or ""; its place is the nearest that the author set.
func nodeAt(n *graph.Node, field, code, msg string) diag.Diagnostic {
	d := diag.Diagnostic{Code: code, Path: "nodes." + n.Name, Pos: n.Pos, Len: len(n.Name)}
	if field != "" {
		d.Path += "." + field
		if pos, ok := n.Fields[field]; ok {
			d.Pos, d.Len = pos, 0
		}
	}
	d.Msg = d.Path + ": " + msg
	return d
}

func quote(s string) string { return `"` + s + `"` }
