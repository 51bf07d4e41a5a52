package main

import (
	"encoding/json"
	"fmt"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
)

func (p *program) pull() *cli.Command {
	return &cli.Command{
		Name:      "pull",
		Usage:     "obtain a spec's models, so that it runs offline; prints where they lie",
		ArgsUsage: "SPEC",
		Flags:     []cli.Flag{tagFlag(), cacheFlag(), outputFlag("text or json")},
		Action: func(c *cli.Context) error {
			f, cache, err := p.mustBuild(c, 0)
			if err != nil {
				return err
			}
			ms, err := obtain(c.Context, cache, f.plan)
			if err != nil {
				return modelError(f.plan.Graph, err)
			}
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
