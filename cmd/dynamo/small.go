package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/graph/diag"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func joinComma(s []string) string { return strings.Join(s, ",") }

func (p *program) version() *cli.Command {
	return &cli.Command{Name: "version", Usage: "print the version", Action: func(*cli.Context) error {
		_, err := fmt.Fprintln(p.Stdout, "dynamo", versionString())
		return err
	}}
}

func (p *program) explain() *cli.Command {
	return &cli.Command{
		Name: "explain", Usage: "say what a diagnostic's code means and what to do", ArgsUsage: "CODE",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return cli.Fail(cli.Usage, "want one CODE; try: dynamo explain unknown-field")
			}
			code := c.Args().First()
			if k, ok := diag.Codes[code]; ok {
				_, err := fmt.Fprintf(p.Stdout, "%s: %s\n\n%s\n", code, k.Meaning, k.Do)
				return err
			}
			msg := fmt.Sprintf("no code %q", code)
			if s := diag.Suggest(code, sortedKeys(diag.Codes)); s != "" {
				msg += "; " + s
			}
			return cli.Fail(cli.Findings, "%s", msg)
		},
	}
}
