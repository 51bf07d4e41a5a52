package etcd

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/runtime/discovery"
	"github.com/dynamograph/dynamo/runtime/discovery/discoverytest"
	"github.com/dynamograph/dynamo/runtime/discovery/store"
)

// With this variable set, the test binary is a store: its value is the folder.
const storeEnv = "DYNAMO_TEST_STORE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(storeEnv); dir != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := store.Run(ctx, store.Options{
			Dir: filepath.Join(dir, "data"), Listen: "unix:" + filepath.Join(dir, "s"), Ready: func() { fmt.Println("ready") },
		}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var a, b, c = discoverytest.Instance("a"), discoverytest.Instance("b"), discoverytest.Instance("c")

// never fails the test if id was absent from any state from number n on.
func never(t *testing.T, w *discoverytest.Watcher, n int, id string) {
	t.Helper()
	w.Since(n, func(s []discovery.Instance) {
		for _, in := range s {
			if in.ID == id {
				return
			}
		}
		t.Errorf("%q was gone for a while: %v", id, s)
	})
}

func TestStoreRestarts(t *testing.T) {
	for _, tc := range []struct {
		name, data string
	}{{"SameData", "data"}, {"EmptyData", "other"}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			s.start("data")
			server, client, dying := s.registry("g"), s.registry("g"), s.registry("g")
			discoverytest.Register(t, server, a)
			lease := discoverytest.Register(t, server, c)
			discoverytest.Register(t, dying, b)
			w := discoverytest.Watch(t, client)
			w.Wait(a, b, c)
			n := w.States()

			s.stop()
			if err := dying.Close(); err != nil { // the store cannot hear it
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond)
			if w.States() != n {
				t.Error("the table changed while the store was away")
			}
			s.start(tc.data)

			w.Wait(a, c) // b goes, after the grace; a and c were back before
			never(t, w, n, "a")
			never(t, w, n, "c")
			fresh := discoverytest.Watch(t, s.registry("g"))
			fresh.Wait(a, c)

			// Changes pass again, at once.
			d := discoverytest.Instance("d")
			discoverytest.Register(t, server, d)
			w.Wait(a, c, d)
			if err := lease.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.Wait(a, d)
		})
	}
}

func TestBeforeTheStore(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	r := s.registry("g")
	began := time.Now()
	lease := discoverytest.Register(t, r, a)
	if d := time.Since(began); d > time.Second { // it waits for no store
		t.Errorf("registering without a store took %s", d)
	}
	discoverytest.Register(t, r, b)
	w := discoverytest.Watch(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := lease.Close(ctx); err == nil || !strings.Contains(err.Error(), "expires within 2s") {
		t.Errorf("closing without a store: %v", err)
	}
	if w.States() != 0 {
		t.Errorf("a table without a store: %v", w.Last())
	}
	s.start("data")
	w.Wait(b)
}

func TestExpires(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.start("data")
	r := s.registry("g")
	w := discoverytest.Watch(t, r)
	discoverytest.Register(t, r, b)
	// A process that dies keeps nothing alive.
	value, err := encode(a)
	if err != nil {
		t.Fatal(err)
	}
	put(t, r, "a", value, 2)
	w.Wait(a, b)
	began := time.Now()
	w.Wait(b)
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("a dead instance was listed for %s", d)
	}
}

func TestLeaseTakenAway(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.start("data")
	r := s.registry("g")
	discoverytest.Register(t, r, a)
	w := discoverytest.Watch(t, r)
	w.Wait(a)
	l, err := r.client.Leases(t.Context())
	if err != nil || len(l.Leases) != 1 {
		t.Fatal(l, err)
	}
	if _, err := r.client.Revoke(t.Context(), l.Leases[0].ID); err != nil {
		t.Fatal(err)
	}
	w.Wait()
	w.Wait(a)
}

func TestForeignEntries(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.start("data")
	r := s.registry("g")
	w := discoverytest.Watch(t, r)
	put(t, r, "junk", "{", 60)
	put(t, r, "other", `{"id":"another","node":"n"}`, 60)
	newer := `{"id":"new","node":"n","addr":"h:1","started":"2030-01-01T00:00:00Z","colour":"blue"}`
	put(t, r, "new", newer, 60) // a field of a later version is no fault
	foreign := discovery.Instance{ID: "new", Node: "n", Addr: "h:1", Started: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.Wait(foreign)

	// A successor has taken the name: the late close of the old lease leaves it alone.
	old := discoverytest.Register(t, r, a)
	w.Wait(a, foreign)
	next := a
	next.Addr = "h:2"
	successor := s.registry("g")
	discoverytest.Register(t, successor, next)
	w.Wait(next, foreign)
	if err := old.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	g, err := r.client.Get(t.Context(), r.prefix+"a")
	if err != nil || len(g.Kvs) != 1 {
		t.Errorf("the successor's entry is gone: %v %v", g, err)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{Graph: "g"}, {Endpoints: []string{"unix:/x"}}, {Endpoints: []string{"unix:/x"}, Graph: "a/b"}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	for in, want := range map[string]string{
		"unix:/run/s": "unix:///run/s", "h:1": "http://h:1", "https://h:1": "https://h:1", "unix:///run/s": "unix:///run/s",
	} {
		if got := endpoint(in, false); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	if got := endpoint("h:1", true); got != "https://h:1" {
		t.Error(got)
	}
}

// TestStoreStops stops the store's process for longer than the leases live: its clock runs on, so that it finds all of them expired.
func TestStoreStops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	began := time.Now()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), storeEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("store: %v", err)
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatal(line, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmRSS") {
			t.Logf("process start to ready %s, %s", time.Since(began).Round(time.Millisecond), strings.Join(strings.Fields(line), " "))
		}
	}

	s := &testStore{t: t, dir: dir}
	r, client := s.registry("g"), s.registry("g")
	discoverytest.Register(t, r, a)
	w := discoverytest.Watch(t, client)
	w.Wait(a)
	n := w.States()
	signalTo := func(sig syscall.Signal) {
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	signalTo(syscall.SIGSTOP)
	time.Sleep(4 * time.Second)
	signalTo(syscall.SIGCONT)
	discoverytest.Register(t, r, b)
	w.Wait(a, b)
	time.Sleep(4 * time.Second) // past the grace
	w.Wait(a, b)
	never(t, w, n, "a")
}

func put(t *testing.T, r *Registry, id, value string, ttl int64) {
	t.Helper()
	g, err := r.client.Grant(t.Context(), ttl)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.Put(t.Context(), r.prefix+id, value, clientv3.WithLease(g.ID)); err != nil {
		t.Fatal(err)
	}
}
