package compiler

import (
	"time"

	"github.com/dynamograph/dynamo/graph/kind"
)

const (
	// usualDrain is what a process takes to finish its streams where the spec does not say it.
	usualDrain = 30 * time.Second
	// beyondDrain is what a stopped process takes beyond its drain, to close.
	beyondDrain = 10 * time.Second
)

// drain returns what processes take to finish their streams, and what platforms allow for it. Where the author does not say the first, no
// stream is cut that a bound of his allows: it is then the longest of those.
func (s *state) drain() (drain, grace time.Duration) {
	t := s.g.Timeouts
	if drain = t.Drain.Std(); drain == 0 {
		drain = usualDrain
		for _, name := range s.names() {
			for _, t := range s.bounds(name, kind.Total) {
				if t.set {
					drain = max(drain, time.Duration(t.value))
				}
			}
		}
	}
	if grace = t.Grace.Std(); grace == 0 {
		grace = drain + beyondDrain
	}
	return drain, grace
}

// seconds rounds up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
