package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/diff"
)

// signs stand before what changes.
var signs = map[diff.Action]string{diff.Add: "+", diff.Remove: "-", diff.Replace: "±", diff.Rewire: "~", diff.Keep: " "}

// diffText writes a diff for people: groups with what differs in them, edges and models that change, streams, sums.
func diffText(d *diff.Diff) string {
	var b strings.Builder
	if !d.Changed {
		fmt.Fprintf(&b, "%s: no changes\n", d.To)
		return b.String()
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "  GROUP\tACTION\tREPLICAS\tMEMORY\tWHY\n")
	for _, g := range d.Groups {
		sign := signs[g.Action]
		if g.Action == diff.Keep && g.Replicas.From != g.Replicas.To {
			sign = "~"
		}
		fmt.Fprintf(t, "%s %s\t%s\t%s\t%s\t%s\n", sign, g.Name, g.Action, count(g.Replicas), bytesCount(g.Memory), g.Why)
	}
	_ = t.Flush() // to memory
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n%s\n", title)
			for _, l := range lines {
				b.WriteString(l + "\n")
			}
		}
	}
	fields := fieldLines(d.Fields)
	var edges, streams []string
	for _, m := range d.Models {
		if m.Action != diff.Keep && len(m.Fields) == 0 {
			fields = append(fields, fmt.Sprintf("%s models.%s", signs[m.Action], m.Name))
		}
		fields = append(fields, fieldLines(m.Fields)...)
	}
	for _, g := range d.Groups {
		for _, n := range g.Nodes {
			fields = append(fields, fieldLines(n.Fields)...)
		}
	}
	for _, e := range d.Edges {
		if e.Action != diff.Keep {
			edges = append(edges, fmt.Sprintf("%s %s  %s", signs[e.Action], e.Edge, e.Type))
			fields = append(fields, fieldLines(e.Fields)...)
		}
	}
	for _, s := range d.Streams {
		name := "requests"
		if len(s.Names) > 0 {
			name = "requests for " + strings.Join(s.Names, ", ")
		}
		what := map[diff.Effect]string{
			diff.None:    "pass nothing that changes",
			diff.Migrate: "in progress are continued elsewhere",
			diff.Cut:     "in progress are finished while processes drain, then cut",
		}[s.Effect]
		streams = append(streams, "  "+name+" "+what)
		for _, w := range s.Why {
			streams = append(streams, "    "+w)
		}
	}
	section("FIELDS", fields)
	section("EDGES", edges)
	section("STREAMS", streams)
	fmt.Fprintf(&b, "\nprocesses %s, memory %s", count(d.Totals.Processes), bytesCount(d.Totals.Memory))
	if d.Totals.Shared != (diff.Count{}) {
		fmt.Fprintf(&b, ", shared %s", bytesCount(d.Totals.Shared))
	}
	if d.Totals.Devices != (diff.Count{}) {
		fmt.Fprintf(&b, ", accelerators %s", count(d.Totals.Devices))
	}
	b.WriteString("\n")
	var out strings.Builder
	for line := range strings.Lines(b.String()) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return out.String()
}

func fieldLines(fs []diff.Field) (out []string) {
	for _, f := range fs {
		line := fmt.Sprintf("  %s: %s → %s", f.Path, value(f.From), value(f.To))
		switch from, to := place(f.FromPos), place(f.ToPos); {
		case from != "" && to != "" && from != to:
			line += fmt.Sprintf("  (%s, %s)", from, to)
		case from+to != "":
			line += fmt.Sprintf("  (%s)", max(from, to))
		}
		out = append(out, line)
	}
	return out
}

func place(p diag.Pos) string {
	if !p.IsValid() {
		return ""
	}
	return p.String()
}

func value(r json.RawMessage) string {
	if string(r) == "null" {
		return "not set"
	}
	return string(r)
}

func count(c diff.Count) string {
	if c.From == c.To {
		return fmt.Sprint(c.To)
	}
	return fmt.Sprintf("%d → %d (%+d)", c.From, c.To, c.To-c.From)
}

func bytesCount(c diff.Count) string {
	if c.From == c.To {
		return size(c.To)
	}
	sign, n := "+", c.To-c.From
	if n < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s → %s (%s%s)", size(c.From), size(c.To), sign, size(n))
}
