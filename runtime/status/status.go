// Package status tells how a running graph is: what its supervisor knows of each process, and the metrics of all of them as one text. It
// listens to the supervisor's events and asks the processes; it decides nothing.
package status

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/runtime/supervise"
)

// Status is the JSON of /status.
type Status struct {
	Graph string `json:"graph"`
	// Ready is true while every process is up and each of its nodes is ready or degraded.
	Ready bool `json:"ready"`
	// Reason says what is missing first; "" where Ready.
	Reason    string    `json:"reason,omitempty"`
	Since     time.Time `json:"since"` // of the run
	Processes []Process `json:"processes"`
}

// Process is one child of the supervisor.
type Process struct {
	Name     string    `json:"name"` // "decode-0"
	PID      int       `json:"pid"`  // 0 while it is down
	Restarts int       `json:"restarts"`
	Since    time.Time `json:"since"`             // of its last start or end
	Ended    string    `json:"ended,omitempty"`   // how it last ended
	Nodes    []Node    `json:"nodes"`             // what runs in it
	Metrics  string    `json:"metrics,omitempty"` // socket that answers /live, /ready and /metrics: "unix:/path"; "" where there is none
}

// Node is one node of the graph in a process.
type Node struct {
	Name    string     `json:"name"`
	State   kind.State `json:"state"` // "starting" until it says something
	Reason  string     `json:"reason,omitempty"`
	Address string     `json:"address,omitempty"`
}

// Board keeps the status of a run. It is safe for concurrent use.
type Board struct {
	plan []byte

	mu sync.Mutex
	s  Status
}

// New returns the board of a run that begins now. plan is the JSON that /plan answers. metrics gives the socket of each process that has one.
func New(graph string, plan []byte, children []supervise.Child, metrics map[string]string) *Board {
	now := time.Now()
	b := &Board{plan: plan, s: Status{Graph: graph, Since: now}}
	for _, c := range children {
		p := Process{Name: c.Name, Since: now, Metrics: metrics[c.Name]}
		for _, n := range c.Nodes {
			p.Nodes = append(p.Nodes, Node{Name: n, State: kind.Starting})
		}
		b.s.Processes = append(b.s.Processes, p)
	}
	slices.SortFunc(b.s.Processes, func(a, b Process) int { return cmp.Compare(a.Name, b.Name) })
	return b
}

// Observe takes an event of the supervisor.
func (b *Board) Observe(e supervise.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.s.Processes, func(p Process) bool { return p.Name == e.Child })
	if i < 0 {
		return
	}
	p := &b.s.Processes[i]
	switch e.Kind {
	case supervise.Started:
		if p.Ended != "" {
			p.Restarts++
		}
		p.PID, p.Since = e.PID, e.Time
	case supervise.Exited:
		p.PID, p.Since, p.Ended = 0, e.Time, cmp.Or(e.Text, "ended")
		for k := range p.Nodes {
			p.Nodes[k] = Node{Name: p.Nodes[k].Name, State: kind.Starting}
		}
	case supervise.Changed:
		for k := range p.Nodes {
			if p.Nodes[k].Name == e.Status.Node {
				p.Nodes[k] = Node{e.Status.Node, kind.State(e.Status.State), e.Status.Reason, e.Status.Addr}
			}
		}
	}
}

// Status returns the present status.
func (b *Board) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.s
	s.Processes = slices.Clone(s.Processes)
	for i := range s.Processes {
		p := &s.Processes[i]
		p.Nodes = slices.Clone(p.Nodes)
		if s.Reason == "" {
			s.Reason = p.unmet()
		}
	}
	s.Ready = s.Reason == ""
	return s
}

// unmet says what the process lacks, or "".
func (p *Process) unmet() string {
	if p.PID == 0 {
		if p.Ended != "" {
			return "process " + p.Name + " is down: " + p.Ended
		}
		return "process " + p.Name + " is not started yet"
	}
	for _, n := range p.Nodes {
		if n.State == kind.Ready || n.State == kind.Degraded {
			continue
		}
		text := "process " + p.Name + ": node " + n.Name + " is " + string(n.State)
		if n.Reason != "" {
			text += ": " + n.Reason
		}
		return text
	}
	return ""
}
