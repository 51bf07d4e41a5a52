package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// subject is what is measured: something that answers prompts.
type subject interface {
	// run continues all prompts at once, greedily and past end tokens.
	run(ctx context.Context, prompts [][]uint32, output int) ([]stream, error)
	// processes are the subject's, by name.
	processes() map[string]int
	about() string
	stop() error
}

// stream is one answer: when something of it arrived, in seconds after the prompts were sent.
type stream struct {
	At     []float64 `json:"at"`
	Tokens []uint32  `json:"tokens"` // where the subject tells
	Text   string    `json:"text"`   // where it tells that instead
	Count  int       `json:"-"`      // output tokens, where the subject tells text; an arrival may bring several
}

func (s stream) count() int { return max(len(s.Tokens), s.Count) }

// planned is one subject to start.
type planned struct {
	name    string
	threads int
	open    func(ctx context.Context) (subject, error)
}

var widths = []int{1, 8}

// measureSpeed starts all subjects, and gives each its turn in every round: whatever disturbs the machine for a while disturbs all.
func measureSpeed(ctx context.Context, o options, rep *report, began time.Time) error {
	text, err := newTexts(o.model)
	if err != nil {
		return err
	}
	var all []planned
	for _, t := range []int{1, 2} {
		if t > rep.Machine.CPUs {
			rep.note("NOT RUN: %d threads: this machine has %d CPU", t, rep.Machine.CPUs)
			continue
		}
		if o.modules != "" {
			for flash := range strings.SplitSeq(o.flash, ",") {
				all = append(all, planned{"llama.cpp fa=" + flash, t, openChild(t, o.node, "tests/bench/llamacpp.mjs", o.modules, o.model, fmt.Sprint(t), "1,8", flash)})
			}
		}
		self, err := os.Executable()
		if err != nil {
			return err
		}
		all = append(all,
			planned{"engine", t, openChild(t, self, "engine", o.model, fmt.Sprint(t), fmt.Sprint(slices.Max(widths)))},
			planned{"llama-agg", t, openGraph(t, o.binary, "specs/llama-agg.cue")})
		if t > 1 { // three engines on one CPU say nothing
			all = append(all, planned{"llama-disagg", t, openGraph(t, o.binary, "specs/llama-disagg.cue")})
		}
	}
	if o.modules == "" {
		rep.note("NOT RUN: llama.cpp: no -node-modules")
	}
	all = slices.DeleteFunc(all, func(p planned) bool { return !strings.Contains(p.name, o.only) })
	open := make([]subject, len(all))
	defer func() {
		for _, s := range open {
			if s != nil {
				_ = s.stop()
			}
		}
	}()
	for i, p := range all {
		if open[i], err = p.open(ctx); err != nil {
			return fmt.Errorf("%s, %d threads: %w", p.name, p.threads, err)
		}
		rep.about(p.name, p.threads, open[i].about())
		if _, err := open[i].run(ctx, text.prompts(1, 32), 4); err != nil { // first use
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	rep.idle(open, all)
	for round := range o.rounds {
		if round > 0 && time.Since(began) > o.budget {
			rep.note("stopped after %d of %d rounds: %v were over", round, o.rounds, o.budget)
			break
		}
		for _, width := range widths {
			prompts := text.prompts(width, o.prompt) // the same for all, new each round: no cached prefix helps
			answers := map[string][]stream{}
			for k := range all {
				i := (k + round) % len(all)
				m, streams, err := measure(ctx, open[i], prompts, o.output)
				if err != nil {
					return fmt.Errorf("%s, %d streams: %w", all[i].name, width, err)
				}
				m.Subject, m.Threads, m.Round = all[i].name, all[i].threads, round
				rep.Runs = append(rep.Runs, m)
				answers[fmt.Sprint(all[i].name, "/", all[i].threads)] = streams
			}
			rep.compare(text, answers)
		}
	}
	for i, p := range all {
		rep.memory(p.name, p.threads, open[i].processes())
	}
	return nil
}

// measure is one run of one subject.
func measure(ctx context.Context, s subject, prompts [][]uint32, output int) (runFigures, []stream, error) {
	self := map[string]int{"": os.Getpid()}
	began, machine, client, before := time.Now(), busySeconds(), cpuSeconds(self), cpuSeconds(s.processes())
	streams, err := s.run(ctx, prompts, output)
	if err != nil {
		return runFigures{}, nil, err
	}
	used := cpuSeconds(s.processes()) - before
	others := busySeconds() - machine - (cpuSeconds(self) - client) - used
	took := time.Since(began).Seconds()
	m, err := figures(streams, len(prompts[0]), output)
	if err != nil {
		return m, nil, err
	}
	m.CPU, m.Others = used, max(0, others/took)
	if m.CPU > 0 {
		m.PerCPU = float64(len(prompts)*(len(prompts[0])+output)) / m.CPU
	}
	return m, streams, nil
}
