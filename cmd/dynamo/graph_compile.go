package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/compiler/target"
	"github.com/dynamograph/dynamo/compiler/target/helm"
	"github.com/dynamograph/dynamo/compiler/target/k8s"
	"github.com/dynamograph/dynamo/compiler/target/local"
)

func targets(k k8s.Target) map[string]target.Target {
	out := map[string]target.Target{}
	for _, t := range []target.Target{local.Target{}, k, helm.Target{Target: k}} {
		out[t.Name()] = t
	}
	return out
}

// compilation is what `graph compile --output json` prints.
type compilation struct {
	Version int        `json:"version"` // 1
	Graph   string     `json:"graph"`
	Target  string     `json:"target"`
	Out     string     `json:"out,omitempty"` // the folder that was written to
	Files   []madeFile `json:"files"`
}

// madeFile is one file of it, whose text is left out where it was written.
type madeFile struct {
	Path  string `json:"path"` // relative to Out, with slashes
	Bytes int    `json:"bytes"`
	Text  string `json:"text,omitempty"`
}

func (p *program) compile() *cli.Command {
	return &cli.Command{
		Name:      "compile",
		Usage:     "lower a spec to files: the plan as JSON (local), Kubernetes manifests (k8s) or a Helm chart (helm)",
		ArgsUsage: "SPEC",
		Flags: append(specFlags(
			&cli.StringFlag{Name: "target", Value: "local", Usage: "`TARGET`: local, k8s or helm"},
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Usage: "`FOLDER` to write to (default: standard output)"},
			outputFlag("text: the files themselves; json: a list of them, with their texts where there is no --out"),
		), kubeFlags()...),
		Action: func(c *cli.Context) error {
			if err := textOrJSON(c); err != nil {
				return err
			}
			ts := targets(kubeTarget(c))
			t, ok := ts[c.String("target")]
			if !ok {
				return cli.Fail(cli.Usage, "target %q: want one of %s", c.String("target"), joinComma(sortedKeys(ts)))
			}
			f, _, err := p.mustBuild(c, compiler.Options{Run: true})
			if err != nil {
				return err
			}
			files, list := t.Lower(c.Context, f.plan)
			if err := p.passed(c, list, !list.Failed()); err != nil {
				return err
			}
			dir := c.String("out")
			if dir != "" {
				if err := writeFiles(dir, files); err != nil {
					return err
				}
				for _, name := range leftOver(dir, files) {
					fmt.Fprintf(p.Stderr, "%s is not of this graph: if it is left from an earlier one, remove it before you apply the folder\n", name)
				}
			}
			if c.String("output") == "json" {
				out := compilation{Version: 1, Graph: f.plan.Graph, Target: t.Name(), Out: dir, Files: []madeFile{}}
				for _, f := range files {
					e := madeFile{Path: f.Path, Bytes: len(f.Data)}
					if dir == "" {
						e.Text = string(f.Data)
					}
					out.Files = append(out.Files, e)
				}
				return p.encode(out)
			}
			if dir != "" {
				return nil
			}
			for i, f := range files {
				if i > 0 {
					fmt.Fprintln(p.Stdout, "---")
				}
				if _, err := p.Stdout.Write(f.Data); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// leftOver returns the manifests that lie beside files and are none of them: who applies a folder applies them, too.
func leftOver(dir string, files []target.File) []string {
	mine, folders := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		mine[path], folders[filepath.Dir(path)] = true, true
	}
	var out []string
	for _, d := range sortedKeys(folders) {
		found, _ := filepath.Glob(filepath.Join(d, "[0-9][0-9]-*.yaml")) // of a folder with such signs in its name none are found
		for _, f := range found {
			if !mine[f] {
				out = append(out, f)
			}
		}
	}
	return out
}

// writeFiles writes each file whole or not at all.
func writeFiles(dir string, files []target.File) error {
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return cli.Fail(cli.Unreachable, "%v", err)
		}
		if err := writeFile(path, f.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file whole or not at all.
func writeFile(path string, data []byte, mode os.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".dynamo-*")
	if err != nil {
		return cli.Fail(cli.Unreachable, "%s: %v", path, cause(err))
	}
	_, err = tmp.Write(data)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Chmod(tmp.Name(), mode)
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return cli.Fail(cli.Unreachable, "%s: %v", path, cause(err))
	}
	return nil
}

// cause is an error without the temporary file's name, which the user has never heard of.
func cause(err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
