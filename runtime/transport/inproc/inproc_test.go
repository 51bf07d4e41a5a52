package inproc

import (
	"context"
	"iter"
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/runtime/transport"
	"github.com/dynamograph/dynamo/runtime/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	transporttest.Run(t, func(_ *testing.T, log *slog.Logger) transporttest.Pair {
		s := NewServer(transporttest.Instance, log)
		return transporttest.Pair{Server: s, Conn: s.Conn()}
	})
}

// endless gives deltas until its caller leaves.
func endless(context.Context, *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
	return func(yield func(*llm.TokensDelta, error) bool) {
		d := llm.TokensDelta{Tokens: []uint32{1}}
		for yield(&d, nil) {
		}
	}
}

func engine(tb testing.TB) flow.AsyncEngine[*llm.TokensRequest, *llm.TokensDelta] {
	s := NewServer("a", nil)
	tb.Cleanup(func() { _ = s.Close() })
	a := transport.Address{Node: "n", Port: "p"}
	if err := s.Handle(a, "tokens", flow.EngineFunc[*llm.TokensRequest, *llm.TokensDelta](endless)); err != nil {
		tb.Fatal(err)
	}
	e, err := s.Conn().Engine(a, "tokens")
	if err != nil {
		tb.Fatal(err)
	}
	return e.(flow.AsyncEngine[*llm.TokensRequest, *llm.TokensDelta])
}

// read takes n deltas.
func read(e flow.AsyncEngine[*llm.TokensRequest, *llm.TokensDelta], n int) {
	for range e.Generate(context.Background(), nil) {
		if n--; n <= 0 {
			break
		}
	}
}

func TestDeltasAllocateNothing(t *testing.T) {
	e := engine(t)
	few, many := testing.AllocsPerRun(20, func() { read(e, 10) }), testing.AllocsPerRun(20, func() { read(e, 1010) })
	if many > few {
		t.Errorf("%v allocations for 10 deltas, %v for 1,010", few, many)
	}
}

// TestCallersPanic is the caller's to deal with: it is not blamed on the engine.
func TestCallersPanic(t *testing.T) {
	e := engine(t)
	defer func() {
		if p := recover(); p != "mine" {
			t.Errorf("recovered %v", p)
		}
	}()
	for range e.Generate(t.Context(), nil) {
		panic("mine")
	}
}

func BenchmarkDelta(b *testing.B) {
	e := engine(b)
	b.ReportAllocs()
	read(e, b.N)
}
