package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is everything that a run of this command found.
type report struct {
	Began          time.Time
	Seconds        float64
	Machine        machineFacts
	Loads          map[string]float64 // one-minute load average, by when
	Prompt, Output int                // tokens a stream
	Binary         int64              // bytes
	Abouts         []string
	Notes          []string
	Starts         []start
	Clones         []clone
	Idle           []idleFigures
	Runs           []runFigures
	Memories       []memoryFigures
	Same           agreement
}

// idleFigures is what a subject uses while nobody asks it anything.
type idleFigures struct {
	Subject string
	Threads int
	Percent float64 // of one CPU
}

type memoryFigures struct {
	Subject string
	Threads int
	Process string
	footprint
}

// agreement says whether subjects gave the same answers.
type agreement struct {
	Answers int            // compared with the engine's: of graphs, and of the engine with other threads
	Differ  int            // that were not equal in all tokens
	Peer    map[string]int // tokens that llama.cpp's answers have in common with ours before they part, summed
	PeerOf  map[string]int // out of
}

func (r *report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

func (r *report) load(when string) {
	if r.Loads == nil {
		r.Loads = map[string]float64{}
	}
	r.Loads[when] = loadAverage()
}

func (r *report) about(name string, threads int, text string) {
	line := name + ": " + text
	if threads == 1 || !slices.Contains(r.Abouts, line) {
		r.Abouts = append(r.Abouts, line)
	}
}

// idle watches all subjects for two seconds.
func (r *report) idle(all []subject, plans []planned) {
	before := make([]float64, len(all))
	for i, s := range all {
		before[i] = cpuSeconds(s.processes())
	}
	const seconds = 2
	time.Sleep(seconds * time.Second)
	for i, s := range all {
		r.Idle = append(r.Idle, idleFigures{plans[i].name, plans[i].threads, 100 * (cpuSeconds(s.processes()) - before[i]) / seconds})
	}
}

func (r *report) memory(name string, threads int, pids map[string]int) {
	for _, p := range slices.Sorted(maps.Keys(pids)) {
		r.Memories = append(r.Memories, memoryFigures{name, threads, p, footprintOf(pids[p])})
	}
}

// compare holds the answers to one set of prompts against the engine's. That the same tokens come out of every road is what the engine
// promises; llama.cpp rounds otherwise, so that answers part somewhere.
func (r *report) compare(t *texts, answers map[string][]stream) {
	var ours []stream
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		if strings.HasPrefix(name, "engine/") {
			ours = answers[name]
			break
		}
	}
	if ours == nil {
		return
	}
	for name, got := range answers {
		for i, s := range got {
			if strings.HasPrefix(name, "llama.cpp") {
				if r.Same.Peer == nil {
					r.Same.Peer, r.Same.PeerOf = map[string]int{}, map[string]int{}
				}
				short, _, _ := strings.Cut(name, "/")
				n := 0
				for n < len(s.Tokens) && s.Tokens[n] == ours[i].Tokens[n] {
					n++
				}
				r.Same.Peer[short] += n
				r.Same.PeerOf[short] += len(s.Tokens)
				continue
			}
			r.Same.Answers++
			if s.Tokens != nil && !slices.Equal(s.Tokens, ours[i].Tokens) || s.Tokens == nil && s.Text != t.text(ours[i].Tokens) {
				r.Same.Differ++
				r.note("FAILED: %s answered prompt %d of %d otherwise than the engine", name, i+1, len(got))
			}
		}
	}
}

func (r *report) write(file string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}

// print writes the tables for people: medians, in brackets the least and the most.
func (r *report) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	p := func(format string, args ...any) { fmt.Fprintf(w, format, args...) }
	p("%s, %d CPUs, %d MiB, %s; %s, %.0f s\n", r.Machine.CPU, r.Machine.CPUs, r.Machine.Memory, r.Machine.Go, r.Began.UTC().Format(time.DateOnly), r.Seconds)
	p("load average: %.2f at the start, %.2f at the end (it counts this benchmark)\n", r.Loads["begin"], r.Loads["end"])
	var others []float64
	for _, m := range r.Runs {
		others = append(others, m.Others)
	}
	o := spreadOf(others)
	p("other work on the machine meanwhile, in CPUs: %s\n", o.show(2))
	if o.Median > 0.1 || r.Loads["begin"] > 1 {
		p("LOADED MACHINE: times say little; CPU seconds say more\n")
	}
	p("\n%d prompt tokens, %d output tokens a stream, greedy; medians of %d runs (least – most), subjects in turns\n", r.Prompt, r.Output, r.rounds())
	p("subject\tthreads\tstreams\tTTFT ms\tITL ms\tprompt tok/s\tdecode tok/s\toutput tok/s\tCPU s\ttok/CPU s\n")
	for _, k := range r.keys() {
		of := func(f func(runFigures) float64) spread { return r.spread(k, f) }
		p("%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.subject, k.threads, k.streams,
			of(func(m runFigures) float64 { return 1e3 * m.TTFT }).show(0), of(func(m runFigures) float64 { return 1e3 * m.ITL }).show(1),
			of(func(m runFigures) float64 { return m.Prompt }).show(0), of(func(m runFigures) float64 { return m.Decode }).show(1),
			of(func(m runFigures) float64 { return m.Output }).show(1), of(func(m runFigures) float64 { return m.CPU }).show(2),
			of(func(m runFigures) float64 { return m.PerCPU }).show(0))
	}
	p("\nsame tokens: %d answers of graphs and engines compared, %d differ\n", r.Same.Answers, r.Same.Differ)
	for _, k := range slices.Sorted(maps.Keys(r.Same.Peer)) {
		p("%s has %d of %d tokens in common with the engine before answers part\n", k, r.Same.Peer[k], r.Same.PeerOf[k])
	}
	if len(r.Starts) > 0 {
		p("\nstart\truns\tready s\tfirst token s\n")
	}
	for _, s := range r.Starts {
		p("%s\t%d\t%s\t%s\n", s.Spec, s.runs, s.Ready.show(2), s.FirstToken.show(2))
	}
	for _, c := range r.Clones {
		name := "warm Go build cache"
		if c.Cold {
			name = "empty Go build cache"
		}
		p("clone to first token, %s: %.1f s (clone %.1f, build %.1f, model %.1f, ready %.1f); run again: ready %.2f, first token %.2f s\n",
			name, c.Total, c.Clone, c.Build, c.Model, c.Ready, c.AgainReady, c.AgainFirst)
	}
	p("binary: %.1f MB\n", float64(r.Binary)/1e6)
	p("\nmemory, MiB\tthreads\tprocess\tRSS\tPSS\tanonymous\tidle CPU %%\n")
	for _, m := range r.Memories {
		idle := ""
		for _, i := range r.Idle {
			if i.Subject == m.Subject && i.Threads == m.Threads && (m.Process == "" || m.Process == "supervisor") {
				idle = fmt.Sprintf("%.1f", i.Percent)
			}
		}
		p("%s\t%d\t%s\t%d\t%d\t%d\t%s\n", m.Subject, m.Threads, m.Process, m.RSS, m.PSS, m.Own, idle)
	}
	p("\n")
	for _, l := range append(r.Abouts, r.Notes...) {
		p("%s\n", l)
	}
	_ = w.Flush()
}

type key struct {
	subject          string
	threads, streams int
}

func (r *report) rounds() int {
	n := 0
	for _, m := range r.Runs {
		n = max(n, m.Round+1)
	}
	return n
}

// keys are the rows: by threads, then streams, then as subjects were started.
func (r *report) keys() []key {
	var out []key
	for _, m := range r.Runs {
		if k := (key{m.Subject, m.Threads, m.Streams}); !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	slices.SortStableFunc(out, func(a, b key) int {
		if a.threads != b.threads {
			return a.threads - b.threads
		}
		return a.streams - b.streams
	})
	return out
}

func (r *report) spread(k key, f func(runFigures) float64) spread {
	var v []float64
	for _, m := range r.Runs {
		if (key{m.Subject, m.Threads, m.Streams}) == k {
			v = append(v, f(m))
		}
	}
	return spreadOf(v)
}

func (s spread) show(digits int) string {
	return fmt.Sprintf("%.*f (%.*f–%.*f)", digits, s.Median, digits, s.Min, digits, s.Max)
}
