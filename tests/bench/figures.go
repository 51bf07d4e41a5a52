package main

import (
	"fmt"
	"slices"
)

// runFigures is what one run of one subject gave. Times are seconds, rates tokens a second over all streams together.
type runFigures struct {
	Subject string
	Threads int
	Streams int
	Round   int
	Others  float64 // CPUs that neither the subject nor this command used meanwhile
	TTFT    float64 // until the first token: the median stream's
	Worst   float64 // and the slowest's
	ITL     float64 // median time between two arrivals of a stream
	Prompt  float64 // prompt tokens until every stream has its first token
	Decode  float64 // output tokens after that
	Output  float64 // all output tokens, over all the time
	CPU     float64 // seconds of all processes of the subject
	PerCPU  float64 // all tokens, prompt and output, a CPU second
}

// figures computes a run's figures, but for CPU. Every stream must have brought all its tokens.
func figures(streams []stream, prompt, output int) (runFigures, error) {
	m := runFigures{Streams: len(streams)}
	var first, gaps, all []float64
	total := 0
	for i, s := range streams {
		if s.count() != output || len(s.At) == 0 || len(s.At) > output {
			return m, fmt.Errorf("stream %d brought %d tokens in %d arrivals: want %d tokens", i, s.count(), len(s.At), output)
		}
		if !slices.IsSorted(s.At) || s.At[0] <= 0 {
			return m, fmt.Errorf("stream %d: times %v are not in order", i, s.At)
		}
		first = append(first, s.At[0])
		for k := 1; k < len(s.At); k++ {
			gaps = append(gaps, s.At[k]-s.At[k-1])
		}
		all = append(all, s.At...)
		total += output
	}
	m.TTFT, m.Worst, m.ITL = median(first), slices.Max(first), median(gaps)
	end := slices.Max(all)
	seen := 0 // output tokens up to the slowest first one; an arrival counts as one token
	for _, t := range all {
		if t <= m.Worst {
			seen++
		}
	}
	m.Prompt = float64(len(streams)*prompt) / m.Worst
	m.Output = float64(total) / end
	if end > m.Worst {
		m.Decode = float64(total-seen) / (end - m.Worst)
	}
	return m, nil
}

// median of v; of an even number the mean of the two in the middle; 0 of none.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// spread is a median with what lies around it.
type spread struct{ Median, Min, Max float64 }

func spreadOf(v []float64) spread {
	if len(v) == 0 {
		return spread{}
	}
	return spread{median(v), slices.Min(v), slices.Max(v)}
}
