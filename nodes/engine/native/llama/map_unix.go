//go:build unix

package llama

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a file read-only; processes share its pages.
func mapFile(f *os.File, size int64) (*weights, error) {
	data, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &weights{data: data, unmap: unix.Munmap}, nil
}

// newMemory is zeroed memory outside the Go heap.
func newMemory(size int64) (*weights, error) {
	data, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	return &weights{data: data, unmap: unix.Munmap}, nil
}

// lockFile takes a lock that ends with the process; wait is called once if another process holds it.
func lockFile(path string, wait func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		wait()
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}
