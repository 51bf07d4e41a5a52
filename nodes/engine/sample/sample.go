// Package sample chooses the next token from logits. The choice is a pure function of the logits, the sequence's tokens, its parameters
// and (Seed, n) where n counts output tokens: so a sequence that moves to another engine, or is computed again, goes on the same.
//
// Order: minimum length (forbidden ids), logit bias, repetition, frequency and presence penalty; here log-probabilities are taken; then
// temperature, min-p, top-k, top-p over what the earlier cut-offs left. Equal logits rank by the lower id.
package sample

import (
	"math"
	"slices"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// MaxTop is the most alternatives that a request may ask for.
const MaxTop = 64

// Check returns a typed refusal of what cannot be honoured for a vocabulary of vocab ids, or nil.
func Check(p *llm.Sampling, logprobs, vocab int) *flow.Error {
	refuse := func(param, format string, args ...any) *flow.Error {
		e := flow.Errorf(flow.InvalidRequest, "engine.sampling", param+": "+format, args...)
		e.Param = param
		return e
	}
	finite := func(f float32) bool { return !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) }
	switch {
	case !finite(p.Temperature) || p.Temperature < 0:
		return refuse("temperature", "%v is not a number from 0", p.Temperature)
	case !(p.TopP >= 0 && p.TopP <= 1):
		return refuse("top_p", "%v is not in [0, 1]", p.TopP)
	case p.TopK < 0:
		return refuse("top_k", "%d is below 0", p.TopK)
	case !(p.MinP >= 0 && p.MinP <= 1):
		return refuse("min_p", "%v is not in [0, 1]", p.MinP)
	case !finite(p.FrequencyPenalty):
		return refuse("frequency_penalty", "%v is not finite", p.FrequencyPenalty)
	case !finite(p.PresencePenalty):
		return refuse("presence_penalty", "%v is not finite", p.PresencePenalty)
	case !finite(p.RepetitionPenalty) || p.RepetitionPenalty < 0:
		return refuse("repetition_penalty", "%v is not a number from 0", p.RepetitionPenalty)
	case logprobs > MaxTop:
		return refuse("logprobs", "%d alternatives, at most %d are given", logprobs, MaxTop)
	}
	for id, b := range p.LogitBias {
		if int64(id) >= int64(vocab) {
			return refuse("logit_bias", "token id %d, the vocabulary has %d", id, vocab)
		}
		if math.IsNaN(float64(b)) || math.IsInf(float64(b), 1) {
			return refuse("logit_bias", "%v for token id %d is not finite", b, id)
		}
	}
	return nil
}

// Sequence is what the sampler remembers of one sequence. It is not safe for concurrent use.
type Sequence struct {
	p    llm.Sampling
	bias []biased
	seen []seen
	at   map[uint32]int32 // index in seen; nil where no penalty needs it
}

type biased struct {
	id uint32
	by float32
}

type seen struct {
	id    uint32
	count int32 // among output tokens
}

// NewSequence returns the state of a sequence after prompt and the output tokens of earlier attempts.
func NewSequence(p llm.Sampling, prompt, output []uint32) *Sequence {
	q := &Sequence{p: p}
	for id, b := range p.LogitBias {
		q.bias = append(q.bias, biased{id, b})
	}
	if p.RepetitionPenalty == 1 {
		q.p.RepetitionPenalty = 0
	}
	if q.p.RepetitionPenalty == 0 && p.FrequencyPenalty == 0 && p.PresencePenalty == 0 {
		return q
	}
	q.at = map[uint32]int32{}
	if q.p.RepetitionPenalty != 0 {
		for _, t := range prompt {
			q.add(t, 0)
		}
	}
	for _, t := range output {
		q.add(t, 1)
	}
	return q
}

// Add tells that t was given as output.
func (q *Sequence) Add(t uint32) {
	if q.at != nil {
		q.add(t, 1)
	}
}

func (q *Sequence) add(t uint32, n int32) {
	i, ok := q.at[t]
	if !ok {
		i = int32(len(q.seen))
		q.at[t] = i
		q.seen = append(q.seen, seen{id: t})
	}
	q.seen[i].count += n
}

// adjust applies bias and penalties. Each touches one id by itself, so their order over ids does not matter.
func (q *Sequence) adjust(logits []float32, forbid []uint32) {
	for _, b := range q.bias {
		logits[b.id] += b.by
	}
	for _, s := range q.seen {
		l := logits[s.id]
		if r := q.p.RepetitionPenalty; r != 0 {
			if l > 0 {
				l /= r
			} else {
				l *= r
			}
		}
		if s.count > 0 {
			l -= float32(q.p.FrequencyPenalty * float32(s.count))
			l -= q.p.PresencePenalty
		}
		logits[s.id] = l
	}
	for _, id := range forbid {
		logits[id] = float32(math.Inf(-1))
	}
}

// Sampler holds working memory. It is not safe for concurrent use.
type Sampler struct {
	keys    []uint64 // candidates, or a heap
	top     []uint64
	ids     []uint32 // what may be drawn
	weights []float64
	allowed []float32
}

// New returns a Sampler for a vocabulary of n ids.
func New(n int) *Sampler {
	return &Sampler{keys: make([]uint64, 0, n), top: make([]uint64, 0, MaxTop), ids: make([]uint32, 0, n), weights: make([]float64, 0, n)}
}

// Next chooses the n-th output token of q; it changes logits. Ids in forbid are not chosen (all are below len(logits)), nor those of which the
// bit is not set in allow: bit id&63 of word id>>6; nil allows all. ok is false where the logits hold nothing to choose from: NaN, +Inf, or only
// -Inf. Next does not call q.Add. What allow excludes stays in logits, so that log-probabilities are those of the model.
func (s *Sampler) Next(q *Sequence, n int, logits []float32, forbid []uint32, allow []uint64) (token uint32, ok bool) {
	q.adjust(logits, forbid)
	if allow != nil {
		logits = s.only(logits, allow)
	}
	best, ok := argmax(logits)
	if !ok || q.p.Temperature < minTemperature {
		return best, ok
	}
	high, inv := logits[best], 1/float64(q.p.Temperature)
	return s.draw(logits, high, inv, s.cutoff(&q.p, logits, high, inv), uniform(q.p.Seed, uint64(n))), true
}

// only is a copy of logits with -Inf for what allow excludes.
func (s *Sampler) only(logits []float32, allow []uint64) []float32 {
	s.allowed = append(s.allowed[:0], logits...)
	for w, bits := range allow {
		if bits == math.MaxUint64 {
			continue
		}
		at := w << 6
		for i := range s.allowed[at:min(at+64, len(s.allowed))] {
			if bits>>i&1 == 0 {
				s.allowed[at+i] = float32(math.Inf(-1))
			}
		}
	}
	return s.allowed
}

// minTemperature is where sampling becomes greedy: below it even neighbours in float32 have no weight.
const minTemperature = 1e-6

// cutoff returns the lowest key that may be chosen.
func (s *Sampler) cutoff(p *llm.Sampling, logits []float32, high float32, inv float64) uint64 {
	cut := uint64(0)
	if p.MinP > 0 { // weight >= MinP of the best's
		cut = key(float32(float64(high)+math.Log(float64(p.MinP))/inv), math.MaxUint32)
	}
	if p.TopK > 0 && p.TopK < len(logits) {
		cut = max(cut, s.kth(logits, p.TopK))
	}
	if p.TopP > 0 && p.TopP < 1 {
		cut = max(cut, s.nucleus(logits, high, inv, cut, float64(p.TopP)))
	}
	return cut
}

// draw picks by weight among the ids whose key is at least cut, in the order of ids.
func (s *Sampler) draw(logits []float32, high float32, inv float64, cut uint64, u float64) uint32 {
	floor := unkey(cut)
	if cut == 0 {
		floor = float32(math.Inf(-1))
	}
	ids, weights := s.ids[:0], s.weights[:0]
	var total float64
	for id, l := range logits {
		if l >= floor && (cut == 0 || key(l, uint32(id)) >= cut) {
			if w := weight(l-high, inv); w > 0 {
				total += w
				ids, weights = append(ids, uint32(id)), append(weights, w)
			}
		}
	}
	s.ids, s.weights = ids, weights
	goal := u * total
	var sum float64
	for i, w := range weights { // the same sums as above, so that the last reaches total
		if sum += w; sum > goal {
			return ids[i]
		}
	}
	return ids[len(ids)-1] // u*total was rounded up
}

func argmax(logits []float32) (uint32, bool) {
	best, at, nan := float32(math.Inf(-1)), -1, false
	for id, l := range logits {
		if l > best {
			best, at = l, id
		} else if l != l {
			nan = true
		}
	}
	if at < 0 || nan || best > math.MaxFloat32 {
		return 0, false
	}
	return uint32(at), true
}

// key orders by logit, then by lower id: the greater key ranks first. -0 ranks as 0.
func key(l float32, id uint32) uint64 {
	b := math.Float32bits(l + 0)
	if b>>31 != 0 {
		b = ^b
	} else {
		b |= 1 << 31
	}
	return uint64(b)<<32 | uint64(^id)
}

func unkey(k uint64) float32 {
	b := uint32(k >> 32)
	if b>>31 != 0 {
		b &^= 1 << 31
	} else {
		b = ^b
	}
	return math.Float32frombits(b)
}

// kth returns the k-th greatest key, by a heap whose root is the least of the k greatest so far.
func (s *Sampler) kth(logits []float32, k int) uint64 {
	h := s.keys[:0]
	floor := float32(math.Inf(-1))
	for id, l := range logits {
		if len(h) == k && !(l > floor) { // equal logits with higher ids rank lower
			continue
		}
		x := key(l, uint32(id))
		if len(h) < k {
			h = append(h, x)
			up(h)
		} else if x > h[0] {
			h[0] = x
			down(h)
		}
		if len(h) == k {
			floor = unkey(h[0])
		}
	}
	s.keys = h
	return h[0]
}

func up(h []uint64) {
	for i := len(h) - 1; i > 0; {
		p := (i - 1) / 2
		if h[p] <= h[i] {
			return
		}
		h[p], h[i] = h[i], h[p]
		i = p
	}
}

func down(h []uint64) {
	for i := 0; ; {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if h[i] <= h[c] {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

// nucleus returns the key of the last token of the smallest set, by rank, whose weight reaches p of the weight of keys from cut on.
func (s *Sampler) nucleus(logits []float32, high float32, inv float64, cut uint64, p float64) uint64 {
	floor := float32(math.Inf(-1))
	if cut != 0 {
		floor = unkey(cut)
	}
	var total float64
	for id, l := range logits {
		if l >= floor && key(l, uint32(id)) >= cut {
			total += weight(l-high, inv)
		}
	}
	// Tokens that weigh less than (1-p)/vocabulary of the whole weigh less than 1-p together: the set is reached without them.
	if w := total * (1 - p) / float64(len(logits)) / 2; w > 0 {
		if f := float32(float64(high) + math.Log(w)/inv); f > floor {
			floor = f
		}
	}
	keys := s.keys[:0]
	for id, l := range logits {
		if l >= floor {
			if k := key(l, uint32(id)); k >= cut {
				keys = append(keys, k)
			}
		}
	}
	s.keys = keys
	of := func(k uint64) float64 { return weight(unkey(k)-high, inv) }
	// Quickselect by weight: keys[:lo] rank first and weigh less than the goal, the set ends within keys[lo:hi].
	goal, sum := p*total, 0.0
	lo, hi := 0, len(keys)
	for hi-lo > 24 {
		pivot := median(keys[lo], keys[(lo+hi)/2], keys[hi-1])
		mid, left := lo, 0.0
		for i := lo; i < hi; i++ {
			if keys[i] >= pivot {
				left += of(keys[i])
				keys[mid], keys[i] = keys[i], keys[mid]
				mid++
			}
		}
		if sum+left < goal {
			sum += left
			lo = mid
		} else {
			hi = mid // keys differ, so the pivot is not the least and something was cut off
		}
	}
	slices.Sort(keys[lo:hi])
	for i := hi - 1; i >= lo; i-- {
		if sum += of(keys[i]); sum >= goal {
			return keys[i]
		}
	}
	if lo < hi {
		return keys[lo]
	}
	return cut
}

func median(a, b, c uint64) uint64 { return max(min(a, b), min(max(a, b), c)) }
