// Command soak runs graphs under load while processes are killed and stopped at random, and holds what users rely on all the while: every
// answer is the undisturbed one, to the digit; nothing fails but what must; and nothing grows: after each round of faults every process has
// the goroutines, descriptors, memory and KV blocks that it had before. tests/soak.sh sets it up.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

type options struct {
	binary, model, only string
	length, round       time.Duration
	seed                uint64
	verbose             bool
}

func main() {
	var o options
	flag.StringVar(&o.binary, "dynamo", "bin/dynamo", "the command under test")
	flag.StringVar(&o.model, "model", "", "GGUF `file` instead of the spec's")
	flag.DurationVar(&o.length, "for", time.Hour, "how long faults go on, all graphs together")
	flag.DurationVar(&o.round, "round", 90*time.Second, "how long they go on between two looks at what has grown")
	flag.Uint64Var(&o.seed, "seed", 0, "of load and faults; 0: of the clock")
	flag.StringVar(&o.only, "only", "", "run only this `profile`: llama, tight, mock or beside")
	flag.IntVar(&moreMemory, "memory", moreMemory, "`MiB` that a process may have more than before, and half of what it had; a binary with the race detector needs 2000")
	flag.BoolVar(&o.verbose, "v", false, "print each fault")
	flag.Parse()
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano()) % 1e9
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "soak: FAILED with seed %d: %v\n", o.seed, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if flag.NArg() > 0 || o.round <= 0 || o.length < o.round {
		return errors.New("want no arguments, and -round above 0 and not above -for")
	}
	fmt.Printf("seed %d\n", o.seed)
	var todo []profile
	share := 0.0
	for _, p := range profiles(o) {
		if strings.Contains(p.name, o.only) {
			todo = append(todo, p)
			share += p.share
		}
	}
	if len(todo) == 0 {
		return fmt.Errorf("no profile %q", o.only)
	}
	var errs []error
	for _, p := range todo {
		rounds := max(1, int(float64(o.length)*p.share/share/float64(o.round)+0.5))
		if err := soak(ctx, o, p, rounds); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	return errors.Join(errs...)
}

// soak runs one profile from start to Ctrl-C.
func soak(ctx context.Context, o options, p profile, rounds int) (err error) {
	before, err := leftovers()
	if err != nil {
		return err
	}
	g, err := start(ctx, o.binary, p)
	if err != nil {
		return err
	}
	j := &journal{name: p.name, began: time.Now(), verbose: o.verbose}
	parting := func() func() { return func() {} }
	defer func() {
		wait := parting()
		if stop := g.stop(); stop != nil {
			j.fail("Ctrl-C: %v", stop)
		}
		wait()
		for _, l := range g.traces(before) {
			j.fail("after Ctrl-C there is still %s", l)
		}
		j.print(g)
		err = errors.Join(err, j.verdict())
	}()
	r := rand.New(rand.NewPCG(o.seed, uint64(len(p.name))))
	l, err := newLoad(ctx, g, p, r, j)
	if err != nil {
		return err
	}
	// What one round without faults leaves is what every later one may leave.
	l.during(ctx, o.round/3, r.Uint64(), nil)
	base, err := settle(ctx, g, nil)
	if err != nil {
		return fmt.Errorf("without faults: %w", err)
	}
	j.note("at rest before faults: %v", base)
	parting = func() func() { return l.parting(ctx) }
	f := &faults{g: g, r: r, j: j, p: p}
	for n := range rounds {
		l.during(ctx, o.round, r.Uint64(), f)
		now, err := settle(ctx, g, base)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		j.note("round %d of %d: %d answers, %d faults; at rest: %v", n+1, rounds, j.count("answers"), f.n, now)
		if err != nil {
			j.fail("round %d: %v", n+1, err)
		}
		if j.full() {
			break
		}
	}
	return ctx.Err()
}
