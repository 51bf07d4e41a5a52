package supervise

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary is also the child: its first argument after "child" says how it behaves.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		os.Exit(childMain(os.Args[2]))
	}
	goleak.VerifyTestMain(m)
}

func childMain(how string) int {
	ctx, l := OpenLifeline(context.Background())
	defer l.Close()
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	switch how {
	case "config":
		l.Tell(Status{Node: "n", State: "failed", Reason: "port 1 is taken"})
		return ExitConfig
	case "crash":
		fmt.Fprintln(os.Stderr, "boom")
		return 1
	case "degraded":
		l.Tell(Status{Node: "n", State: "degraded", Reason: "half of it"})
		<-term
		return 0
	case "supervisor": // one that is to be killed: it says its child's pid and waits
		_ = Run(context.Background(), Options{Children: []Child{mkChild("inner", "orphan")}, OnEvent: func(e Event) {
			if e.Kind == Started {
				fmt.Println(e.PID)
			}
		}})
		return 0
	}
	l.Tell(Status{Node: "n", State: "ready", Addr: "here"})
	select {
	case <-term:
		fmt.Fprintln(os.Stderr, "drained")
	case <-ctx.Done():
	}
	return 0
}

func mkChild(name, how string) Child {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Child{Name: name, Nodes: []string{"n"}, Path: exe, Args: []string{"child", how}}
}

// record runs o until until says so about an event, then drains; it returns the events as text.
func record(t *testing.T, o Options, until func(Event) bool) ([]string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var mu sync.Mutex
	var got []string
	o.OnEvent = func(e Event) {
		mu.Lock()
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s%s", e.Kind, e.Child, e.Status.State, e.Text)))
		mu.Unlock()
		if until(e) {
			cancel()
		}
	}
	err := Run(ctx, o)
	return got, err
}

func TestRunDrains(t *testing.T) {
	a, b := mkChild("a", "good"), mkChild("b", "good")
	a.Rank = 1
	got, err := record(t, Options{Children: []Child{a, b}}, func(e Event) bool { return e.Kind == AllReady })
	if err != nil {
		t.Fatal(err)
	}
	tail := got[len(got)-4:]
	want := []string{"log b drained", "exited b exit status 0", "log a drained", "exited a exit status 0"}
	if !slices.Equal(tail, want) {
		t.Fatalf("drain %q, want %q", tail, want)
	}
}

func TestRunRestartsAfterKill(t *testing.T) {
	var pids []int
	got, err := record(t, Options{Children: []Child{mkChild("a", "good")}, Limits: Limits{Backoff: time.Millisecond}}, func(e Event) bool {
		if e.Kind == Started {
			pids = append(pids, e.PID)
		}
		if e.Kind == Changed && len(pids) < 3 {
			_ = syscall.Kill(e.PID, syscall.SIGKILL)
		}
		return e.Kind == Changed && len(pids) == 3
	})
	if err != nil || len(pids) != 3 {
		t.Fatalf("%v after %q", err, got)
	}
}

func TestRunGivesUp(t *testing.T) {
	for how, want := range map[string]string{"config": "bad: port 1 is taken", "crash": "bad: exit status 1; its last lines:\n  boom"} {
		t.Run(how, func(t *testing.T) {
			got, err := record(t, Options{Children: []Child{mkChild("bad", how), mkChild("good", "good")}, Limits: Limits{Backoff: time.Millisecond}},
				func(Event) bool { return false })
			if err == nil || err.Error() != want {
				t.Fatalf("error %v, want %q; events %q", err, want, got)
			}
			// It may have been asked to go before it could catch the signal.
			if !strings.HasPrefix(got[len(got)-1], "exited good ") {
				t.Fatalf("the others were not drained: %q", got)
			}
		})
	}
}

// A child that somebody else kills again and again before it is ready: Run gives up and says what may be behind it.
func TestRunKilledByOthers(t *testing.T) {
	got, err := record(t, Options{Children: []Child{mkChild("a", "stuck")}, Limits: Limits{Backoff: time.Millisecond}}, func(e Event) bool {
		if e.Kind == Started {
			_ = syscall.Kill(e.PID, syscall.SIGKILL)
		}
		return false
	})
	if err == nil || err.Error() != "a: signal: killed (not by dynamo; is the machine out of memory?)" {
		t.Fatalf("error %v; events %q", err, got)
	}
	if n := strings.Count(strings.Join(got, "\n"), "started a"); n != maxStartFailures {
		t.Errorf("started %d times: %q", n, got)
	}
}

func TestRunSilence(t *testing.T) {
	stopped := false
	_, err := record(t, Options{Children: []Child{mkChild("a", "good")}, Limits: Limits{Silence: 5 * time.Second, Backoff: time.Millisecond}}, func(e Event) bool {
		if e.Kind == Changed && !stopped {
			stopped = true
			_ = syscall.Kill(e.PID, syscall.SIGSTOP)
			return false
		}
		return e.Kind == Changed
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A node that stays degraded counts as up.
func TestRunDegraded(t *testing.T) {
	began := time.Now()
	_, err := record(t, Options{Children: []Child{mkChild("a", "degraded")}}, func(e Event) bool { return e.Kind == AllReady })
	if d := time.Since(began); err != nil || d < settled || d > 20*time.Second {
		t.Fatalf("%v after %v", err, d)
	}
}

func TestRunMissingProgram(t *testing.T) {
	_, err := record(t, Options{Children: []Child{{Name: "x", Path: "/nowhere/dynamo"}}}, func(Event) bool { return false })
	if err == nil || !strings.Contains(err.Error(), "/nowhere/dynamo") {
		t.Fatalf("error %v", err)
	}
}

// A killed supervisor leaves no orphan.
func TestOrphan(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := mkChild("outer", "supervisor")
	dead := make(chan news, 64)
	// The outer supervisor runs with stdout on the pipe; start merges both outputs into lines, which is all that we need.
	p, err := start(c, dead)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	_ = w.Close()
	var inner int
	for n := range dead {
		if n.line != nil {
			if _, err := fmt.Sscan(*n.line, &inner); err == nil {
				break
			}
		}
	}
	_ = syscall.Kill(p.pid(), syscall.SIGKILL) // only the supervisor, not its group
	go func() {
		for range dead {
		}
	}()
	deadline := time.Now().Add(10 * time.Second)
	for alive(inner) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d outlived its supervisor", inner)
		}
		time.Sleep(20 * time.Millisecond)
	}
	p.release()
	close(dead)
}

// alive reports whether pid runs: a zombie that nobody reaped does not.
func alive(pid int) bool {
	f, err := os.Open(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	defer f.Close()
	s, _ := bufio.NewReader(f).ReadString('\n')
	i := strings.LastIndex(s, ")")
	return i > 0 && len(s) > i+2 && s[i+2] != 'Z'
}
