package inflight_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/nodes/inflight"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDrainWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := inflight.New("n")
		begin := time.Now()
		for i := range 3 {
			_, done, err := g.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(time.Duration(i+1)*time.Second, done)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if err := g.Drain(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("drain that was cut: %v", err)
		}
		if err := g.Drain(t.Context()); err != nil || time.Since(begin) != 3*time.Second {
			t.Fatalf("drained after %v: %v", time.Since(begin), err)
		}
		if _, _, err := g.Begin(t.Context()); flow.AsError(err).Reason != "node.draining" || !flow.AsError(err).Retry {
			t.Fatalf("begin after drain: %v", err)
		}
	})
}

func TestCloseEndsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := inflight.New("n")
		ctx, done, err := g.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-ctx.Done()
			time.Sleep(time.Second)
			done()
		}()
		begin := time.Now()
		g.Close()
		g.Close()
		if e := flow.AsError(context.Cause(ctx)); e.Reason != "node.closed" || time.Since(begin) != time.Second {
			t.Fatalf("after %v: %v", time.Since(begin), e)
		}
	})
}

func ExampleGroup() {
	g := inflight.New("decode")
	_, done, err := g.Begin(context.Background())
	fmt.Println(err)
	done()
	g.Close()
	_, _, err = g.Begin(context.Background())
	fmt.Println(err)
	// Output:
	// <nil>
	// node decode takes no new requests
}
