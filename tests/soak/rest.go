package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// restWithin is how long a graph may take to come to rest: hand-offs that nobody took are held for 30 s, a process that hangs for 20 s.
const restWithin = 90 * time.Second

// What a process may have more than before. Go's heap and the runtime's own caches are not flat to the megabyte.
const (
	moreGoroutines = 8
	moreFiles      = 4
	moreRegions    = 1 // a process that died last and was not asked since
)

var moreMemory = 64 // MiB, and half of what it was; set before anything runs

// figures are what must not grow in a process.
type figures struct {
	goroutines, files int
	anon, shared      int // resident MiB: its own, and of shared memory
	dead              int // mapped regions of processes that are no more
	busy              int // sequences that run or wait, KV blocks in use
}

func (f figures) String() string {
	return fmt.Sprintf("%d goroutines, %d files, %d+%d MiB", f.goroutines, f.files, f.anon, f.shared)
}

type rest map[string]figures

func (r rest) String() string {
	var l []string
	for _, n := range slices.Sorted(maps.Keys(r)) {
		l = append(l, n+" "+r[n].String())
	}
	return strings.Join(l, "; ")
}

// settle waits until every process is there, none works, and none has more than in base, if that is given. It returns what they have.
func settle(ctx context.Context, g *graph, base rest) (rest, error) {
	deadline := time.Now().Add(restWithin)
	for {
		now, err := look(ctx, g)
		if err == nil {
			err = now.against(base)
		}
		if err == nil || time.Now().After(deadline) {
			return now, err
		}
		if stop := pause(ctx, time.Second); stop != nil {
			return now, errors.Join(stop, err)
		}
	}
}

func look(ctx context.Context, g *graph) (rest, error) {
	s, err := g.state(ctx)
	if err != nil {
		return nil, err
	}
	if !s.Ready {
		return nil, fmt.Errorf("not all is back: %s", s.Reason)
	}
	text, err := g.get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	now := rest{}
	for name, pid := range g.processes() {
		f := figures{
			files: filesOf(pid), dead: deadRegions(pid), anon: kib(pid, "RssAnon") >> 10, shared: kib(pid, "RssShmem") >> 10,
			goroutines: int(metric(text, "go_goroutines", name)),
		}
		for _, m := range []string{"dynamo_engine_running", "dynamo_engine_waiting", "dynamo_engine_kv_blocks_used"} {
			f.busy += int(metric(text, m, name))
		}
		now[name] = f
	}
	return now, nil
}

// against compares with what was.
func (r rest) against(base rest) error {
	for name, f := range r {
		if f.busy > 0 {
			return fmt.Errorf("%s: %d sequences and KV blocks are in use, though nobody asks", name, f.busy)
		}
		b, ok := base[name]
		if base == nil {
			continue
		}
		switch {
		case !ok:
			return fmt.Errorf("%s was not there before", name)
		case f.goroutines > b.goroutines+moreGoroutines:
			return fmt.Errorf("%s has %d goroutines, it had %d", name, f.goroutines, b.goroutines)
		case f.files > b.files+moreFiles:
			return fmt.Errorf("%s has %d files open, it had %d", name, f.files, b.files)
		case f.dead > moreRegions:
			return fmt.Errorf("%s has %d regions mapped whose makers are dead", name, f.dead)
		case f.anon > b.anon*3/2+moreMemory:
			return fmt.Errorf("%s has %d MiB of its own, it had %d", name, f.anon, b.anon)
		}
	}
	return nil
}

// metric sums up a metric of a process over its labels; 0 where there is none.
func metric(text []byte, name, process string) float64 {
	sum := 0.0
	for l := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(l, []byte(name))
		if !ok || len(rest) == 0 || rest[0] != '{' || !bytes.Contains(rest, []byte(`process="`+process+`"`)) {
			continue
		}
		f := bytes.Fields(rest[bytes.LastIndexByte(rest, '}')+1:])
		if len(f) > 0 {
			v, _ := strconv.ParseFloat(string(f[0]), 64)
			sum += v
		}
	}
	return sum
}

func filesOf(pid int) int {
	l, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(l)
}

func deadRegions(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	return bytes.Count(b, []byte(".shm (deleted)\n"))
}

// kib reads a line "name:  123 kB" of a process's status; 0 where there is none.
func kib(pid int, name string) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for l := range bytes.Lines(b) {
		if v, ok := bytes.CutPrefix(l, []byte(name+":")); ok {
			if f := bytes.Fields(v); len(f) > 0 {
				n, _ := strconv.Atoi(string(f[0]))
				return n
			}
		}
	}
	return 0
}
