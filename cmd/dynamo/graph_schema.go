package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/compiler/target"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/jsonschema"
	"github.com/dynamograph/dynamo/specs/schema"
)

func (p *program) schema() *cli.Command {
	return &cli.Command{
		Name:  "schema",
		Usage: "print the schema of graphs, for editors and other tools",
		Description: "cue is the package that specs import, its files one after the other; with --out they are files in a folder. json is one JSON Schema\n" +
			"document for specs in YAML and JSON.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Aliases: []string{"output"}, Value: "cue", Usage: "`FORMAT`: cue or json"},
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Usage: "`PATH` to write to: a folder for cue, a file for json (default: standard output)"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return cli.Fail(cli.Usage, "want no arguments, got %q", c.Args().First())
			}
			switch c.String("format") {
			case "json":
				b, err := jsonschema.Generate(kind.Default)
				if err != nil {
					return err
				}
				return p.emit(c.String("out"), b)
			case "cue":
				var files []target.File
				var all bytes.Buffer
				for i, f := range schema.Files(kind.Default) {
					files = append(files, target.File{Path: f.Name, Data: []byte(f.Text)})
					if i > 0 {
						all.WriteByte('\n')
					}
					fmt.Fprintf(&all, "// %s\n\n%s\n", f.Name, strings.TrimSpace(f.Text))
				}
				if dir := c.String("out"); dir != "" {
					return writeFiles(filepath.Clean(dir), files)
				}
				return p.emit("", all.Bytes())
			}
			return cli.Fail(cli.Usage, "format %q: want cue or json", c.String("format"))
		},
	}
}
