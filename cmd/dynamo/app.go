package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	_ "github.com/dynamograph/dynamo/nodes/all"
	"github.com/dynamograph/dynamo/runtime/models"
	"github.com/dynamograph/dynamo/specs/load"
)

// program is what the commands share.
type program struct {
	cli.Env
	models *models.Cache // nil until a command needs it
	read   diag.ReadFunc // of the files that findings name; nil until a spec is loaded
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
				Subcommands: []*cli.Command{p.run(), p.vet(), p.plan(), p.viz(), p.compile(), p.export(), p.importGraph(), p.diff(), p.fmt(), p.explainGraph(), p.pull(), p.certs(),
					p.init(), p.test(), p.mod(), p.add(), p.schema(), p.evaluate()},
			},
			p.explain(),
			p.node(),
			p.store(),
			p.version(),
			p.completion(),
			p.man(),
			p.complete(),
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

// specFlags are what all commands take that read a SPEC, and more.
func specFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringSliceFlag{Name: "tag", Aliases: []string{"t"}, Usage: "set a field that the spec marks with @tag: `KEY=VALUE`"},
		&cli.StringSliceFlag{Name: "overlay", Usage: "unify the spec with a `FILE` in CUE, YAML or JSON, which fills what is open and replaces defaults"},
		&cli.StringSliceFlag{Name: "set", Usage: "the same for one field: `PATH=VALUE`, as nodes.decode.replicas=3"},
		&cli.StringFlag{Name: "limits", Usage: "`LIMITS` of the evaluation of the spec (default: time=10s,memory=1Gi)"},
		cacheFlag(),
	}, more...)
}

// specOptions reads specFlags.
func (p *program) specOptions(c *cli.Context) (load.Options, error) {
	l, err := limits(c.String("limits"))
	if err != nil {
		return load.Options{}, err
	}
	o := load.Options{Registry: kind.Default, Tags: c.StringSlice("tag"), Overlays: c.StringSlice("overlay"), Set: c.StringSlice("set"), Limits: l,
		Modules: func() (load.Modules, error) { return p.registries() }, Isolate: p.isolate}
	p.read = o.ReadFile
	return o, nil
}

// limits reads "time=10s,memory=1Gi".
func limits(s string) (l load.Limits, err error) {
	for part := range strings.SplitSeq(s, ",") {
		k, v, _ := strings.Cut(part, "=")
		switch strings.TrimSpace(k) {
		case "":
			if part != "" {
				err = cli.Fail(cli.Usage, "limits %q: want time=10s,memory=1Gi", s)
			}
		case "time":
			if l.Time, err = time.ParseDuration(v); err != nil || l.Time <= 0 {
				err = cli.Fail(cli.Usage, "limits: time %q: want a duration above 0, as \"10s\"", v)
			}
		case "memory":
			if l.Memory, err = graph.ParseSize(v); err != nil || l.Memory <= 0 {
				err = cli.Fail(cli.Usage, "limits: memory %q: want a size above 0, as \"1Gi\"", v)
			}
		default:
			err = cli.Fail(cli.Usage, "limits: no limit %q: want time or memory", k)
		}
		if err != nil {
			return l, err
		}
	}
	return l, nil
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
