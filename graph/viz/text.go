package viz

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dynamograph/dynamo/graph/plan"
)

// Options change how Text draws.
type Options struct {
	ASCII bool // for terminals without UTF-8
}

// Text draws one box a process, callers above callees, and the edges between processes below the box that they leave. Stages that the
// compiler inserted are marked with +.
func Text(p *plan.Plan, o Options) string {
	d := newDrawing(p)
	var b strings.Builder
	b.WriteString(heading(p) + "\n")
	inserted := false
	for _, g := range d.groups {
		lines := d.inside(g)
		width := utf8.RuneCountInString(title(g)) + 2
		for _, l := range lines {
			width = max(width, utf8.RuneCountInString(l))
		}
		head := "─ " + title(g) + " "
		fmt.Fprintf(&b, "\n┌%s%s┐\n", head, strings.Repeat("─", width+2-utf8.RuneCountInString(head)))
		for _, l := range lines {
			fmt.Fprintf(&b, "│ %s%s │\n", l, strings.Repeat(" ", width-utf8.RuneCountInString(l)))
		}
		out := d.leaving(g)
		if len(out) == 0 {
			fmt.Fprintf(&b, "└%s┘\n", strings.Repeat("─", width+2))
		} else {
			fmt.Fprintf(&b, "└──┬%s┘\n", strings.Repeat("─", max(0, width-1)))
		}
		for i, l := range out {
			corner := "├"
			if i == len(out)-1 {
				corner = "└"
			}
			fmt.Fprintf(&b, "   %s─ %s\n", corner, l)
		}
		for _, u := range g.Units {
			inserted = inserted || u.Inserted
		}
	}
	if inserted {
		b.WriteString("\n+ inserted by the compiler\n")
	}
	if o.ASCII {
		return ascii.Replace(b.String())
	}
	return b.String()
}

var ascii = strings.NewReplacer("┌", "+", "┐", "+", "└", "+", "┘", "+", "─", "-", "│", "|", "├", "+", "┬", "+", "▶", ">", "↓", "v", "×", "x")

// heading says what the plan is in one line.
func heading(p *plan.Plan) string {
	processes := 0
	for _, g := range p.Groups {
		processes += g.Replicas.Want
	}
	s := fmt.Sprintf("%s: %d processes", p.Graph, processes)
	if processes == 1 {
		s = p.Graph + ": 1 process"
	}
	if p.Store.Kind == "embedded" {
		s += " and a store"
	}
	for _, name := range slices.Sorted(maps.Keys(p.Models)) {
		s += ", model " + strings.Join(p.Models[name].Names, " or ")
	}
	return s
}

// inside lists the units of a group with the calls between them.
func (d drawing) inside(g *plan.Group) []string {
	var out []string
	for i, u := range g.Units {
		line := "  " + unit(u)
		if u.Inserted {
			line = "+ " + unit(u)
		}
		out = append(out, line)
		var below []*plan.Edge
		for _, e := range d.p.Edges {
			if e.From == u.Node && !d.crosses(e) {
				below = append(below, e)
			}
		}
		for _, e := range below {
			if len(below) == 1 && i+1 < len(g.Units) && g.Units[i+1].Node == e.To {
				out = append(out, "    ↓ "+edge(e))
				continue
			}
			out = append(out, "    "+edge(e)+" ─▶ "+e.To)
		}
	}
	return out
}

// leaving lists the edges from a group to others.
func (d drawing) leaving(g *plan.Group) []string {
	var out []string
	for _, u := range g.Units {
		for _, e := range d.p.Edges {
			if e.From != u.Node || !d.crosses(e) {
				continue
			}
			line := edge(e) + " ─▶ " + e.To
			if e.ToPort != "in" && e.ToPort != e.Type {
				line += "." + e.ToPort
			}
			if e.To != e.FromPort && e.Type != e.FromPort && e.FromPort != "out" {
				line = edge(e) + " from " + e.FromPort + " ─▶ " + e.To
			}
			if len(g.Units) > 1 && u != g.Units[len(g.Units)-1] {
				line = u.Node + ": " + line
			}
			out = append(out, line)
		}
	}
	return out
}
