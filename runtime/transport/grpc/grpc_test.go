package grpc

import (
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/runtime/transport/transporttest"
)

// listen serves s on a unix socket until the test ends, and returns its target.
func listen(t testing.TB, s *Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	serveAt(t, s, "unix", path)
	return "unix:" + path
}

func serveAt(t testing.TB, s *Server, network, addr string) string {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Serve(l); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
	return l.Addr().String()
}

func TestConformanceUnix(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, log *slog.Logger) transporttest.Pair {
		s := NewServer(Options{Instance: transporttest.Instance, Log: log})
		return transporttest.Pair{Server: s, Conn: Dial(listen(t, s), Options{Instance: transporttest.Instance, PingEvery: 50 * time.Millisecond})}
	})
}

func TestConformanceTCP(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, log *slog.Logger) transporttest.Pair {
		s := NewServer(Options{Instance: transporttest.Instance, Log: log})
		return transporttest.Pair{Server: s, Conn: Dial(serveAt(t, s, "tcp", "127.0.0.1:0"), Options{Instance: transporttest.Instance, Window: 4})}
	})
}
