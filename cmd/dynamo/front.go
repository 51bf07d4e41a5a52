package main

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/runtime/models"
	"github.com/dynamograph/dynamo/runtime/telemetry"
	"github.com/dynamograph/dynamo/specs/load"
)

// front is a spec on its way to a plan.
type front struct {
	graph *graph.Graph
	plan  *plan.Plan // nil where the list failed
	list  diag.List
}

// build loads and compiles the spec at path. Facts come from models that are already on this machine; nothing is fetched. Findings are in
// front.list; the error says that the spec could not be checked at all. lo says how the spec is read (see specOptions), o holds what the compiler is told beside facts and kinds.
func (p *program) build(ctx context.Context, path string, lo load.Options, cache *models.Cache, o compiler.Options) (*front, error) {
	// Little stays of what a load makes: to collect it often is a quarter of its time. What is large is collected as usual.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(512 << 20))
	var edges diag.List
	lo.Sketch = func(g *graph.Graph) { edges = compiler.Edges(g, kind.Default) }
	g, list, err := load.File(ctx, path, lo)
	if err != nil {
		return nil, cli.Fail(cli.Unreachable, "%v", err)
	}
	f := &front{graph: g, list: append(list, edges...)}
	f.list.Sort()
	if g == nil || list.Failed() {
		return f, nil
	}
	var unread, more diag.List
	o.Registry = kind.Default
	o.Facts, unread = facts(cache, g)
	if o.Trace != nil {
		o.Trace("", g, nil)
	}
	f.plan, more = compiler.Compile(g, o)
	f.list = append(append(f.list, unread...), more...)
	f.list.Sort()
	if f.list.Failed() {
		f.plan = nil
	}
	return f, nil
}

// show prints findings in the given format; text goes to stderr, the others are data.
func (p *program) show(list diag.List, format string) error {
	read := p.read
	if read == nil {
		read = os.ReadFile
	}
	switch format {
	case "text":
		return diag.Text(p.Stderr, list, read, p.color())
	case "json":
		return diag.JSON(p.Stdout, list)
	case "sarif":
		return diag.SARIF(p.Stdout, list, versionString(), read)
	case "github":
		return diag.GitHub(p.Stdout, list)
	}
	return cli.Fail(cli.Usage, "format %q: want text, json, sarif or github", format)
}

// mustBuild is build for commands that need a plan: findings are printed and end the command.
func (p *program) mustBuild(c *cli.Context, o compiler.Options) (*front, *models.Cache, error) {
	if c.NArg() != 1 {
		return nil, nil, cli.Fail(cli.Usage, "want one SPEC, got %d arguments; try: dynamo graph %s specs/llama-disagg.cue", c.NArg(), c.Command.Name)
	}
	cache, err := p.cache(c)
	if err != nil {
		return nil, nil, err
	}
	lo, err := p.specOptions(c)
	if err != nil {
		return nil, nil, err
	}
	f, err := p.build(c.Context, c.Args().First(), lo, cache, o)
	if err != nil {
		return nil, nil, err
	}
	return f, cache, p.passed(c, f.list, f.plan != nil)
}

// passed prints findings. Where they end the command it is the error for that, and with --output json they are what the command writes.
func (p *program) passed(c *cli.Context, list diag.List, ok bool) error {
	format := "text"
	// What export writes is a spec, and what run writes are events.
	if name := c.Command.Name; !ok && c.String("output") == "json" && name != "export" && name != "run" {
		format = "json"
	}
	if len(list) > 0 {
		if err := p.show(list, format); err != nil {
			return err
		}
	}
	if !ok {
		return cli.Silent(cli.Findings)
	}
	return nil
}

func (p *program) cache(c *cli.Context) (*models.Cache, error) {
	dir, err := p.cacheDir(c)
	if err != nil {
		return nil, err
	}
	if p.models == nil { // one for all commands: it remembers which files it has hashed
		p.models = models.New(models.Options{CacheDir: dir, Getenv: p.Getenv, Progress: p.progress(), Log: telemetry.NewLog(p.Stderr, telemetry.LogOptions{Level: slog.LevelWarn})})
	}
	return p.models, nil
}
