package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/recipes"
	"github.com/dynamograph/dynamo/specs/jsonschema"
	"github.com/dynamograph/dynamo/specs/mod"
)

// project is what `graph init --output json` prints.
type project struct {
	Dir    string   `json:"dir"`
	Module string   `json:"module"`
	Files  []string `json:"files"` // sorted
}

func (p *program) init() *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "make a project: a module with a graph, tests, the schema for editors and cue, and a CI job",
		ArgsUsage: "[FOLDER]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "recipe", Usage: "begin with a `RECIPE`: " + strings.Join(recipes.Names(), ", ")},
			&cli.StringFlag{Name: "name", Usage: "`NAME` of the graph or, with --recipe, of the project (default: the folder's)"},
			&cli.StringFlag{Name: "module", Usage: "`PATH` of the module, such as example.com/chat@v0 (default: graphs.example/NAME@v0)"},
			&cli.BoolFlag{Name: "force", Usage: "write into a folder that is not empty; files of the same names are replaced"},
			outputFlag("text or json"),
		},
		Action: func(c *cli.Context) error {
			if o := c.String("output"); o != "text" && o != "json" {
				return cli.Fail(cli.Usage, "output %q: want text or json", o)
			}
			if c.NArg() > 1 {
				return cli.Fail(cli.Usage, "want one FOLDER, got %d arguments", c.NArg())
			}
			dir := c.Args().First()
			if dir == "" {
				dir = "."
			}
			pr := mod.Project{Name: c.String("name"), Module: c.String("module")}
			if pr.Name == "" {
				abs, err := filepath.Abs(dir)
				if err != nil {
					return cli.Fail(cli.Unreachable, "%v", err)
				}
				pr.Name = filepath.Base(abs)
			}
			if name := c.String("recipe"); name != "" {
				fsys, err := recipes.Module(name)
				if err != nil {
					return cli.Fail(cli.Usage, "%v%s", err, prefixed("; ", diag.Suggest(name, recipes.Names())))
				}
				pr.Recipe = fsys
			}
			files, err := pr.Files(kind.Default)
			if err != nil {
				return modError(err, cli.Usage)
			}
			if files[".vscode/graph.schema.json"], err = jsonschema.Generate(kind.Default); err != nil {
				return err
			}
			if err := mod.Write(dir, files, c.Bool("force")); err != nil {
				return modError(err, cli.Usage)
			}
			m, err := mod.Open(dir)
			if err != nil {
				return modError(err, cli.Unreachable)
			}
			if c.String("output") == "json" {
				return p.encode(project{dir, m.Path(), sortedKeys(files)})
			}
			fmt.Fprintf(p.Stderr, "made %d files in %s; next:\n", len(files), dir)
			fmt.Fprintf(p.Stdout, "cd %s\ndynamo graph test\n", dir)
			return nil
		},
	}
}

func prefixed(with, s string) string {
	if s == "" {
		return ""
	}
	return with + s
}

// modError gives an error of package mod its exit status: problem for what is wrong with a module or an argument, 3 for what cannot be
// reached.
func modError(err error, problem int) error {
	var p *mod.Problem
	if errors.As(err, &p) {
		return cli.Fail(problem, "%v", err)
	}
	return cli.Fail(cli.Unreachable, "%v", err)
}
