package viz

import (
	"fmt"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/plan"
)

// DOT draws p for Graphviz: a cluster a process, dashed what the compiler inserted, dotted what may close a loop.
func DOT(p *plan.Plan) string {
	d := newDrawing(p)
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n", id(p.Graph))
	for i, g := range d.groups {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%s;\n", i, dotString(title(g)))
		for _, u := range g.Units {
			style := ""
			if u.Inserted {
				style = `, style="rounded,dashed"`
			}
			fmt.Fprintf(&b, "    %s [label=%s%s];\n", id(u.Node), dotString(unit(u)), style)
		}
		b.WriteString("  }\n")
	}
	for _, e := range p.Edges {
		style := ""
		if graph.IsStream(e.Type) {
			style = ", style=dotted, constraint=false"
		}
		fmt.Fprintf(&b, "  %s -> %s [label=%s%s];\n", id(e.From), id(e.To), dotString(edge(e)), style)
	}
	b.WriteString("}\n")
	return b.String()
}

// dotString quotes for DOT, where only the quote and the backslash are special.
func dotString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// Mermaid draws p as a flowchart, which many viewers of Markdown render.
func Mermaid(p *plan.Plan) string {
	d := newDrawing(p)
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	var inserted []string
	for i, g := range d.groups {
		fmt.Fprintf(&b, "  subgraph g%d [%s]\n", i, mermaidString(title(g)))
		for _, u := range g.Units {
			fmt.Fprintf(&b, "    %s[%s]\n", id(u.Node), mermaidString(unit(u)))
			if u.Inserted {
				inserted = append(inserted, id(u.Node))
			}
		}
		b.WriteString("  end\n")
	}
	for _, e := range p.Edges {
		arrow := "-->"
		if graph.IsStream(e.Type) {
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "  %s %s|%s| %s\n", id(e.From), arrow, mermaidString(edge(e)), id(e.To))
	}
	if len(inserted) > 0 {
		b.WriteString("  classDef inserted stroke-dasharray: 4 4\n")
		fmt.Fprintf(&b, "  class %s inserted\n", strings.Join(inserted, ","))
	}
	return b.String()
}

// mermaidString quotes for Mermaid, which takes HTML's entities.
func mermaidString(s string) string {
	return `"` + strings.NewReplacer("&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;").Replace(s) + `"`
}
