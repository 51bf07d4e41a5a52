package main

import (
	"encoding/json"
	"fmt"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
)

func (p *program) pull() *cli.Command {
	return &cli.Command{
		Name:      "pull",
		Usage:     "obtain a spec's models, so that it runs offline; prints where they lie",
		ArgsUsage: "SPEC",
		Flags:     specFlags(outputFlag("text or json")),
		Action: func(c *cli.Context) error {
			f, cache, err := p.mustBuild(c, compiler.Options{})
			if err != nil {
				return err
			}
			rest := headersOnly(f.graph, f.plan)
			if err := fetchFacts(c.Context, cache, rest); err != nil {
				return err
			}
			for _, name := range sortedKeys(rest.Models) {
				fmt.Fprintf(p.Stderr, "model %q: this build does not run its engine: only what its header says is fetched\n", name)
			}
			ms, err := obtain(c.Context, cache, f.plan)
			if err != nil {
				return modelError(f.plan.Graph, err)
			}
			p.unpinned(f.plan, ms)
			if c.String("output") == "json" {
				e := json.NewEncoder(p.Stdout)
				e.SetIndent("", "  ")
				return e.Encode(ms)
			}
			for _, m := range ms {
				fmt.Fprintln(p.Stdout, m.Path)
			}
			return nil
		},
	}
}

// unpinned tells the digests of models that the spec does not pin, to be copied into it.
func (p *program) unpinned(pl *plan.Plan, ms []*kind.Model) {
	for _, m := range ms {
		if pl.Models[m.Name].SHA256 == "" {
			fmt.Fprintf(p.Stderr, "model %q is not pinned; to pin it: sha256: %q\n", m.Names[0], m.SHA256)
		}
	}
}
