// Package kube shows what the targets k8s and helm make to a real Kubernetes: to an API server, and to a node that runs it. build.sh obtains
// the programs; the test command sets where they are.
package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// need returns an environment variable that the test command sets.
func need(t *testing.T, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("NOT RUN: %s is not set; run it by: bash tests/run.sh kube kube-node", name)
	}
	return v
}

// cluster is a control plane under test.
type cluster struct {
	t      *testing.T
	dir    string // state, logs
	bin    string // programs
	root   string // of the Debian packages
	url    string
	pki    *pki
	config string // kubeconfig of an administrator
	http   *http.Client
	env    []string
}

// starter starts processes from one thread that lives as long as the test binary: the kernel kills them when that thread is gone, however
// the tests end.
var starter = func() chan func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
}()

// start runs a program until the end of the test; its output goes to a file, of which the end is shown where the test failed.
func (c *cluster) start(name string, args ...string) {
	c.t.Helper()
	log, err := os.Create(filepath.Join(c.dir, filepath.Base(name)+".log"))
	must(c.t, err)
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = c.env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	starter <- func() { started <- cmd.Start() }
	must(c.t, <-started)
	c.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		timer := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
		_ = log.Close()
		if b, err := os.ReadFile(log.Name()); err == nil && c.t.Failed() {
			c.t.Logf("end of %s:\n%s", log.Name(), b[max(0, len(b)-3000):])
		}
	})
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// startServer brings up etcd and an API server that listens at ip:port; port 0 takes one that is free.
func startServer(t *testing.T, ip string, port int, flags ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, bin: need(t, "DYNAMO_TEST_KUBE"), root: need(t, "DYNAMO_TEST_KUBE_ROOT")}
	shm, err := os.MkdirTemp("/dev/shm", "dynamo-kube-") // the store of a test need not survive
	if err != nil {
		shm, err = os.MkdirTemp("", "dynamo-kube-")
	}
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(shm) })
	c.dir = shm
	c.env = append(os.Environ(), "PATH="+c.root+"/usr/sbin:"+c.root+"/usr/bin:"+os.Getenv("PATH"), "LD_LIBRARY_PATH="+c.root+"/usr/lib/x86_64-linux-gnu", "HOME="+c.dir)
	if port == 0 {
		port = freePort(t)
	}
	c.url = fmt.Sprintf("https://%s:%d", ip, port)
	must(t, os.Mkdir(filepath.Join(c.dir, "pki"), 0o700))
	c.pki = newPKI(t, filepath.Join(c.dir, "pki"))
	c.pki.server("127.0.0.1", ip, "10.96.0.1")
	c.pki.make("sa", pkixName("service-accounts"), nil)
	c.pki.client("kubelet-client", "apiserver-kubelet-client", c.url, "system:masters")
	c.config = c.pki.client("admin", "admin", c.url, "system:masters")
	c.http = c.client("admin")

	store, peer := freePort(t), freePort(t)
	c.start(c.root+"/usr/bin/etcd", "--data-dir", filepath.Join(c.dir, "etcd"), "--logger", "zap", "--name", "default",
		"--listen-client-urls", fmt.Sprintf("http://127.0.0.1:%d", store), "--advertise-client-urls", fmt.Sprintf("http://127.0.0.1:%d", store),
		"--listen-peer-urls", fmt.Sprintf("http://127.0.0.1:%d", peer), "--initial-advertise-peer-urls", fmt.Sprintf("http://127.0.0.1:%d", peer),
		"--initial-cluster", fmt.Sprintf("default=http://127.0.0.1:%d", peer))
	c.until("etcd answers", 30*time.Second, func() error { return get(http.DefaultClient, fmt.Sprintf("http://127.0.0.1:%d/health", store)) })
	args := []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", store), "--bind-address=" + ip, fmt.Sprintf("--secure-port=%d", port), "--advertise-address=" + ip,
		"--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=Node,RBAC", "--client-ca-file=" + c.pki.file("ca.crt"),
		"--tls-cert-file=" + c.pki.file("apiserver.crt"), "--tls-private-key-file=" + c.pki.file("apiserver.key"),
		"--kubelet-preferred-address-types=InternalIP,Hostname", "--kubelet-client-certificate=" + c.pki.file("kubelet-client.crt"),
		"--kubelet-client-key=" + c.pki.file("kubelet-client.key"), "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.pki.file("sa.pub"), "--service-account-signing-key-file=" + c.pki.file("sa.key"),
		"--enable-priority-and-fairness=false", "--profiling=false", "--allow-privileged=true",
	}
	c.start(c.bin+"/kube-apiserver", append(args, flags...)...)
	c.until("the API server is ready", 90*time.Second, func() error { return get(c.http, c.url+"/readyz") })
	return c
}

// client authenticates by one of the cluster's certificates.
func (c *cluster) client(name string) *http.Client {
	c.t.Helper()
	pair, err := tls.LoadX509KeyPair(c.pki.file(name+".crt"), c.pki.file(name+".key"))
	must(c.t, err)
	return c.anonymous(pair)
}

// anonymous shows only the certificates given.
func (c *cluster) anonymous(pairs ...tls.Certificate) *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(c.pki.cert)
	tr := &http.Transport{TLSClientConfig: &tls.Config{Certificates: pairs, RootCAs: roots, MinVersion: tls.VersionTLS12}}
	c.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 20 * time.Second}
}

func get(h *http.Client, url string) error {
	resp, err := h.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, resp.Status, b)
	}
	return err
}

// until waits for f to return nil.
func (c *cluster) until(what string, limit time.Duration, f func() error) {
	c.t.Helper()
	begin := time.Now()
	for {
		err := f()
		if err == nil {
			c.t.Logf("%s: after %.1f s", what, time.Since(begin).Seconds())
			return
		}
		if time.Since(begin) > limit {
			c.t.Fatalf("%s: not within %v: %v", what, limit, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// run runs a program of the cluster; the error has its standard error.
func (c *cluster) run(stdin []byte, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdin = append(c.env, "KUBECONFIG="+c.config), bytes.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, bytes.TrimSpace(errs.Bytes()))
	}
	return out.Bytes(), nil
}

// kubectl fails the test where kubectl does.
func (c *cluster) kubectl(args ...string) []byte {
	c.t.Helper()
	out, err := c.run(nil, c.bin+"/kubectl", args...)
	must(c.t, err)
	return out
}

// object is any Kubernetes object.
type object = map[string]any

// at returns what is at a path, or nil.
func at(v any, path ...string) any {
	for _, p := range path {
		m, _ := v.(object)
		v = m[p]
	}
	return v
}

func str(v any, path ...string) string {
	s, _ := at(v, path...).(string)
	return s
}

// items decodes a list.
func items(t *testing.T, b []byte) []object {
	t.Helper()
	var l struct{ Items []object }
	must(t, json.Unmarshal(b, &l))
	return l.Items
}

// namespace makes one that enforces the strictest Pod Security level.
func (c *cluster) namespace(name string) {
	c.t.Helper()
	c.kubectl("create", "namespace", name)
	for _, mode := range []string{"enforce", "warn", "audit"} {
		c.kubectl("label", "namespace", name, "pod-security.kubernetes.io/"+mode+"=restricted")
	}
}

// compile runs the binary under test.
func compile(t *testing.T, spec, target string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(need(t, "DYNAMO_TEST_BINARY"), append([]string{"graph", "compile", spec, "--target", target, "-o", dir}, args...)...)
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, b)
	}
	return dir
}
