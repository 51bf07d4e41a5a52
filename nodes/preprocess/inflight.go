package preprocess

import (
	"context"
	"sync"
)

// inflight counts requests so that Drain can wait for them.
type inflight struct {
	mu      sync.Mutex
	n       int
	stopped bool
	idle    chan struct{} // closed when stopped and n is 0; nil before stop
}

// begin reports whether a new request may start; end must follow.
func (f *inflight) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return false
	}
	f.n++
	return true
}

func (f *inflight) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n--; f.n == 0 && f.stopped {
		close(f.idle)
	}
}

// stop refuses new requests; repeated calls do nothing.
func (f *inflight) stop() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.stopped {
		f.stopped = true
		f.idle = make(chan struct{})
		if f.n == 0 {
			close(f.idle)
		}
	}
	return f.idle
}

func (f *inflight) drain(ctx context.Context) error {
	select {
	case <-f.stop():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
