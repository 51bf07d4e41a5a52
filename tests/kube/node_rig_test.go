package kube

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The network of the node: its bridge, on which the API server listens too, and the addresses of Services.
const (
	nodeIP     = "10.78.0.1"
	podNet     = "10.78.0.0/24"
	serviceNet = "10.96.0.0/16"
)

// inside runs f in namespaces of its own for processes, mounts and network, in a second process of the test binary: whatever happens there,
// all that it started and mounted is gone when it is.
func inside(t *testing.T, f func(*testing.T)) {
	const mark = "DYNAMO_TEST_INSIDE"
	if os.Getenv(mark) == "" {
		before := cgroups()
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=9m")
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), mark+"=1"), os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		done := make(chan error)
		starter <- func() {
			if err := cmd.Start(); err != nil {
				go func() { done <- err }()
				return
			}
			go func() { done <- cmd.Wait() }()
		}
		if err := <-done; err != nil {
			t.Errorf("inside: %v", err)
		}
		for _, path := range slices.Backward(cgroups()) { // of containers that were killed; inner ones first
			if !slices.Contains(before, path) {
				if err := os.Remove(path); err != nil {
					t.Errorf("a control group is left: %v", err)
				}
			}
		}
		return
	}
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"none", "/", "", syscall.MS_REC | syscall.MS_PRIVATE},
		{"proc", "/proc", "proc", 0},
		{"tmpfs", "/run", "tmpfs", 0}, // sockets, network namespaces
		{"tmpfs", "/var/lib", "tmpfs", 0},
		{"tmpfs", "/dev/shm", "tmpfs", 0},
	} {
		if err := syscall.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			t.Fatalf("NOT RUN: mount %s: %v", m.target, err)
		}
	}
	f(t)
}

// cgroups lists containerd's control groups on this machine, those around others first.
func cgroups() (out []string) {
	tops, _ := filepath.Glob("/sys/fs/cgroup/k8s.io")
	more, _ := filepath.Glob("/sys/fs/cgroup/*/k8s.io")
	for _, top := range append(tops, more...) {
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				out = append(out, path)
			}
			return nil
		})
	}
	return out
}

// node is a cluster of one machine.
type node struct{ *cluster }

// startNode brings up a control plane, a kubelet with containerd and runc, kube-proxy and DNS in this network namespace.
func startNode(t *testing.T) *node {
	t.Helper()
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", "kcni0", "type", "bridge"},
		{"addr", "add", nodeIP + "/24", "dev", "kcni0"},
		{"link", "set", "kcni0", "up"},
		{"route", "add", serviceNet, "dev", "kcni0"},
	} {
		if b, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("NOT RUN: ip %s: %v: %s", strings.Join(args, " "), err, b)
		}
	}
	must(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644))
	c := startServer(t, nodeIP, 6443)
	n := &node{c}
	kcm := c.pki.client("kcm", "system:kube-controller-manager", c.url)
	sched := c.pki.client("scheduler", "system:kube-scheduler", c.url)
	c.start(c.bin+"/kube-controller-manager", "--kubeconfig="+kcm, "--bind-address=127.0.0.1", "--secure-port=0", "--leader-elect=false",
		"--service-account-private-key-file="+c.pki.file("sa.key"), "--root-ca-file="+c.pki.file("ca.crt"), "--use-service-account-credentials=true",
		"--profiling=false", "--kube-api-qps=500", "--kube-api-burst=1000")
	c.start(c.bin+"/kube-scheduler", "--kubeconfig="+sched, "--bind-address=127.0.0.1", "--secure-port=0", "--leader-elect=false", "--profiling=false")

	n.write("/run/cni/10-b.conflist", `{"cniVersion":"0.4.0","name":"b","plugins":[{"type":"bridge","bridge":"kcni0","isGateway":true,"ipMasq":false,"hairpinMode":true,
"ipam":{"type":"host-local","ranges":[[{"subnet":"`+podNet+`"}]],"routes":[{"dst":"0.0.0.0/0"}],"dataDir":"/run/ipam"}}]}`)
	n.write("/run/containerd.toml", `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  disable_tcp_service = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "`+c.root+`/usr/lib/cni"
    conf_dir = "/run/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "`+c.root+`/usr/sbin/runc"
`)
	c.start(c.root+"/usr/bin/containerd", "--config", "/run/containerd.toml")
	c.until("containerd answers", 30*time.Second, func() error {
		_, err := c.run(nil, c.root+"/usr/bin/ctr", "-a", "/run/containerd.sock", "version")
		return err
	})
	n.image("localhost/pause:1", c.bin+"/pause", "pause")
	n.write("/run/kubelet.yaml", `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
containerRuntimeEndpoint: unix:///run/containerd.sock
address: `+nodeIP+`
healthzPort: 0
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: `+c.pki.file("ca.crt")+`}}
authorization: {mode: AlwaysAllow}
failSwapOn: false
localStorageCapacityIsolation: false
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: "100Mi"}
resolvConf: ""
clusterDNS: [`+nodeIP+`]
clusterDomain: cluster.local
`)
	n.write("/run/Corefile", `.:53 {
	errors
	kubernetes cluster.local {
		kubeconfig `+c.config+`
	}
}
`)
	c.start(c.bin+"/kubelet", "--config", "/run/kubelet.yaml", "--kubeconfig", c.config, "--hostname-override", "node-0", "--node-ip", nodeIP)
	c.start(c.bin+"/kube-proxy", "--kubeconfig="+c.config, "--proxy-mode=nftables", "--cluster-cidr="+podNet, "--hostname-override=node-0",
		"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
		"--healthz-bind-address=127.0.0.1:10256", "--metrics-bind-address=127.0.0.1:10249")
	c.start(c.bin+"/coredns", "-conf", "/run/Corefile")
	c.until("the node is ready", 60*time.Second, func() error {
		b, err := c.run(nil, c.bin+"/kubectl", "get", "node", "node-0", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if err == nil && string(b) != "True" {
			err = fmt.Errorf("ready is %q", b)
		}
		return err
	})
	c.until("accounts are made", 30*time.Second, func() error {
		_, err := c.run(nil, c.bin+"/kubectl", "get", "serviceaccount", "default")
		return err
	})
	return n
}

func (n *node) write(path, text string) {
	n.t.Helper()
	must(n.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(n.t, os.WriteFile(path, []byte(text), 0o644))
}

// image gives the node an image that holds one static binary as /bin/NAME, and nothing else.
func (n *node) image(name, binary string, entry ...string) {
	n.t.Helper()
	program, err := os.ReadFile(binary)
	must(n.t, err)
	pack := func(w *tar.Writer, path string, mode int64, b []byte) {
		must(n.t, w.WriteHeader(&tar.Header{Name: path, Mode: mode, Size: int64(len(b))}))
		_, err := w.Write(b)
		must(n.t, err)
	}
	digest := func(b []byte) string {
		s := sha256.Sum256(b)
		return hex.EncodeToString(s[:])
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	pack(w, "bin/"+entry[0], 0o755, program)
	must(n.t, w.Close())
	encode := func(v any) []byte {
		b, err := json.Marshal(v)
		must(n.t, err)
		return b
	}
	const types = "application/vnd.oci.image."
	part := func(kind string, b []byte) object {
		return object{"mediaType": types + kind, "digest": "sha256:" + digest(b), "size": len(b)}
	}
	config := encode(object{"architecture": "amd64", "os": "linux", "config": object{"Entrypoint": entry, "Env": []string{"PATH=/bin"}},
		"rootfs": object{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer.Bytes())}}})
	manifest := encode(object{"schemaVersion": 2, "mediaType": types + "manifest.v1+json", "config": part("config.v1+json", config),
		"layers": []any{part("layer.v1.tar", layer.Bytes())}})
	entryOf := part("manifest.v1+json", manifest)
	entryOf["annotations"] = object{"io.containerd.image.name": name}
	var out bytes.Buffer
	w = tar.NewWriter(&out)
	pack(w, "oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`))
	pack(w, "index.json", 0o644, encode(object{"schemaVersion": 2, "manifests": []any{entryOf}}))
	for _, b := range [][]byte{layer.Bytes(), config, manifest} {
		pack(w, "blobs/sha256/"+digest(b), 0o644, b)
	}
	must(n.t, w.Close())
	_, err = n.run(out.Bytes(), n.root+"/usr/bin/ctr", "-a", "/run/containerd.sock", "-n", "k8s.io", "images", "import", "-")
	must(n.t, err)
}

// pod is what the API server says of one.
type pod struct {
	name, uid, ip string
	ready         bool
	restarts      int
	why           string
}

func (n *node) pods(namespace string, labels ...string) []pod {
	n.t.Helper()
	var out []pod
	for _, o := range items(n.t, n.kubectl("get", "pods", "-n", namespace, "-l", strings.Join(labels, ","), "-o", "json")) {
		p := pod{name: str(o, "metadata", "name"), uid: str(o, "metadata", "uid"), ip: str(o, "status", "podIP"), why: str(o, "status", "phase")}
		conditions, _ := at(o, "status", "conditions").([]any)
		for _, c := range conditions {
			if str(c, "type") == "Ready" {
				p.ready = str(c, "status") == "True" && at(o, "metadata", "deletionTimestamp") == nil
				p.why += " " + str(c, "message")
			}
		}
		states, _ := at(o, "status", "containerStatuses").([]any)
		for _, s := range states {
			r, _ := at(s, "restartCount").(float64)
			p.restarts += int(r)
			p.why += fmt.Sprint(" ", at(s, "state"))
		}
		out = append(out, p)
	}
	return out
}

// allReady waits until want pods are there and ready.
func (n *node) allReady(namespace string, want int, limit time.Duration) []pod {
	n.t.Helper()
	var all []pod
	n.until(fmt.Sprintf("%d pods are ready", want), limit, func() error {
		all = n.pods(namespace)
		if len(all) != want {
			return fmt.Errorf("%d pods of %d", len(all), want)
		}
		for _, p := range all {
			if !p.ready {
				return fmt.Errorf("%s: %s", p.name, p.why)
			}
		}
		return nil
	})
	return all
}

// process returns the id of the program of a pod, as seen from here.
func process(podName string) (int, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, d := range dirs {
		line, err1 := os.ReadFile(d + "/cmdline")
		env, err2 := os.ReadFile(d + "/environ")
		if errors.Join(err1, err2) == nil && bytes.HasPrefix(line, []byte("dynamo\x00")) && bytes.Contains(append([]byte{0}, env...), []byte("\x00HOSTNAME="+podName+"\x00")) {
			var id int
			_, err := fmt.Sscan(filepath.Base(d), &id)
			return id, err
		}
	}
	return 0, fmt.Errorf("no process of pod %s", podName)
}
