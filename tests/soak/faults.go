package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"time"
)

// faults kills and stops processes, one after the other. There is always a decode process that works: without one requests do fail.
type faults struct {
	mu sync.Mutex // held while something is broken on purpose
	g  *graph
	r  *rand.Rand
	j  *journal
	p  profile
	n  int
}

// run goes on until ctx ends; then nothing is stopped any more.
func (f *faults) run(ctx context.Context) {
	for ctx.Err() == nil && !f.j.full() {
		wait := f.p.calm[0] + time.Duration(f.r.Int64N(int64(f.p.calm[1]-f.p.calm[0])))
		if pause(ctx, wait) != nil {
			return
		}
		victims := []string{"decode-0", "decode-1", "decode-0", "decode-1", "prefill-0", "prefill-0", "store", "supervisor"}
		victim, stop := victims[f.r.IntN(len(victims))], f.r.IntN(2) == 0
		stopped := time.Duration(50+f.r.IntN(4000)) * time.Millisecond
		if f.r.IntN(6) == 0 { // long enough to be noticed, or to be killed
			stopped = time.Duration(5+f.r.IntN(20)) * time.Second
		}
		if !stop {
			stopped = 0
		}
		if victim != "supervisor" || stopped > 0 { // its death ends the run
			f.strike(ctx, victim, stopped)
		}
	}
}

// strike kills victim, or stops it for a while.
func (f *faults) strike(ctx context.Context, victim string, stopped time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if strings.HasPrefix(victim, "decode") && f.whole(ctx) != nil {
		return
	}
	pid := f.g.processes()[victim]
	if pid == 0 || ctx.Err() != nil {
		return
	}
	f.n++
	if stopped == 0 {
		f.tell("kill %s (%d)", victim, pid)
		f.j.add("kills of " + strings.TrimRight(victim, "-01"))
		_ = syscall.Kill(pid, syscall.SIGKILL)
		return
	}
	f.tell("stop %s (%d) for %v", victim, pid, stopped)
	f.j.add("stops of " + strings.TrimRight(victim, "-01"))
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	_ = pause(ctx, stopped)
	_ = syscall.Kill(pid, syscall.SIGCONT)
}

func (f *faults) tell(format string, args ...any) {
	if f.j.verbose {
		f.j.note(format, args...)
	}
}

// whole waits until all decode processes serve.
func (f *faults) whole(ctx context.Context) error {
	for {
		s, err := f.g.state(ctx)
		if err == nil {
			missing := ""
			for _, p := range s.Processes {
				if strings.HasPrefix(p.Name, "decode") && !p.ready() {
					missing = p.Name
				}
			}
			if missing == "" {
				return nil
			}
			err = fmt.Errorf("%s is not ready", missing)
		}
		if pause(ctx, 200*time.Millisecond) != nil {
			return err
		}
	}
}
