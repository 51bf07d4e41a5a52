package grpc

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	"github.com/dynamograph/dynamo/graph/flow/llm"
	dynamov1 "github.com/dynamograph/dynamo/runtime/api/dynamo/v1"
)

func logprobsToWire(in []llm.Logprob) (out []*dynamov1.Logprob) {
	for _, l := range in {
		w := &dynamov1.Logprob{Token: l.Token, Logprob: l.Logprob}
		for _, t := range l.Top {
			w.Top = append(w.Top, &dynamov1.TopLogprob{Token: t.Token, Logprob: t.Logprob})
		}
		out = append(out, w)
	}
	return out
}

// generated is what the generated code makes of d.
func generated(t testing.TB, d *llm.TokensDelta) []byte {
	t.Helper()
	w := &dynamov1.Delta{
		Tokens: d.Tokens, Logprobs: logprobsToWire(d.Logprobs), Prompt: logprobsToWire(d.Prompt), Finish: string(d.Finish), StopId: d.StopID,
		HandOff: handOffToWire(d.HandOff), Instance: d.Instance,
	}
	if u := d.Usage; u != nil {
		w.Usage = &dynamov1.Usage{Prompt: uint32(u.Prompt), Completion: uint32(u.Completion), Cached: uint32(u.Cached)}
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// deltas are of every shape; the same struct is decoded into in this order, so that what one leaves behind shows in the next.
func deltas() []*llm.TokensDelta {
	rng := rand.New(rand.NewPCG(1, 2))
	logprobs := func(n, top int) (out []llm.Logprob) {
		for range n {
			l := llm.Logprob{Token: rng.Uint32N(50000), Logprob: -rng.Float32()}
			for range top {
				l.Top = append(l.Top, llm.TopLogprob{Token: rng.Uint32N(50000), Logprob: -rng.Float32()})
			}
			out = append(out, l)
		}
		return out
	}
	h := &llm.HandOff{ID: "h", Mode: llm.ModeAfter, Peer: "p", Tokens: 3, Contract: llm.Contract{ModelID: "m", BlockSize: 16}}
	out := []*llm.TokensDelta{
		{},
		{Tokens: []uint32{0}},
		{Tokens: []uint32{1, 127, 128, math.MaxUint32}, Instance: "decode-1"},
		{Tokens: []uint32{5}, Instance: "decode-1"},
		{Tokens: []uint32{5}, Instance: "decode-2", Logprobs: logprobs(1, 5)},
		{Tokens: []uint32{5, 6}, Logprobs: logprobs(2, 0)},
		{Tokens: []uint32{5}, Logprobs: []llm.Logprob{{}, {Logprob: float32(math.Copysign(0, -1))}, {Logprob: float32(math.Inf(-1)), Top: []llm.TopLogprob{{}}}}},
		{Prompt: logprobs(40, 2)},
		{Finish: llm.FinishStop, StopID: 2, Usage: &llm.Usage{Prompt: 1, Completion: 2, Cached: 3}},
		{Finish: llm.FinishAbort, HandOff: h, Usage: &llm.Usage{}},
		{Finish: "of tomorrow"},
		{},
	}
	for range 200 {
		d := &llm.TokensDelta{Instance: []string{"", "a", "b"}[rng.IntN(3)]}
		for range rng.IntN(9) {
			d.Tokens = append(d.Tokens, rng.Uint32()>>rng.UintN(32))
		}
		if rng.IntN(2) == 0 {
			d.Logprobs = logprobs(len(d.Tokens), rng.IntN(4))
		}
		if rng.IntN(9) == 0 {
			d.Prompt = logprobs(rng.IntN(30), rng.IntN(4))
		}
		out = append(out, d)
	}
	return out
}

func TestDeltaIsWhatGeneratedCodeMakes(t *testing.T) {
	var reused llm.TokensDelta
	for i, d := range deltas() {
		got, err := appendDelta(nil, d)
		if err != nil {
			t.Fatal(err)
		}
		want := generated(t, d)
		if !bytes.Equal(got, want) {
			t.Fatalf("delta %d %+v:\ngot  %x\nwant %x", i, d, got, want)
		}
		if err := decodeDelta(got, &reused); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d, &reused, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("delta %d: want(-) got(+):\n%s", i, diff)
		}
	}
}

func TestDeltaSkipsWhatItDoesNotKnow(t *testing.T) {
	b, err := appendDelta(nil, &llm.TokensDelta{Tokens: []uint32{1}})
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, 0xa2, 0x06, 2, 'h', 'i', 0xa8, 0x06, 5, 8, 7) // fields 100 and 101 of a later version, and an unpacked token
	var d llm.TokensDelta
	if err := decodeDelta(b, &d); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(d.Tokens, []uint32{1, 7}) {
		t.Errorf("got %v", d.Tokens)
	}
}

func TestFrameIsWhatGeneratedCodeMakes(t *testing.T) {
	for _, n := range []uint64{1, 127, 128, 1 << 40} {
		d := &llm.TokensDelta{Tokens: make([]uint32, 100), Finish: llm.FinishLength}
		body, err := appendDelta(nil, d)
		if err != nil {
			t.Fatal(err)
		}
		var w dynamov1.WorkerFrames
		if err := proto.Unmarshal(appendDeltaFrame(nil, n, n+1, body), &w); err != nil {
			t.Fatal(err)
		}
		f := w.GetFrames()[0]
		if f.GetStream() != n || f.GetSequence() != n+1 || len(f.GetDelta().GetTokens()) != 100 || f.GetDelta().GetFinish() != "length" {
			t.Errorf("got %v", f)
		}
	}
}

func TestBlockIsWhatGeneratedCodeMakes(t *testing.T) {
	for i, k := range []*llm.KVBlock{
		{}, {Index: 300, Tokens: 16, Hash: [16]byte{1, 15: 2}, Sum: 1 << 63, Bytes: []byte("bytes")}, {Index: 1, Region: "/dev/shm/x", Offset: 1 << 40, Length: 1 << 20},
	} {
		w := &dynamov1.Block{
			Index: uint32(k.Index), Tokens: uint32(k.Tokens), Sum: k.Sum, Region: k.Region, Offset: uint64(k.Offset), Length: uint64(k.Length), Data: k.Bytes,
		}
		if k.Hash != [16]byte{} {
			w.Hash = k.Hash[:]
		}
		want, err := proto.MarshalOptions{Deterministic: true}.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		got := appendBlock(nil, k)
		if !bytes.Equal(got, want) {
			t.Fatalf("block %d:\ngot  %x\nwant %x", i, got, want)
		}
		back := llm.KVBlock{Region: "old", Bytes: []byte{9}}
		if err := decodeBlock(got, &back); err != nil || !cmp.Equal(*k, back) {
			t.Errorf("block %d: %v\n%s", i, err, cmp.Diff(*k, back))
		}
	}
	if err := decodeBlock([]byte{0x1a, 1, 0}, new(llm.KVBlock)); err == nil {
		t.Error("a hash of one byte was taken")
	}
}

// FuzzDelta: whatever a peer sends, the hand-written decoder does not panic, takes what generated code takes, and reads the same.
func FuzzDelta(f *testing.F) {
	for _, d := range deltas()[:20] {
		b, err := appendDelta(nil, d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var d llm.TokensDelta
		err := decodeDelta(b, &d)
		var w dynamov1.Delta
		if proto.Unmarshal(b, &w) != nil {
			return // ours is laxer: it does not look at UTF-8, and a wrong wire type is an unknown field to both
		}
		if err != nil {
			t.Fatalf("refused what generated code takes: %v", err)
		}
		if !cmp.Equal(d.Tokens, w.GetTokens(), cmpopts.EquateEmpty()) || string(d.Finish) != w.GetFinish() || d.StopID != w.GetStopId() ||
			d.Instance != w.GetInstance() || len(d.Logprobs) != len(w.GetLogprobs()) || len(d.Prompt) != len(w.GetPrompt()) ||
			(d.Usage == nil) != (w.GetUsage() == nil) {
			t.Fatalf("got %+v, generated code %v", d, &w)
		}
	})
}

func TestDecodeAllocatesNothing(t *testing.T) {
	d := &llm.TokensDelta{
		Tokens: []uint32{17, 18}, Instance: "decode-1",
		Logprobs: []llm.Logprob{{Token: 17, Top: []llm.TopLogprob{{Token: 1}, {Token: 2}}}, {Token: 18, Top: []llm.TopLogprob{{Token: 1}}}},
	}
	var buf []byte
	var back llm.TokensDelta
	n := testing.AllocsPerRun(100, func() {
		var err error
		if buf, err = appendDelta(buf[:0], d); err != nil {
			t.Fatal(err)
		}
		if err := decodeDelta(buf, &back); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations a delta", n)
	}
}
