package main

import (
	"fmt"
	"strings"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph/viz"
)

func (p *program) viz() *cli.Command {
	return &cli.Command{
		Name:      "viz",
		Usage:     "draw a spec: processes, nodes, edges, and what the compiler inserts",
		ArgsUsage: "SPEC",
		Flags: specFlags(
			&cli.StringFlag{Name: "format", Value: "terminal", Usage: "`FORMAT`: terminal, dot or mermaid"},
		),
		Action: func(c *cli.Context) error {
			f, _, err := p.mustBuild(c, compiler.Options{})
			if err != nil {
				return err
			}
			var out string
			switch c.String("format") {
			case "terminal":
				out = viz.Text(f.plan, viz.Options{ASCII: !utf8Locale(p.Getenv)})
			case "dot":
				out = viz.DOT(f.plan)
			case "mermaid":
				out = viz.Mermaid(f.plan)
			default:
				return cli.Fail(cli.Usage, "format %q: want terminal, dot or mermaid", c.String("format"))
			}
			_, err = fmt.Fprint(p.Stdout, out)
			return err
		},
	}
}

// utf8Locale reports whether the terminal is told to be UTF-8; nothing said counts as yes.
func utf8Locale(getenv func(string) string) bool {
	for _, k := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(getenv(k)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}
