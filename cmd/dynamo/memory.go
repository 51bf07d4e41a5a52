package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// machineMemory is what this machine has for processes in bytes, or 0 where it does not say.
func machineMemory() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		if v, ok := strings.CutPrefix(s.Text(), "MemTotal:"); ok {
			var kib int64
			if _, err := fmt.Sscan(v, &kib); err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}
