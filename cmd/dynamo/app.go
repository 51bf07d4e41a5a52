package main

import (
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	_ "github.com/dynamograph/dynamo/nodes/all"
	"github.com/dynamograph/dynamo/runtime/models"
)

// program is what the commands share.
type program struct {
	cli.Env
	models *models.Cache // nil until a command needs it
}

func app(e cli.Env) *cli.App {
	p := &program{Env: e}
	return &cli.App{
		Name:            "dynamo",
		Usage:           "compiler and runtime for LLM inference graphs",
		HideHelpCommand: true,
		Commands: []*cli.Command{
			{
				Name:            "graph",
				Usage:           "check, run and compile graphs",
				HideHelpCommand: true,
				Subcommands:     []*cli.Command{p.run(), p.vet(), p.plan(), p.viz(), p.compile(), p.export(), p.pull(), p.certs()},
			},
			p.explain(),
			p.node(),
			p.store(),
			p.version(),
		},
	}
}

// cacheDir is the folder for models and what is made of them.
func (p *program) cacheDir(c *cli.Context) (string, error) {
	if d := c.String("cache-dir"); d != "" {
		return filepath.Abs(d)
	}
	if d := p.Getenv("DYNAMO_CACHE_DIR"); d != "" {
		return filepath.Abs(d)
	}
	d, err := os.UserCacheDir()
	if err != nil {
		return "", cli.Fail(cli.Unreachable, "no cache folder: %v; set --cache-dir or DYNAMO_CACHE_DIR", err)
	}
	return filepath.Join(d, "dynamo"), nil
}

func cacheFlag() cli.Flag {
	return &cli.StringFlag{Name: "cache-dir", Usage: "`FOLDER` for models and what is made of them (default: dynamo in the user's cache folder; env DYNAMO_CACHE_DIR)"}
}

func tagFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "tag", Aliases: []string{"t"}, Usage: "set a field that the spec marks with @tag: `KEY=VALUE`"}
}

func outputFlag(values string) cli.Flag {
	return &cli.StringFlag{Name: "output", Value: "text", Usage: "`FORMAT` of the output: " + values}
}

func versionString() string {
	bi, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := bi.Main.Version
	for _, s := range bi.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			v += " " + s.Value[:12]
		}
	}
	return v
}
