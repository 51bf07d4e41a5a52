package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/load"
	"github.com/dynamograph/dynamo/specs/write"
)

// formatted is what graph fmt --output json says of each file.
type formatted struct {
	File    string `json:"file"`
	Changed bool   `json:"changed"` // its form differs from the canonical one
	Written bool   `json:"written"`
}

func (p *program) fmt() *cli.Command {
	return &cli.Command{
		Name:  "fmt",
		Usage: "bring specs into canonical form",
		Description: "CUE is written as cue fmt writes it; YAML and JSON with two spaces, in the order of their author. Comments stay: a file that cannot be\n" +
			"written without losing one is refused. Of a folder all .cue files are formatted. Files in canonical form are not touched.",
		ArgsUsage: "SPEC…",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "check", Usage: "write nothing; exit with 1 if a file would change"},
			&cli.BoolFlag{Name: "diff", Usage: "write nothing; show what would change, and exit with 1 if anything would"},
			outputFlag("text or json"),
		},
		Action: p.runFmt,
	}
}

func (p *program) runFmt(c *cli.Context) error {
	if c.NArg() == 0 {
		return cli.Fail(cli.Usage, "want a SPEC; try: dynamo graph fmt specs/llama-disagg.cue")
	}
	if err := textOrJSON(c); err != nil {
		return err
	}
	text, write := c.String("output") == "text", !c.Bool("check") && !c.Bool("diff")
	files, err := specFiles(c.Args().Slice())
	if err != nil {
		return err
	}
	report := []formatted{}
	refused, differs := false, false
	for _, file := range files {
		old, now, err := p.canonical(c, file)
		if err != nil {
			return err
		}
		if now == nil {
			refused = true // it is printed
			continue
		}
		f := formatted{File: file, Changed: !bytes.Equal(old, now)}
		differs = differs || f.Changed
		if f.Changed && write {
			info, err := os.Stat(file)
			if err != nil {
				return cli.Fail(cli.Unreachable, "%v", err)
			}
			if err := writeFile(file, now, info.Mode().Perm()); err != nil {
				return err
			}
			f.Written = true
		}
		report = append(report, f)
		switch {
		case !text || !f.Changed:
		case c.Bool("diff"):
			_, _ = p.Stdout.Write(diff.Diff(file, old, file+" (formatted)", now))
		default:
			fmt.Fprintln(p.Stdout, file)
		}
	}
	if !text {
		if err := p.encode(report); err != nil {
			return err
		}
	}
	if refused || differs && !write {
		return cli.Silent(cli.Findings)
	}
	return nil
}

// specFiles lists the files of specs: of a folder its .cue files.
func specFiles(args []string) ([]string, error) {
	var out []string
	for _, a := range args {
		info, err := os.Stat(a)
		if err != nil {
			return nil, cli.Fail(cli.Unreachable, "%v", err)
		}
		if !info.IsDir() {
			out = append(out, a)
			continue
		}
		entries, err := os.ReadDir(a)
		if err != nil {
			return nil, cli.Fail(cli.Unreachable, "%v", err)
		}
		var files []string
		for _, e := range entries {
			if filepath.Ext(e.Name()) == ".cue" && !e.IsDir() {
				files = append(files, filepath.Join(a, e.Name()))
			}
		}
		if len(files) == 0 {
			return nil, cli.Fail(cli.Findings, "%s: the folder has no .cue file", a)
		}
		out = append(out, files...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// canonical returns a file as it is and as it should be. A file that cannot be formatted is a finding, which is printed; now is then nil.
func (p *program) canonical(c *cli.Context, file string) (old, now []byte, err error) {
	old, err = p.readInput(file)
	if err != nil {
		return nil, nil, err
	}
	now, err = write.Format(file, old)
	if err == nil {
		if now == nil {
			now = []byte{}
		}
		return old, now, nil
	}
	list := diag.List{{Code: "lossy-format", Pos: diag.Pos{File: file}, Msg: "it cannot be formatted without losing a comment", Hint: "move comments to lines of their own, before what they are about"}}
	if !errors.Is(err, write.ErrLossy) {
		// The loader says it in the author's words.
		_, found, lerr := load.File(c.Context, file, load.Options{Registry: kind.Default})
		if lerr != nil {
			return nil, nil, cli.Fail(cli.Unreachable, "%v", lerr)
		}
		list = slices.DeleteFunc(found, func(d diag.Diagnostic) bool { return d.Code != "syntax" && d.Code != "unsupported-file" })
		if len(list) == 0 {
			list = diag.List{{Code: "syntax", Pos: diag.Pos{File: file}, Msg: err.Error()}}
		}
	}
	return old, nil, p.show(list, "text")
}
