package llama

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const maxThreads = 256

// DefaultThreads is the number of physical cores that this process may use, less one where there are more than two.
func DefaultThreads() int {
	n := min(physicalCores(), runtime.GOMAXPROCS(0), runtime.NumCPU())
	if n > 2 {
		n--
	}
	return max(1, min(n, maxThreads))
}

// physicalCores counts cores, not hyperthreads, where the system tells.
func physicalCores() int {
	files, _ := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list")
	seen := map[string]bool{}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil {
			seen[strings.TrimSpace(string(b))] = true
		}
	}
	if len(seen) == 0 {
		return runtime.NumCPU()
	}
	return len(seen)
}
