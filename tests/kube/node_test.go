package kube

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const spec = "../../specs/llama-disagg.cue"

// prompts have answers long enough to be cut in the middle.
var prompts = []string{
	"Tell me a long story about a lighthouse keeper.",
	"List the planets of the solar system and say something about each.",
	"Explain step by step how bread is made.",
}

func body(prompt string, stream bool) []byte {
	b, err := json.Marshal(object{"model": "smollm2", "temperature": 0, "max_tokens": 120, "stream": stream,
		"messages": []any{object{"role": "user", "content": prompt}}})
	if err != nil {
		panic(err)
	}
	return b
}

// answer is the whole answer of a graph: text, and how it ended.
type answer struct {
	Text, Finish string
	Tokens       int
}

func ask(url, prompt string) (a answer, err error) {
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader(body(prompt, false)))
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	var r struct {
		Choices []struct {
			Message      struct{ Content string }
			FinishReason string `json:"finish_reason"`
		}
		Usage struct {
			CompletionTokens int `json:"completion_tokens"`
		}
	}
	b, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil || len(r.Choices) != 1 {
		return a, fmt.Errorf("%s: %s: %v", resp.Status, b, err)
	}
	return answer{r.Choices[0].Message.Content, r.Choices[0].FinishReason, r.Usage.CompletionTokens}, nil
}

// stream asks and calls during once the answer has begun. It returns the text as it came.
func stream(url, prompt string, during func()) (text, finish string, err error) {
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader(body(prompt, true)))
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close()
	s := bufio.NewScanner(resp.Body)
	pieces := 0
	for s.Scan() {
		data, ok := strings.CutPrefix(s.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			return text, finish, nil
		}
		var d struct {
			Choices []struct {
				Delta        struct{ Content string }
				FinishReason string `json:"finish_reason"`
			}
			Error json.RawMessage
		}
		if err := json.Unmarshal([]byte(data), &d); err != nil || d.Error != nil {
			return text, finish, fmt.Errorf("%s: %v", data, err)
		}
		for _, c := range d.Choices {
			text += c.Delta.Content
			finish += c.FinishReason
		}
		if pieces++; pieces == 10 && during != nil {
			during()
		}
	}
	return text, finish, fmt.Errorf("the stream ended early: %v", s.Err())
}

// undisturbed asks the same graph as processes of this machine.
func undisturbed(t *testing.T, model string) []answer {
	t.Helper()
	cmd := exec.Command(need(t, "DYNAMO_TEST_BINARY"), "graph", "run", spec, "-t", "listen=127.0.0.1:8000", "-t", "model=file:"+model, "--cache-dir", t.TempDir())
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	must(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("graph run: %v\n%s", err, &log)
		}
	}()
	const url = "http://127.0.0.1:8000"
	for end := time.Now().Add(60 * time.Second); get(http.DefaultClient, url+"/ready") != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("graph run is not ready\n%s", &log)
		}
	}
	var out []answer
	for _, p := range prompts {
		a, err := ask(url, p)
		must(t, err)
		out = append(out, a)
	}
	return out
}

// handOffs is the metric of prompts that prefill computed and decode fetched.
const handOffs = `dynamo_handoffs_total\{[^}]*result="ok"[^}]*\}`

// TestNode runs the manifests of the example on a real node, and kills pods under its streams.
func TestNode(t *testing.T) { inside(t, testNode) }

func testNode(t *testing.T) {
	model, err := filepath.Abs(need(t, "DYNAMO_TEST_MODEL"))
	must(t, err)
	n := startNode(t)
	want := undisturbed(t, model)
	for _, a := range want {
		if a.Tokens < 60 {
			t.Fatalf("too short to be cut: %+v", a)
		}
	}
	const ns = "graph"
	n.namespace(ns)
	n.image("localhost/dynamo:test", need(t, "DYNAMO_TEST_BINARY"), "dynamo")
	n.volumes(ns, model)
	certs := t.TempDir()
	args := []string{spec, "-t", "model=file:/models/model.gguf", "--cache-dir", t.TempDir()}
	if b, err := exec.Command(need(t, "DYNAMO_TEST_BINARY"), append([]string{"graph", "certs", "-o", certs}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("graph certs: %v\n%s", err, b)
	}
	n.kubectl("apply", "--server-side", "-n", ns, "-f", filepath.Join(certs, "secrets.yaml"))
	dir := compile(t, args[0], "k8s", append(args[1:], "--image", "localhost/dynamo:test", "--models", "claim:weights", "--store", "3", "--mtls")...)
	_, err = n.apply(dir, ns)
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			for _, p := range n.pods(ns) {
				b, err := n.run(nil, n.bin+"/kubectl", "logs", "-n", ns, p.name, "--tail=15")
				t.Logf("%s: %+v\n%s%v", p.name, p, b, err)
			}
		}
	})
	n.allReady(ns, 7, 120*time.Second) // api, prefill, two of decode, three of the store
	url := "http://" + strings.TrimSpace(string(n.kubectl("get", "service", "-n", ns, "llama-disagg-api-http", "-o", "jsonpath={.spec.clusterIP}"))) + ":8000"

	t.Run("chart", func(t *testing.T) { (&node{n.with(t)}).testChart() })
	t.Run("same answers", func(t *testing.T) {
		for i, p := range prompts {
			if got, err := ask(url, p); err != nil || got != want[i] {
				t.Errorf("%s: %v\nwant %+v\ngot  %+v", p, err, want[i], got)
			}
		}
		if n.metric(ns, "decode", handOffs) < float64(len(prompts)) {
			t.Error("decode has not fetched what prefill computed")
		}
	})
	t.Run("network policies", func(t *testing.T) { n.testPolicies(t, ns, url) })
	t.Run("killed in mid-stream", func(t *testing.T) {
		var victim pod
		n.cut(t, ns, url, prompts[0], want[0], func(p pod) {
			victim = p
			id, err := process(p.name)
			must(t, err)
			must(t, syscall.Kill(id, syscall.SIGKILL))
		})
		// The answer may be whole before the kubelet has seen that the container is gone.
		for end := time.Now().Add(90 * time.Second); ; time.Sleep(200 * time.Millisecond) {
			all := n.allReady(ns, 7, 90*time.Second)
			i := slices.IndexFunc(all, func(p pod) bool { return p.name == victim.name })
			if all[i].uid == victim.uid && all[i].restarts == victim.restarts+1 {
				break
			}
			if all[i].uid != victim.uid || all[i].restarts != victim.restarts || time.Now().After(end) {
				t.Errorf("before: %+v\nafter:  %+v", victim, all[i])
				break
			}
		}
	})
	t.Run("pod deleted in mid-stream", func(t *testing.T) {
		var victim pod
		n.cut(t, ns, url, prompts[1], want[1], func(p pod) {
			victim = p
			n.kubectl("delete", "pod", "-n", ns, p.name, "--force", "--grace-period=0")
		})
		all := n.allReady(ns, 7, 90*time.Second)
		i := slices.IndexFunc(all, func(p pod) bool { return p.name == victim.name })
		if all[i].uid == victim.uid {
			t.Errorf("the pod is still the same: %+v", all[i])
		}
	})
	t.Run("one of three stores gone", func(t *testing.T) {
		n.kubectl("delete", "pod", "-n", ns, "llama-disagg-store-0", "--force", "--grace-period=0")
		if got, err := ask(url, prompts[2]); err != nil || got != want[2] {
			t.Errorf("%v\nwant %+v\ngot  %+v", err, want[2], got)
		}
		n.allReady(ns, 7, 90*time.Second)
	})
	t.Run("a process that hangs", func(t *testing.T) {
		victim := n.pods(ns, "app.kubernetes.io/component=prefill")[0]
		id, err := process(victim.name)
		must(t, err)
		must(t, syscall.Kill(id, syscall.SIGSTOP))
		if got, err := ask(url, prompts[2]); err != nil || got != want[2] {
			t.Errorf("%v\nwant %+v\ngot  %+v", err, want[2], got)
		}
		n.until("it is started again", 90*time.Second, func() error {
			if p := n.pods(ns, "app.kubernetes.io/component=prefill")[0]; p.uid != victim.uid || p.restarts != victim.restarts+1 || !p.ready {
				return fmt.Errorf("%+v", p)
			}
			return nil
		})
	})
	t.Run("drained", func(t *testing.T) {
		text, finish, err := stream(url, prompts[0], func() { n.kubectl("rollout", "restart", "-n", ns, "statefulset/llama-disagg-decode") })
		if err != nil || text != want[0].Text || finish != want[0].Finish {
			t.Errorf("a rollout under a stream: %v, %q\nwant %q\ngot  %q", err, finish, want[0].Text, text)
		}
		n.kubectl("rollout", "status", "-n", ns, "statefulset/llama-disagg-decode", "--timeout=80s")
	})
}

// testChart installs another graph by helm, with everything as it is by default: one store, no certificates, no volume.
func (n *node) testChart() {
	const ns = "chart"
	n.namespace(ns)
	chart := compile(n.t, "../../specs/mock-disagg.cue", "helm", "--image", "localhost/dynamo:test")
	n.helm("install", "mock", chart, "-n", ns, "--wait", "--timeout", "80s")
	url := "http://" + strings.TrimSpace(string(n.kubectl("get", "service", "-n", ns, "mock-disagg-api-http", "-o", "jsonpath={.spec.clusterIP}"))) + ":8000"
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"mock","messages":[{"role":"user","content":"Hello"}],"max_tokens":8}`))
	must(n.t, err)
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(b), `"completion_tokens":8`) {
		n.t.Errorf("%s: %s, %v", resp.Status, b, err)
	}
	n.helm("uninstall", "mock", "-n", ns)
}

// cut streams an answer, does something to the pod that generates it, and wants the answer of an undisturbed graph.
func (n *node) cut(t *testing.T, ns, url, prompt string, want answer, do func(pod)) {
	t.Helper()
	hit := false
	text, finish, err := stream(url, prompt, func() {
		for _, p := range n.pods(ns, "app.kubernetes.io/component=decode") {
			if n.running(t, p) > 0 {
				do(p)
				hit = true
				return
			}
		}
	})
	switch {
	case err != nil || text != want.Text || finish != want.Finish:
		t.Errorf("%v, %q\nwant %q\ngot  %q", err, finish, want.Text, text)
	case !hit:
		t.Error("no pod was generating the answer")
	}
}

// running asks a pod how many sequences it generates.
func (n *node) running(t *testing.T, p pod) float64 {
	t.Helper()
	return sum(t, p, `dynamo_engine_running(?:\{[^}]*\})?`)
}

// metric adds up a metric of all pods of a part.
func (n *node) metric(ns, part, pattern string) (total float64) {
	for _, p := range n.pods(ns, "app.kubernetes.io/component="+part) {
		total += sum(n.t, p, pattern)
	}
	return total
}

func sum(t *testing.T, p pod, pattern string) (total float64) {
	t.Helper()
	resp, err := http.Get("http://" + p.ip + ":9091/metrics")
	must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(t, err)
	for _, m := range regexp.MustCompile(`(?m)^`+pattern+` (\S+)$`).FindAllSubmatch(b, -1) {
		var v float64
		_, err := fmt.Sscan(string(m[1]), &v)
		must(t, err)
		total += v
	}
	return total
}

// volumes makes what an administrator would: a volume that holds the model, with a claim for it, and volumes for the store.
func (n *node) volumes(ns, model string) {
	n.t.Helper()
	must(n.t, os.MkdirAll("/run/models", 0o755))
	n.write("/run/models/model.gguf", "")
	must(n.t, syscall.Mount(model, "/run/models/model.gguf", "", syscall.MS_BIND, ""))
	volume := func(name, path, mode string) object {
		return object{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": object{"name": name, "labels": object{"holds": name}}, "spec": object{
			"capacity": object{"storage": "1Gi"}, "accessModes": []any{mode}, "hostPath": object{"path": path}, "persistentVolumeReclaimPolicy": "Retain"}}
	}
	docs := []object{volume("weights", "/run/models", "ReadOnlyMany"), {
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": object{"name": "weights", "namespace": ns}, "spec": object{
			"accessModes": []any{"ReadOnlyMany"}, "resources": object{"requests": object{"storage": "1Gi"}}, "volumeName": "weights"}}}
	for i := range 3 {
		path := fmt.Sprintf("/run/store-%d", i)
		must(n.t, os.Mkdir(path, 0o755))
		must(n.t, os.Chmod(path, 0o777)) // fsGroup does not reach volumes of this kind
		docs = append(docs, volume(fmt.Sprintf("store-%d", i), path, "ReadWriteOnce"))
	}
	b, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": docs})
	must(n.t, err)
	_, err = n.run(b, n.bin+"/kubectl", "apply", "--server-side", "-f", "-")
	must(n.t, err)
}
