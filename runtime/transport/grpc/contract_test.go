package grpc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/dynamograph/dynamo/graph/flow"
	dynamov1 "github.com/dynamograph/dynamo/runtime/api/dynamo/v1"
	"github.com/dynamograph/dynamo/runtime/transport/transporttest"
)

// The tests in this file stand for a peer that is not our binary: it has the .proto files and code generated from them.

func foreignClient(t *testing.T, target string) dynamov1.WorkerClient {
	cc, err := gogrpc.NewClient(target, gogrpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return dynamov1.NewWorkerClient(cc)
}

func open(id uint64, credit uint32, to *dynamov1.Address, tokens ...uint32) *dynamov1.CallerFrame {
	return &dynamov1.CallerFrame{Stream: id, Kind: &dynamov1.CallerFrame_Open{
		Open: &dynamov1.Open{To: to, Credit: credit, Request: &dynamov1.TokensRequest{Id: "f", Tokens: tokens}},
	}}
}

func TestForeignCaller(t *testing.T) {
	t.Parallel()
	s := NewServer(Options{Instance: "w-1"})
	if err := handleAll(s); err != nil {
		t.Fatal(err)
	}
	w := foreignClient(t, listen(t, s))
	d, err := w.Describe(t.Context(), &dynamov1.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var ports []string
	for _, p := range d.GetPorts() {
		ports = append(ports, p.GetAddress().GetNode()+"."+p.GetAddress().GetPort()+" "+p.GetType())
	}
	if want := []string{"node.echo tokens", "node.endless tokens", "node.load load"}; d.GetInstance() != "w-1" || !cmp.Equal(ports, want) {
		t.Errorf("described %q %q", d.GetInstance(), ports)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	st, err := w.Generate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var queue []*dynamov1.WorkerFrame
	next := func() *dynamov1.WorkerFrame {
		t.Helper()
		for len(queue) == 0 {
			m, err := st.Recv()
			if err != nil {
				t.Fatal(err)
			}
			queue = m.GetFrames()
		}
		f := queue[0]
		queue = queue[1:]
		return f
	}
	send := func(f ...*dynamov1.CallerFrame) {
		t.Helper()
		if err := st.Send(&dynamov1.CallerFrames{Frames: f}); err != nil {
			t.Fatal(err)
		}
	}
	if h := next().GetHello(); h.GetInstance() != "w-1" || h.GetMaxRequests() != 1024 {
		t.Errorf("hello %v", h)
	}
	echo := &dynamov1.Address{Node: echoAt.Node, Port: echoAt.Port}
	send(open(3, 2, echo, 10, 11, 12, 13))
	for i, want := range []uint32{10, 11} {
		f := next()
		if f.GetStream() != 3 || f.GetSequence() != uint64(i+1) || !cmp.Equal(f.GetDelta().GetTokens(), []uint32{want}) {
			t.Fatalf("frame %d: %v", i, f)
		}
	}
	// The credit is used up: a ping is answered and nothing else comes before it.
	send(&dynamov1.CallerFrame{Kind: &dynamov1.CallerFrame_Ping{Ping: &dynamov1.Ping{Number: 77}}})
	if f := next(); f.GetPong().GetNumber() != 77 {
		t.Fatalf("in place of the pong: %v", f)
	}
	send(&dynamov1.CallerFrame{Stream: 3, Kind: &dynamov1.CallerFrame_Credit{Credit: 10}})
	next()
	f := next()
	if f.GetSequence() != 4 || f.GetDelta().GetFinish() != "stop" || f.GetDelta().GetUsage().GetCompletion() != 4 || f.GetDelta().GetHandOff().GetId() != "h" {
		t.Errorf("last delta: %v", f)
	}
	if f := next(); f.GetStream() != 3 || f.GetEnd() == nil || f.GetEnd().GetError() != nil {
		t.Errorf("in place of the end: %v", f)
	}
	// A cancelled request sends no end; frames for it come too late and harm nothing.
	send(open(4, 1, &dynamov1.Address{Node: endlessAt.Node, Port: endlessAt.Port}))
	next()
	cancelled := &dynamov1.CallerFrame{Stream: 4, Kind: &dynamov1.CallerFrame_Cancel{Cancel: &dynamov1.Cancel{}}}
	send(cancelled, cancelled, &dynamov1.CallerFrame{Stream: 4, Kind: &dynamov1.CallerFrame_Credit{Credit: 1}}, open(9, 1, &dynamov1.Address{Node: "no"}))
	if f := next(); f.GetStream() != 9 || f.GetEnd().GetError().GetReason() != "transport.no_port" || !f.GetEnd().GetError().GetRetry() {
		t.Errorf("in place of the refusal: %v", f)
	}
	// A number that is used again breaks the protocol.
	send(open(9, 1, echo))
	if _, err := st.Recv(); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "request number 9 after 9") {
		t.Errorf("got %v", err)
	}
}

// foreignWorker answers the Generate stream by script.
type foreignWorker struct {
	dynamov1.UnimplementedWorkerServer
	script func(gogrpc.BidiStreamingServer[dynamov1.CallerFrames, dynamov1.WorkerFrames]) error
}

func (f *foreignWorker) Generate(st gogrpc.BidiStreamingServer[dynamov1.CallerFrames, dynamov1.WorkerFrames]) error {
	return f.script(st)
}

func serveForeign(t *testing.T, script func(gogrpc.BidiStreamingServer[dynamov1.CallerFrames, dynamov1.WorkerFrames]) error) string {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	g := gogrpc.NewServer(gogrpc.WaitForHandlers(true))
	dynamov1.RegisterWorkerServer(g, &foreignWorker{script: script})
	var wg sync.WaitGroup
	wg.Go(func() { _ = g.Serve(l) })
	t.Cleanup(func() {
		g.Stop()
		wg.Wait()
	})
	return "unix:" + path
}

func delta(id, seq uint64, tokens ...uint32) *dynamov1.WorkerFrame {
	return &dynamov1.WorkerFrame{Stream: id, Sequence: seq, Kind: &dynamov1.WorkerFrame_Delta{Delta: &dynamov1.Delta{Tokens: tokens}}}
}

func end(id uint64, e *dynamov1.Error) *dynamov1.WorkerFrame {
	return &dynamov1.WorkerFrame{Stream: id, Kind: &dynamov1.WorkerFrame_End{End: &dynamov1.End{Error: e}}}
}

// TestForeignWorker plays workers that keep the protocol and workers that break it.
func TestForeignWorker(t *testing.T) {
	t.Parallel()
	many := func(n int) (out []*dynamov1.WorkerFrame) {
		for i := range n {
			out = append(out, delta(1, uint64(i+1), uint32(i)))
		}
		return out
	}
	for _, tc := range []struct {
		name   string
		frames []*dynamov1.WorkerFrame // the answer to the first request; then the stream ends
		deltas int
		class  flow.Class // "": success
		reason string
		msg    string
	}{
		{"Good", append(many(10), end(1, nil)), 10, "", "", ""},
		{"GoodInWindow", append(many(64), end(1, nil)), 64, "", "", ""},
		{"FramesOfOthers", []*dynamov1.WorkerFrame{delta(5, 1, 1), delta(1, 1, 1), end(8, nil), end(1, nil)}, 1, "", "", ""},
		{"NoEnd", many(3), 3, flow.Unavailable, "transport.disconnected", ""},
		{"NothingAtAll", nil, 0, flow.Unavailable, "transport.disconnected", ""},
		{"DeltaAfterEnd", []*dynamov1.WorkerFrame{end(1, nil), delta(1, 1, 1)}, 0, "", "", ""},
		{"Gap", []*dynamov1.WorkerFrame{delta(1, 1, 1), delta(1, 3, 1)}, 1, flow.BackendProtocol, "transport.protocol", "missing"},
		{"Twice", []*dynamov1.WorkerFrame{delta(1, 1, 1), delta(1, 1, 1)}, 1, flow.BackendProtocol, "transport.protocol", "twice"},
		{"OverCredit", many(65), 64, flow.BackendProtocol, "transport.protocol", "more than it may"},
		{"UnknownClass", []*dynamov1.WorkerFrame{end(1, &dynamov1.Error{Class: "gremlins", Reason: "x.y"})}, 0, flow.Internal, "x.y", ""},
		{"Error", []*dynamov1.WorkerFrame{end(1, &dynamov1.Error{Class: "not_found", Reason: "x.y", Message: "no", RetryAfterNano: 5})}, 0, flow.NotFound, "x.y", "no"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			read := make(chan struct{})
			c := dial(t, serveForeign(t, func(st gogrpc.BidiStreamingServer[dynamov1.CallerFrames, dynamov1.WorkerFrames]) error {
				hello := &dynamov1.WorkerFrame{Kind: &dynamov1.WorkerFrame_Hello{Hello: &dynamov1.Hello{}}}
				if err := st.Send(&dynamov1.WorkerFrames{Frames: []*dynamov1.WorkerFrame{hello}}); err != nil {
					return err
				}
				for {
					m, err := st.Recv()
					if err != nil {
						return err
					}
					for _, f := range m.GetFrames() {
						if f.GetOpen() == nil {
							continue
						}
						if err := st.Send(&dynamov1.WorkerFrames{Frames: tc.frames}); err != nil {
							return err
						}
						if tc.reason == "transport.disconnected" {
							return nil
						}
						<-read
						return nil
					}
				}
			}))
			n, err := drive(t.Context(), tokens(t, c, echoAt), 1, func() { time.Sleep(20 * time.Millisecond) })
			close(read)
			if n != tc.deltas {
				t.Errorf("%d deltas, want %d", n, tc.deltas)
			}
			if tc.class == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if e := wantError(t, err, tc.class, tc.reason); !strings.Contains(e.Msg, tc.msg) || e.Instance != "peer-1" {
				t.Errorf("got %+v", e)
			}
		})
	}
	for name, first := range map[string]*dynamov1.WorkerFrames{
		"no hello": {}, "delta first": {Frames: []*dynamov1.WorkerFrame{delta(1, 1, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, serveForeign(t, func(st gogrpc.BidiStreamingServer[dynamov1.CallerFrames, dynamov1.WorkerFrames]) error {
				return st.Send(first)
			}))
			_, err := drive(t.Context(), tokens(t, c, echoAt), 0, nil)
			if e := wantLost(t, err, "transport.cannot_connect"); !strings.Contains(e.Error(), "hello") {
				t.Error(e)
			}
		})
	}
	t.Run("another service", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		g := gogrpc.NewServer()
		var wg sync.WaitGroup
		wg.Go(func() { _ = g.Serve(l) })
		t.Cleanup(func() { g.Stop(); wg.Wait() })
		_, err = drive(t.Context(), tokens(t, dial(t, "unix:"+path), echoAt), 0, nil)
		if e := wantLost(t, err, "transport.cannot_connect"); !strings.Contains(e.Error(), "unknown service dynamo.v1.Worker") {
			t.Error(e)
		}
	})
}

// certs makes a CA and a certificate for both ends.
func certs(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, RootCAs: pool, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}
}

func TestMutualTLS(t *testing.T) {
	t.Parallel()
	conf := certs(t)
	s := NewServer(Options{TLS: conf})
	if err := s.Handle(echoAt, "tokens", &transporttest.Echo{}); err != nil {
		t.Fatal(err)
	}
	addr := serveAt(t, s, "tcp", "127.0.0.1:0")
	c := Dial(addr, Options{TLS: conf})
	defer c.Close()
	works(t, c)
	for name, o := range map[string]Options{
		"plain":          {},
		"no certificate": {TLS: &tls.Config{RootCAs: conf.RootCAs, MinVersion: tls.VersionTLS13}},
		"other roots":    {TLS: &tls.Config{Certificates: conf.Certificates, MinVersion: tls.VersionTLS13}},
	} {
		o.Instance = "peer-1"
		c := Dial(addr, o)
		_, err := drive(t.Context(), tokens(t, c, echoAt), 0, nil)
		if e := flow.AsError(err); e == nil || e.Reason != "transport.cannot_connect" {
			t.Errorf("%s: %v", name, err)
		}
		_ = c.Close()
	}
}
