package llama

import (
	"sync/atomic"
	"testing"
)

// TestPool: every item of every phase is done once, by a worker of its own number, before run returns.
func TestPool(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 5} {
		p := newPool(threads)
		var counts [40]atomic.Int32
		busy := make([]atomic.Bool, threads)
		f := phase(func(w, i int) {
			if busy[w].Swap(true) {
				t.Errorf("two items at once as worker %d", w)
			}
			counts[i].Add(1)
			busy[w].Store(false)
		})
		for round := range 3000 {
			n := round * 7 % len(counts)
			if round%100 == 0 { // let workers park
				for range 2000 {
					spin(func() bool { return true })
				}
			}
			p.run(n, &f)
			for i := range counts {
				want := int32(0)
				if i < n {
					want = 1
				}
				if got := counts[i].Swap(0); got != want {
					t.Fatalf("%d threads, round %d: item %d of %d done %d times", threads, round, i, n, got)
				}
			}
		}
		p.close()
	}
	newPool(4).close() // workers that never had work
}
