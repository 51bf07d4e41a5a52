package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The processes of a graph on TCP with the certificates of graph certs: prefill hands its KV to decode over mutual TLS, the answer is that of
// an undisturbed run, and neither a stranger's process nor one without TLS gets in.
func TestMutualTLS(t *testing.T) {
	const spec = "../../specs/llama-disagg.cue"
	q := ask("Name three rivers of Europe.", 24)
	plain := start(t, spec)
	want, err := plain.chat(within(t, 60*time.Second), q)
	if err != nil {
		t.Fatal(err)
	}
	plain.stop()

	dir := t.TempDir()
	front, store := freeAddr(t), freeAddr(t)
	tags := []string{"-t", "listen=" + front, "-t", "decode=1"}
	pl := filepath.Join(dir, "plan.json")
	text := output(t, append([]string{"graph", "compile", spec}, tags...)...)
	if !strings.Contains(text, `"shm"`) {
		t.Fatalf("the plan has no kv edge over shared memory:\n%s", text)
	}
	if err := os.WriteFile(pl, []byte(strings.ReplaceAll(text, `"shm"`, `"tcp"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	ours, theirs := filepath.Join(dir, "certs"), filepath.Join(dir, "theirs")
	output(t, append([]string{"graph", "certs", spec, "-o", ours}, tags...)...)
	output(t, append([]string{"graph", "certs", spec, "-o", theirs}, tags...)...)

	child(t, "store", "--listen", store, "--data-dir", filepath.Join(dir, "store"), "--tls", filepath.Join(ours, "store"))
	node := func(group, certs string, more ...string) *bytes.Buffer {
		run := filepath.Join(dir, group+filepath.Base(certs))
		if err := os.Mkdir(run, 0o700); err != nil {
			t.Fatal(err)
		}
		return child(t, append([]string{"node", group, "--plan", pl, "--run-dir", run, "--store", store, "--listen", "127.0.0.1:0", "--tls", filepath.Join(certs, group)}, more...)...)
	}
	mesh := freeAddr(t)
	node("prefill", ours, "--listen", mesh)
	node("api", ours)
	stranger := node("decode", theirs)
	r := &running{t: t, url: "http://" + front, done: make(chan struct{})}
	waitLive(t, r.url)
	// The stranger's decode is all that there is: nobody may find it.
	if got, err := r.chat(within(t, 8*time.Second), q); err == nil || strings.Contains(err.Error(), "refused") {
		t.Fatalf("a process with another authority's certificate answered: %+v, %v", got, err)
	}
	node("decode", ours)
	var got answer
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		if got, err = r.chat(within(t, 30*time.Second), q); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("no answer over TLS: %v\nthe stranger said:\n%s", err, stranger)
		}
	}
	if got.Text != want.Text {
		t.Errorf("over TLS %q, else %q", got.Text, want.Text)
	}
	conn, err := tls.Dial("tcp", mesh, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}})
	if err == nil { // in TLS 1.3 the refusal comes with the first answer
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("prefill talks to a client without a certificate")
		}
		_ = conn.Close()
	}
	// Plain text is answered by an alert of TLS, or by nothing.
	bare, err := net.Dial("tcp", mesh)
	if err != nil {
		t.Fatal(err)
	}
	defer bare.Close()
	_ = bare.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := bare.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 16)
	if n, _ := bare.Read(b); n > 3 && b[3] == 4 { // a SETTINGS frame
		t.Error("plain HTTP/2 is spoken where TLS was asked for")
	}
}

// waitLive waits until a frontend takes requests.
func waitLive(t *testing.T, url string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if resp, err := http.Get(url + "/live"); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
	}
	t.Fatalf("%s/live never answered", url)
}

// freeAddr returns an address on which nothing listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// output runs dynamo and returns what it prints.
func output(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, need(t, "DYNAMO_TEST_BINARY"), args...)
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	if err != nil {
		t.Fatalf("dynamo %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return string(b)
}

// child starts dynamo and ends it with the test. What it wrote to stderr may be read once it is gone.
func child(t *testing.T, args ...string) *bytes.Buffer {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(need(t, "DYNAMO_TEST_BINARY"), args...)
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
		if t.Failed() {
			t.Logf("dynamo %s:\n%s", strings.Join(args[:2], " "), &stderr)
		}
	})
	return &stderr
}
