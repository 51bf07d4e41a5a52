package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/dynamograph/dynamo/runtime/discovery"
)

// keeper holds a registry's instances in the store.
type keeper struct {
	r      *Registry
	ctx    context.Context // ends when the registry closes
	cancel context.CancelFunc
	wake   chan struct{}
	done   chan struct{}

	mu     sync.Mutex
	want   map[string]*entry
	closed bool
}

// entry is what should become of one key.
type entry struct {
	value   string
	version int           // of value: rises with each update
	stored  int           // version in the store under the present lease
	remove  bool          // the lease was closed
	removed chan struct{} // closed when the key is gone
}

func (k *keeper) start(r *Registry) {
	k.r = r
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.wake, k.done = make(chan struct{}, 1), make(chan struct{})
	k.want = map[string]*entry{}
	go k.run()
}

func (k *keeper) stop() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.cancel()
	<-k.done
}

func (k *keeper) poke() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// run makes the store what it should be, and keeps the lease alive.
func (k *keeper) run() {
	defer close(k.done)
	var lease clientv3.LeaseID
	var renewed time.Time // when the lease was last known to live
	var wait pause
	failing := false
	for {
		next, err := k.sync(&lease, &renewed)
		switch {
		case k.ctx.Err() != nil:
			k.revoke(lease)
			return
		case err != nil:
			if !failing {
				k.r.opt.Log.Warn("the store does not answer; serving goes on", "error", err)
			}
			failing, next = true, wait.next()
		default:
			if failing {
				k.r.opt.Log.Info("the store answers again")
			}
			failing = false
			wait.reset()
		}
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-k.wake:
		case <-k.ctx.Done():
		}
		timer.Stop()
	}
}

// sync takes one pass and returns when the next is due.
func (k *keeper) sync(lease *clientv3.LeaseID, renewed *time.Time) (time.Duration, error) {
	const idle = time.Hour // nothing to keep: a poke ends it
	every := k.r.opt.TTL / 3
	k.mu.Lock()
	n := len(k.want)
	k.mu.Unlock()
	if n == 0 && *lease == 0 {
		return idle, nil
	}
	if *lease == 0 {
		g, err := do(k.ctx, func(ctx context.Context) (*clientv3.LeaseGrantResponse, error) {
			return k.r.client.Grant(ctx, int64(k.r.opt.TTL/time.Second))
		})
		if err != nil {
			return 0, err
		}
		*lease, *renewed = g.ID, time.Now()
		k.forget()
	} else if time.Since(*renewed) >= every {
		_, err := do(k.ctx, func(ctx context.Context) (*clientv3.LeaseKeepAliveResponse, error) {
			return k.r.client.KeepAliveOnce(ctx, *lease)
		})
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			k.r.opt.Log.Warn("the store let our lease go; registering anew")
			*lease = 0
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		*renewed = time.Now()
	}
	for key, e := range k.due() {
		if err := k.store(*lease, key, e); err != nil {
			if errors.Is(err, rpctypes.ErrLeaseNotFound) {
				*lease = 0
				return 0, nil
			}
			return 0, err
		}
	}
	return max(0, every-time.Since(*renewed)), nil
}

// do calls the store with a bound on time.
func do[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return f(ctx)
}

// forget says that nothing is in the store.
func (k *keeper) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.want {
		e.stored = 0
	}
}

// due returns copies of the entries that the store does not have as they should be.
func (k *keeper) due() map[string]entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	due := map[string]entry{}
	for key, e := range k.want {
		if e.remove || e.stored != e.version {
			due[key] = *e
		}
	}
	return due
}

func (k *keeper) store(lease clientv3.LeaseID, key string, e entry) error {
	_, err := do(k.ctx, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		if e.remove { // but not what a successor of the same name has put there
			return k.r.client.Txn(ctx).If(clientv3.Compare(clientv3.LeaseValue(key), "=", lease)).Then(clientv3.OpDelete(key)).Commit()
		}
		return k.r.client.Txn(ctx).Then(clientv3.OpPut(key, e.value, clientv3.WithLease(lease))).Commit()
	})
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if e.remove {
		delete(k.want, key)
		close(e.removed)
	} else if now := k.want[key]; now != nil {
		now.stored = e.version
	}
	return nil
}

// revoke lets the lease, and all keys with it, go.
func (k *keeper) revoke(lease clientv3.LeaseID) {
	if lease == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := k.r.client.Revoke(ctx, lease); err != nil {
		k.r.opt.Log.Info("our entries could not be removed from the store; they expire", "error", err)
	}
}

// Register implements discovery.Registry.
func (r *Registry) Register(ctx context.Context, in discovery.Instance) (discovery.Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	value, err := encode(in)
	if err != nil {
		return nil, err
	}
	k := &r.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, discovery.ErrClosed
	}
	key := r.prefix + in.ID
	if _, ok := k.want[key]; ok {
		return nil, fmt.Errorf("instance %q: %w", in.ID, discovery.ErrRegistered)
	}
	e := &entry{value: value, version: 1, removed: make(chan struct{})}
	k.want[key] = e
	k.poke()
	return &lease{k: k, key: key, id: in.ID, e: e}, nil
}

func encode(in discovery.Instance) (string, error) {
	if err := in.Check(); err != nil {
		return "", err
	}
	b, err := json.Marshal(in)
	return string(b), err
}

type lease struct {
	k       *keeper
	key, id string
	e       *entry
}

// Update implements discovery.Lease.
func (l *lease) Update(in discovery.Instance) error {
	if in.ID != l.id {
		return fmt.Errorf("instance %q: cannot become %q", l.id, in.ID)
	}
	value, err := encode(in)
	if err != nil {
		return err
	}
	l.k.mu.Lock()
	defer l.k.mu.Unlock()
	if l.k.closed || l.e.remove {
		return discovery.ErrClosed
	}
	if l.e.value != value {
		l.e.value = value
		l.e.version++
		l.k.poke()
	}
	return nil
}

// Close implements discovery.Lease.
func (l *lease) Close(ctx context.Context) error {
	l.k.mu.Lock()
	l.e.remove = true
	l.k.mu.Unlock()
	l.k.poke()
	select {
	case <-l.e.removed:
		return nil
	case <-l.k.done: // the registry's Close removed it
		return nil
	case <-ctx.Done():
		return fmt.Errorf("instance %q: the store does not answer, the entry expires within %s: %w", l.id, l.k.r.opt.TTL, ctx.Err())
	}
}
