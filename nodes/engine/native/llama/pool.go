package llama

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// pool runs the items of one phase after another on a fixed set of goroutines; the caller of run is one of them. A worker that finds
// nothing to do spins for a moment, because the next phase is mostly some microseconds away, and then parks.
type pool struct {
	threads int
	// work is the phase in one word: generation, number of items, next item. A worker takes an item by exchanging the word, so that it can
	// never take one of a phase that has ended meanwhile.
	work    atomic.Uint64
	fn      atomic.Pointer[phase]
	done    atomic.Int64
	waiting atomic.Bool   // the caller sleeps on finish
	finish  chan struct{} // capacity 1
	workers []*worker
	stop    atomic.Bool
	wg      sync.WaitGroup
	gen     uint64
}

type worker struct {
	parked atomic.Bool
	wake   chan struct{} // capacity 1
	_      [64]byte
}

// phase does item i as worker w; worker 0 is the caller.
type phase func(w, i int)

const (
	itemBits = 20
	itemMask = 1<<itemBits - 1
	maxItems = itemMask
	spinFor  = 25 * time.Microsecond
)

func newPool(threads int) *pool {
	p := &pool{threads: threads, finish: make(chan struct{}, 1)}
	for i := 1; i < threads; i++ {
		w := &worker{wake: make(chan struct{}, 1)}
		p.workers = append(p.workers, w)
		p.wg.Go(func() { p.loop(i, w) })
	}
	return p
}

// close ends the workers; no run may be under way.
func (p *pool) close() {
	p.stop.Store(true)
	for _, w := range p.workers {
		if w.parked.Swap(false) {
			w.wake <- struct{}{}
		}
	}
	p.wg.Wait()
}

// run does items 0..n-1 and returns when all are done. f must stay valid: it is a pointer so that no call allocates.
func (p *pool) run(n int, f *phase) {
	if n <= 0 {
		return
	}
	if n == 1 || p.threads == 1 {
		for i := range n {
			(*f)(0, i)
		}
		return
	}
	if n > maxItems {
		panic("llama: too many items in a phase")
	}
	p.gen++
	p.fn.Store(f)
	p.done.Store(0)
	p.work.Store(p.gen<<(2*itemBits) | uint64(n)<<itemBits)
	for _, w := range p.workers[:min(len(p.workers), n-1)] {
		if w.parked.Load() && w.parked.Swap(false) {
			w.wake <- struct{}{}
		}
	}
	p.take(0)
	p.await(int64(n))
}

// take does items until none is left.
func (p *pool) take(w int) {
	for {
		v := p.work.Load()
		i, n := v&itemMask, v>>itemBits&itemMask
		if i >= n {
			return
		}
		if !p.work.CompareAndSwap(v, v+1) {
			continue
		}
		(*p.fn.Load())(w, int(i))
		if p.done.Add(1) == int64(n) && p.waiting.Load() && p.waiting.Swap(false) {
			p.finish <- struct{}{}
		}
	}
}

// await waits until n items are done: spinning, then asleep.
func (p *pool) await(n int64) {
	if spin(func() bool { return p.done.Load() == n }) {
		return
	}
	for p.done.Load() != n { // a late worker of the phase before may wake this one too early
		p.waiting.Store(true)
		if p.done.Load() == n && p.waiting.Swap(false) {
			return
		}
		<-p.finish
	}
}

func (p *pool) loop(id int, w *worker) {
	idle := func() bool {
		v := p.work.Load()
		return v&itemMask >= v>>itemBits&itemMask && !p.stop.Load()
	}
	for !p.stop.Load() {
		p.take(id)
		if spin(func() bool { return !idle() }) {
			continue
		}
		w.parked.Store(true)
		if !idle() && w.parked.Swap(false) {
			continue
		}
		<-w.wake
	}
}

// spin waits a moment for ok and reports whether it came.
func spin(ok func() bool) bool {
	start := time.Now()
	for {
		for range 64 {
			if ok() {
				return true
			}
		}
		if time.Since(start) > spinFor {
			runtime.Gosched()
			return ok()
		}
	}
}
