package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const maxFailures = 20

// journal is what happened. It is safe for concurrent use.
type journal struct {
	name    string
	began   time.Time
	verbose bool

	mu       sync.Mutex
	counts   map[string]int
	failures int
}

func (j *journal) note(format string, args ...any) {
	fmt.Printf("%7.1f %s: %s\n", time.Since(j.began).Seconds(), j.name, fmt.Sprintf(format, args...))
}

func (j *journal) fail(format string, args ...any) {
	j.mu.Lock()
	j.failures++
	j.mu.Unlock()
	j.note("FAILED: "+format, args...)
}

func (j *journal) add(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.counts == nil {
		j.counts = map[string]int{}
	}
	j.counts[what]++
}

func (j *journal) count(what string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counts[what]
}

func (j *journal) full() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failures >= maxFailures
}

// verdict says whether all went well, and that something was shown at all.
func (j *journal) verdict() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.failures > 0:
		return fmt.Errorf("%d failures", j.failures)
	case j.counts["answers"] == 0:
		return fmt.Errorf("no request was answered")
	}
	return nil
}

// print sums up: counts, and what the processes logged, most frequent first.
func (j *journal) print(g *graph) {
	j.mu.Lock()
	var l []string
	for _, k := range slices.Sorted(maps.Keys(j.counts)) {
		l = append(l, fmt.Sprintf("%d %s", j.counts[k], k))
	}
	j.mu.Unlock()
	j.note("in all: %s", strings.Join(l, ", "))
	logs := g.logs()
	kinds := slices.SortedFunc(maps.Keys(logs), func(a, b string) int { return logs[b] - logs[a] })
	for _, k := range kinds[:min(len(kinds), 15)] {
		j.note("logged %d times: %s", logs[k], k)
	}
}
