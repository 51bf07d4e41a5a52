package main

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine/table"
	"github.com/dynamograph/dynamo/specs/dgd"
	"github.com/dynamograph/dynamo/specs/write"
)

// imported is what graph import --output json writes.
type imported struct {
	Version int    `json:"version"` // 1
	Format  string `json:"format"`  // of the spec: "cue", "yaml" or "json"
	Spec    string `json:"spec"`    // "" where the deployment could not be read
	diag.Report
}

func (p *program) importGraph() *cli.Command {
	return &cli.Command{
		Name:  "import",
		Usage: "make a spec of a DynamoGraphDeployment of NVIDIA's Dynamo, and list what a graph has no word for",
		Description: "FILE is YAML of API version nvidia.com/v1alpha1 or nvidia.com/v1beta1; \"-\" reads standard input. The spec goes to standard output or\n" +
			"--file, findings to standard error. What the deployment says is checked as vet checks a spec; places are those of FILE.",
		ArgsUsage: "FILE",
		Flags: []cli.Flag{
			outputFlag("text, or json: the spec and the findings as one object"),
			&cli.StringFlag{Name: "format", Value: "cue", Usage: "`FORMAT` of the spec: " + strings.Join(write.Formats, ", ")},
			&cli.StringFlag{Name: "file", Usage: "`FILE` to write the spec to (default: standard output)"},
		},
		Action: p.runImport,
	}
}

func (p *program) runImport(c *cli.Context) error {
	if c.NArg() != 1 {
		return cli.Fail(cli.Usage, "want one FILE, got %d arguments; try: dynamo graph import deployment.yaml", c.NArg())
	}
	format, output := c.String("format"), c.String("output")
	if !slices.Contains(write.Formats, format) {
		return cli.Fail(cli.Usage, "format %q: want one of %s", format, strings.Join(write.Formats, ", "))
	}
	if output != "text" && output != "json" {
		return cli.Fail(cli.Usage, "output %q: want text or json", output)
	}
	name := c.Args().First()
	data, err := p.readInput(name)
	if err != nil {
		return err
	}
	g, list := dgd.Import(name, data, dgd.Options{Registry: kind.Default, Parser: hasParser})
	var spec []byte
	if g != nil {
		if spec, err = write.Spec(g, format, write.Options{Comment: "Made of the DynamoGraphDeployment in " + name + "."}); err != nil {
			return err
		}
		_, more := compiler.Compile(g, compiler.Options{Registry: kind.Default})
		list = append(list, slices.DeleteFunc(more, func(d diag.Diagnostic) bool { return d.Severity == diag.Note })...)
		list.Sort()
	}
	if output == "json" {
		err = p.encode(imported{Version: 1, Format: format, Spec: string(spec), Report: diag.NewReport(list)})
	} else {
		read := func(file string) ([]byte, error) {
			if file == name {
				return data, nil
			}
			return os.ReadFile(file)
		}
		err = diag.Text(p.Stderr, list, read, p.color())
	}
	if err != nil {
		return err
	}
	if file := c.String("file"); spec != nil && (file != "" || output == "text") {
		if err := p.emit(file, spec); err != nil {
			return err
		}
	}
	if list.Failed() {
		return cli.Silent(cli.Findings)
	}
	return nil
}

// hasParser reports whether an engine has a parser of a model's field.
func hasParser(field, name string) bool {
	k := table.Tools
	if field == "reasoning" {
		k = table.Reasoning
	}
	_, ok := table.Format(k, name)
	return ok
}

// readInput reads a file, or standard input where its name is "-".
func (p *program) readInput(name string) ([]byte, error) {
	const most = 4 << 20 // what reads it has its own bound, and says so
	in := p.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, cli.Fail(cli.Unreachable, "%v", err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, most))
	if err != nil {
		return nil, cli.Fail(cli.Unreachable, "%s: %v", name, err)
	}
	return b, nil
}
