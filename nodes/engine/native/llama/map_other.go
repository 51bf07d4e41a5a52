//go:build !unix

package llama

import (
	"io"
	"os"
)

// mapFile reads the file, for want of a map.
func mapFile(f *os.File, size int64) (*weights, error) {
	w, err := newMemory(size)
	if err != nil {
		return nil, err
	}
	_, err = io.ReadFull(f, w.data)
	return w, err
}

func newMemory(size int64) (*weights, error) { return &weights{data: alignedBytes(int(size))}, nil }

// lockFile does nothing: two processes may do the same work twice.
func lockFile(string, func()) (unlock func(), err error) { return func() {}, nil }
