// Package diag holds findings about user input: a stable code, a place in the user's file, and a way out. It does no I/O and knows
// nothing of CUE, graphs or terminals' colours; loaders make findings, commands print them.
package diag

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity orders findings. Only Error makes a list fail.
type Severity int

// The severities, most severe first.
const (
	Error Severity = iota
	Warning
	Note
)

// String returns "error", "warning" or "note".
func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	default:
		return "note"
	}
}

// Pos is a place in a user's file. Line and Col count from 1 in bytes; the zero Pos means "no place".
type Pos struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Col  int    `json:"col,omitempty"`
}

// IsValid reports whether p names a line.
func (p Pos) IsValid() bool { return p.Line > 0 }

// String returns "file:line:col", without what is not known.
func (p Pos) String() string {
	switch {
	case p.Line <= 0:
		return p.File
	case p.Col <= 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
	}
}

// Related is a second place that a finding is about.
type Related struct {
	Pos Pos    `json:"pos"`
	Len int    `json:"len,omitempty"` // bytes to underline
	Msg string `json:"msg"`
}

// Diagnostic is one finding, at one place, with one way out.
type Diagnostic struct {
	Code     string    `json:"code"` // stable, kebab-case: "unknown-field"
	Severity Severity  `json:"-"`
	Pos      Pos       `json:"pos"`
	Len      int       `json:"len,omitempty"`  // bytes to underline; 0: the word or text there
	Path     string    `json:"path,omitempty"` // where in the graph: "nodes.decode.replicas"
	Msg      string    `json:"msg"`            // what is wrong: path first, value quoted, cause last
	Hint     string    `json:"hint,omitempty"` // what to do: `did you mean "gpus"?`
	Notes    []string  `json:"notes,omitempty"`
	Related  []Related `json:"related,omitempty"`
	Secret   string    `json:"-"` // a credential that the place holds: no writer shows it, in this or another finding; "" for none
}

// List is all findings about one input. The zero List is empty and ready to use.
type List []Diagnostic

// Add appends a finding.
func (l *List) Add(d Diagnostic) { *l = append(*l, d) }

// Failed reports whether l has an Error.
func (l List) Failed() bool {
	return slices.ContainsFunc(l, func(d Diagnostic) bool { return d.Severity == Error })
}

// Sort orders l by file, line, column, then code, and drops exact repeats of place, code and message.
func (l *List) Sort() {
	slices.SortStableFunc(*l, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col),
			cmp.Compare(a.Code, b.Code), cmp.Compare(a.Msg, b.Msg))
	})
	*l = slices.CompactFunc(*l, func(a, b Diagnostic) bool { return a.Pos == b.Pos && a.Code == b.Code && a.Msg == b.Msg })
}
