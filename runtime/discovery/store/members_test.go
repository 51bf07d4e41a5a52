package store_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/dynamograph/dynamo/runtime/certs"
	"github.com/dynamograph/dynamo/runtime/discovery/store"
)

// ports returns n free ones.
func ports(t *testing.T, n int) []string {
	t.Helper()
	var out []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		out = append(out, l.Addr().String())
	}
	return out
}

// member is one of three stores under test.
type member struct {
	t     *testing.T
	o     store.Options
	stop  context.CancelFunc
	ready chan struct{}
	done  chan error
}

func (m *member) start() {
	ctx, cancel := context.WithCancel(context.Background())
	m.stop, m.ready, m.done = cancel, make(chan struct{}), make(chan error, 1)
	o := m.o
	ready := m.ready
	o.Ready = func() { close(ready) }
	go func() { m.done <- store.Run(ctx, o) }()
}

func (m *member) end() {
	m.t.Helper()
	m.stop()
	if err := <-m.done; err != nil {
		m.t.Errorf("%s: %v", m.o.Member, err)
	}
}

func (m *member) wait() {
	m.t.Helper()
	select {
	case <-m.ready:
	case err := <-m.done:
		m.t.Fatalf("%s: %v", m.o.Member, err)
	case <-time.After(20 * time.Second):
		m.t.Fatalf("%s: not ready", m.o.Member)
	}
}

// asks for a path of the status until it answers with code.
func (m *member) answers(path string, code int) {
	m.t.Helper()
	got := 0
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(m.t.Context(), 10*time.Second)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.o.Status+path, nil)
		if err != nil {
			m.t.Fatal(err)
		}
		resp, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(closing(r))
		if err == nil {
			got = resp.StatusCode
			_ = resp.Body.Close()
		}
		cancel()
		if got == code {
			return
		}
	}
	m.t.Errorf("%s: %s answers %d, want %d", m.o.Member, path, got, code)
}

func closing(r *http.Request) *http.Request { r.Close = true; return r }

// settle waits for connections between members: they end by a time-out of five seconds.
func settle(t *testing.T) {
	for range 30 {
		if goleak.Find() == nil {
			return
		}
	}
	t.Error(goleak.Find())
}

// Three stores keep the same, and go on with two of them; with one they do not pretend to.
func TestMembers(t *testing.T) {
	t.Cleanup(func() { settle(t) })
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%v", secure), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := ports(t, 9)
			names := map[string]string{"s-0": p[0], "s-1": p[1], "s-2": p[2]}
			scheme, folder := "http://", ""
			var conf *tls.Config
			if secure {
				scheme, folder = "https://", filepath.Join(dir, "tls")
				a, err := certs.NewAuthority("demo", time.Hour)
				if err != nil {
					t.Fatal(err)
				}
				pair, err := a.Sign("store", time.Hour)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Mkdir(folder, 0o700); err != nil {
					t.Fatal(err)
				}
				for name, b := range map[string][]byte{certs.CAFile: a.Cert, certs.CertFile: pair.Cert, certs.KeyFile: pair.Key} {
					if err := os.WriteFile(filepath.Join(folder, name), b, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if conf, err = certs.Config(folder, "demo"); err != nil {
					t.Fatal(err)
				}
			}
			var all []*member
			var endpoints []string
			for i := range 3 {
				name := fmt.Sprintf("s-%d", i)
				m := &member{t: t, o: store.Options{
					Dir: filepath.Join(dir, name), Listen: p[3+i], Status: p[6+i], TLS: folder, Member: name, Members: names,
				}}
				all = append(all, m)
				endpoints = append(endpoints, scheme+p[3+i])
				m.start()
			}
			defer func() {
				for _, m := range all {
					m.end()
				}
			}()
			for _, m := range all {
				m.wait()
				m.answers("/readyz", 200)
			}
			client := func(endpoints ...string) *clientv3.Client {
				c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: conf, Logger: zap.NewNop()})
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			put := func(c *clientv3.Client, v string, patience time.Duration) error {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				_, err := c.Put(ctx, "k", v)
				return err
			}
			c := client(endpoints...)
			defer c.Close()
			if err := put(c, "1", 10*time.Second); err != nil {
				t.Fatal(err)
			}
			last := client(endpoints[2])
			defer last.Close()
			g, err := last.Get(t.Context(), "k")
			if err != nil || len(g.Kvs) != 1 || string(g.Kvs[0].Value) != "1" {
				t.Fatalf("what one member took, another has not: %v %v", g, err)
			}
			if secure {
				return // what follows does not depend on it
			}
			all[0].end()
			if err := put(c, "2", 10*time.Second); err != nil {
				t.Errorf("without one of three: %v", err)
			}
			all[1].end()
			all[2].answers("/readyz", 503)
			all[2].answers("/livez", 200) // it is not its own fault
			if err := put(last, "3", time.Second); err == nil {
				t.Error("one of three takes writes")
			}
			all[0].start()
			all[1].start()
			for _, m := range all {
				m.answers("/readyz", 200)
			}
			if err := put(c, "4", 10*time.Second); err != nil {
				t.Errorf("three again: %v", err)
			}
		})
	}
}

func TestMembersRefused(t *testing.T) {
	two := map[string]string{"a": "127.0.0.1:1", "b": "127.0.0.1:2"}
	for _, tt := range []struct {
		o    store.Options
		want string
	}{
		{store.Options{Listen: "127.0.0.1:0", Member: "c", Members: two}, `member "c": not among the members a, b`},
		{store.Options{Listen: "127.0.0.1:0", Member: "a", Members: map[string]string{"a": "host"}}, `member "a": address host: missing port`},
		{store.Options{Listen: "unix:/tmp/s", Member: "a", Members: two}, "not a socket"},
		{store.Options{Listen: "127.0.0.1:0", Member: "a", Members: two, TLS: "/nowhere"}, "/nowhere/tls.crt"},
	} {
		tt.o.Dir = t.TempDir()
		if err := store.Run(t.Context(), tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v; want %q", tt.o, err, tt.want)
		}
	}
}
