package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"
)

// faults kills and stops processes, one after the other. There is always a decode process that works: without one requests do fail.
type faults struct {
	g *graph
	r *rand.Rand
	j *journal
	p profile
	n int
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
		if strings.HasPrefix(victim, "decode") {
			if err := f.whole(ctx); err != nil {
				return
			}
		}
		pid := f.g.processes()[victim]
		stop = stop || victim == "supervisor" // its death ends the run
		if pid == 0 {
			continue
		}
		f.n++
		if !stop {
			f.tell("kill %s (%d)", victim, pid)
			f.j.add("kills of " + strings.TrimRight(victim, "-01"))
			_ = syscall.Kill(pid, syscall.SIGKILL)
			continue
		}
		f.tell("stop %s (%d) for %v", victim, pid, stopped)
		f.j.add("stops of " + strings.TrimRight(victim, "-01"))
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		_ = pause(ctx, stopped)
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
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
