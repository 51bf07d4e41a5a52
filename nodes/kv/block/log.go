package block

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// Log is the sequence of KV events of one cache: a snapshot at any time, and the last batches for those who follow. A follower that falls
// behind what the log keeps gets a snapshot; nothing is dropped silently. It is safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	seq     uint64
	ring    []llm.EventBatch // the last len(ring) batches, batch n at n % len
	held    map[uint64]uint64
	changed chan struct{}
}

// NewLog returns an empty Log that keeps the last n batches.
func NewLog(n int) *Log {
	return &Log{ring: make([]llm.EventBatch, max(n, 1)), held: map[uint64]uint64{}, changed: make(chan struct{})}
}

// Append adds a batch; an empty one is nothing. The log keeps the slice.
func (l *Log) Append(events []llm.KVEvent) {
	if len(events) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		switch e.Type {
		case llm.EventStored:
			parent := e.Parent
			for _, h := range e.Hashes {
				l.held[h] = parent
				parent = h
			}
		case llm.EventRemoved:
			for _, h := range e.Hashes {
				delete(l.held, h)
			}
		case llm.EventCleared:
			clear(l.held)
		}
	}
	l.seq++
	l.ring[l.seq%uint64(len(l.ring))] = llm.EventBatch{Sequence: l.seq, Events: events}
	close(l.changed)
	l.changed = make(chan struct{})
}

// Follow streams what came after s.After: a snapshot where that is 0, unknown, or longer ago than the log keeps, then batches as they
// come. It ends with ctx's error. A batch must not be changed.
func (l *Log) Follow(ctx context.Context, s *llm.Subscribe) iter.Seq2[*llm.EventBatch, error] {
	after := s.After
	return func(yield func(*llm.EventBatch, error) bool) {
		for {
			b, wait := l.next(after)
			if b == nil {
				select {
				case <-ctx.Done():
					yield(nil, ctx.Err())
					return
				case <-wait:
				}
				continue
			}
			after = b.Sequence
			if !yield(b, nil) {
				return
			}
		}
	}
}

// next returns the batch for one who knows all up to after, or the channel that is closed by the next Append.
func (l *Log) next(after uint64) (*llm.EventBatch, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if after == l.seq && after != 0 {
		return nil, l.changed
	}
	if n := uint64(len(l.ring)); after == 0 || after > l.seq || l.seq-after > n {
		if l.seq == 0 {
			l.seq = 1 // so that a snapshot of nothing can be followed
		}
		return &llm.EventBatch{Sequence: l.seq, Snapshot: true, Events: l.snapshot()}, nil
	}
	b := l.ring[(after+1)%uint64(len(l.ring))]
	return &b, nil
}

// snapshot tells everything held as stored events, parents first, runs joined, in an order that depends on the hashes alone.
func (l *Log) snapshot() []llm.KVEvent {
	type link struct{ parent, hash uint64 }
	links := make([]link, 0, len(l.held))
	for h, p := range l.held {
		links = append(links, link{p, h})
	}
	order := func(a, b link) int { return cmp.Or(cmp.Compare(a.parent, b.parent), cmp.Compare(a.hash, b.hash)) }
	slices.SortFunc(links, order)
	children := func(p uint64) []link {
		i, _ := slices.BinarySearchFunc(links, link{p, 0}, order)
		j := i
		for j < len(links) && links[j].parent == p {
			j++
		}
		return links[i:j]
	}
	var out []llm.KVEvent
	var open []link
	for _, k := range links {
		if _, ok := l.held[k.parent]; !ok { // a root, or its parent was evicted
			open = append(open, k)
		}
	}
	for len(open) > 0 {
		k := open[len(open)-1]
		open = open[:len(open)-1]
		e := llm.KVEvent{Type: llm.EventStored, Parent: k.parent, Hashes: []uint64{k.hash}, Tier: Tier}
		next := children(k.hash)
		for len(next) == 1 {
			e.Hashes = append(e.Hashes, next[0].hash)
			next = children(next[0].hash)
		}
		out = append(out, e)
		open = append(open, next...)
	}
	return out
}
