package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/diff"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/specs/load"
)

func (p *program) diff() *cli.Command {
	return &cli.Command{
		Name:  "diff",
		Usage: "compare two graphs: what is added, removed, replaced, wired anew or kept, and which requests that concerns",
		Description: "A and B are specs, plans that compile --target local wrote, or the URL of a run's status API. Flags of specs apply to B.\n" +
			"Exits with 4 where there are changes.",
		ArgsUsage: "A B",
		Flags:     specFlags(outputFlag("text or json")),
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return cli.Fail(cli.Usage, "want two graphs, got %d arguments; try: dynamo graph diff old.cue new.cue", c.NArg())
			}
			if err := textOrJSON(c); err != nil {
				return err
			}
			lo, err := p.specOptions(c)
			if err != nil {
				return err
			}
			a, err := p.side(c, c.Args().Get(0), load.Options{Registry: kind.Default, Limits: lo.Limits})
			if err != nil {
				return err
			}
			b, err := p.side(c, c.Args().Get(1), lo)
			if err != nil {
				return err
			}
			return p.showDiff(c, a, b)
		},
	}
}

func textOrJSON(c *cli.Context) error {
	if o := c.String("output"); o != "text" && o != "json" {
		return cli.Fail(cli.Usage, "output %q: want text or json", o)
	}
	return nil
}

// side is one of two graphs that are compared.
type side struct {
	plan *plan.Plan
	at   func(path string) diag.Pos // nil where there is no spec
}

// side reads a spec, a plan or what runs. Findings are printed and end the command.
func (p *program) side(c *cli.Context, arg string, lo load.Options) (*side, error) {
	if strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://") {
		pl, err := fetchPlan(c.Context, arg)
		return &side{plan: pl}, err
	}
	if strings.HasSuffix(arg, ".json") {
		b, err := os.ReadFile(arg)
		if err != nil {
			return nil, cli.Fail(cli.Unreachable, "%v", err)
		}
		var probe struct{ Groups, Nodes json.RawMessage }
		if json.Unmarshal(b, &probe) == nil && probe.Groups != nil && probe.Nodes == nil {
			pl, err := plan.Decode(b)
			if err != nil {
				return nil, cli.Fail(cli.Findings, "%s: %v", arg, err)
			}
			return &side{plan: pl}, nil
		}
	}
	cache, err := p.cache(c)
	if err != nil {
		return nil, err
	}
	f, err := p.build(c.Context, arg, lo, cache, compiler.Options{})
	if err != nil {
		return nil, err
	}
	if err := p.passed(c, f.list, f.plan != nil); err != nil {
		return nil, err
	}
	return &side{plan: f.plan, at: f.graph.Place}, nil
}

// fetchPlan asks the status API of a run.
func fetchPlan(ctx context.Context, url string) (*plan.Plan, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	url = strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/plan") + "/plan"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, cli.Fail(cli.Usage, "%v", err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, cli.Fail(cli.Unreachable, "%v", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", resp.StatusCode)
	}
	if err != nil {
		return nil, cli.Fail(cli.Unreachable, "%s: %v", url, err)
	}
	pl, err := plan.Decode(b)
	if err != nil {
		return nil, cli.Fail(cli.Unreachable, "%s: %v", url, err)
	}
	return pl, nil
}

// running finds what runs of a graph on this machine, by the folders of its runs.
func (p *program) running(ctx context.Context, name string) (*side, error) {
	var urls []string
	dirs, err := filepath.Glob(filepath.Join(runBase(), runPrefix+name[:min(len(name), 20)]+"-*"))
	if err != nil {
		return nil, err
	}
	for _, d := range dirs {
		if b, err := os.ReadFile(filepath.Join(d, urlName)); err == nil && inUse(d) {
			urls = append(urls, string(b))
		}
	}
	var found []*side
	for _, u := range urls {
		pl, err := fetchPlan(ctx, u)
		if err != nil {
			return nil, err
		}
		if pl.Graph == name {
			found = append(found, &side{plan: pl})
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, cli.Fail(cli.Unreachable, "no run of graph %q that answers on this machine; start one by graph run, or give --against the URL of its status API", name)
	}
	return nil, cli.Fail(cli.Unreachable, "%d runs of graph %q: give --against one of %s", len(found), name, strings.Join(urls, ", "))
}

// inUse reports whether processes of a run hold its folder.
func inUse(dir string) bool {
	fd, err := unix.Open(filepath.Join(dir, lockName), unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil
}

// showDiff prints what changes and returns the exit status.
func (p *program) showDiff(c *cli.Context, from, to *side) error {
	d := diff.Compare(from.plan, to.plan, diff.Options{From: from.at, To: to.at, Migrates: func(k string) bool { return k == "migrate" }})
	var err error
	if c.String("output") == "json" {
		err = p.encode(d)
	} else {
		_, err = io.WriteString(p.Stdout, diffText(d))
	}
	if err == nil && d.Changed {
		return cli.Silent(cli.Changes)
	}
	return err
}
