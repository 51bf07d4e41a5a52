package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
)

func randomLogits(r *rand.Rand, n int, scale float64) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(r.NormFloat64() * scale)
		if i > 0 && r.IntN(10) == 0 {
			out[i] = out[r.IntN(i)] // ties
		}
	}
	return out
}

// naive ranks everything and cuts by the definition; it returns the ids left, best first.
func naive(logits []float32, p llm.Sampling) []uint32 {
	type cand struct {
		id uint32
		l  float32
		w  float64
	}
	high := slices.Max(logits)
	var c []cand
	for i, l := range logits {
		c = append(c, cand{uint32(i), l, math.Exp(float64(l-high) / float64(p.Temperature))})
	}
	slices.SortFunc(c, func(a, b cand) int {
		if a.l != b.l {
			if a.l > b.l {
				return -1
			}
			return 1
		}
		return int(a.id) - int(b.id)
	})
	if p.MinP > 0 {
		c = slices.DeleteFunc(c, func(x cand) bool { return x.w < float64(p.MinP)*(1-1e-7) })
	}
	if p.TopK > 0 && p.TopK < len(c) {
		c = c[:p.TopK]
	}
	if p.TopP > 0 && p.TopP < 1 {
		var total, sum float64
		for _, x := range c {
			total += x.w
		}
		for i, x := range c {
			if sum += x.w; sum >= float64(p.TopP)*total {
				c = c[:i+1]
				break
			}
		}
	}
	var ids []uint32
	for _, x := range c {
		ids = append(ids, x.id)
	}
	return ids
}

func TestCutoffsAgainstFullSort(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 600 {
		n := 1 + r.IntN(2000)
		logits := randomLogits(r, n, []float64{0.1, 1, 4}[i%3])
		p := llm.Sampling{Temperature: []float32{0.3, 0.8, 1, 2}[r.IntN(4)]}
		if r.IntN(2) == 0 {
			p.TopK = 1 + r.IntN(n+3)
		}
		if r.IntN(2) == 0 {
			p.TopP = float32(r.Float64())
		}
		if r.IntN(3) == 0 {
			p.MinP = float32(r.Float64() * 0.3)
		}
		s := New(n)
		high := slices.Max(logits)
		cut := s.cutoff(&p, logits, high, 1/float64(p.Temperature))
		var got []uint32
		for id, l := range logits {
			if key(l, uint32(id)) >= cut {
				got = append(got, uint32(id))
			}
		}
		want := naive(logits, p)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("case %d, %d logits, %+v: %d left, want %d", i, n, p, len(got), len(want))
		}
	}
}

// The drawn frequencies follow the weights.
func TestDrawFollowsWeights(t *testing.T) {
	logits := []float32{0, 1, 2, 3}
	var total float64
	for _, l := range logits {
		total += math.Exp(float64(l))
	}
	s := New(4)
	var count [4]float64
	const n = 40000
	q := NewSequence(llm.Sampling{Temperature: 1, Seed: 7}, nil, nil)
	for i := range n {
		id, ok := s.Next(q, i, slices.Clone(logits), nil, nil)
		if !ok {
			t.Fatal("not ok")
		}
		count[id]++
	}
	for id, c := range count {
		want := math.Exp(float64(logits[id])) / total
		if math.Abs(c/n-want) > 0.01 {
			t.Errorf("token %d: frequency %.4f, want %.4f", id, c/n, want)
		}
	}
}

func TestGreedyTiesAndSpecialValues(t *testing.T) {
	s := New(4)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		logits []float32
		want   uint32
		ok     bool
	}{
		{[]float32{1, 3, 3, 2}, 1, true},
		{[]float32{-inf, -inf, -5, -5}, 2, true},
		{[]float32{0, float32(math.Copysign(0, -1)), 0, 0}, 0, true},
		{[]float32{1, nan, 3, 2}, 0, false},
		{[]float32{1, inf, 3, 2}, 0, false},
		{[]float32{-inf, -inf, -inf, -inf}, 0, false},
	} {
		for _, temp := range []float32{0, 1e-30} {
			got, ok := s.Next(NewSequence(llm.Sampling{Temperature: temp}, nil, nil), 0, slices.Clone(c.logits), nil, nil)
			if ok != c.ok || ok && got != c.want {
				t.Errorf("%v at temperature %v: %d, %v; want %d, %v", c.logits, temp, got, ok, c.want, c.ok)
			}
		}
	}
	if key(float32(math.Copysign(0, -1)), 3) != key(0, 3) {
		t.Error("-0 and 0 rank differently")
	}
	if got := s.kth([]float32{5, 5, 5, 5}, 2); uint32(^got) != 1 {
		t.Errorf("second of equal logits is id %d, want 1", uint32(^got))
	}
}

func TestPenaltiesBiasForbid(t *testing.T) {
	s := New(6)
	logits := []float32{4, 4, 4, -2, 0, 1}
	q := NewSequence(llm.Sampling{RepetitionPenalty: 2, FrequencyPenalty: 0.5, PresencePenalty: 0.25, LogitBias: map[uint32]float32{5: 10}}, []uint32{0, 3}, []uint32{1, 1})
	q.Add(1)
	q.Add(3)
	got := slices.Clone(logits)
	id, ok := s.Next(q, 4, got, []uint32{5}, nil)
	// 0: prompt only, 4/2. 1: 4/2 - 3*0.5 - 0.25. 3: -2*2 - 0.5 - 0.25. 5: 1+10, then forbidden.
	want := []float32{2, 0.25, 4, -4.75, 0, float32(math.Inf(-1))}
	if !slices.Equal(got, want) {
		t.Fatalf("logits %v, want %v", got, want)
	}
	if id != 2 || !ok {
		t.Fatalf("token %d", id)
	}
	lp := s.Logprob(got, id, 2)
	var sum float64
	for _, l := range want {
		sum += math.Exp(float64(l))
	}
	norm := math.Log(sum)
	if math.Abs(float64(lp.Logprob)-(4-norm)) > 1e-6 || len(lp.Top) != 2 || lp.Top[0].Token != 2 || lp.Top[1].Token != 0 || math.Abs(float64(lp.Top[1].Logprob)-(2-norm)) > 1e-6 {
		t.Fatalf("logprob %+v, norm %v", lp, norm)
	}
	if lp := s.Logprob(got, 4, 0); lp.Top != nil || lp.Token != 4 {
		t.Fatalf("logprob without alternatives: %+v", lp)
	}
}

// A sequence that is told of its earlier output goes on as one that was never interrupted, for every field.
func TestContinuationIsIndependentOfAttempt(t *testing.T) {
	const vocab, length = 300, 40
	logitsAt := func(tokens []uint32) []float32 { // a "model": logits depend on all tokens so far
		h := uint64(1469598103934665603)
		for _, t := range tokens {
			h = mix(h ^ uint64(t))
		}
		r := rand.New(rand.NewPCG(h, 1))
		out := make([]float32, vocab)
		for i := range out {
			out[i] = float32(r.NormFloat64())
		}
		return out
	}
	prompt := []uint32{5, 6, 7, 5}
	run := func(p llm.Sampling, done []uint32) []uint32 {
		q, s := NewSequence(p, prompt, done), New(vocab)
		out := slices.Clone(done)
		for len(out) < length {
			id, ok := s.Next(q, len(out), logitsAt(append(slices.Clone(prompt), out...)), nil, nil)
			if !ok {
				t.Fatal("not ok")
			}
			q.Add(id)
			out = append(out, id)
		}
		return out
	}
	for name, p := range map[string]llm.Sampling{
		"greedy":      {},
		"temperature": {Temperature: 0.9, Seed: 3},
		"top_k":       {Temperature: 0.9, TopK: 20, Seed: 3},
		"top_p":       {Temperature: 0.9, TopP: 0.7, Seed: 3},
		"min_p":       {Temperature: 0.9, MinP: 0.05, Seed: 3},
		"frequency":   {Temperature: 0.9, FrequencyPenalty: 0.7, Seed: 3},
		"presence":    {PresencePenalty: 3},
		"repetition":  {RepetitionPenalty: 3},
		"bias":        {Temperature: 1, LogitBias: map[uint32]float32{4: 5, 9: 5}, Seed: 3},
		"all":         {Temperature: 1.3, TopK: 100, TopP: 0.95, MinP: 0.01, FrequencyPenalty: 0.2, PresencePenalty: 0.1, RepetitionPenalty: 1.2, LogitBias: map[uint32]float32{1: 2}, Seed: 11},
	} {
		whole := run(p, nil)
		for _, n := range []int{1, 13, length - 1} {
			if got := run(p, whole[:n]); !slices.Equal(got, whole) {
				t.Errorf("%s: continued after %d tokens: %v, want %v", name, n, got, whole)
			}
		}
		if p.Seed != 0 {
			p.Seed++
			if slices.Equal(run(p, nil), whole) {
				t.Errorf("%s: another seed gives the same tokens", name)
			}
		}
	}
}

func TestUniform(t *testing.T) {
	seen := map[float64]bool{}
	var sum float64
	for seed := range uint64(100) {
		for n := range uint64(100) {
			u := uniform(seed, n)
			if u < 0 || u >= 1 || seen[u] {
				t.Fatalf("seed %d, n %d: %v", seed, n, u)
			}
			seen[u] = true
			sum += u
		}
	}
	if math.Abs(sum/10000-0.5) > 0.02 {
		t.Fatalf("mean %v", sum/10000)
	}
}

func TestExpNeg(t *testing.T) {
	for x := -50.0; x <= 0; x += 0.00137 {
		if got, want := expNeg(x), math.Exp(x); math.Abs(got-want) > 1e-11*want {
			t.Fatalf("expNeg(%v) = %v, want %v", x, got, want)
		}
	}
	for _, d := range []float32{0, -1e-45, -1e-38, -1.5e-38, -1e-7, -0.3, -1, -17.25, -700, -1e29, -1e31, float32(math.Inf(-1))} {
		for _, inv := range []float64{0.5, 1, 1e6} {
			if got, want := weight(d, inv), math.Exp(float64(d)*inv); math.Abs(got-want) > 1e-11*want && want > 1e-300 {
				t.Errorf("weight(%v, %v) = %v, want %v", d, inv, got, want)
			}
		}
	}
	if expNeg(math.Inf(-1)) != 0 || expNeg(0) != 1 {
		t.Fatal("ends")
	}
}

func TestCheck(t *testing.T) {
	nan := float32(math.NaN())
	for param, p := range map[string]llm.Sampling{
		"temperature": {Temperature: -1}, "top_p": {TopP: 1.5}, "top_k": {TopK: -1}, "min_p": {MinP: nan},
		"frequency_penalty": {FrequencyPenalty: nan}, "presence_penalty": {PresencePenalty: nan}, "repetition_penalty": {RepetitionPenalty: -2},
		"logit_bias": {LogitBias: map[uint32]float32{100: 1}},
	} {
		err := Check(&p, 0, 100)
		if err == nil || err.Param != param || err.Class != flow.InvalidRequest {
			t.Errorf("%s: %v", param, err)
		}
	}
	if err := Check(&llm.Sampling{}, MaxTop+1, 100); err == nil || err.Param != "logprobs" {
		t.Errorf("logprobs: %v", err)
	}
	if err := Check(&llm.Sampling{Temperature: 1, TopP: 1, LogitBias: map[uint32]float32{99: float32(math.Inf(-1))}}, MaxTop, 100); err != nil {
		t.Error(err)
	}
}

func FuzzNext(f *testing.F) {
	f.Add(uint64(1), float32(1), float32(0.9), 5, float32(0.1), uint64(3))
	f.Add(uint64(2), float32(1e-3), float32(0.0001), 1, float32(1), uint64(3))
	f.Fuzz(func(t *testing.T, data uint64, temp, topP float32, topK int, minP float32, seed uint64) {
		p := llm.Sampling{Temperature: temp, TopP: topP, TopK: topK, MinP: minP, Seed: seed}
		if Check(&p, 0, 64) != nil {
			t.Skip()
		}
		logits := randomLogits(rand.New(rand.NewPCG(data, 0)), 64, 3)
		id, ok := New(64).Next(NewSequence(p, nil, nil), 3, logits, []uint32{1}, nil)
		if !ok || id == 1 || id >= 64 {
			t.Fatalf("token %d, %v", id, ok)
		}
	})
}

func ExampleSampler() {
	s := New(4)
	q := NewSequence(llm.Sampling{Temperature: 0.8, TopK: 2, Seed: 42}, []uint32{3}, nil)
	for n := range 8 {
		id, _ := s.Next(q, n, []float32{0.5, 2, 1.5, 0.1}, nil, nil)
		q.Add(id)
		fmt.Print(id, " ")
	}
	// Output: 1 1 1 1 1 1 2 2
}

func BenchmarkNext(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	base := make([]float32, 49152)
	for i := range base {
		base[i] = float32(r.NormFloat64() * 3)
	}
	base[17] = 18
	logits := make([]float32, len(base))
	for _, c := range []struct {
		name string
		p    llm.Sampling
	}{
		{"greedy", llm.Sampling{}},
		{"temperature", llm.Sampling{Temperature: 0.8}},
		{"topk50", llm.Sampling{Temperature: 0.8, TopK: 50}},
		{"topp0.95", llm.Sampling{Temperature: 1, TopP: 0.95}},
		{"topk+topp+penalties", llm.Sampling{Temperature: 0.8, TopK: 50, TopP: 0.9, RepetitionPenalty: 1.1}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, q := New(len(base)), NewSequence(c.p, []uint32{1, 2, 3}, nil)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				copy(logits, base)
				s.Next(q, i, logits, nil, nil)
			}
		})
	}
	b.Run("logprob20", func(b *testing.B) {
		s := New(len(base))
		b.ReportAllocs()
		for b.Loop() {
			s.Logprob(base, 17, 20)
		}
	})
}
