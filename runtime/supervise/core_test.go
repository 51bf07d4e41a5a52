package supervise

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func verbs(as []Action) string {
	var out []string
	for _, a := range as {
		out = append(out, fmt.Sprintf("%s %s", a.Verb, a.Child))
	}
	return strings.Join(out, ", ")
}

func TestCore(t *testing.T) {
	t0 := time.Unix(0, 0)
	at := func(d time.Duration) time.Time { return t0.Add(d) }
	c := NewCore(Limits{})
	c.Want("front", 0)
	c.Want("decode-0", 1)
	c.Want("store", 2)
	step := func(d time.Duration, want string) time.Time {
		t.Helper()
		got, wake := c.Step(at(d))
		if verbs(got) != want {
			t.Fatalf("at %v: %q, want %q", d, verbs(got), want)
		}
		return wake
	}
	step(0, "start front, start decode-0, start store")
	step(time.Second, "")

	// The first exit starts again at once, the second after the back-off.
	c.Exited(at(2*time.Second), "decode-0")
	step(2*time.Second, "start decode-0")
	c.Exited(at(3*time.Second), "decode-0")
	if wake := step(3*time.Second, ""); wake != at(3500*time.Millisecond) {
		t.Fatalf("wake at %v", wake.Sub(t0))
	}
	step(3500*time.Millisecond, "start decode-0")
	c.Exited(at(3600*time.Millisecond), "decode-0")
	if r := c.RetryAt("decode-0"); r != at(4600*time.Millisecond) {
		t.Fatalf("retry at %v, want a doubled back-off", r.Sub(t0))
	}
	step(4600*time.Millisecond, "start decode-0")

	// A child that ran long enough is forgiven.
	for _, n := range []string{"front", "decode-0", "store"} {
		c.Beat(at(40*time.Second), n)
	}
	c.Exited(at(40*time.Second), "decode-0")
	step(40*time.Second, "start decode-0")

	// No beat: killed, and started again when it is gone.
	c.Beat(at(50*time.Second), "front")
	c.Beat(at(50*time.Second), "store")
	if wake := step(59*time.Second, ""); wake != at(60*time.Second) {
		t.Fatalf("wake at %v", wake.Sub(t0))
	}
	step(60*time.Second, "kill decode-0")
	c.Exited(at(60*time.Second), "decode-0")
	step(61*time.Second, "start decode-0")
	for _, n := range []string{"front", "decode-0", "store"} {
		c.Beat(at(61*time.Second), n)
	}

	// Drain: rank by rank, the next only when the one before is gone; grace, then kill.
	c.Drain()
	step(62*time.Second, "terminate front")
	step(63*time.Second, "")
	c.Exited(at(64*time.Second), "front")
	c.Beat(at(90*time.Second), "store")
	step(64*time.Second, "terminate decode-0")
	step(94*time.Second, "kill decode-0")
	c.Exited(at(94*time.Second), "decode-0")
	step(94*time.Second, "terminate store")
	c.Exited(at(95*time.Second), "store")
	step(200*time.Second, "")
	if !c.Idle() {
		t.Fatal("not idle after the drain")
	}
}

// A supervisor that was stopped for a while, as by Ctrl-Z, does not take its own sleep for its children's.
func TestCoreSlept(t *testing.T) {
	t0 := time.Unix(0, 0)
	at := func(d time.Duration) time.Time { return t0.Add(d) }
	for _, sleep := range []time.Duration{20 * time.Second, 21 * time.Second, time.Hour} {
		c := NewCore(Limits{})
		c.Want("decode-0", 0)
		c.Step(at(0))
		now := at(sleep)
		got, wake := c.Step(now)
		if len(got) != 0 || !wake.After(now) || wake.After(now.Add(secondLook)) {
			t.Fatalf("after %v of sleep: %q, wake in %v", sleep, verbs(got), wake.Sub(now))
		}
		c.Beat(now.Add(time.Millisecond), "decode-0") // it waited to be read
		if got, wake = c.Step(wake); len(got) != 0 {
			t.Fatalf("after %v of sleep, and a beat: %q", sleep, verbs(got))
		}
		// One that hangs is found all the same.
		for range 2 {
			got, wake = c.Step(wake)
		}
		if verbs(got) != "kill decode-0" {
			t.Errorf("no beat since then: %q", verbs(got))
		}
	}
}
