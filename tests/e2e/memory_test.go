package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/graph/plan"
)

// What `plan` says that a worker takes is what its process maps: the cache to the block, the weights within 5 %, and what else it holds of
// its own is at most the estimate, and at least a fifth of it: an estimate beyond that would refuse what runs.
func TestMemoryAsPlanned(t *testing.T) {
	const spec = "testdata/memory.cue"
	r := start(t, spec)
	out, err := exec.Command(need(t, "DYNAMO_TEST_BINARY"), "graph", "plan", spec, "--output", "json").Output()
	if err != nil {
		t.Fatalf("graph plan: %v", err)
	}
	p, err := plan.Decode(out)
	if err != nil {
		t.Fatal(err)
	}
	g := p.GroupOf("worker")
	if g == nil {
		t.Fatal("the plan has no worker")
	}
	want := map[string]int64{}
	var guess int64
	for _, part := range g.Needs.Parts {
		want[part.Name] = part.Bytes
		if part.Guess && part.Place == plan.InMemory {
			guess += part.Bytes
		}
	}

	// All at once, and long enough that every buffer has been used.
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			q := fmt.Sprintf("Story %d. %s What happened?", i, strings.Repeat("The old man and the sea met again. ", 60))
			if _, err := r.chat(within(t, 2*time.Minute), ask(q, 32)); err != nil {
				t.Errorf("chat %d: %v", i, err)
			}
		})
	}
	all.Wait()

	kv, weights := mapped(t, r.pid("worker-0"), ".shm"), mapped(t, r.pid("worker-0"), ".weights")
	own := anonymous(t, r.pid("worker-0"))
	t.Logf("cache %d, planned %d; weights %d, planned %d; own %d, planned %d", kv, want["KV cache"], weights, want["weights"], own, guess)
	if tokens := int64(10016); want["KV cache"] != tokens*23040 {
		t.Errorf("planned cache %d bytes, want %d tokens of 23040: whole blocks of 16", want["KV cache"], tokens)
	}
	if kv != 0 && (kv < want["KV cache"] || kv >= want["KV cache"]+4096) { // 0: without room in /dev/shm it is private memory
		t.Errorf("the cache is %d bytes, planned were %d", kv, want["KV cache"])
	}
	if w := want["weights"]; weights < w-w/20 || weights > w+w/20 {
		t.Errorf("the weights take %d bytes, planned were %d", weights, w)
	}
	if kv != 0 && (own > guess || own < guess/5) {
		t.Errorf("its own memory is %d bytes, estimated were %d", own, guess)
	}
}

// mapped is the size of the largest mapping of a process whose file ends in suffix.
func mapped(t *testing.T, pid int, suffix string) (size int64) {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 6 || !strings.HasSuffix(fields[5], suffix) {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		a, err1 := strconv.ParseInt(from, 16, 64)
		b, err2 := strconv.ParseInt(to, 16, 64)
		if err1 == nil && err2 == nil {
			size = max(size, b-a)
		}
	}
	return size
}

// anonymous is what a process holds that belongs to no file.
func anonymous(t *testing.T, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(l, "RssAnon:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no RssAnon")
	return 0
}
