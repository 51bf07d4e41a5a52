package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// start is how long a graph takes: from the command to ready, and to the first token of a first request. Seconds.
type start struct {
	Spec              string
	Ready, FirstToken spread
	runs              int
}

var specs = []string{"specs/llama-agg.cue", "specs/llama-disagg.cue"}

// measureStarts starts each graph several times, with its weights already in the cache.
func measureStarts(ctx context.Context, o options, rep *report) ([]start, error) {
	ready, first := map[string][]float64{}, map[string][]float64{}
	for n := range o.starts + 1 {
		for _, spec := range specs {
			cmd := exec.CommandContext(ctx, o.binary, "graph", "run", spec, "--output", "json", "-t", "listen=127.0.0.1:0")
			r, f, err := firstToken(ctx, cmd, spec)
			if err != nil {
				return nil, err
			}
			if n > 0 { // the first fills caches
				ready[spec], first[spec] = append(ready[spec], r), append(first[spec], f)
			}
		}
	}
	if st, err := os.Stat(o.binary); err == nil {
		rep.Binary = st.Size()
	}
	var out []start
	for _, spec := range specs {
		out = append(out, start{spec, spreadOf(ready[spec]), spreadOf(first[spec]), o.starts})
	}
	return out, nil
}

// firstToken runs a graph until it has answered once.
func firstToken(ctx context.Context, cmd *exec.Cmd, spec string) (ready, first float64, err error) {
	began := time.Now()
	g, err := startGraph(cmd, spec)
	if err != nil {
		return 0, 0, err
	}
	ready = g.ready.Seconds()
	at := time.Since(began).Seconds()
	s, err := g.run(ctx, [][]uint32{{504, 1223, 282, 4649, 314}}, 1)
	if err != nil {
		_ = g.stop()
		return 0, 0, err
	}
	first = at + s[0].At[0]
	return ready, first, g.stop()
}

// clone is how long it takes from nothing to the first token. Seconds.
type clone struct {
	Cold                       bool // empty Go build cache
	Clone, Build, Model, Ready float64
	Total                      float64 // of all that, to the first token
	AgainReady, AgainFirst     float64 // a second graph run
}

// measureClones clones the repository into a new folder, builds it and runs the example with an empty cache folder.
func measureClones(ctx context.Context, o options) ([]clone, error) {
	kinds := []bool{false}
	if o.cold {
		kinds = append(kinds, true)
	}
	var out []clone
	for _, cold := range kinds {
		c, err := measureClone(ctx, o.clone, cold)
		if err != nil {
			return nil, fmt.Errorf("clone: %w", err)
		}
		out = append(out, c)
	}
	return out, nil
}

func measureClone(ctx context.Context, repo string, cold bool) (c clone, err error) {
	c.Cold = cold
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return c, err
	}
	defer os.RemoveAll(dir)
	tree, env := filepath.Join(dir, "dynamo"), append(os.Environ(), "DYNAMO_CACHE_DIR="+filepath.Join(dir, "cache"))
	if cold {
		env = append(env, "GOCACHE="+filepath.Join(dir, "go-build"))
	}
	timed := func(into *float64, name string, args ...string) error {
		began := time.Now()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Env = env
		if b, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s %v: %w\n%s", name, args, err, b)
		}
		*into = time.Since(began).Seconds()
		return nil
	}
	if err := timed(&c.Clone, "git", "clone", "-q", "--no-local", repo, tree); err != nil {
		return c, err
	}
	if err := timed(&c.Build, "make", "-s", "-C", tree, "build"); err != nil {
		return c, err
	}
	bin, spec := filepath.Join(tree, "bin", "dynamo"), filepath.Join(tree, "specs", "llama-disagg.cue")
	if err := timed(&c.Model, bin, "graph", "pull", spec); err != nil {
		return c, err
	}
	again := func() (float64, float64, error) {
		cmd := exec.CommandContext(ctx, bin, "graph", "run", spec, "--output", "json", "-t", "listen=127.0.0.1:0")
		cmd.Env = env
		return firstToken(ctx, cmd, spec)
	}
	var first float64
	if c.Ready, first, err = again(); err != nil {
		return c, err
	}
	c.Total = c.Clone + c.Build + c.Model + first
	c.AgainReady, c.AgainFirst, err = again()
	return c, err
}
