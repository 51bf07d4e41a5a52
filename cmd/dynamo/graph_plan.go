package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph/plan"
)

func (p *program) plan() *cli.Command {
	return &cli.Command{
		Name:      "plan",
		Usage:     "show what would run: processes, inserted stages, memory, replicas",
		ArgsUsage: "SPEC",
		Flags:     specFlags(outputFlag("text or json")),
		Action: func(c *cli.Context) error {
			f, _, err := p.mustBuild(c, compiler.Options{})
			if err != nil {
				return err
			}
			switch c.String("output") {
			case "json":
				b, err := plan.Encode(f.plan)
				if err != nil {
					return err
				}
				_, err = p.Stdout.Write(b)
				return err
			case "text":
				return planText(p.Stdout, f.plan)
			}
			return cli.Fail(cli.Usage, "output %q: want text or json", c.String("output"))
		},
	}
}

func planText(w io.Writer, pl *plan.Plan) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "GROUP\tREPLICAS\tNODES (+ inserted)\tMEMORY\tSHARED\n")
	if pl.Store.Kind == "embedded" {
		fmt.Fprintf(t, "store\t1\t\t\t\n")
	}
	for _, g := range pl.Groups {
		var names []string
		for _, u := range g.Units {
			n := u.Node
			if u.Inserted {
				n = "+" + n
			}
			names = append(names, n)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\n", g.Name, g.Replicas.Want, strings.Join(names, " → "), size(g.Needs.MemoryBytes), size(g.Needs.SharedBytes))
	}
	if err := t.Flush(); err != nil { // columns of their own
		return err
	}
	memoryText(t, pl)
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(t, "\nEDGE\t\tTYPE\tTRANSPORT\t\n")
	for _, e := range pl.Edges {
		fmt.Fprintf(t, "%s.%s → %s.%s\t\t%s\t%s\t\n", e.From, e.FromPort, e.To, e.ToPort, e.Type, e.Transport)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) { // tabwriter fills the last column too
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// size writes bytes for people; unknown is "-".
func size(n int64) string {
	switch {
	case n == 0:
		return "-"
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
