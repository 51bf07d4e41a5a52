package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/runtime/discovery"
	"github.com/dynamograph/dynamo/runtime/discovery/mem"
	"github.com/dynamograph/dynamo/runtime/transport"
	"github.com/dynamograph/dynamo/runtime/transport/inproc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal is what happened, in order.
type journal struct {
	mu   sync.Mutex
	said []string
}

func (j *journal) say(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.said = append(j.said, fmt.Sprintf(format, args...))
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.said)
}

// echo answers with its instance; ask passes a request on.
type part struct {
	j    *journal
	host kind.Host
	next flow.Peers[*llm.TokensRequest, *llm.TokensDelta]
	out  bool
	fail string
}

func (p *part) Start(context.Context) error {
	p.j.say("start %s", p.host.Node())
	if p.fail != "" {
		return errors.New(p.fail)
	}
	if p.out {
		next, err := kind.Dial(p.host, llm.Tokens, "out")
		if err != nil {
			return err
		}
		p.next = next
	}
	return kind.Serve(p.host, llm.Tokens, "in", p, map[string]string{"of": p.host.Instance()})
}

func (p *part) Drain(context.Context) error { p.j.say("drain %s", p.host.Node()); return nil }
func (p *part) Close() error                { p.j.say("close %s", p.host.Node()); return nil }

func (p *part) Generate(ctx context.Context, q *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
	if p.out {
		return p.next.List()[0].Generate(ctx, q)
	}
	return func(yield func(*llm.TokensDelta, error) bool) {
		yield(&llm.TokensDelta{Tokens: q.Tokens, Finish: llm.FinishStop, Instance: p.host.Instance()}, nil)
	}
}

// world is what the processes of a test share.
type world struct {
	journal
	reg   *mem.Registry
	mu    sync.Mutex
	parts map[string]*part // by instance
	conns map[string]*inproc.Server
}

func (w *world) kinds() *kind.Registry {
	r := &kind.Registry{}
	for _, name := range []string{"ask", "echo"} {
		kind.Add(r, kind.Kind[struct{ Fail string }]{
			Name: name, Schema: "x", Default: func() struct{ Fail string } { return struct{ Fail string }{} },
			Ports: func(struct{ Fail string }) []kind.Port { return nil },
			New: func(c struct{ Fail string }, h kind.Host) (kind.Component, error) {
				p := &part{j: &w.journal, host: h, out: name == "ask", fail: c.Fail}
				w.mu.Lock()
				defer w.mu.Unlock()
				w.parts[h.Instance()] = p
				return p, nil
			},
		})
	}
	return r
}

func thePlan() *plan.Plan {
	return &plan.Plan{
		Version: plan.Version, Graph: "g",
		Groups: []*plan.Group{
			{Name: "a", Units: []*plan.Unit{{Node: "a", Kind: "ask"}, {Node: "b", Kind: "ask"}}},
			{Name: "c", Units: []*plan.Unit{{Node: "c", Kind: "echo"}}},
		},
		Edges: []*plan.Edge{
			{From: "a", FromPort: "out", To: "b", ToPort: "in", Type: "tokens", Transport: "inproc"},
			{From: "b", FromPort: "out", To: "c", ToPort: "in", Type: "tokens", Transport: "grpc"},
		},
	}
}

// up runs a group until the returned function is called, which returns Run's error.
func (w *world) up(t *testing.T, pl *plan.Plan, group string, replica int) (stop func() error) {
	t.Helper()
	addr := fmt.Sprintf("%s-%d", group, replica)
	srv := inproc.NewServer(addr, slog.New(slog.DiscardHandler))
	w.mu.Lock()
	w.conns[addr] = srv
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		err := Run(ctx, Options{
			Plan: pl, Group: group, Replica: replica, Kinds: w.kinds(), Discovery: w.reg, Server: srv, Addr: addr,
			Dial: func(a, _ string) transport.Conn {
				w.mu.Lock()
				defer w.mu.Unlock()
				return w.conns[a].Conn()
			},
			Log: slog.New(slog.DiscardHandler), Metrics: &kindtest.Metrics{},
		})
		done <- errors.Join(err, srv.Close())
	}()
	return sync.OnceValue(func() error { cancel(); return <-done })
}

func (w *world) part(t *testing.T, instance string) *part {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		w.mu.Lock()
		p := w.parts[instance]
		w.mu.Unlock()
		if p != nil {
			return p
		}
	}
	t.Fatalf("no instance %s", instance)
	return nil
}

// peersOf waits until the part sees n peers and returns their names.
func peersOf(t *testing.T, p *part, n int) []string {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		var changed <-chan struct{}
		if p.next != nil {
			changed = p.next.Changed()
			if l := p.next.List(); len(l) == n {
				var ids []string
				for _, x := range l {
					if x.Info["of"] != x.ID {
						t.Errorf("peer %s: info %v", x.ID, x.Info)
					}
					ids = append(ids, x.ID)
				}
				return ids
			}
		}
		select {
		case <-changed:
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatalf("%s: not %d peers: %v", p.host.Node(), n, p.next.List())
		}
	}
}

func newWorld() *world {
	return &world{reg: mem.New(), parts: map[string]*part{}, conns: map[string]*inproc.Server{}}
}

// A group is joined to itself and to the others, follows who comes and goes, and drains in order.
func TestRun(t *testing.T) {
	w := newWorld()
	defer w.reg.Close()
	pl := thePlan()
	stopA := w.up(t, pl, "a", 0)
	defer stopA()
	b := w.part(t, "b-0")
	a := w.part(t, "a-0")
	stop0 := w.up(t, pl, "c", 0)
	defer stop0()
	peersOf(t, b, 1)
	stop1 := w.up(t, pl, "c", 1)
	defer stop1()
	if ids := peersOf(t, b, 2); !slices.Equal(ids, []string{"c-0", "c-1"}) {
		t.Fatal(ids)
	}
	peersOf(t, a, 1)
	for d, err := range a.Generate(t.Context(), &llm.TokensRequest{Tokens: []uint32{7}}) { // through a and b to c-0
		if err != nil || d.Instance != "c-0" || d.Tokens[0] != 7 {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	if err := stop0(); err != nil {
		t.Fatal(err)
	}
	if ids := peersOf(t, b, 1); ids[0] != "c-1" {
		t.Fatal(ids)
	}

	// The same instance at the same address, but started again, is another engine.
	was := b.next.Changed()
	if err := stop1(); err != nil {
		t.Fatal(err)
	}
	<-was
	stop1 = w.up(t, pl, "c", 1)
	peersOf(t, b, 1)
	if err := stop1(); err != nil {
		t.Fatal(err)
	}
	if err := stopA(); err != nil {
		t.Fatal(err)
	}
	said := strings.Join(w.all(), ", ")
	for _, want := range []string{"start b, start a", "drain a, drain b, close a, close b", "drain c, close c"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q does not say %q", said, want)
		}
	}
}

// A unit that does not start ends the process with its reason, and what was up before it is closed.
func TestRunStartFails(t *testing.T) {
	w := newWorld()
	defer w.reg.Close()
	pl := thePlan()
	pl.Groups[0].Units[0].Config = json.RawMessage(`{"Fail":"port taken"}`)
	stop := w.up(t, pl, "a", 0)
	w.part(t, "a-0")
	if err := stop(); err == nil || !strings.Contains(err.Error(), "node a: port taken") {
		t.Fatalf("error %v", err)
	}
	if said := strings.Join(w.all(), ", "); !strings.HasSuffix(said, "close a, close b") {
		t.Fatalf("%q", said)
	}
	if err := Run(t.Context(), Options{Plan: pl, Group: "zzz"}); err == nil || !strings.Contains(err.Error(), `"zzz"`) {
		t.Fatalf("error %v", err)
	}
	pl.Groups[1].Units[0].Kind = "foreign"
	if err := w.up(t, pl, "c", 0)(); err == nil || !strings.Contains(err.Error(), `"foreign"`) {
		t.Fatalf("error %v", err)
	}
}

// A port without an edge says so.
func TestDialWithoutEdge(t *testing.T) {
	p := newProcess(Options{Plan: thePlan(), Log: slog.New(slog.DiscardHandler)}, thePlan().Groups[0])
	defer p.close()
	_, err := kind.Dial(p.host(&plan.Unit{Node: "a"}), llm.Tokens, "other")
	if !errors.Is(err, kind.ErrNoEdge) {
		t.Fatalf("error %v", err)
	}
	if _, err := kind.Dial(p.host(&plan.Unit{Node: "a"}), flow.Port[int, int]{Type: "odd"}, "out"); err == nil || !strings.Contains(err.Error(), `"odd"`) {
		t.Fatalf("error %v", err)
	}
}

var _ discovery.Registry = (*mem.Registry)(nil)

// A node that fails later ends the process with its reason, once the others have drained.
func TestRunFailedLater(t *testing.T) {
	w := newWorld()
	defer w.reg.Close()
	stop := w.up(t, thePlan(), "a", 0)
	w.part(t, "b-0").host.Report(kind.Failed, "the engine broke")
	for deadline := time.Now().Add(10 * time.Second); !slices.Contains(w.all(), "close b"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the process goes on: %v", w.all())
		}
	}
	if err := stop(); err == nil || err.Error() != "node b: the engine broke" {
		t.Errorf("Run returned %v", err)
	}
	if said := w.all(); !slices.Contains(said, "drain a") {
		t.Errorf("a was not drained: %v", said)
	}
}
