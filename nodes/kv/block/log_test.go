package block_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/kv/block"
)

func stored(parent uint64, hashes ...uint64) llm.KVEvent {
	return llm.KVEvent{Type: llm.EventStored, Parent: parent, Hashes: hashes, Tier: "device"}
}

func removed(hashes ...uint64) llm.KVEvent {
	return llm.KVEvent{Type: llm.EventRemoved, Hashes: hashes, Tier: "device"}
}

// take reads n batches.
func take(t *testing.T, l *block.Log, after uint64, n int) []llm.EventBatch {
	t.Helper()
	var out []llm.EventBatch
	for b, err := range l.Follow(t.Context(), &llm.Subscribe{After: after}) {
		if err != nil {
			t.Fatal(err)
		}
		if out = append(out, *b); len(out) == n {
			break
		}
	}
	return out
}

func TestSnapshotThenDeltas(t *testing.T) {
	l := block.NewLog(4)
	l.Append([]llm.KVEvent{stored(0, 1, 2, 3), stored(2, 9)})
	l.Append([]llm.KVEvent{removed(3)})
	got := take(t, l, 0, 1)
	want := []llm.KVEvent{stored(0, 1, 2, 9)}
	if !got[0].Snapshot || got[0].Sequence != 2 || fmt.Sprint(got[0].Events) != fmt.Sprint(want) {
		t.Fatalf("snapshot %+v, want %v", got[0], want)
	}
	l.Append([]llm.KVEvent{stored(9, 10)})
	if got := take(t, l, 2, 1); got[0].Snapshot || got[0].Sequence != 3 {
		t.Fatalf("delta %+v", got[0])
	}
}

func TestFallingBehindGivesASnapshot(t *testing.T) {
	l := block.NewLog(2)
	for i := range uint64(5) {
		l.Append([]llm.KVEvent{stored(0, i+1)})
	}
	for after, snapshot := range map[uint64]bool{1: true, 2: true, 3: false, 4: false, 77: true} {
		if got := take(t, l, after, 1); got[0].Snapshot != snapshot {
			t.Errorf("after %d: snapshot %v, want %v", after, got[0].Snapshot, snapshot)
		}
	}
}

func TestBranchesAndOrphans(t *testing.T) {
	l := block.NewLog(4)
	l.Append([]llm.KVEvent{stored(0, 1, 2), stored(2, 3, 4), stored(2, 5), stored(0, 6), removed(1)})
	got := take(t, l, 0, 1)[0].Events
	held, parents := map[uint64]bool{}, map[uint64]uint64{}
	for _, e := range got {
		p := e.Parent
		if p != 0 && p != 1 && !held[p] {
			t.Errorf("event %v comes before its parent", e)
		}
		for _, h := range e.Hashes {
			held[h], parents[h], p = true, p, h
		}
	}
	if fmt.Sprint(parents) != fmt.Sprint(map[uint64]uint64{2: 1, 3: 2, 4: 3, 5: 2, 6: 0}) {
		t.Fatalf("snapshot %v", got)
	}
}

// A follower that joins an empty log and reads slowly still ends with what the log holds.
func TestFollowersConverge(t *testing.T) {
	l := block.NewLog(3)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	joined := make(chan struct{})
	done := make(chan map[uint64]bool)
	var wg sync.WaitGroup
	wg.Go(func() {
		held, last := map[uint64]bool{}, uint64(0)
		for b, err := range l.Follow(ctx, &llm.Subscribe{}) {
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				return
			}
			if last == 0 {
				close(joined)
			} else if !b.Snapshot && b.Sequence != last+1 {
				t.Errorf("batch %d follows %d", b.Sequence, last)
			}
			last = b.Sequence
			if b.Snapshot {
				clear(held)
			}
			for _, e := range b.Events {
				for _, h := range e.Hashes {
					held[h] = e.Type == llm.EventStored
				}
			}
			if held[999] {
				done <- held
				return
			}
		}
	})
	<-joined
	for i := range uint64(200) {
		l.Append([]llm.KVEvent{stored(0, i+1)})
		if i%2 == 1 {
			l.Append([]llm.KVEvent{removed(i)})
		}
	}
	l.Append([]llm.KVEvent{stored(0, 999)})
	held := <-done
	n := 0
	for _, ok := range held {
		if ok {
			n++
		}
	}
	if n != 101 {
		t.Fatalf("follower holds %d, want 101", n)
	}
	wg.Wait()
}
