// Package discoverytest is the conformance suite of registries.
package discoverytest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dynamograph/dynamo/runtime/discovery"
)

// Patience bounds every wait of the suite.
const Patience = 15 * time.Second

// Run runs the suite. open makes a new, empty table and returns a function that gives a view of it, as each process of a graph has one;
// views may be one and the same. The suite does not close them.
func Run(t *testing.T, open func(t *testing.T) (view func() discovery.Registry)) {
	for _, c := range []struct {
		name string
		f    func(t *testing.T, view func() discovery.Registry)
	}{
		{"EmptyAtOnce", empty},
		{"RegisterUpdateClose", registerUpdateClose},
		{"Sorted", sorted},
		{"OneLeaseAnID", oneLease},
		{"Refuses", refuses},
		{"WatchEnds", watchEnds},
		{"SlowWatcher", slowWatcher},
		{"Concurrent", concurrent},
		{"Closed", closed},
	} {
		t.Run(c.name, func(t *testing.T) { c.f(t, open(t)) })
	}
}

// Instance returns an instance of the given id.
func Instance(id string) discovery.Instance {
	return discovery.Instance{
		ID: id, Node: "decode", Addr: "unix:/run/" + id, Started: time.Unix(1700000000, 0).UTC(), Machine: "m",
		Ports: map[string]discovery.Port{"in": {Type: "tokens", Info: map[string]string{"context": "8192"}}, "kv": {Type: "kv"}},
	}
}

// Watcher follows a table in the background and keeps every state.
type Watcher struct {
	t      *testing.T
	mu     sync.Mutex
	states [][]discovery.Instance
	err    error
	done   chan struct{}
	cancel context.CancelFunc
}

// Watch begins to follow r until the test ends.
func Watch(t *testing.T, r discovery.Registry) *Watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watcher{t: t, done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(w.done)
		for table, err := range r.Watch(ctx) {
			w.mu.Lock()
			if err != nil {
				w.err = err
			} else {
				w.states = append(w.states, table)
			}
			w.mu.Unlock()
		}
	}()
	t.Cleanup(w.Stop)
	return w
}

// Stop ends the watch.
func (w *Watcher) Stop() {
	w.cancel()
	<-w.done
}

// States returns how many states were seen so far.
func (w *Watcher) States() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.states)
}

// Since calls f for each state from number n on.
func (w *Watcher) Since(n int, f func([]discovery.Instance)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.states[n:] {
		f(s)
	}
}

// Last returns the latest table, nil where none was seen.
func (w *Watcher) Last() []discovery.Instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.states) == 0 {
		return nil
	}
	return w.states[len(w.states)-1]
}

// Wait waits until the latest table is want.
func (w *Watcher) Wait(want ...discovery.Instance) {
	w.t.Helper()
	var diff string
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if w.States() == 0 {
			diff = "no table seen"
			continue
		}
		if diff = cmp.Diff(want, w.Last(), cmpopts.EquateEmpty()); diff == "" {
			return
		}
	}
	w.t.Fatalf("want(-) got(+):\n%s", diff)
}

// Register registers in or fails the test.
func Register(t *testing.T, r discovery.Registry, in discovery.Instance) discovery.Lease {
	t.Helper()
	l, err := r.Register(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func empty(t *testing.T, view func() discovery.Registry) {
	Watch(t, view()).Wait()
}

func registerUpdateClose(t *testing.T, view func() discovery.Registry) {
	a, b := view(), view()
	early := Watch(t, b)
	in := Instance("decode-1")
	l := Register(t, a, in)
	early.Wait(in)
	late := Watch(t, b)
	late.Wait(in)

	in.Ports = map[string]discovery.Port{"in": {Type: "tokens", Info: map[string]string{"context": "1"}}}
	check(t, l.Update(in))
	early.Wait(in)
	late.Wait(in)

	check(t, l.Close(t.Context()))
	early.Wait()
	late.Wait()
	check(t, l.Close(t.Context()))
	if err := l.Update(in); !errors.Is(err, discovery.ErrClosed) {
		t.Errorf("update after close: %v", err)
	}
	early.Since(0, func(s []discovery.Instance) {
		if len(s) > 1 {
			t.Errorf("a state of %d instances", len(s))
		}
	})
}

func sorted(t *testing.T, view func() discovery.Registry) {
	w := Watch(t, view())
	for _, id := range []string{"c", "a", "d", "b"} {
		Register(t, view(), Instance(id))
	}
	w.Wait(Instance("a"), Instance("b"), Instance("c"), Instance("d"))
}

func oneLease(t *testing.T, view func() discovery.Registry) {
	r := view()
	w := Watch(t, r)
	l := Register(t, r, Instance("a"))
	if _, err := r.Register(t.Context(), Instance("a")); !errors.Is(err, discovery.ErrRegistered) {
		t.Errorf("second lease: %v", err)
	}
	w.Wait(Instance("a"))
	check(t, l.Close(t.Context()))
	w.Wait()
	Register(t, r, Instance("a"))
	w.Wait(Instance("a"))
}

func refuses(t *testing.T, view func() discovery.Registry) {
	r := view()
	for _, in := range []discovery.Instance{{Node: "n"}, {ID: "a/b", Node: "n"}, {ID: "a b", Node: "n"}, {ID: "a"}} {
		if _, err := r.Register(t.Context(), in); err == nil {
			t.Errorf("took %+v", in)
		}
	}
	l := Register(t, r, Instance("a"))
	if err := l.Update(Instance("b")); err == nil {
		t.Error("an update changed the id")
	}
	if err := l.Update(discovery.Instance{ID: "a"}); err == nil {
		t.Error("an update took the node away")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Register(ctx, Instance("late")); !errors.Is(err, context.Canceled) {
		t.Errorf("with a dead ctx: %v", err)
	}
	Watch(t, view()).Wait(Instance("a"))
}

func watchEnds(t *testing.T, view func() discovery.Registry) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for _, err := range view().Watch(ctx) {
		if n++; n == 1 {
			check(t, err)
			cancel()
			continue
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("state %d: %v", n, err)
		}
	}
	if n != 2 {
		t.Errorf("%d turns, want a table and an error", n)
	}
	for range view().Watch(t.Context()) {
		break
	}
}

// slowWatcher does not read while much happens: it must see the end of it.
func slowWatcher(t *testing.T, view func() discovery.Registry) {
	r := view()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	n := 0
	for table, err := range view().Watch(ctx) {
		check(t, err)
		if n++; n == 1 {
			for i := range 40 {
				l := Register(t, r, Instance(fmt.Sprintf("i-%02d", i)))
				if i != 20 {
					check(t, l.Close(ctx))
				}
			}
			continue
		}
		if len(table) == 1 && table[0].ID == "i-20" {
			return
		}
	}
	t.Fatal("the last state was never seen")
}

func concurrent(t *testing.T, view func() discovery.Registry) {
	a, b := view(), view()
	w := Watch(t, b)
	var wg sync.WaitGroup
	var want []discovery.Instance
	for i := range 50 {
		in := Instance(fmt.Sprintf("i-%02d", i))
		if i%2 == 0 {
			want = append(want, in)
		}
		wg.Go(func() {
			r := a
			if i%3 == 0 {
				r = b
			}
			l, err := r.Register(t.Context(), in)
			if err == nil && i%2 == 1 {
				err = l.Close(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	w.Wait(want...)
}

func closed(t *testing.T, view func() discovery.Registry) {
	r := view()
	l := Register(t, r, Instance("a"))
	w := Watch(t, r)
	w.Wait(Instance("a"))
	check(t, r.Close())
	check(t, r.Close())
	<-w.done
	if !errors.Is(w.err, discovery.ErrClosed) {
		t.Errorf("the watch ended with %v", w.err)
	}
	if _, err := r.Register(t.Context(), Instance("b")); !errors.Is(err, discovery.ErrClosed) {
		t.Errorf("register: %v", err)
	}
	if err := l.Update(Instance("a")); !errors.Is(err, discovery.ErrClosed) {
		t.Errorf("update: %v", err)
	}
	check(t, l.Close(t.Context()))
	for _, err := range r.Watch(t.Context()) {
		if !errors.Is(err, discovery.ErrClosed) {
			t.Errorf("watch: %v", err)
		}
	}
}
