package sample

import (
	"math"

	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// Logprob returns the natural-log probability of token by logits, and the top best alternatives (the token itself may be among them).
// top is at most MaxTop. After Next the logits are those after penalties and bias.
func (s *Sampler) Logprob(logits []float32, token uint32, top int) llm.Logprob {
	high := float32(math.Inf(-1))
	for _, l := range logits {
		if l > high {
			high = l
		}
	}
	var sum float64
	for _, l := range logits {
		sum += weight(l-high, 1)
	}
	norm := float64(high) + math.Log(sum)
	out := llm.Logprob{Token: token, Logprob: float32(float64(logits[token]) - norm)}
	top = min(top, len(logits))
	if top <= 0 {
		return out
	}
	best := s.top[:0] // best first
	floor := float32(math.Inf(-1))
	for id, l := range logits {
		if len(best) == top {
			if !(l > floor) {
				continue
			}
			best = best[:top-1]
		}
		k := key(l, uint32(id))
		i := len(best)
		best = append(best, k)
		for ; i > 0 && best[i-1] < k; i-- {
			best[i] = best[i-1]
		}
		best[i] = k
		floor = unkey(best[len(best)-1])
	}
	s.top = best
	out.Top = make([]llm.TopLogprob, len(best))
	for i, k := range best {
		out.Top[i] = llm.TopLogprob{Token: ^uint32(k), Logprob: float32(float64(unkey(k)) - norm)}
	}
	return out
}
