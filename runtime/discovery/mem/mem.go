// Package mem is discovery inside one process.
package mem

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/dynamograph/dynamo/runtime/discovery"
)

// Registry is a discovery.Registry that all nodes of a process share.
type Registry struct {
	mu      sync.Mutex
	table   []discovery.Instance // sorted by ID; replaced, never changed
	changed chan struct{}        // closed when table is replaced
	closed  bool
}

var _ discovery.Registry = (*Registry)(nil)

// New returns an empty Registry.
func New() *Registry { return &Registry{changed: make(chan struct{})} }

func find(table []discovery.Instance, id string) (int, bool) {
	return slices.BinarySearchFunc(table, id, func(in discovery.Instance, id string) int { return strings.Compare(in.ID, id) })
}

func (r *Registry) replace(table []discovery.Instance) {
	r.table = table
	close(r.changed)
	r.changed = make(chan struct{})
}

// Register implements discovery.Registry.
func (r *Registry) Register(ctx context.Context, in discovery.Instance) (discovery.Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := in.Check(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, discovery.ErrClosed
	}
	i, ok := find(r.table, in.ID)
	if ok {
		return nil, fmt.Errorf("instance %q: %w", in.ID, discovery.ErrRegistered)
	}
	r.replace(slices.Insert(slices.Clone(r.table), i, in))
	return &lease{r: r, id: in.ID}, nil
}

// Watch implements discovery.Registry.
func (r *Registry) Watch(ctx context.Context) iter.Seq2[[]discovery.Instance, error] {
	return func(yield func([]discovery.Instance, error) bool) {
		for {
			r.mu.Lock()
			table, changed, closed := r.table, r.changed, r.closed
			r.mu.Unlock()
			if ctx.Err() != nil {
				yield(nil, ctx.Err())
				return
			}
			if closed {
				yield(nil, discovery.ErrClosed)
				return
			}
			if !yield(table, nil) {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}

// Close implements discovery.Registry.
func (r *Registry) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		r.replace(nil)
	}
	return nil
}

type lease struct {
	r      *Registry
	id     string
	closed bool // under r.mu
}

// Update implements discovery.Lease.
func (l *lease) Update(in discovery.Instance) error {
	if in.ID != l.id {
		return fmt.Errorf("instance %q: cannot become %q", l.id, in.ID)
	}
	if err := in.Check(); err != nil {
		return err
	}
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	if l.closed || l.r.closed {
		return discovery.ErrClosed
	}
	i, _ := find(l.r.table, l.id)
	table := slices.Clone(l.r.table)
	table[i] = in
	l.r.replace(table)
	return nil
}

// Close implements discovery.Lease.
func (l *lease) Close(context.Context) error {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	if l.closed || l.r.closed {
		return nil
	}
	l.closed = true
	i, _ := find(l.r.table, l.id)
	l.r.replace(slices.Delete(slices.Clone(l.r.table), i, i+1))
	return nil
}
