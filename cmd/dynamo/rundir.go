package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dynamograph/dynamo/runtime/transfer"
)

const (
	runPrefix = "dynamo-"
	lockName  = "lock"
	urlName   = "status.url" // of the run's status API, for plan --running
	// passedOn is the lowest descriptor number of a run folder's lock: above those that a supervisor gives its children.
	passedOn = 64
)

// runDir makes the private folder of a run, and removes those that runs left which were killed. Its path is short: a unix socket's must
// stay below 108 bytes. The returned function removes it.
//
// The folder's lock is held by this process and, as they inherit the descriptor, by every process that it starts: whoever can take it knows
// that nobody uses the folder any more.
func runDir(graph string) (dir string, remove func(), err error) {
	base := runBase()
	sweep(base)
	dir, err = os.MkdirTemp(base, runPrefix+graph[:min(len(graph), 20)]+"-")
	if err != nil {
		return "", nil, fmt.Errorf("run folder: %w; set TMPDIR to a folder that can be written", err)
	}
	fd, err := lockDir(dir)
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("run folder %s: %w", dir, err), os.RemoveAll(dir))
	}
	return dir, func() {
		_ = os.RemoveAll(dir) // the next run removes what is left
		_ = unix.Close(fd)
		transfer.Clean(transfer.SharedMemory)
	}, nil
}

// runBase is the folder that holds the folders of runs.
func runBase() string {
	if base := os.TempDir(); len(base) <= 40 {
		return base
	}
	return "/tmp"
}

// lockDir gives dir its lock. The file gets its name only when it is locked, so that sweep does not take a new folder for an old one.
func lockDir(dir string) (fd int, err error) {
	fresh := filepath.Join(dir, "."+lockName)
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	// A copy of the descriptor without close-on-exec: children inherit it.
	fd, err = unix.FcntlInt(f.Fd(), unix.F_DUPFD, passedOn)
	if err != nil {
		return 0, err
	}
	if err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err == nil {
		err = os.Rename(fresh, filepath.Join(dir, lockName))
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return fd, err
}

// sweep removes the folders of this user's runs in base whose processes are all gone.
func sweep(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), runPrefix) {
			continue
		}
		dir := filepath.Join(base, e.Name())
		fd, err := unix.Open(filepath.Join(dir, lockName), unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			continue // no folder of ours
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && int(st.Uid) == os.Geteuid() && st.Mode&unix.S_IFMT == unix.S_IFREG &&
			unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = unix.Close(fd)
	}
}
