package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/specs/load"
)

func (p *program) plan() *cli.Command {
	return &cli.Command{
		Name:  "plan",
		Usage: "show what would run: processes, inserted stages, addresses, memory, replicas; or what would change",
		Description: "--against compares with another spec, a plan that compile --target local wrote, or the URL of a run's status API; --running with the run\n" +
			"of this graph on this machine. Then it exits with 4 where there are changes.",
		ArgsUsage: "SPEC",
		Flags: specFlags(outputFlag("text or json"),
			&cli.StringFlag{Name: "against", Usage: "compare with a `SPEC`, a plan or a URL"},
			&cli.BoolFlag{Name: "running", Usage: "compare with what runs"},
			&cli.BoolFlag{Name: "trace", Usage: "print on standard error what each pass of the compiler changed"}),
		Action: p.runPlan,
	}
}

func (p *program) runPlan(c *cli.Context) error {
	if err := textOrJSON(c); err != nil {
		return err
	}
	if c.String("against") != "" && c.Bool("running") {
		return cli.Fail(cli.Usage, "--against and --running: want one of them")
	}
	var o compiler.Options
	if c.Bool("trace") {
		o.Trace = (&passes{w: p.Stderr}).trace
	}
	f, _, err := p.mustBuild(c, o)
	if err != nil {
		return err
	}
	if c.String("against") != "" || c.Bool("running") {
		var from *side
		if c.Bool("running") {
			from, err = p.running(c.Context, f.plan.Graph)
		} else {
			from, err = p.side(c, c.String("against"), load.Options{Registry: kind.Default})
		}
		if err != nil {
			return err
		}
		return p.showDiff(c, from, &side{plan: f.plan, at: f.graph.Place})
	}
	if c.String("output") == "json" {
		b, err := plan.Encode(f.plan)
		if err != nil {
			return err
		}
		_, err = p.Stdout.Write(b)
		return err
	}
	return planText(p.Stdout, f.plan)
}

func planText(w io.Writer, pl *plan.Plan) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	devices := slices.ContainsFunc(pl.Groups, func(g *plan.Group) bool { return g.Needs.Devices > 0 })
	row := func(name, replicas, nodes, memory, shared, accelerators, address string) {
		if devices {
			shared += "\t" + accelerators
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", name, replicas, nodes, memory, shared, address)
	}
	row("GROUP", "REPLICAS", "NODES (+ inserted)", "MEMORY", "SHARED", "DEVICES", "ADDRESS")
	if pl.Store.Kind == "embedded" {
		row("store", "1", "", "", "", "", "")
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
		accelerators := "-"
		if n := g.Needs.Devices; n > 0 {
			accelerators = strings.TrimSpace(fmt.Sprintf("%d %s", n, g.Needs.DeviceClass))
		}
		row(g.Name, strconv.Itoa(g.Replicas.Want), strings.Join(names, " → "), size(g.Needs.MemoryBytes), size(g.Needs.SharedBytes), accelerators, addresses(g))
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
	if pl.DrainSeconds > 0 {
		fmt.Fprintf(&b, "\nstopped processes have %d s to finish their streams", pl.DrainSeconds)
		if pl.GraceSeconds > 0 {
			fmt.Fprintf(&b, ", and are killed after %d s", pl.GraceSeconds)
		}
		b.WriteString("\n")
	}
	if pl.Status == "compiled" {
		b.WriteString("\nstatus \"compiled\": its author says that this graph passed the compiler and never ran\n")
	}
	for line := range strings.Lines(b.String()) { // tabwriter fills the last column too
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// addresses are what a group binds for clients.
func addresses(g *plan.Group) string {
	var out []string
	for _, u := range g.Units {
		for _, f := range sortedKeys(u.Listen) {
			out = append(out, u.Listen[f])
		}
	}
	return strings.Join(out, ", ")
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
