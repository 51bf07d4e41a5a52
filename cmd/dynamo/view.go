package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/runtime/status"
	"github.com/dynamograph/dynamo/runtime/supervise"
)

// view prints the events of a run: lines for people on stderr, or JSON on stdout.
type view struct {
	p      *program
	json   bool
	plan   *plan.Plan
	began  time.Time
	pids   map[string]int
	states map[string]map[string]supervise.Status // by child and node
	since  map[string]time.Time
	told   map[string]told // by child
	ready  bool            // all were ready once
	board  *status.Board
	url    string // of the status API; "" where it is off
}

func (p *program) view(output string, pl *plan.Plan, began time.Time) *view {
	return &view{p: p, json: output == "json", plan: pl, began: began, pids: map[string]int{},
		states: map[string]map[string]supervise.Status{}, since: map[string]time.Time{}, told: map[string]told{}}
}

// runEvent is an event of graph run --output json.
type runEvent struct {
	Time   time.Time `json:"time"`
	Event  string    `json:"event"` // "started", "state", "log", "exited", "kill", "ready", "drain"
	Child  string    `json:"child,omitempty"`
	PID    int       `json:"pid,omitempty"`
	Node   string    `json:"node,omitempty"`
	State  string    `json:"state,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Addr   string    `json:"addr,omitempty"`
	Text   string    `json:"text,omitempty"`
	Retry  float64   `json:"retrySeconds,omitempty"` // until the next start; negative: never
	Status string    `json:"status,omitempty"`       // of "ready": URL of the status API
}

func (v *view) event(e supervise.Event) {
	v.board.Observe(e)
	switch e.Kind {
	case supervise.Started:
		v.pids[e.Child], v.since[e.Child] = e.PID, e.Time
		v.states[e.Child] = map[string]supervise.Status{}
	case supervise.Changed:
		if v.states[e.Child][e.Status.Node] == e.Status {
			return
		}
		v.states[e.Child][e.Status.Node] = e.Status
	}
	if v.json {
		r := runEvent{e.Time, string(e.Kind), e.Child, e.PID, e.Status.Node, e.Status.State, e.Status.Reason, e.Status.Addr, e.Text, e.Retry.Seconds(), ""}
		if e.Kind == supervise.AllReady {
			r.Status = v.url
		}
		b, err := json.Marshal(r)
		if err == nil {
			_, _ = v.p.Stdout.Write(append(b, '\n'))
		}
		return
	}
	line := func(format string, args ...any) {
		fmt.Fprintf(v.p.Stderr, "%s %-12s %s\n", e.Time.Format("15:04:05.000"), e.Child, fmt.Sprintf(format, args...))
	}
	switch e.Kind {
	case supervise.Started:
		line("started, pid %d", e.PID)
	case supervise.Changed:
		s := e.Status
		if s.State == string(kind.Starting) && s.Reason == "" || s.State == string(kind.Draining) {
			return
		}
		if s.State == string(kind.Ready) && v.inserted(s.Node) {
			return
		}
		if s.State == string(kind.Failed) && !v.ready {
			return // it ends the run, whose error says it
		}
		if v.repeats(e) {
			return
		}
		text := s.State
		if s.Node != nodeOf(e.Child) {
			text = s.Node + " " + s.State
		}
		if s.Reason != "" {
			text += ": " + s.Reason
		}
		if s.State == string(kind.Ready) {
			text += fmt.Sprintf(" after %.2f s", e.Time.Sub(v.since[e.Child]).Seconds())
		}
		line("%s", text)
	case supervise.Logged:
		line("| %s", e.Text)
	case supervise.Exited:
		switch {
		case e.Retry > 0:
			line("ended: %s; starts again in %.1f s", e.Text, e.Retry.Seconds())
		case e.Retry == 0:
			line("ended: %s; starts again", e.Text)
		case e.Text == "exit status 0":
			line("ended")
		default:
			line("ended: %s", e.Text)
		}
	case supervise.Killing:
		line("killed: %s", e.Text)
	case supervise.AllReady:
		v.ready = true
		v.table()
	}
}

// quiet is how long a step that counts percents is not told anew.
const quiet = 5 * time.Second

// repeats reports whether the event is the last one of its child with other digits: a step that counts percents is told now and then.
func (v *view) repeats(e supervise.Event) bool {
	stem := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, e.Status.Node+" "+e.Status.State+" "+e.Status.Reason)
	t := v.told[e.Child]
	if strings.HasSuffix(stem, "%") && t.stem == stem && e.Time.Sub(t.at) < quiet {
		return true
	}
	v.told[e.Child] = told{stem, e.Time}
	return false
}

// told is what was last said of a child.
type told struct {
	stem string
	at   time.Time
}

// inserted reports whether the compiler made the node: that it is ready is no news.
func (v *view) inserted(node string) bool {
	g := v.plan.GroupOf(node)
	return g != nil && slices.ContainsFunc(g.Units, func(u *plan.Unit) bool { return u.Node == node && u.Inserted })
}

// nodeOf cuts the replica off a child's name.
func nodeOf(child string) string {
	if i := strings.LastIndexByte(child, '-'); i > 0 {
		return child[:i]
	}
	return child
}

// table prints what runs and how to ask it.
func (v *view) table() {
	w := v.p.Stderr
	fmt.Fprintf(w, "\n%s is ready after %.2f s\n\n", v.plan.Graph, time.Since(v.began).Seconds())
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "PROCESS\tPID\tNODE\tSTATE\tADDRESS\n")
	url := ""
	for _, child := range sortedKeys(v.states) {
		c, pid := child, fmt.Sprint(v.pids[child])
		for _, n := range sortedKeys(v.states[child]) {
			s := v.states[child][n]
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", c, pid, n, s.State, s.Addr)
			if strings.HasPrefix(s.Addr, "http") {
				url = s.Addr
			}
			c, pid = "", ""
		}
	}
	_ = t.Flush()
	if v.url != "" {
		fmt.Fprintf(w, "\nstatus and metrics: %s/status %s/metrics\n", v.url, v.url)
	}
	if url == "" {
		return
	}
	for _, name := range sortedKeys(v.plan.Models) {
		fmt.Fprintf(w, "\n  curl %s/v1/chat/completions -H 'content-type: application/json' \\\n    -d '{\"model\":\"%s\",\"temperature\":0,\"messages\":[{\"role\":\"user\",\"content\":\"What is the capital of France?\"}]}'\n",
			url, v.plan.Models[name].Names[0])
	}
	fmt.Fprintf(w, "\nCtrl-C drains and ends it.\n\n")
}
