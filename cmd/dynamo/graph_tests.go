package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/cmd/dynamo/internal/graphtest"
)

// tested is what `graph test --output json` prints.
type tested struct {
	Tests  []*graphtest.Result `json:"tests"`
	Failed int                 `json:"failed"`
}

func (p *program) test() *cli.Command {
	return &cli.Command{
		Name:  "test",
		Usage: "run the tests of graphs: *.txtar files that name a spec and what must come out of it",
		Description: "A folder means all *.txtar files in and below it. Exits with 1 where a test fails, 3 where one could not be read. The format is\n" +
			"described in docs/recipes.md.",
		ArgsUsage: "[FOLDER or FILE…]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "update", Usage: "write what came out into the tests that fail; an empty section is filled"},
			outputFlag("text or json"),
		},
		Action: func(c *cli.Context) error {
			if o := c.String("output"); o != "text" && o != "json" {
				return cli.Fail(cli.Usage, "output %q: want text or json", o)
			}
			files, err := testFiles(c.Args().Slice())
			if err != nil {
				return err
			}
			lo, err := p.specOptions(c)
			if err != nil {
				return err
			}
			out := tested{Tests: []*graphtest.Result{}}
			for _, file := range files {
				r, err := p.testFile(c.Context, file, graphtest.Options{Update: c.Bool("update"), Load: lo})
				if err != nil {
					return cli.Fail(cli.Unreachable, "%v", err)
				}
				out.Tests = append(out.Tests, r)
				if !r.OK {
					out.Failed++
				}
				if c.String("output") == "text" {
					if err := r.Text(p.Stdout); err != nil {
						return err
					}
				}
			}
			if c.String("output") == "json" {
				if err := p.encode(out); err != nil {
					return err
				}
			} else {
				fmt.Fprintf(p.Stderr, "%d passed, %d failed\n", len(files)-out.Failed, out.Failed)
			}
			if out.Failed > 0 {
				return cli.Silent(cli.Findings)
			}
			return nil
		},
	}
}

// testFile runs one test; with Update it also writes what came out.
func (p *program) testFile(ctx context.Context, file string, o graphtest.Options) (*graphtest.Result, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r, fixed, err := graphtest.Run(ctx, file, data, o)
	if err != nil {
		return nil, err
	}
	if fixed != nil {
		if err := writeFile(file, fixed, 0o644); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// testFiles lists the tests that arguments name, each once, in order; none named means those of the current folder.
func testFiles(args []string) ([]string, error) {
	if len(args) == 0 {
		args = []string{"."}
	}
	var out []string
	for _, a := range args {
		st, err := os.Stat(a)
		if err != nil {
			return nil, cli.Fail(cli.Unreachable, "%v", err)
		}
		n := len(out)
		if !st.IsDir() {
			out = append(out, a)
			continue
		}
		err = filepath.WalkDir(a, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && path != a && (strings.HasPrefix(d.Name(), ".") || d.Name() == "cue.mod") {
				return fs.SkipDir
			}
			if !d.IsDir() && filepath.Ext(path) == ".txtar" {
				out = append(out, path)
			}
			return nil
		})
		if err != nil {
			return nil, cli.Fail(cli.Unreachable, "%v", err)
		}
		if len(out) == n {
			return nil, cli.Fail(cli.Usage, "%s: no *.txtar there or below", a)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
