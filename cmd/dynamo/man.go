package main

import (
	"fmt"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
)

func (p *program) man() *cli.Command {
	return &cli.Command{
		Name: "man", Usage: "print the manual page: dynamo man | man -l -",
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return cli.Fail(cli.Usage, "want no arguments, got %q", c.Args().First())
			}
			page, err := c.App.ToManWithSection(1)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(p.Stdout, page)
			return err
		},
	}
}
