package certs_test

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/runtime/certs"
)

func authority(t *testing.T, graph string) *certs.Authority {
	t.Helper()
	a, err := certs.NewAuthority(graph, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// write makes a folder of certificates, or renews it.
func write(t *testing.T, dir string, a *certs.Authority, valid time.Duration) string {
	t.Helper()
	p, err := a.Sign("decode", valid)
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

// talk sends one word from a client to a server.
func talk(t *testing.T, client, server *tls.Config) error {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	got := make(chan error, 1)
	go func() {
		s := tls.Server(b, server)
		_ = s.SetDeadline(time.Now().Add(5 * time.Second))
		_, err := io.ReadFull(s, make([]byte, 2))
		if err != nil {
			_ = b.Close()
		}
		got <- err
	}()
	c := tls.Client(a, client)
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	_, werr := c.Write([]byte("hi"))
	if werr != nil {
		_ = a.Close()
	}
	if err := <-got; err != nil {
		return err
	}
	return werr
}

func config(t *testing.T, dir, graph string) *tls.Config {
	t.Helper()
	c, err := certs.Config(dir, graph)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPeersOfOneGraph(t *testing.T) {
	a := authority(t, "demo")
	x, y := config(t, write(t, t.TempDir(), a, time.Hour), "demo"), config(t, write(t, t.TempDir(), a, time.Hour), "demo")
	if err := talk(t, x, y); err != nil {
		t.Fatal(err)
	}
}

func TestStrangers(t *testing.T) {
	a := authority(t, "demo")
	ours := config(t, write(t, t.TempDir(), a, time.Hour), "demo")
	other := config(t, write(t, t.TempDir(), authority(t, "demo"), time.Hour), "demo")
	for name, pair := range map[string][2]*tls.Config{
		"client of another authority": {other, ours},
		"server of another authority": {ours, other},
		"client without certificate":  {{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}, ours},
	} {
		if err := talk(t, pair[0], pair[1]); err == nil {
			t.Errorf("%s: it was let in", name)
		}
	}
}

func TestRenewed(t *testing.T) {
	old, dir := authority(t, "demo"), t.TempDir()
	server := config(t, write(t, dir, old, time.Hour), "demo")
	next := authority(t, "demo")
	client := config(t, write(t, t.TempDir(), next, time.Hour), "demo")
	if err := talk(t, client, server); err == nil {
		t.Fatal("a stranger was let in")
	}
	if err := os.WriteFile(filepath.Join(dir, certs.KeyFile), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1100 * time.Millisecond)
	if err := talk(t, config(t, write(t, t.TempDir(), old, time.Hour), "demo"), server); err != nil {
		t.Fatalf("a half-written renewal: %v", err)
	}
	write(t, dir, next, time.Hour)
	time.Sleep(1100 * time.Millisecond)
	if err := talk(t, client, server); err != nil {
		t.Fatalf("after the renewal: %v", err)
	}
}

func TestConfigRefuses(t *testing.T) {
	a := authority(t, "demo")
	expired := write(t, t.TempDir(), a, -time.Second)
	broken := write(t, t.TempDir(), a, time.Hour)
	if err := os.WriteFile(filepath.Join(broken, certs.CAFile), []byte("no"), 0o600); err != nil {
		t.Fatal(err)
	}
	mixed := write(t, t.TempDir(), a, time.Hour)
	if err := os.WriteFile(filepath.Join(mixed, certs.CAFile), authority(t, "demo").Cert, 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		t.TempDir(): certs.CAFile, expired: "expired", broken: certs.CAFile, mixed: "unknown authority",
	} {
		if _, err := certs.Config(dir, "demo"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q: %v", want, err)
		}
	}
	if _, err := certs.Config(write(t, t.TempDir(), a, time.Hour), "another"); err == nil || !strings.Contains(err.Error(), "demo.dynamo.internal") {
		t.Errorf("another graph's: %v", err)
	}
}

func TestAuthority(t *testing.T) {
	a := authority(t, "demo")
	again, err := certs.ReadAuthority(a.Pair)
	if err != nil || !again.Serves("demo") || again.Serves("other") {
		t.Fatalf("%v", err)
	}
	p, err := again.Sign("decode", 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if end, err := certs.Expires(p.Cert); err != nil || end.After(again.Expires()) {
		t.Errorf("it outlives its authority: %v, %v", end, err)
	}
	if _, err := certs.ReadAuthority(p); err == nil {
		t.Error("a leaf was taken for an authority")
	}
	if _, err := certs.ReadAuthority(certs.Pair{Cert: a.Cert, Key: authority(t, "demo").Key}); err == nil {
		t.Error("another's key was taken")
	}
}
