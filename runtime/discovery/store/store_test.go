package store_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
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

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(context.Background())
	err = store.Run(ctx, store.Options{Dir: filepath.Join(dir, "data"), Listen: "unix:" + filepath.Join(dir, "s"), Ready: func() {
		fmt.Println("ready")
		cancel()
	}})
	fmt.Println(err)
	// Output:
	// ready
	// <nil>
}

// run starts a store, calls f while it serves, and stops it.
func run(t *testing.T, o store.Options, f func()) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	o.Ready = func() {
		go func() {
			defer cancel()
			f()
		}()
	}
	return store.Run(ctx, o)
}

func TestServesUnixAndTCP(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	sock := filepath.Join(dir, "s")
	var log bytes.Buffer
	for listen, endpoint := range map[string]string{"unix:" + sock: "unix://" + sock, addr: "http://" + addr} {
		// The second turn finds what the first has written.
		var wrote, read string
		err := run(t, store.Options{Dir: filepath.Join(dir, "data"), Listen: listen, Log: slog.New(slog.NewTextHandler(&log, nil))}, func() {
			c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: 5 * time.Second})
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if _, err := c.Put(t.Context(), "k", "v"); err != nil {
				t.Error(err)
			}
			wrote = "v"
			g, err := c.Get(t.Context(), "k")
			if err != nil || len(g.Kvs) != 1 {
				t.Error(g, err)
				return
			}
			read = string(g.Kvs[0].Value)
		})
		if err != nil || wrote != read || read == "" {
			t.Fatalf("%s: read %q: %v", listen, read, err)
		}
	}
	if log.Len() > 0 {
		t.Errorf("a store in good health is not quiet:\n%s", &log)
	}
	if info, err := os.Stat(filepath.Join(dir, "data")); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
}

// Over TLS only holders of a certificate of the graph's authority are served.
func TestTLS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	certificates := func(a *certs.Authority) string {
		dir := t.TempDir()
		p, err := a.Sign("store", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for name, b := range map[string][]byte{certs.CAFile: a.Cert, certs.CertFile: p.Cert, certs.KeyFile: p.Key} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	authority := func() *certs.Authority {
		a, err := certs.NewAuthority("demo", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	put := func(c *tls.Config, scheme string) error {
		cl, err := clientv3.New(clientv3.Config{Endpoints: []string{scheme + addr}, TLS: c, Logger: zap.NewNop()})
		if err != nil {
			return err
		}
		defer cl.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err = cl.Put(ctx, "k", "v")
		return err
	}
	ours := authority()
	friend, err := certs.Config(certificates(ours), "demo")
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := certs.Config(certificates(authority()), "demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t, store.Options{Dir: filepath.Join(t.TempDir(), "data"), Listen: addr, TLS: certificates(ours)}, func() {
		if err := put(friend, "https://"); err != nil {
			t.Errorf("a peer with a certificate: %v", err)
		}
		if put(stranger, "https://") == nil {
			t.Error("a certificate of another authority was taken")
		}
		if put(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}, "https://") == nil {
			t.Error("a peer without a certificate was served")
		}
		if put(nil, "http://") == nil {
			t.Error("plain text was served")
		}
	}); err != nil {
		t.Fatal(err)
	}
}

func TestRefuses(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(dir, "damaged")
	if err := os.MkdirAll(filepath.Join(damaged, "member", "snap"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(damaged, "member", "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(damaged, "member", "snap", "db"), bytes.Repeat([]byte("junk"), 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	sock := "unix:" + filepath.Join(dir, "s")
	for _, tc := range []struct {
		name string
		o    store.Options
		want string
	}{
		{"port taken", store.Options{Dir: filepath.Join(dir, "a"), Listen: l.Addr().String()}, "address already in use"},
		{"no folder", store.Options{Dir: filepath.Join(file, "x"), Listen: sock}, "not a directory"},
		{"relative socket", store.Options{Dir: filepath.Join(dir, "b"), Listen: "unix:s"}, "must be an absolute path"},
		{"long socket", store.Options{Dir: filepath.Join(dir, "c"), Listen: "unix:/" + strings.Repeat("x", 120)}, "at most 107 bytes"},
		{"damaged data", store.Options{Dir: damaged, Listen: sock}, "may be removed"},
	} {
		if err := run(t, tc.o, func() { t.Errorf("%s: serves", tc.name) }); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
	o := store.Options{Dir: filepath.Join(dir, "d"), Listen: sock}
	err = run(t, o, func() {
		o.Listen = "unix:" + filepath.Join(dir, "s2")
		if err := run(t, o, func() { t.Error("two stores on one folder") }); err == nil || !strings.Contains(err.Error(), "in use by another store") {
			t.Error(err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}
