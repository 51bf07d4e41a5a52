package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/runtime/models"
	"github.com/dynamograph/dynamo/specs/mod"
)

// cueVariables are those of the environment that the cue command reads to reach registries.
var cueVariables = []string{"CUE_REGISTRY", "CUE_CACHE_DIR", "CUE_CONFIG_DIR", "HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "DOCKER_CONFIG", "PATH"}

// cueEnv is the environment for CUE's registries.
func (p *program) cueEnv() []string {
	var out []string
	for _, k := range cueVariables {
		if v := p.Getenv(k); v != "" {
			out = append(out, k+"="+v)
		}
	}
	return out
}

func dirFlag() cli.Flag {
	return &cli.StringFlag{Name: "dir", Value: ".", Usage: "a `FOLDER` of the module"}
}

// moduleState is what `graph mod init`, `add` and `tidy` print with --output json.
type moduleState struct {
	Module  string   `json:"module"`  // with its major version
	Deps    []string `json:"deps"`    // modules with their versions, sorted
	Added   []string `json:"added"`   // by this command
	Changed bool     `json:"changed"` // module.cue is another than before
	Schema  bool     `json:"schema"`  // the copy of the schema was brought up to date
}

// tell prints what became of m: as JSON where it is asked for, else as text on standard error.
func (p *program) tell(c *cli.Context, m *mod.Module, s moduleState, text string) error {
	if c.String("output") == "json" {
		s.Module, s.Deps = m.Path(), append([]string{}, m.Deps()...)
		s.Added = append([]string{}, s.Added...)
		return p.encode(s)
	}
	_, err := fmt.Fprint(p.Stderr, text)
	return err
}

func (p *program) mod() *cli.Command {
	return &cli.Command{
		Name:  "mod",
		Usage: "keep a CUE module of graphs: what it depends on, and publishing it",
		Description: "Registries, credentials and the cache are those of the cue command: CUE_REGISTRY says where modules are, `cue login` and\n" +
			"`docker login` store credentials, CUE_CACHE_DIR is where modules are kept. `cue mod` works on the same modules.",
		HideHelpCommand: true,
		Subcommands: []*cli.Command{
			{
				Name: "init", Usage: "make the folder a module and put the schema into it", ArgsUsage: "MODULE", Flags: []cli.Flag{dirFlag(), outputFlag("text or json")},
				Action: func(c *cli.Context) error {
					if err := textOrJSON(c); err != nil {
						return err
					}
					if c.NArg() != 1 {
						return cli.Fail(cli.Usage, "want one MODULE; try: dynamo graph mod init example.com/chat@v0")
					}
					m, err := mod.Create(c.String("dir"), c.Args().First(), kind.Default)
					if err != nil {
						return modError(err, cli.Usage)
					}
					return p.tell(c, m, moduleState{Changed: true, Schema: true}, fmt.Sprintf("made module %s\n", m.Path()))
				},
			},
			p.add(),
			{
				Name: "tidy", Usage: "list the modules that are imported, and no other; bring the copy of the schema up to date",
				Flags: []cli.Flag{dirFlag(), outputFlag("text or json")},
				Action: func(c *cli.Context) error {
					return p.inModule(c, 0, func(ctx context.Context, m *mod.Module, cl *mod.Client) error {
						synced, err := m.Sync(kind.Default)
						if err != nil {
							return err
						}
						changed, err := m.Tidy(ctx, cl)
						if err != nil {
							return err
						}
						text := ""
						if synced {
							text = "the copy of the schema is now that of this dynamo\n"
						}
						if changed {
							text += fmt.Sprintf("%s depends on: %s\n", m.Path(), orNothing(m.Deps()))
						}
						return p.tell(c, m, moduleState{Changed: changed, Schema: synced}, text)
					})
				},
			},
			{
				Name: "publish", Usage: "put the module into its registry", ArgsUsage: "VERSION",
				Flags: []cli.Flag{
					dirFlag(),
					&cli.BoolFlag{Name: "schema", Usage: "publish the schema of this dynamo instead, as the module that specs import"},
					&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "only check, and list what would be published"},
					outputFlag("text or json"),
				},
				Action: p.publish,
			},
		},
	}
}

// publish is `graph mod publish`.
func (p *program) publish(c *cli.Context) error {
	if err := textOrJSON(c); err != nil {
		return err
	}
	if c.NArg() != 1 {
		return cli.Fail(cli.Usage, "want one VERSION; try: dynamo graph mod publish v0.1.0")
	}
	version, dry := c.Args().First(), c.Bool("dry-run")
	tell := func(d *mod.Published, err error) error {
		if err != nil {
			return err
		}
		if c.String("output") == "json" {
			return p.encode(d)
		}
		word := "published"
		if dry {
			word = "would publish"
			for _, f := range d.Files {
				fmt.Fprintln(p.Stdout, f)
			}
		}
		fmt.Fprintf(p.Stderr, "%s %s to %s: %d files, %s\n", word, d.Module, d.Registry, len(d.Files), size(int64(d.Bytes)))
		return nil
	}
	if c.Bool("schema") {
		cl, err := p.registries()
		if err == nil {
			err = tell(cl.PublishSchema(c.Context, kind.Default, version, dry))
		}
		if err != nil {
			return modError(err, cli.Findings)
		}
		return nil
	}
	return p.inModule(c, 1, func(ctx context.Context, m *mod.Module, cl *mod.Client) error {
		return tell(m.Publish(ctx, cl, version, dry))
	})
}

// add is `graph mod add`, and `graph add` for those who look for it there.
func (p *program) add() *cli.Command {
	return &cli.Command{
		Name: "add", Usage: "depend on a module, such as a recipe that somebody published", ArgsUsage: "MODULE[@VERSION]…",
		Flags: []cli.Flag{dirFlag(), outputFlag("text or json")},
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return cli.Fail(cli.Usage, "want a MODULE; try: dynamo graph mod add example.com/chat@v0.1.0")
			}
			return p.inModule(c, c.NArg(), func(ctx context.Context, m *mod.Module, cl *mod.Client) error {
				s, text := moduleState{Changed: true}, ""
				for _, what := range c.Args().Slice() {
					v, err := m.Add(ctx, cl, what)
					if err != nil {
						return err
					}
					base, _, _ := strings.Cut(v, "@")
					s.Added = append(s.Added, v)
					text += fmt.Sprintf("added %s; its packages are imported as %q and below\n", v, base)
				}
				return p.tell(c, m, s, text)
			})
		},
	}
}

// inModule runs f on the module of --dir.
func (p *program) inModule(c *cli.Context, args int, f func(context.Context, *mod.Module, *mod.Client) error) error {
	if err := textOrJSON(c); err != nil {
		return err
	}
	if c.NArg() != args {
		return cli.Fail(cli.Usage, "want %d arguments, got %d", args, c.NArg())
	}
	m, err := mod.Open(c.String("dir"))
	if err != nil {
		return modError(err, cli.Findings)
	}
	cl, err := p.registries()
	if err == nil {
		err = f(c.Context, m, cl)
	}
	if err != nil {
		return modError(err, cli.Findings)
	}
	return nil
}

// registries reaches those that CUE_REGISTRY names; long transfers are shown.
func (p *program) registries() (*mod.Client, error) {
	show := p.progress()
	return mod.NewClient(mod.Options{Env: p.cueEnv(), Progress: func(m mod.Progress) {
		step := "pull"
		if m.Push {
			step = "push"
		}
		show(models.Progress{Source: "module, registry " + m.Host, Step: step, Done: m.Done, Total: m.Total})
	}})
}

func orNothing(s []string) string {
	if len(s) == 0 {
		return "nothing"
	}
	return strings.Join(s, ", ")
}
