package etcd

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/dynamograph/dynamo/runtime/discovery"
)

// Watch implements discovery.Registry.
func (r *Registry) Watch(ctx context.Context) iter.Seq2[[]discovery.Instance, error] {
	return func(yield func([]discovery.Instance, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(r.keeper.ctx, cancel)()
		w := &watch{r: r, known: map[string]row{}}
		for w.round(ctx, yield) {
		}
	}
}

// watch is one Watch.
type watch struct {
	r       *Registry
	known   map[string]row
	listed  bool      // known holds a whole table
	dirty   bool      // known has something that was not yielded
	away    bool      // the store did not answer the last time
	backAt  time.Time // when it answered again
	cluster uint64    // of the list
	rev     int64     // highest seen
	checked time.Time // when the store last answered
	wait    pause
}

// row is a known instance.
type row struct {
	value string
	in    discovery.Instance
	gone  bool // the store does not hold it, but the removal is held back
}

// round lists, then follows until something is wrong. It returns false when the watch is over.
func (w *watch) round(ctx context.Context, yield func([]discovery.Instance, error) bool) bool {
	changes, stop, err := w.list(ctx)
	if err != nil {
		w.lost()
		if w.listed && !w.expire(yield) {
			return false
		}
		timer := time.NewTimer(w.wait.next())
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return w.over(ctx, yield)
		}
	}
	defer stop()
	w.wait.reset()
	tick := time.NewTicker(w.r.opt.TTL / 3)
	defer tick.Stop()
	for {
		if !w.expire(yield) {
			return false
		}
		var held <-chan time.Time
		if d := w.heldFor(); d > 0 {
			held = time.After(d)
		}
		select {
		case <-ctx.Done():
			return w.over(ctx, yield)
		case c, ok := <-changes:
			if !ok || c.Err() != nil {
				w.lost()
				return true
			}
			w.apply(c)
			for more := true; more; { // merge what else has come
				select {
				case c, ok := <-changes:
					if !ok || c.Err() != nil {
						w.lost()
						return true
					}
					w.apply(c)
				default:
					more = false
				}
			}
		case <-held:
		case <-tick.C:
			if !w.check(ctx) {
				return true
			}
		}
	}
}

// over ends the watch with its reason.
func (w *watch) over(ctx context.Context, yield func([]discovery.Instance, error) bool) bool {
	if w.r.keeper.ctx.Err() != nil {
		yield(nil, discovery.ErrClosed)
	} else {
		yield(nil, ctx.Err())
	}
	return false
}

// list reads the whole table and begins to follow it from there.
func (w *watch) list(ctx context.Context) (clientv3.WatchChan, func(), error) {
	g, err := do(ctx, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return w.r.client.Get(ctx, w.r.prefix, clientv3.WithPrefix())
	})
	if err != nil {
		return nil, nil, err
	}
	w.answered()
	w.cluster, w.rev = g.Header.ClusterId, g.Header.Revision
	seen := map[string]bool{}
	for _, kv := range g.Kvs {
		seen[string(kv.Key)] = true
		w.put(string(kv.Key), string(kv.Value))
	}
	for key := range w.known {
		if !seen[key] {
			w.remove(key)
		}
	}
	w.dirty = w.dirty || !w.listed
	w.listed = true
	ctx, stop := context.WithCancel(clientv3.WithRequireLeader(ctx))
	return w.r.client.Watch(ctx, w.r.prefix, clientv3.WithPrefix(), clientv3.WithRev(w.rev+1)), stop, nil
}

// check asks whether this is still the store that we follow: the client resumes a watch on a store that lost its data as if nothing
// had happened.
func (w *watch) check(ctx context.Context) bool {
	g, err := do(ctx, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return w.r.client.Get(ctx, w.r.prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	})
	if err != nil {
		w.lost()
		return false
	}
	back := w.away || time.Since(w.checked) > w.r.opt.TTL
	w.answered()
	if g.Header.ClusterId != w.cluster || g.Header.Revision < w.rev {
		w.lost()
		return false
	}
	w.rev = max(w.rev, g.Header.Revision)
	return !back
}

// lost notes that the store is away.
func (w *watch) lost() { w.away = true }

// answered notes that the store is there. It, or we, may have slept: then too its leases may have run out in the meantime.
func (w *watch) answered() {
	now := time.Now()
	if w.away || !w.checked.IsZero() && now.Sub(w.checked) > w.r.opt.TTL {
		w.away, w.backAt = false, now
	}
	w.checked = now
}

// heldFor returns how long removals are held back still; 0 if they are not, or nothing is held.
func (w *watch) heldFor() time.Duration {
	if w.away {
		return 0
	}
	for _, r := range w.known {
		if r.gone {
			return max(0, w.r.opt.Grace-time.Since(w.backAt)) + time.Millisecond
		}
	}
	return 0
}

func (w *watch) holding() bool {
	return w.away || time.Since(w.checked) > w.r.opt.TTL || !w.backAt.IsZero() && time.Since(w.backAt) < w.r.opt.Grace
}

func (w *watch) apply(c clientv3.WatchResponse) {
	w.rev = max(w.rev, c.Header.Revision)
	for _, e := range c.Events {
		if e.Type == clientv3.EventTypeDelete {
			w.remove(string(e.Kv.Key))
		} else {
			w.put(string(e.Kv.Key), string(e.Kv.Value))
		}
	}
}

func (w *watch) put(key, value string) {
	old, ok := w.known[key]
	if ok && old.value == value {
		if old.gone {
			old.gone = false
			w.known[key] = old
		}
		return
	}
	r := row{value: value}
	id := strings.TrimPrefix(key, w.r.prefix)
	if err := json.Unmarshal([]byte(value), &r.in); err != nil || r.in.ID != id || r.in.Check() != nil {
		w.r.opt.Log.Warn("the store holds an entry that is no instance; passed over", "key", key, "error", err)
		w.remove(key)
		return
	}
	w.known[key] = r
	w.dirty = true
}

func (w *watch) remove(key string) {
	r, ok := w.known[key]
	if !ok {
		return
	}
	if w.holding() {
		r.gone = true
		w.known[key] = r
		return
	}
	delete(w.known, key)
	w.dirty = true
}

// expire carries out removals that were held back long enough, and yields the table if it changed.
func (w *watch) expire(yield func([]discovery.Instance, error) bool) bool {
	if !w.holding() {
		for key, r := range w.known {
			if r.gone {
				delete(w.known, key)
				w.dirty = true
			}
		}
	}
	if !w.dirty {
		return true
	}
	w.dirty = false
	table := make([]discovery.Instance, 0, len(w.known))
	for _, r := range w.known {
		table = append(table, r.in)
	}
	slices.SortFunc(table, func(a, b discovery.Instance) int { return strings.Compare(a.ID, b.ID) })
	return yield(table, nil)
}
