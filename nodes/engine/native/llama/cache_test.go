//go:build unix

package llama

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// sumOf computes a few tokens, to compare models.
func sumOf(t *testing.T, m *Model) string {
	t.Helper()
	o := ways[0].compute(t, m, randTokens(20, m.Info().Vocab, 9), 2, 1)
	return string(o.logits)
}

// logger collects what Open tells.
type logger struct {
	mu    sync.Mutex
	lines []string
}

func (l *logger) add(msg string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, msg)
}

func (l *logger) has(text string) bool { return strings.Contains(strings.Join(l.lines, "\n"), text) }

func hexSum(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// TestCache: made once, used again, and made again when anything in it is wrong.
func TestCache(t *testing.T) {
	path, dir := small.write(t), filepath.Join(t.TempDir(), "deep", "cache")
	open := func() (string, *logger) {
		var l logger
		m := mustOpen(t, Options{Path: path, SHA256: hexSum(t, path), CacheDir: dir, Threads: 2, Progress: l.add})
		if w := m.Info().Warning; w != "" {
			t.Errorf("warning %q", w)
		}
		return sumOf(t, m), &l
	}
	want, l := open()
	if !l.has("repacking weights: 100 %") {
		t.Errorf("first start told %q", l.lines)
	}
	file := filepath.Join(dir, CacheName(hexSum(t, path)))
	made, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, l := open(); got != want || len(l.lines) > 0 {
		t.Errorf("second start: equal %t, told %q", got == want, l.lines)
	}
	// One that was killed while it wrote leaves its part; the next who writes takes it away.
	left := file + ".tmp-123"
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got, _ := open(); got != want {
		t.Error("made again: other results")
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", left, err)
	}
	for name, damage := range map[string]func(b []byte) []byte{
		"magic":     func(b []byte) []byte { b[0] ^= 1; return b },
		"layout":    func(b []byte) []byte { b[20] ^= 1; return b },
		"sum":       func(b []byte) []byte { b[headerBytes+5] ^= 0x80; return b },
		"weight":    func(b []byte) []byte { b[len(b)-9] ^= 4; return b },
		"first":     func(b []byte) []byte { b[4096] ^= 1; return b },
		"truncated": func(b []byte) []byte { return b[:len(b)-1] },
		"empty":     func([]byte) []byte { return nil },
		"longer":    func(b []byte) []byte { return append(b, 0) },
	} {
		if err := os.WriteFile(file, damage(bytes.Clone(made)), 0o600); err != nil {
			t.Fatal(err)
		}
		got, l := open()
		if got != want {
			t.Errorf("%s: other logits", name)
		}
		if !l.has("making it again") {
			t.Errorf("%s: told %q", name, l.lines)
		}
		if again, _ := os.ReadFile(file); !bytes.Equal(again, made) {
			t.Errorf("%s: not made again", name)
		}
	}
	onlyWhole(t, dir)
}

// onlyWhole: nothing half-written is left.
func onlyWhole(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if !strings.HasSuffix(e.Name(), ".weights") && !strings.HasSuffix(e.Name(), ".lock") {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

// TestCacheShared: several models that start at once make the file once.
func TestCacheShared(t *testing.T) {
	path, dir := tinies[6].write(t), t.TempDir()
	var l logger
	var wg sync.WaitGroup
	sums := make([]string, 4)
	for i := range sums {
		wg.Go(func() {
			m, err := Open(Options{Path: path, CacheDir: dir, Threads: 1, Progress: l.add})
			if err != nil {
				t.Error(err)
				return
			}
			sums[i] = sumOf(t, m)
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	made := 0
	for _, line := range l.lines {
		if line == "repacking weights: 100 %" {
			made++
		}
	}
	if made != 1 {
		t.Errorf("made %d times", made)
	}
	for _, s := range sums {
		if s == "" || s != sums[0] {
			t.Error("other logits")
		}
	}
	onlyWhole(t, dir)
}

// TestCacheUnwritable: without a usable folder the model works from its own memory and says so.
func TestCacheUnwritable(t *testing.T) {
	path := small.write(t)
	want := sumOf(t, mustOpen(t, Options{Path: path, Threads: 1}))
	block := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(block, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var l logger
	m := mustOpen(t, Options{Path: path, CacheDir: filepath.Join(block, "cache"), Threads: 1, Progress: l.add})
	if got := sumOf(t, m); got != want {
		t.Error("other logits")
	}
	if w := m.Info().Warning; !strings.Contains(w, "weights cache: mkdir ") || !strings.Contains(w, "not a directory; the weights are repacked") || !l.has(w) {
		t.Errorf("warning %q, told %q", w, l.lines)
	}
}

// TestCacheFullDisk: a file that cannot grow, as on a full disk, is not left half-written.
// It limits a process of its own: go test writes a growing file in this one.
func TestCacheFullDisk(t *testing.T) {
	if os.Getenv("TEST_CACHE_FULL_DISK") == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestCacheFullDisk$", "-test.v")
		c.Env = append(os.Environ(), "TEST_CACHE_FULL_DISK=1")
		if out, err := c.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestCacheFullDisk")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	path, dir := tinies[6].write(t), t.TempDir()
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 40000, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	m, err := Open(Options{Path: path, CacheDir: dir, Threads: 2})
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if w := m.Info().Warning; !strings.Contains(w, "file too large") {
		t.Errorf("warning %q", w)
	}
	left, _ := os.ReadDir(dir)
	for _, e := range left {
		if !strings.HasSuffix(e.Name(), ".lock") {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}
