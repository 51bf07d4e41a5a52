package grpc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/runtime/transport"
	"github.com/dynamograph/dynamo/runtime/transport/transporttest"
)

// With this variable set, the test binary is a server: its value is the socket.
const serverEnv = "DYNAMO_TEST_SERVER"

func TestMain(m *testing.M) {
	if path := os.Getenv(serverEnv); path != "" {
		s := NewServer(Options{Instance: "child-1"})
		if err := handleAll(s); err != nil {
			panic(err)
		}
		_ = os.Remove(path)
		l, err := net.Listen("unix", path)
		if err != nil {
			panic(err)
		}
		fmt.Println("ready")
		fmt.Println(s.Serve(l))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

var (
	echoAt    = transport.Address{Node: "node", Port: "echo"}
	endlessAt = transport.Address{Node: "node", Port: "endless"}
	loadAt    = transport.Address{Node: "node", Port: "load"}
)

func handleAll(s transport.Server) error {
	return errors.Join(
		s.Handle(echoAt, "tokens", &transporttest.Echo{}),
		s.Handle(endlessAt, "tokens", &transporttest.Endless{Pause: time.Millisecond}),
		s.Handle(loadAt, "load", flow.EngineFunc[*llm.Subscribe, *llm.Load](loadForever)))
}

func loadForever(ctx context.Context, _ *llm.Subscribe) iter.Seq2[*llm.Load, error] {
	return func(yield func(*llm.Load, error) bool) {
		if yield(&llm.Load{Sequence: 1}, nil) {
			<-ctx.Done()
		}
	}
}

// child is a server in a process of its own.
type child struct {
	t    *testing.T
	path string
	cmd  *exec.Cmd
}

func startChild(t *testing.T) *child {
	c := &child{t: t, path: filepath.Join(t.TempDir(), "s")}
	c.start()
	t.Cleanup(c.kill)
	return c
}

func (c *child) start() {
	c.t.Helper()
	c.cmd = exec.Command(os.Args[0])
	c.cmd.Env = append(os.Environ(), serverEnv+"="+c.path)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		c.t.Fatal(line, err)
	}
}

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// dial returns a Conn that gives its peer up after 0.4 s, and closes it with the test.
func dial(t testing.TB, target string) *Conn {
	c := Dial(target, Options{
		Instance: "peer-1", ConnectTimeout: 500 * time.Millisecond, PingEvery: 100 * time.Millisecond, PingTimeout: 300 * time.Millisecond,
	})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func tokens(t testing.TB, c transport.Conn, a transport.Address) tokensEngine {
	t.Helper()
	e, err := c.Engine(a, "tokens")
	if err != nil {
		t.Fatal(err)
	}
	return e.(tokensEngine)
}

// drive reads n deltas and then calls then; it returns how many came and the error that ended the stream.
func drive(ctx context.Context, e tokensEngine, n int, then func()) (got int, last error) {
	for _, err := range e.Generate(ctx, &llm.TokensRequest{ID: "r", Tokens: []uint32{1, 2, 3}}) {
		if err != nil {
			return got, err
		}
		if got++; got == n {
			then()
		}
	}
	return got, nil
}

func wantError(t *testing.T, err error, class flow.Class, reason string) *flow.Error {
	t.Helper()
	var e *flow.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %T %v, want %s", err, err, reason)
	}
	if e.Class != class || e.Reason != reason {
		t.Fatalf("got %s %s (%v), want %s %s", e.Class, e.Reason, e, class, reason)
	}
	return e
}

// wantLost checks an error of the transport: the peer's name is in it, and another may do it.
func wantLost(t *testing.T, err error, reason string) *flow.Error {
	t.Helper()
	e := wantError(t, err, flow.Unavailable, reason)
	if !e.Retry || e.Instance != "peer-1" {
		t.Fatalf("got retry=%t instance=%q", e.Retry, e.Instance)
	}
	return e
}

// works waits until calls work again.
func works(t *testing.T, c *Conn) {
	t.Helper()
	var err error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var n int
		if n, err = drive(t.Context(), tokens(t, c, echoAt), 0, nil); err == nil && n == 3 {
			return
		}
	}
	t.Fatalf("still: %v", err)
}

func TestPeerKilledAndRestarted(t *testing.T) {
	t.Parallel()
	p := startChild(t)
	c := dial(t, "unix:"+p.path)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := drive(t.Context(), tokens(t, c, endlessAt), -1, nil)
			wantLost(t, err, "transport.disconnected")
		})
	}
	n, err := drive(t.Context(), tokens(t, c, endlessAt), 20, p.kill)
	wantLost(t, err, "transport.disconnected")
	wg.Wait()
	if n < 20 {
		t.Errorf("%d deltas, 20 were read", n)
	}
	// The message says where and why. At first the reason may be that the connection broke while it was made.
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(minBackoff) {
		_, err = drive(t.Context(), tokens(t, c, echoAt), 0, nil)
		e := wantLost(t, err, "transport.cannot_connect")
		if strings.Contains(e.Error(), p.path) && strings.Contains(e.Error(), "connection refused") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the message does not say where or why: %v", e)
		}
	}
	began := time.Now()
	for range 100 { // calls to what is not there fail at once
		if _, err := drive(t.Context(), tokens(t, c, echoAt), 0, nil); err == nil {
			t.Fatal("success without a peer")
		}
	}
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("100 calls to nobody took %s", d)
	}
	p.start()
	works(t, c)
	if !c.Healthy() {
		t.Error("not healthy")
	}
}

// TestPeerStops is a peer whose process is stopped: nothing closes, only the answers stay away.
func TestPeerStops(t *testing.T) {
	t.Parallel()
	p := startChild(t)
	c := dial(t, "unix:"+p.path)
	load, err := c.Engine(loadAt, "load")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	subscribed := make(chan struct{})
	wg.Go(func() {
		var last error
		for _, err := range load.(loadEngine).Generate(t.Context(), &llm.Subscribe{}) {
			if last = err; err == nil {
				close(subscribed)
			}
		}
		wantLost(t, last, "transport.disconnected")
	})
	<-subscribed
	var stopped time.Time
	_, err = drive(t.Context(), tokens(t, c, endlessAt), 20, func() {
		p.signal(syscall.SIGSTOP)
		stopped = time.Now()
	})
	e := wantLost(t, err, "transport.disconnected")
	if d := time.Since(stopped); d > 3*time.Second {
		t.Errorf("noticed after %s", d)
	}
	if !strings.Contains(e.Error(), "no sign of life") {
		t.Errorf("the message does not say why: %v", e)
	}
	wg.Wait()
	if c.Healthy() {
		t.Error("healthy while the peer is stopped")
	}
	_, err = drive(t.Context(), tokens(t, c, echoAt), 0, nil)
	wantLost(t, err, "transport.cannot_connect")
	p.signal(syscall.SIGCONT)
	works(t, c)
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := dial(t, l.Addr().String())
	if c.Healthy() {
		t.Error("healthy before the first use")
	}
	began := time.Now()
	_, err = drive(t.Context(), tokens(t, c, echoAt), 0, nil)
	e := wantLost(t, err, "transport.cannot_connect")
	if d := time.Since(began); d > 2*time.Second || !strings.Contains(e.Error(), "no answer within 500ms") {
		t.Errorf("after %s: %v", d, e)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	time.Sleep(2 * minBackoff)
	_, err = drive(ctx, tokens(t, c, echoAt), 0, nil)
	wantError(t, err, flow.DeadlineExceeded, "deadline")
}

// proxy passes bytes to target and can cut or hold them.
type proxy struct {
	addr string
	mu   sync.Mutex
	open []net.Conn
}

func newProxy(t *testing.T, network, target string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String()}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial(network, target)
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			p.open = append(p.open, in, out)
			p.mu.Unlock()
			wg.Go(func() { _, _ = io.Copy(out, in); _ = out.Close() })
			wg.Go(func() { _, _ = io.Copy(in, out); _ = in.Close() })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		wg.Wait()
	})
	return p
}

// cut closes every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		_ = c.Close()
	}
	p.open = nil
}

func TestConnectionCut(t *testing.T) {
	t.Parallel()
	s := NewServer(Options{})
	endless := &transporttest.Endless{Pause: time.Millisecond}
	if err := errors.Join(s.Handle(endlessAt, "tokens", endless), s.Handle(echoAt, "tokens", &transporttest.Echo{})); err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, "tcp", serveAt(t, s, "tcp", "127.0.0.1:0"))
	c := dial(t, p.addr)
	for range 3 {
		_, err := drive(t.Context(), tokens(t, c, endlessAt), 10, p.cut)
		wantLost(t, err, "transport.disconnected")
		works(t, c)
	}
	for end := time.Now().Add(5 * time.Second); endless.Stopped.Load() != 3; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of 3 engines stopped when their caller was cut off", endless.Stopped.Load())
		}
	}
}

func TestTooManyRequests(t *testing.T) {
	t.Parallel()
	s := NewServer(Options{MaxRequests: 2, Instance: "peer-1"})
	if err := handleAll(s); err != nil {
		t.Fatal(err)
	}
	c := dial(t, listen(t, s))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range tokens(t, c, endlessAt).Generate(ctx, &llm.TokensRequest{}) {
		for range tokens(t, c, endlessAt).Generate(ctx, &llm.TokensRequest{}) {
			_, err := drive(ctx, tokens(t, c, echoAt), 0, nil)
			if e := wantError(t, err, flow.CapacityExhausted, "transport.busy"); !e.Retry || e.Instance != "peer-1" {
				t.Errorf("got %+v", e)
			}
			break
		}
		break
	}
	works(t, c)
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	s := NewServer(Options{})
	if err := handleAll(s); err != nil {
		t.Fatal(err)
	}
	c := Dial(listen(t, s), Options{MaxMessage: 512 << 10})
	defer c.Close()
	big := &llm.TokensRequest{Tokens: make([]uint32, 500_000)}
	for _, err := range tokens(t, c, echoAt).Generate(t.Context(), big) {
		wantError(t, err, flow.PayloadTooLarge, "transport.too_large")
	}
	works(t, c)
}
