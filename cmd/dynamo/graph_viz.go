package main

import (
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/graph/viz"
)

func (p *program) viz() *cli.Command {
	return &cli.Command{
		Name:      "viz",
		Usage:     "draw a spec: processes, nodes, edges, and what the compiler inserts",
		ArgsUsage: "SPEC",
		Flags: specFlags(
			&cli.StringFlag{Name: "format", Aliases: []string{"output"}, Value: "terminal", Usage: "`FORMAT`: terminal, dot, mermaid, html, or json: the plan that the others draw"},
			&cli.StringFlag{Name: "file", Usage: "`FILE` to write to (default: standard output)"},
		),
		Action: func(c *cli.Context) error {
			if f := c.String("format"); !slices.Contains([]string{"terminal", "dot", "mermaid", "html", "json"}, f) {
				return cli.Fail(cli.Usage, "format %q: want terminal, dot, mermaid, html or json", f)
			}
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
			case "html":
				if out, err = viz.HTML(f.plan); err != nil {
					return err
				}
			case "json":
				b, err := plan.Encode(f.plan)
				if err != nil {
					return err
				}
				out = string(b)
			}
			return p.emit(c.String("file"), []byte(out))
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
