// Package etcd is discovery through an etcd store, embedded (package store) or outside.
//
// It is level-triggered: a registry holds what should be in the store and makes it so, again whenever the store was away, lost its data
// or let the lease expire. A watch compares rather than trusts: a store that was restarted with nothing in it looks like a store from
// which all instances were removed, so that removals are held back for a while after it was away.
package etcd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/dynamograph/dynamo/runtime/discovery"
	"github.com/dynamograph/dynamo/runtime/discovery/internal/zapslog"
)

// Options say which store and which graph.
type Options struct {
	Endpoints []string // "unix:/path", "host:port" or an http(s) URL; at least one
	Graph     string   // one path element
	// TTL is how long an instance is listed after its process died. 0: 6 s; at least 2 s, in whole seconds.
	TTL time.Duration
	// Grace is how long removals are held back after the store was away; it must exceed the time that a live instance takes to register
	// anew, which is below TTL/3 + 2 s. 0: TTL + 1 s.
	Grace time.Duration
	TLS   *tls.Config
	Log   *slog.Logger // nil: nothing is logged
}

const (
	callTimeout = 2 * time.Second // one call to the store
	minBackoff  = 100 * time.Millisecond
	maxBackoff  = time.Second
)

// Registry is a discovery.Registry in a store. It has one lease, which all its instances share.
type Registry struct {
	opt    Options
	prefix string
	client *clientv3.Client
	keeper keeper
	once   sync.Once
	err    error
}

var _ discovery.Registry = (*Registry)(nil)

// New returns a Registry at once; the store may come later.
func New(o Options) (*Registry, error) {
	if len(o.Endpoints) == 0 {
		return nil, errors.New("etcd: no endpoint")
	}
	if o.Graph == "" || strings.Contains(o.Graph, "/") {
		return nil, fmt.Errorf("etcd: graph %q: must be one path element", o.Graph)
	}
	if o.TTL <= 0 {
		o.TTL = 6 * time.Second
	}
	o.TTL = max(o.TTL.Round(time.Second), 2*time.Second)
	if o.Grace <= 0 {
		o.Grace = o.TTL + time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	endpoints := make([]string, len(o.Endpoints))
	for i, e := range o.Endpoints {
		endpoints[i] = endpoint(e, o.TLS != nil)
	}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, TLS: o.TLS,
		// What fails here is retried and told here: the client's own log would only repeat it.
		Logger:            zapslog.New(o.Log.Handler(), slog.LevelError),
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		DialOptions: []grpc.DialOption{
			grpc.WithNoProxy(),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: minBackoff, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxBackoff},
				MinConnectTimeout: callTimeout,
			}),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	r := &Registry{opt: o, prefix: "/dynamo/v1/" + o.Graph + "/instances/", client: c}
	r.keeper.start(r)
	return r, nil
}

func endpoint(e string, secure bool) string {
	switch {
	case strings.HasPrefix(e, "unix:/") && !strings.HasPrefix(e, "unix://"):
		return "unix://" + strings.TrimPrefix(e, "unix:")
	case strings.Contains(e, "://"):
		return e
	case secure:
		return "https://" + e
	}
	return "http://" + e
}

// Close implements discovery.Registry. It waits for the store for a second at most: what is not removed goes away with its time to live.
func (r *Registry) Close() error {
	r.once.Do(func() {
		r.keeper.stop()
		r.err = r.client.Close()
	})
	return r.err
}

// pause is a growing time to wait between attempts.
type pause time.Duration

func (p *pause) next() time.Duration {
	d := max(minBackoff, time.Duration(*p))
	*p = pause(min(2*d, maxBackoff))
	return d
}

func (p *pause) reset() { *p = 0 }
