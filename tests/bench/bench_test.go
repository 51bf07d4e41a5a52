package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
)

func TestFigures(t *testing.T) {
	// Two streams, 100 prompt tokens each: first tokens after 1 and 2 s, all over after 4 s.
	streams := []stream{
		{At: []float64{1, 2.5, 4}, Tokens: []uint32{1, 2, 3}},
		{At: []float64{2, 3, 3.5}, Tokens: []uint32{1, 2, 3}},
	}
	m, err := figures(streams, 100, 3)
	if err != nil {
		t.Fatal(err)
	}
	want := runFigures{Streams: 2, TTFT: 1.5, Worst: 2, ITL: 1.25, Prompt: 100, Decode: 2, Output: 1.5}
	if m != want {
		t.Errorf("got  %+v\nwant %+v", m, want)
	}
}

// Text may come in fewer pieces than tokens; the tokens that came together are not lost.
func TestFiguresOfText(t *testing.T) {
	m, err := figures([]stream{{At: []float64{1, 2, 3}, Count: 5}}, 10, 5)
	if err != nil {
		t.Fatal(err)
	}
	if m.Decode != 2 || math.Abs(m.Output-5.0/3) > 1e-9 {
		t.Errorf("decode %v, output %v", m.Decode, m.Output)
	}
}

func TestFiguresRefuse(t *testing.T) {
	for name, s := range map[string]stream{
		"short":     {At: []float64{1}, Tokens: []uint32{1}},
		"none":      {Count: 2},
		"disorder":  {At: []float64{2, 1}, Tokens: []uint32{1, 2}},
		"too early": {At: []float64{0, 1}, Tokens: []uint32{1, 2}},
	} {
		if _, err := figures([]stream{s}, 1, 2); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 2}, 2}} {
		if got := median(c.v); got != c.want {
			t.Errorf("median(%v) = %v, want %v", c.v, got, c.want)
		}
	}
}

func TestReadEvents(t *testing.T) {
	const events = `data: {"choices":[{"text":"one"}],"usage":null}

: keep-alive

data: {"choices":[{"text":" two"}],"usage":null}

data: {"choices":[{"text":"","finish_reason":"length"}],"usage":null}

data: {"choices":[],"usage":{"completion_tokens":3}}

data: [DONE]

`
	var s stream
	if err := s.read(strings.NewReader(events), time.Now()); err != nil {
		t.Fatal(err)
	}
	if s.Text != "one two" || s.Count != 3 || len(s.At) != 2 {
		t.Errorf("%+v", s)
	}
	for _, bad := range []string{"", "data: {}\n\n", "data: {\"error\":{\"message\":\"no\"}}\n\ndata: [DONE]\n\n", "data: nonsense\n\ndata: [DONE]\n\n"} {
		if err := new(stream).read(strings.NewReader(bad), time.Now()); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestCPUTicks(t *testing.T) {
	if got := cpuTicks([]byte("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 40 2 0 0")); got != 42 {
		t.Errorf("got %d, want 42", got)
	}
}

func TestBusyTicks(t *testing.T) {
	if got := busyTicks([]byte("cpu  1 2 4 1000 2000 8 16 32 64 128\ncpu0 9 9 9 9\n")); got != 63 {
		t.Errorf("got %d, want 63", got)
	}
}

// Answers that differ are counted and named.
func TestCompare(t *testing.T) {
	r := &report{}
	ours := []stream{{Tokens: []uint32{1, 2, 3}}}
	r.compare(nil, map[string][]stream{
		"engine/1": ours, "engine/2": {{Tokens: []uint32{1, 2, 4}}}, "llama.cpp fa=on/1": {{Tokens: []uint32{1, 9, 3}}},
	})
	if r.Same.Answers != 2 || r.Same.Differ != 1 || r.Same.Peer["llama.cpp fa=on"] != 1 || r.Same.PeerOf["llama.cpp fa=on"] != 3 {
		t.Errorf("%+v", r.Same)
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "engine/2") {
		t.Errorf("notes %q", r.Notes)
	}
}

func TestPrint(t *testing.T) {
	r := &report{Runs: []runFigures{
		{Subject: "x", Threads: 2, Streams: 8, Output: 3}, {Subject: "x", Threads: 1, Streams: 1, Output: 5},
		{Subject: "x", Threads: 1, Streams: 1, Output: 7, Round: 1},
	}, Loads: map[string]float64{"begin": 3}}
	var b bytes.Buffer
	r.print(&b)
	for _, want := range []string{"LOADED MACHINE", "medians of 2 runs", "6.0 (5.0–7.0)", "3.0 (3.0–3.0)"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
