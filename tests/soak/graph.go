package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// graph is a running graph, as a user runs it. Its methods are safe for concurrent use.
type graph struct {
	cmd         *exec.Cmd
	url, status string
	gone        chan struct{} // closed when the command has ended and its output is read
	err         error         // of Wait; valid after gone
	http        *http.Client

	mu     sync.Mutex
	pids   map[string]int
	every  map[int]string // all pids that there ever were
	dirs   map[string]bool
	logged map[string]int
	stderr bytes.Buffer
}

type event struct {
	Event, Child, Addr, Status, Text string
	PID                              int
}

func start(ctx context.Context, binary string, p profile) (*graph, error) {
	args := append([]string{"graph", "run", p.spec, "--output", "json", "-t", "listen=127.0.0.1:0"}, p.args...)
	g := &graph{
		cmd: exec.Command(binary, args...), gone: make(chan struct{}), pids: map[string]int{}, every: map[int]string{}, dirs: map[string]bool{},
		logged: map[string]int{}, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C of this command is not theirs
	g.cmd.Stderr = &g.stderr                                // read after Wait
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := g.cmd.Start(); err != nil {
		return nil, err
	}
	g.every[g.cmd.Process.Pid] = "supervisor"
	ready := make(chan struct{})
	go g.read(out, ready)
	select {
	case <-ready:
		return g, nil
	case <-g.gone:
		return nil, fmt.Errorf("graph run ended before it was ready: %w\n%s", g.err, g.stderr.Bytes())
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), g.stop())
	}
}

func (g *graph) read(out io.Reader, ready chan struct{}) {
	defer close(g.gone)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		g.mu.Lock()
		switch e.Event {
		case "started":
			g.pids[e.Child] = e.PID
			g.every[e.PID] = e.Child
		case "exited":
			delete(g.pids, e.Child)
		case "log":
			g.logged[kindOf(e.Child, e.Text)]++
		}
		if strings.HasPrefix(e.Addr, "http") {
			g.url = e.Addr
		}
		if e.Event == "ready" && g.status == "" {
			g.status = e.Status
			close(ready)
		}
		g.mu.Unlock()
	}
	g.err = g.cmd.Wait()
}

var message = regexp.MustCompile(`level=(\w+) msg=("[^"]*"|\S+)`)

// kindOf is what log lines of one kind have in common.
func kindOf(child, text string) string {
	child = strings.TrimRight(child, "-0123456789")
	if m := message.FindStringSubmatch(text); m != nil {
		return child + " " + m[1] + " " + strings.Trim(m[2], `"`)
	}
	return child + " " + text[:min(len(text), 120)]
}

func (g *graph) logs() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.logged)
}

// processes are those that live now, the supervisor among them.
func (g *graph) processes() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := maps.Clone(g.pids)
	m["supervisor"] = g.cmd.Process.Pid
	return m
}

// state is the JSON of /status as far as it is needed here.
type state struct {
	Ready     bool
	Reason    string
	Processes []process
}

type process struct {
	Name, Metrics string
	PID           int
	Nodes         []struct{ Name, State string }
}

func (p process) ready() bool {
	for _, n := range p.Nodes {
		if n.State != "ready" && n.State != "degraded" {
			return false
		}
	}
	return p.PID != 0
}

func (g *graph) get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.status+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := g.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

func (g *graph) state(ctx context.Context) (state, error) {
	var s state
	b, err := g.get(ctx, "/status")
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range s.Processes {
		if path, ok := strings.CutPrefix(p.Metrics, "unix:"); ok {
			g.dirs[filepath.Dir(path)] = true
		}
	}
	return s, err
}

// stop ends the graph as Ctrl-C does.
func (g *graph) stop() error {
	g.http.CloseIdleConnections()
	_ = g.cmd.Process.Signal(os.Interrupt)
	select {
	case <-g.gone:
		return g.err
	case <-time.After(2 * time.Minute):
		_ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL)
		<-g.gone
		return errors.New("not drained within 2 minutes")
	}
}

// traces lists what a graph that has ended left: processes, files.
func (g *graph) traces(before map[string]bool) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var l []string
	for pid, name := range g.every {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && bytes.Contains(b, []byte("dynamo")) {
			l = append(l, fmt.Sprintf("process %d, %s", pid, name))
		}
	}
	for d := range g.dirs {
		if _, err := os.Stat(d); err == nil {
			l = append(l, d)
		}
	}
	after, err := leftovers()
	if err != nil {
		return append(l, err.Error())
	}
	for f := range after {
		if !before[f] {
			l = append(l, f)
		}
	}
	return l
}

// leftovers are the regions of shared memory whose maker is dead: nobody holds the lock.
func leftovers() (map[string]bool, error) {
	l, err := filepath.Glob("/dev/shm/*dynamo-*")
	m := map[string]bool{}
	for _, name := range l {
		f, err := os.Open(name)
		if err != nil {
			continue // it went away
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			m[name] = true
		}
		_ = f.Close()
	}
	return m, err
}
