// Package supervise keeps the processes of a plan running on one machine: it starts them, watches their progress, restarts them with
// back-off, and drains them in order. The decisions are a step machine (Core) without clock, process or goroutine; Supervisor wraps it. It
// knows nothing of graphs: what a child runs is a command line that its caller made.
package supervise

import (
	"cmp"
	"slices"
	"time"
)

// Limits are the times that Core acts on. Zero fields get the defaults.
type Limits struct {
	Backoff    time.Duration // before the first restart; doubles with each exit: 500 ms
	BackoffMax time.Duration // 15 s
	Stable     time.Duration // a child that ran this long starts again without back-off: 30 s
	Grace      time.Duration // between asking a child to drain and killing it: 30 s
	Silence    time.Duration // a child that gave no beat for this long hangs and is killed; above 1 s: 20 s
}

// secondLook is between finding a child silent and killing it. It may have been us who slept (Ctrl-Z, a terminal that took no output): then
// its beats wait to be read.
const secondLook = time.Second

func (l Limits) withDefaults() Limits {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&l.Backoff, 500*time.Millisecond)
	def(&l.BackoffMax, 15*time.Second)
	def(&l.Stable, 30*time.Second)
	def(&l.Grace, 30*time.Second)
	def(&l.Silence, 20*time.Second)
	return l
}

// Verb is what Core wants done to a child.
type Verb string

// The verbs.
const (
	Start     Verb = "start"
	Terminate Verb = "terminate" // ask to drain
	Kill      Verb = "kill"
)

// Action is one thing to do. Each is asked for once.
type Action struct {
	Verb  Verb
	Child string
	Why   string
}

type phase uint8

const (
	down phase = iota
	up
	stopping
	killed
)

type child struct {
	name    string
	rank    int
	phase   phase
	since   time.Time // of the phase
	beat    time.Time // last sign of progress
	silent  time.Time // when it was found silent; counts if after beat
	retryAt time.Time // not before, when down
	backoff time.Duration
	exits   int
}

// Core decides what to start, end and kill. It is not safe for concurrent use.
type Core struct {
	limits   Limits
	children map[string]*child
	draining bool
}

// NewCore returns a Core that wants nothing.
func NewCore(l Limits) *Core { return &Core{limits: l.withDefaults(), children: map[string]*child{}} }

// Want adds a child, or changes its rank. Children of a lower rank are drained first (callers before callees).
func (c *Core) Want(name string, rank int) {
	ch, ok := c.children[name]
	if !ok {
		ch = &child{name: name}
		c.children[name] = ch
	}
	ch.rank = rank
}

// Drain lets all children drain, in the order of their ranks.
func (c *Core) Drain() { c.draining = true }

// Exited tells that a child's process is gone.
func (c *Core) Exited(now time.Time, name string) {
	ch, ok := c.children[name]
	if !ok {
		return
	}
	if ch.phase == up && now.Sub(ch.since) >= c.limits.Stable {
		ch.backoff, ch.exits = 0, 0
	}
	ch.exits++
	ch.retryAt = now.Add(ch.backoff)
	ch.backoff = min(max(2*ch.backoff, c.limits.Backoff), c.limits.BackoffMax)
	ch.phase, ch.since = down, now
}

// Beat tells that a child made progress.
func (c *Core) Beat(now time.Time, name string) {
	if ch, ok := c.children[name]; ok {
		ch.beat = now
	}
}

// RetryAt returns when a child that is down starts again.
func (c *Core) RetryAt(name string) time.Time {
	if ch, ok := c.children[name]; ok {
		return ch.retryAt
	}
	return time.Time{}
}

// killed reports whether Step asked for a kill of the child that is up.
func (c *Core) killed(name string) bool {
	ch, ok := c.children[name]
	return ok && ch.phase == killed
}

// Idle reports whether no process is left.
func (c *Core) Idle() bool {
	for _, ch := range c.children {
		if ch.phase != down {
			return false
		}
	}
	return true
}

// Step returns what to do now, sorted by rank and name, and when to come again at the latest (zero: only on news). The actions are taken
// for done: a start that fails is told by Exited.
func (c *Core) Step(now time.Time) (todo []Action, wake time.Time) {
	later := func(t time.Time) {
		if wake.IsZero() || t.Before(wake) {
			wake = t
		}
	}
	sorted := make([]*child, 0, len(c.children))
	for _, ch := range c.children {
		sorted = append(sorted, ch)
	}
	slices.SortFunc(sorted, func(a, b *child) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.name, b.name)) })
	drainRank := -1 // the lowest rank that still has a process
	for _, ch := range sorted {
		if ch.phase != down {
			drainRank = ch.rank
			break
		}
	}
	for _, ch := range sorted {
		if ch.phase == stopping && !now.Before(ch.since.Add(c.limits.Grace)) {
			ch.phase, ch.since = killed, now
			todo = append(todo, Action{Kill, ch.name, "did not drain within " + c.limits.Grace.String()})
		}
		switch ch.phase {
		case down:
			switch {
			case c.draining:
			case now.Before(ch.retryAt):
				later(ch.retryAt)
			default:
				ch.phase, ch.since, ch.beat = up, now, now
				todo = append(todo, Action{Start, ch.name, ""})
				later(now.Add(c.limits.Silence - secondLook))
			}
		case up:
			silent := ch.beat.Add(c.limits.Silence - secondLook)
			switch {
			case c.draining && ch.rank == drainRank:
				ch.phase, ch.since = stopping, now
				todo = append(todo, Action{Terminate, ch.name, ""})
				later(now.Add(c.limits.Grace))
			case now.Before(silent):
				later(silent)
			case !ch.silent.After(ch.beat):
				ch.silent = now
				later(now.Add(secondLook))
			case now.Before(ch.silent.Add(secondLook)):
				later(ch.silent.Add(secondLook))
			default:
				ch.phase, ch.since = killed, now
				todo = append(todo, Action{Kill, ch.name, "no sign of life for " + c.limits.Silence.String()})
			}
		case stopping:
			later(ch.since.Add(c.limits.Grace))
		case killed:
		}
	}
	return todo, wake
}
