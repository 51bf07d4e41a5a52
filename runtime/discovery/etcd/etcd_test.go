package etcd

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/runtime/discovery"
	"github.com/dynamograph/dynamo/runtime/discovery/discoverytest"
	"github.com/dynamograph/dynamo/runtime/discovery/store"
)

// testStore is a store in this process that can be stopped and started again.
type testStore struct {
	t      *testing.T
	dir    string
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newStore(t *testing.T) *testStore {
	s := &testStore{t: t, dir: t.TempDir()}
	t.Cleanup(s.stop)
	return s
}

func (s *testStore) endpoint() string { return "unix:" + filepath.Join(s.dir, "s") }

func (s *testStore) start(data string) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	ready := make(chan struct{})
	s.done.Go(func() {
		if err := store.Run(ctx, store.Options{
			Dir: filepath.Join(s.dir, data), Listen: s.endpoint(), Ready: func() { close(ready) },
		}); err != nil {
			s.t.Errorf("store: %v", err)
		}
	})
	select {
	case <-ready:
	case <-time.After(discoverytest.Patience):
		s.t.Fatal("the store does not start")
	}
}

func (s *testStore) stop() {
	if s.cancel != nil {
		s.cancel()
		s.done.Wait()
	}
}

// registry returns a new view of graph, closed with the test.
func (s *testStore) registry(graph string) *Registry {
	s.t.Helper()
	r, err := New(Options{Endpoints: []string{s.endpoint()}, Graph: graph, TTL: 2 * time.Second})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := r.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return r
}

func TestConformance(t *testing.T) {
	s := newStore(t)
	s.start("data")
	discoverytest.Run(t, func(t *testing.T) func() discovery.Registry {
		c := &testStore{t: t, dir: s.dir}
		graph := filepath.Base(t.Name())
		return func() discovery.Registry { return c.registry(graph) }
	})
}
