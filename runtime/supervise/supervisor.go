package supervise

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Child is one process to keep running.
type Child struct {
	Name  string
	Rank  int      // lower ranks drain first
	Nodes []string // whose states it reports; the child is ready when all are
	Path  string
	Args  []string // without the program's name
	Env   []string
}

// EventKind is the kind of an Event.
type EventKind string

// The kinds.
const (
	Started  EventKind = "started"
	Changed  EventKind = "state"  // Status is set
	Logged   EventKind = "log"    // Text is a line of the child's standard error
	Exited   EventKind = "exited" // Text says how
	Killing  EventKind = "kill"   // Text says why
	AllReady EventKind = "ready"  // every child is ready, for the first time
	Draining EventKind = "drain"
)

// Event is news about a child.
type Event struct {
	Time   time.Time
	Kind   EventKind
	Child  string
	PID    int
	Status Status
	Text   string
	Retry  time.Duration // of Exited: until the next start; 0 at once, negative never
}

// Options configure Run.
type Options struct {
	Limits   Limits
	Children []Child
	OnEvent  func(Event)     // called from one goroutine; must not block for long
	Abort    <-chan struct{} // closed: kill what is left instead of waiting for it
}

// maxStartFailures is how often a child may exit before it was ever ready until Run gives up, if the graph never was ready.
const maxStartFailures = 3

// lastLines is how many lines of a child's standard error are kept for the error about its end.
const lastLines = 12

type news struct {
	child  string
	status *Status
	line   *string
	exit   *exit
}

type exit struct {
	code int
	text string
}

type running struct {
	*process
	states map[string]Status
	since  map[string]time.Time // of the states
	lines  []string
	early  int // exits before the child was ever ready
	ready  bool
}

// Run keeps the children running until ctx ends, then drains them in the order of their ranks. It returns nil after a drain, and an error
// where a child can never run (ExitConfig, or it never became ready): the others are drained first. No process of its own is left behind.
func Run(ctx context.Context, o Options) error {
	s := &supervisor{Options: o, core: NewCore(o.Limits), news: make(chan news, 256), kids: map[string]*running{}}
	for _, c := range o.Children {
		s.core.Want(c.Name, c.Rank)
		s.kids[c.Name] = &running{states: map[string]Status{}, since: map[string]time.Time{}}
	}
	return s.loop(ctx)
}

type supervisor struct {
	Options
	core     *Core
	news     chan news
	kids     map[string]*running
	allReady bool
	failed   error
}

func (s *supervisor) emit(e Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	if s.OnEvent != nil {
		s.OnEvent(e)
	}
}

func (s *supervisor) loop(ctx context.Context) error {
	done, abort := ctx.Done(), s.Abort
	draining := false
	drain := func() {
		if !draining {
			draining, done = true, nil
			s.core.Drain()
			s.emit(Event{Kind: Draining})
		}
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if s.failed != nil {
			drain()
		}
		todo, wake := s.core.Step(time.Now())
		for _, a := range todo {
			s.do(a)
		}
		if s.failed != nil && !draining {
			continue // a start failed
		}
		if draining && s.core.Idle() {
			return s.failed
		}
		timer.Stop()
		if !wake.IsZero() {
			timer.Reset(time.Until(wake))
		}
		select {
		case <-done:
			drain()
		case <-abort:
			abort = nil
			drain()
			for _, k := range s.kids {
				k.kill()
			}
		case <-timer.C:
		case n := <-s.news:
			s.hear(n)
		}
	}
}

func (s *supervisor) do(a Action) {
	k := s.kids[a.Child]
	switch a.Verb {
	case Start:
		k.states, k.lines = map[string]Status{}, nil
		p, err := start(s.child(a.Child), s.news)
		if err != nil {
			s.hear(news{child: a.Child, exit: &exit{code: ExitConfig, text: err.Error()}})
			return
		}
		k.process = p
		s.emit(Event{Kind: Started, Child: a.Child, PID: p.pid()})
	case Terminate:
		k.terminate()
	case Kill:
		s.emit(Event{Kind: Killing, Child: a.Child, PID: k.pid(), Text: a.Why})
		k.kill()
	}
}

func (s *supervisor) child(name string) Child {
	for _, c := range s.Children {
		if c.Name == name {
			return c
		}
	}
	return Child{}
}

func (s *supervisor) hear(n news) {
	now := time.Now()
	k := s.kids[n.child]
	switch {
	case n.status != nil:
		s.core.Beat(now, n.child)
		if n.status.Node == "" {
			s.checkReady(now)
			return
		}
		if k.states[n.status.Node].State != n.status.State {
			k.since[n.status.Node] = now
		}
		k.states[n.status.Node] = *n.status
		s.emit(Event{Kind: Changed, Child: n.child, PID: k.pid(), Status: *n.status})
		s.checkReady(now)
	case n.line != nil:
		k.lines = append(k.lines, *n.line)
		if len(k.lines) > lastLines {
			k.lines = k.lines[1:]
		}
		s.emit(Event{Kind: Logged, Child: n.child, Text: *n.line})
	case n.exit != nil:
		s.exited(now, n.child, k, n.exit)
	}
}

func (s *supervisor) exited(now time.Time, name string, k *running, x *exit) {
	if k.process != nil {
		k.release()
		k.process = nil
	}
	if x.text == "signal: killed" && !s.core.killed(name) && !s.core.draining {
		x.text += " (not by dynamo; is the machine out of memory?)"
	}
	s.core.Exited(now, name)
	draining := s.core.draining
	e := Event{Kind: Exited, Child: name, Text: x.text, Retry: max(0, s.core.RetryAt(name).Sub(now))}
	if !k.ready {
		k.early++
	}
	giveUp := !draining && !s.allReady && (x.code == ExitConfig || k.early >= maxStartFailures)
	if giveUp || draining {
		e.Retry = -time.Second
	}
	s.emit(e)
	if giveUp && s.failed == nil {
		s.failed = fmt.Errorf("%s: %s", name, why(k, x))
	}
}

// why says in the child's own words what ended it.
func why(k *running, x *exit) string {
	for _, st := range k.states {
		if st.State == "failed" && st.Reason != "" {
			return st.Reason
		}
	}
	if len(k.lines) == 0 {
		return x.text
	}
	return x.text + "; its last lines:\n  " + strings.Join(k.lines, "\n  ")
}

// settled is how long a node must be degraded until it counts as up: what it misses may just be starting.
const settled = 3 * time.Second

// checkReady sees whether every node serves, at each news of a child and so at each beat.
func (s *supervisor) checkReady(now time.Time) {
	all := true
	for _, c := range s.Children {
		k := s.kids[c.Name]
		ready := len(k.states) >= len(c.Nodes)
		for _, n := range c.Nodes {
			st := k.states[n].State
			ready = ready && (st == "ready" || st == "degraded" && now.Sub(k.since[n]) >= settled)
		}
		k.ready = k.ready || ready
		all = all && ready
	}
	if all && !s.allReady {
		s.allReady = true
		s.emit(Event{Kind: AllReady})
	}
}
