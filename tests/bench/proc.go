package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// machineFacts are what figures depend on.
type machineFacts struct {
	CPU    string
	CPUs   int
	Memory int // MiB
	Go     string
}

func machine() machineFacts {
	m := machineFacts{CPUs: runtime.NumCPU(), Go: runtime.Version(), Memory: kib("/proc/meminfo", "MemTotal") >> 10}
	b, _ := os.ReadFile("/proc/cpuinfo")
	for l := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == "model name" {
			m.CPU = strings.TrimSpace(v)
			break
		}
	}
	return m
}

// loadAverage is the system's over one minute.
func loadAverage() float64 {
	b, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := bytes.Cut(b, []byte(" "))
	v, _ := strconv.ParseFloat(string(first), 64)
	return v
}

// cpuSeconds is what processes used so far, user and system, with a resolution of 10 ms each.
func cpuSeconds(pids map[string]int) float64 {
	ticks := 0
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		ticks += cpuTicks(b)
	}
	return float64(ticks) / 100
}

// busySeconds is what the whole machine computed so far, with what other machines took from it.
func busySeconds() float64 {
	b, _ := os.ReadFile("/proc/stat")
	return float64(busyTicks(b)) / 100
}

// busyTicks reads the first line of /proc/stat: all but idle and waiting for disks.
func busyTicks(stat []byte) int {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	sum := 0
	for i, f := range bytes.Fields(line) {
		if i >= 1 && i <= 8 && i != 4 && i != 5 { // user nice system (idle iowait) irq softirq steal; guests are in user
			n, _ := strconv.Atoi(string(f))
			sum += n
		}
	}
	return sum
}

// cpuTicks reads utime and stime from a stat file. The command in it may hold anything.
func cpuTicks(stat []byte) int {
	i := bytes.LastIndexByte(stat, ')')
	if i < 0 {
		return 0
	}
	f := bytes.Fields(stat[i+1:])
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(string(f[11]))
	system, _ := strconv.Atoi(string(f[12]))
	return user + system
}

// footprint is a process's memory in MiB.
type footprint struct {
	RSS int // all resident pages, shared ones too
	PSS int // shared pages divided among who shares them
	Own int // anonymous pages: what would not be there without it
}

func footprintOf(pid int) footprint {
	status, rollup := fmt.Sprintf("/proc/%d/status", pid), fmt.Sprintf("/proc/%d/smaps_rollup", pid)
	return footprint{RSS: kib(status, "VmRSS") >> 10, PSS: kib(rollup, "Pss") >> 10, Own: kib(status, "RssAnon") >> 10}
}

// kib reads the number of a line "name:  123 kB"; 0 where there is none.
func kib(file, name string) int {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for l := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(l, name+":"); ok {
			if f := strings.Fields(rest); len(f) > 0 {
				n, _ := strconv.Atoi(f[0])
				return n
			}
		}
	}
	return 0
}
