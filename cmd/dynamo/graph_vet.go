package main

import (
	"fmt"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph/diag"
)

func (p *program) vet() *cli.Command {
	return &cli.Command{
		Name:      "vet",
		Usage:     "check specs; exits with 1 on findings and 3 where something could not be checked",
		ArgsUsage: "SPEC…",
		Flags: specFlags(
			&cli.BoolFlag{Name: "fetch", Usage: "ask the models' sources for their headers, to check sizes; never for weights"},
			&cli.StringFlag{Name: "format", Aliases: []string{"output"}, Value: "text", Usage: "`FORMAT` of the findings: text, json, sarif or github"},
		),
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return cli.Fail(cli.Usage, "want a SPEC; try: dynamo graph vet specs/llama-disagg.cue")
			}
			cache, err := p.cache(c)
			if err != nil {
				return err
			}
			lo, err := p.specOptions(c)
			if err != nil {
				return err
			}
			var all diag.List
			for _, path := range c.Args().Slice() {
				f, err := p.build(c.Context, path, lo, cache, compiler.Options{})
				if err == nil && c.Bool("fetch") && f.graph != nil {
					if err = fetchFacts(c.Context, cache, f.graph); err == nil {
						f, err = p.build(c.Context, path, lo, cache, compiler.Options{})
					}
				}
				if err != nil {
					return err
				}
				all = append(all, f.list...)
			}
			all.Sort()
			if err := p.show(all, c.String("format")); err != nil {
				return err
			}
			if all.Failed() {
				return cli.Silent(cli.Findings)
			}
			if c.String("format") == "text" {
				fmt.Fprintln(p.Stderr, "ok")
			}
			return nil
		},
	}
}
