package e2e

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"
)

const story = "Tell me a long story about a ship."

// undisturbed is the text that every fault must not change.
func undisturbed(t *testing.T, r *running, q chatReq) answer {
	t.Helper()
	a, err := r.stream(within(t, 2*time.Minute), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// same fails where a disturbed answer is not the undisturbed one: text, reason, usage.
func same(t *testing.T, got, want answer) {
	t.Helper()
	got.Deltas, want.Deltas = 0, 0
	if got != want {
		t.Errorf("answer differs\n got %+v\nwant %+v", got, want)
	}
}

// streams runs n streams at once and calls disturb when the first has n0 deltas; it returns the answers.
func streams(t *testing.T, r *running, q chatReq, n, n0 int, disturb func()) []answer {
	t.Helper()
	var once sync.Once
	var wg sync.WaitGroup
	out := make([]answer, n)
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			out[i], errs[i] = r.stream(within(t, 3*time.Minute), q, func(d int) {
				if d == n0 {
					once.Do(disturb)
				}
			})
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
	}
	return out
}

// kill -9 of a decode worker in mid-stream: the same text, none lost; the worker comes back.
func TestDecodeKilled(t *testing.T) {
	r := start(t, disagg)
	q := ask(story, 96)
	want := undisturbed(t, r, q)
	for _, victim := range []string{"decode-0", "decode-1"} {
		from := r.mark()
		// Two streams: least-loaded puts one on each worker.
		for _, got := range streams(t, r, q, 2, 20, func() { r.signal(victim, syscall.SIGKILL) }) {
			same(t, got, want)
		}
		r.waitFrom(from, victim+" is back", time.Minute, func(e event) bool {
			return e.Child == victim && e.Event == "state" && e.Node == "decode" && e.State == "ready"
		})
	}
}

// The same with sampling: the seed's stream goes on where it was.
func TestDecodeKilledSampled(t *testing.T) {
	r := start(t, disagg)
	q := ask(story, 64)
	temp, seed := 0.9, 11
	q.Temperature, q.Seed = &temp, &seed
	want := undisturbed(t, r, q)
	for _, got := range streams(t, r, q, 2, 15, func() { r.signal("decode-0", syscall.SIGKILL) }) {
		same(t, got, want)
	}
}

// Prefill killed before, during and after a hand-off: decode computes the prompt itself.
func TestPrefillKilled(t *testing.T) {
	r := start(t, disagg)
	long := ""
	for i := range 60 {
		long += fmt.Sprintf("Item %d of the list is a number. ", i)
	}
	q := ask(long+"What is the list about?", 32)
	// One aggregated answer to compare with, computed elsewhere.
	a := start(t, agg)
	want := undisturbed(t, a, q)
	kill := func() (back func()) {
		from := r.mark()
		r.signal("prefill-0", syscall.SIGKILL)
		return func() {
			r.waitFrom(from, "prefill is back", time.Minute, func(e event) bool {
				return e.Child == "prefill-0" && e.Event == "state" && e.Node == "prefill" && e.State == "ready"
			})
		}
	}
	t.Run("after", func(t *testing.T) {
		var back func()
		for _, got := range streams(t, r, q, 1, 5, func() { back = kill() }) {
			same(t, got, want)
		}
		back()
	})
	t.Run("before", func(t *testing.T) {
		back := kill()
		same(t, undisturbed(t, r, q), want)
		back()
	})
	t.Run("during", func(t *testing.T) {
		q := q
		q.Messages = []map[string]any{{"role": "user", "content": "Once more, please. " + long + "What is the list about?"}}
		want := undisturbed(t, a, q)
		back := make(chan func(), 1)
		timer := time.AfterFunc(150*time.Millisecond, func() { back <- kill() })
		defer timer.Stop()
		same(t, undisturbed(t, r, q), want)
		(<-back)()
	})
}

// SIGSTOP of a worker: it neither answers nor ends, and its streams go on elsewhere.
func TestWorkerStopped(t *testing.T) {
	r := start(t, disagg)
	q := ask(story, 96)
	want := undisturbed(t, r, q)
	pid := r.pid("decode-1")
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	began := time.Now()
	for _, got := range streams(t, r, q, 2, 20, func() { r.signal("decode-1", syscall.SIGSTOP) }) {
		same(t, got, want)
	}
	t.Logf("both streams ended %.1f s after they began", time.Since(began).Seconds())
	if time.Since(began) > 30*time.Second {
		t.Errorf("a stopped worker held its stream for %v", time.Since(began))
	}
}

// The store away for 30 s: streams go on, and new requests work from the last known table.
func TestStoreKilled(t *testing.T) {
	r := start(t, disagg)
	q := ask(story, 48)
	want := undisturbed(t, r, q)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	kills := 0
	wg.Go(func() { // the supervisor starts it again: kill it each time
		last := 0
		for ctx.Err() == nil {
			if pid := r.pid("store"); pid != last && alive(pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				last = pid
				kills++
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	answered := 0
	for ctx.Err() == nil {
		same(t, undisturbed(t, r, q), want)
		answered++
		if t.Failed() {
			break
		}
	}
	wg.Wait()
	t.Logf("store killed %d times in 30 s; %d requests answered meanwhile", kills, answered)
	if kills == 0 || answered < 2 {
		t.Errorf("killed %d times, answered %d: nothing was shown", kills, answered)
	}
	// It comes back, and a worker that is restarted is found again.
	from := r.mark()
	r.signal("decode-0", syscall.SIGKILL)
	r.waitFrom(from, "decode-0 is back", time.Minute, func(e event) bool {
		return e.Child == "decode-0" && e.Event == "state" && e.Node == "decode" && e.State == "ready"
	})
	for _, got := range streams(t, r, q, 4, 10, func() {}) {
		same(t, got, want)
	}
}
