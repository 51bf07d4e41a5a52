package e2e

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	disagg = "../../specs/llama-disagg.cue"
	agg    = "../../specs/llama-agg.cue"
)

// The main job: the disaggregated graph answers, streamed and not, with the same text, and Ctrl-C drains.
func TestMainJob(t *testing.T) {
	r := start(t, disagg)
	ctx := within(t, 2*time.Minute)
	one, err := r.chat(ctx, ask("What is the capital of France?", 32))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(one.Text, "Paris") {
		t.Errorf("answer %q does not name Paris", one.Text)
	}
	if one.Usage.Completion != 32 || one.Finish != "length" {
		t.Errorf("usage %+v, finish %q: want 32 tokens and length", one.Usage, one.Finish)
	}
	two, err := r.stream(ctx, ask("What is the capital of France?", 32), nil)
	if err != nil {
		t.Fatal(err)
	}
	if two.Text != one.Text || two.Usage != one.Usage || two.Deltas < 8 {
		t.Errorf("streamed %+v, whole %+v", two, one)
	}
	pids := []int{r.pid("api-0"), r.pid("store"), r.pid("prefill-0"), r.pid("decode-0"), r.pid("decode-1")}
	r.stop()
	if r.err != nil {
		t.Errorf("graph run ended with %v:\n%s", r.err, r.errText())
	}
	for _, p := range pids {
		if alive(p) {
			t.Errorf("process %d is left", p)
		}
	}
}

// The aggregated graph gives the text of the disaggregated one: where the prompt was computed does not show.
func TestAggregatedEqualsDisaggregated(t *testing.T) {
	a, d := start(t, agg), start(t, disagg)
	for _, q := range []string{"Write a sentence about rivers.", "Name three colours.", strings.Repeat("The quick brown fox jumps over the lazy dog. ", 30) + "What jumps?"} {
		one, err := a.stream(within(t, time.Minute), ask(q, 48), nil)
		if err != nil {
			t.Fatal(err)
		}
		two, err := d.stream(within(t, time.Minute), ask(q, 48), nil)
		if err != nil {
			t.Fatal(err)
		}
		if one.Text != two.Text || one.Text == "" {
			t.Errorf("%q: aggregated %q, disaggregated %q", q, one.Text, two.Text)
		}
	}
}

// Ctrl-C lets a stream in flight end.
func TestDrain(t *testing.T) {
	r := start(t, disagg)
	undisturbed, err := r.stream(within(t, time.Minute), ask("Tell me about the sea.", 64), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.stream(within(t, time.Minute), ask("Tell me about the sea.", 64), func(n int) {
		if n == 5 {
			_ = r.cmd.Process.Signal(os.Interrupt)
		}
	})
	if err != nil || got.Text != undisturbed.Text {
		t.Errorf("drained stream: %v, %q; want %q", err, got.Text, undisturbed.Text)
	}
	<-r.done
	if r.err != nil {
		t.Errorf("graph run ended with %v", r.err)
	}
}

// A port that is taken ends the run with one message.
func TestPortTaken(t *testing.T) {
	r := start(t, agg)
	addr := strings.TrimPrefix(r.url, "http://")
	cmd := exec.Command(need(t, "DYNAMO_TEST_BINARY"), "graph", "run", agg, "-t", "listen="+addr)
	out, err := cmd.CombinedOutput()
	x, ok := err.(*exec.ExitError)
	if !ok || x.ExitCode() != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), addr) || !strings.Contains(string(out), "uses the port") {
		t.Errorf("the message does not say which port is taken:\n%s", out)
	}
}

// The supervisor killed: no orphan.
func TestSupervisorKilled(t *testing.T) {
	r := start(t, disagg)
	var pids []int
	for _, c := range []string{"api-0", "store", "prefill-0", "decode-0", "decode-1"} {
		pids = append(pids, r.pid(c))
	}
	if err := r.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-r.done
	deadline := time.Now().Add(40 * time.Second)
	for _, p := range pids {
		for alive(p) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d outlived its supervisor", p)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}
