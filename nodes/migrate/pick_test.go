package migrate

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
)

// table is a live set of instances.
type table struct {
	mu      sync.Mutex
	list    []peer
	changed chan struct{}
}

func newTable(list ...peer) *table { return &table{list: list, changed: make(chan struct{})} }

func (t *table) List() []peer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.list
}

func (t *table) Changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

func (t *table) set(list ...peer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = list
	close(t.changed)
	t.changed = make(chan struct{})
}

// counter says 1, 2, 3, …; it breaks after some tokens, in silence where it is told no better.
func counter(id string, breaks int) peer {
	return peer{ID: id, AsyncEngine: flow.EngineFunc[*llm.TokensRequest, *llm.TokensDelta](
		func(_ context.Context, q *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
			return func(yield func(*llm.TokensDelta, error) bool) {
				for n := q.Generated; n < q.Stop.MaxTokens; n++ {
					if breaks > 0 && n == breaks {
						yield(nil, &flow.Error{Class: flow.Unavailable, Reason: "transport.disconnected", Instance: id, Retry: true})
						return
					}
					if !yield(&llm.TokensDelta{Tokens: []uint32{uint32(n + 1)}}, nil) {
						return
					}
				}
				yield(&llm.TokensDelta{Finish: llm.FinishLength}, nil)
			}
		})}
}

func startNode(t *testing.T, peers *table) (*Node, *kindtest.Host) {
	t.Helper()
	h := kindtest.NewHost(t, "m", "m-0", nil)
	h.Dialled["out"] = peers
	n, err := New(DefaultConfig(), h)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n, h
}

func ask(n *Node) ([]uint32, error) {
	var out []uint32
	for d, err := range n.Generate(context.Background(), &llm.TokensRequest{ID: "r", Tokens: []uint32{9}, Stop: llm.Stop{MaxTokens: 8}}) {
		if err != nil {
			return out, err
		}
		out = append(out, d.Tokens...)
	}
	return out, nil
}

// Without a router below, an attempt goes to an instance that has not failed the request.
func TestPickElsewhere(t *testing.T) {
	n, _ := startNode(t, newTable(counter("a", 3), counter("b", 0), counter("c", 5)))
	for range 6 { // each instance is first in turn
		got, err := ask(n)
		if err != nil || len(got) != 8 || got[7] != 8 {
			t.Fatalf("%v %v", got, err)
		}
	}
}

// A request that comes before the first instance waits for it; the node says meanwhile that it cannot serve.
func TestPickWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := newTable()
		n, h := startNode(t, peers)
		synctest.Wait()
		if s := h.State(); s != kind.Starting {
			t.Fatalf("state %q without an instance", s)
		}
		time.AfterFunc(3*time.Second, func() { peers.set(counter("a", 0)) })
		if got, err := ask(n); err != nil || len(got) != 8 {
			t.Fatalf("%v %v", got, err)
		}
		synctest.Wait()
		if s := h.State(); s != kind.Ready {
			t.Fatalf("state %q with an instance", s)
		}
		peers.set()
		began := time.Now()
		_, err := ask(n)
		var e *flow.Error
		if !errors.As(err, &e) || e.Reason != "migrate.no_instance" || time.Since(began) != waitFor {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
