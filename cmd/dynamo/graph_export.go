package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/specs/write"
)

func (p *program) export() *cli.Command {
	return &cli.Command{
		Name:  "export",
		Usage: "write a spec out whole, as CUE, YAML or JSON: tags, definitions and references resolved",
		Description: "What is written loads as the same graph. With --defaults it also holds every field that the spec leaves to the defaults of its\n" +
			"kinds, so that the plan stays as it is when these change.",
		ArgsUsage: "SPEC",
		Flags: specFlags(
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "yaml", Usage: "`FORMAT`: " + strings.Join(write.Formats, ", ")},
			&cli.BoolFlag{Name: "defaults", Usage: "write defaults, too"},
			&cli.StringFlag{Name: "file", Usage: "`FILE` to write to (default: standard output)"},
		),
		Action: func(c *cli.Context) error {
			if f := c.String("output"); !slices.Contains(write.Formats, f) {
				return cli.Fail(cli.Usage, "output %q: want one of %s; --file names a file to write to", f, strings.Join(write.Formats, ", "))
			}
			f, _, err := p.mustBuild(c, compiler.Options{})
			if err != nil {
				return err
			}
			b, err := write.Spec(f.graph, c.String("output"), write.Options{Defaults: c.Bool("defaults")})
			if err != nil {
				return err
			}
			return p.emit(c.String("file"), b)
		},
	}
}

// emit writes data to a file, whole or not at all, or to standard output where the name is "".
func (p *program) emit(file string, data []byte) error {
	if file != "" {
		return writeFile(file, data, 0o644)
	}
	_, err := p.Stdout.Write(data)
	return err
}

// encode writes v as indented JSON.
func (p *program) encode(v any) error {
	e := json.NewEncoder(p.Stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
