package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/model/gguf"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/runtime/models"
	"github.com/dynamograph/dynamo/runtime/supervise"
)

func (p *program) run() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "check a spec, obtain its models, and run it on this machine until Ctrl-C",
		ArgsUsage: "SPEC",
		Flags: specFlags(
			outputFlag("text, or json: one event a line"),
			&cli.DurationFlag{Name: "drain", Usage: "`TIME` that a process has to finish what is in flight (default: the spec's timeouts.drain)"},
			&cli.StringFlag{Name: "status", Value: "127.0.0.1:0", Usage: "`ADDRESS` that answers /status, /metrics, /ready and /plan over HTTP; port 0 takes a free one, \"\" is off"},
			&cli.StringFlag{Name: "log-level", Value: "warn", Usage: "`LEVEL` of the nodes' logs: debug, info, warn or error"},
		),
		Action: p.runGraph,
	}
}

func (p *program) runGraph(c *cli.Context) error {
	if o := c.String("output"); o != "text" && o != "json" {
		return cli.Fail(cli.Usage, "output %q: want text or json", o)
	}
	if d := c.Duration("drain"); d < 0 {
		return cli.Fail(cli.Usage, "drain %v: want 0s or more", d)
	}
	var level slog.Level
	if l := c.String("log-level"); level.UnmarshalText([]byte(l)) != nil {
		return cli.Fail(cli.Usage, "log-level %q: want debug, info, warn or error", l)
	}
	began := time.Now()
	ctx, drain := context.WithCancel(c.Context)
	defer drain()
	abort := make(chan struct{})
	stopSignals := p.onInterrupt(drain, abort)
	defer stopSignals()

	// Twice: what can be refused without the models' headers is refused before they are fetched.
	f, cache, err := p.mustBuild(c, compiler.Options{MemoryBytes: machineMemory(), Run: true})
	if err != nil {
		return err
	}
	if dir, err := p.cacheDir(c); err != nil {
		return err
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return cli.Fail(cli.Unreachable, "cache folder: %v; name another one by --cache-dir or DYNAMO_CACHE_DIR", err)
	}
	ms, err := obtain(ctx, cache, f.plan)
	if err != nil {
		if ctx.Err() != nil {
			return cli.Silent(cli.Interrupted)
		}
		return modelError(f.plan.Graph, err)
	}
	p.unpinned(f.plan, ms)
	if f, _, err = p.mustBuild(c, compiler.Options{MemoryBytes: machineMemory(), Run: true}); err != nil {
		return err
	}
	dir, remove, err := runDir(f.plan.Graph)
	if err != nil {
		return cli.Fail(cli.Unreachable, "%v", err)
	}
	defer remove()
	children, err := p.children(c, f.plan, ms, dir)
	if err != nil {
		return err
	}
	v := p.view(c.String("output"), f.plan, began)
	stopStatus, err := p.serveStatus(ctx, c.String("status"), v, children, dir)
	if err != nil {
		return err
	}
	defer stopStatus()
	err = supervise.Run(ctx, supervise.Options{
		Limits:   supervise.Limits{Grace: drainOf(c, f.plan) + 5*time.Second},
		Children: children, OnEvent: v.event, Abort: abort,
	})
	if err != nil {
		return cli.Fail(cli.Findings, "graph %s: %v", f.plan.Graph, err)
	}
	select {
	case <-abort:
		return cli.Silent(cli.Interrupted)
	default:
		if c.String("output") == "text" {
			fmt.Fprintf(p.Stderr, "%s has ended\n", f.plan.Graph)
		}
		return nil
	}
}

// drainOf is what a process has to finish what is in flight: as the command line says, else as the plan does.
func drainOf(c *cli.Context, pl *plan.Plan) time.Duration {
	if c.IsSet("drain") {
		return c.Duration("drain")
	}
	return time.Duration(pl.DrainSeconds) * time.Second
}

// again is how long a second signal counts as the first: some who end a process send two at once.
const again = 200 * time.Millisecond

// modelError is why a model could not be had: a wrong file is a finding, one that could not be reached is not.
func modelError(graph string, err error) error {
	code := cli.Unreachable
	var bad *gguf.Error
	if errors.Is(err, models.ErrWrongHash) || errors.As(err, &bad) {
		code = cli.Findings
	}
	return cli.Fail(code, "graph %s: %v", graph, err)
}

// onInterrupt drains on the first Ctrl-C or SIGTERM and aborts on the second.
func (p *program) onInterrupt(drain func(), abort chan struct{}) (stop func()) {
	sig := make(chan os.Signal, 2)
	signal.Notify(sig, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		var first time.Time
		for {
			select {
			case <-done:
				return
			case <-sig:
			}
			if first.IsZero() {
				first = time.Now()
				fmt.Fprintln(p.Stderr, "\ndraining: streams in flight are finished; a second Ctrl-C ends them")
				drain()
			} else if time.Since(first) > again {
				close(abort)
				return
			}
		}
	}()
	return func() {
		signal.Stop(sig)
		close(done)
		<-exited
	}
}

// children writes what the processes of the plan read, and returns them: the store and one for each replica of each group.
func (p *program) children(c *cli.Context, pl *plan.Plan, ms []*kind.Model, dir string) ([]supervise.Child, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cacheDir, err := p.cacheDir(c)
	if err != nil {
		return nil, err
	}
	planFile, modelsFile := filepath.Join(dir, "plan.json"), filepath.Join(dir, "models.json")
	b, err := plan.Encode(pl)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(planFile, b, 0o600); err != nil {
		return nil, err
	}
	if b, err = json.Marshal(ms); err != nil {
		return nil, err
	}
	if err := os.WriteFile(modelsFile, b, 0o600); err != nil {
		return nil, err
	}
	var out []supervise.Child
	rank := ranks(pl)
	store := ""
	if pl.Store.Kind == "embedded" {
		store = "unix:" + filepath.Join(dir, "store.sock")
		out = append(out, supervise.Child{
			Name: "store", Rank: len(pl.Groups) + 1, Nodes: []string{"store"}, Path: exe, Env: os.Environ(),
			Args: []string{"store", "--lifeline", "--listen", store, "--data-dir", filepath.Join(dir, "store")},
		})
	} else if len(pl.Store.Endpoints) > 0 {
		store = joinComma(pl.Store.Endpoints)
	}
	for _, g := range pl.Groups {
		for r := range g.Replicas.Want {
			name := g.Name + "-" + strconv.Itoa(r)
			args := []string{"node", "--lifeline", "--plan", planFile, "--models", modelsFile, "--run-dir", dir, "--cache-dir", cacheDir,
				"--replica", strconv.Itoa(r), "--drain", drainOf(c, pl).String(), "--log-level", c.String("log-level"),
				"--status", statusSocket(dir, name)}
			if store != "" {
				args = append(args, "--store", store, "--listen", "unix:"+filepath.Join(dir, name+".sock"))
			}
			var nodes []string
			for _, u := range g.Units {
				nodes = append(nodes, u.Node)
			}
			out = append(out, supervise.Child{Name: name, Rank: rank[g.Name], Nodes: nodes, Path: exe, Env: os.Environ(), Args: append(args, g.Name)})
		}
	}
	return out, nil
}

// ranks orders the plan's groups for a drain: who calls comes before who is called. A kv edge is called by its To.
func ranks(pl *plan.Plan) map[string]int {
	rank := map[string]int{}
	for range pl.Groups { // as many rounds as a path can be long
		for _, e := range pl.Edges {
			from, to := pl.GroupOf(e.From), pl.GroupOf(e.To)
			switch e.Type {
			case "chat", "tokens":
			case "kv", "media":
				from, to = to, from
			default: // subscriptions may close loops, and end with whoever ends first
				continue
			}
			if from != nil && to != nil && from != to {
				rank[to.Name] = max(rank[to.Name], rank[from.Name]+1)
			}
		}
	}
	return rank
}
