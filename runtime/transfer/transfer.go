// Package transfer moves KV blocks between the processes of one machine: memory that one process writes and others map. It knows nothing
// of blocks, and is not the path between machines (the kv port of runtime/transport is).
//
// A region is a file in a folder of memory, or of disk where there is none. Its maker holds a lock on it that the kernel drops when the
// process dies, however it dies: so the next maker in that folder knows what is left over, and removes it.
package transfer

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dynamograph/dynamo/graph/kind"
)

// SharedMemory is the folder of memory on Linux.
const SharedMemory = "/dev/shm"

const (
	prefix = "dynamo-"
	suffix = ".shm"
	unborn = ".dynamo-new-" // prefix of a file that its maker has not locked yet
)

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Region is a shared mapping. Its methods are safe for concurrent use; what is in Bytes is not theirs to guard.
type Region struct {
	path  string
	file  *os.File // of the maker: holds the lock
	mu    sync.Mutex
	bytes []byte
}

var _ kind.Memory = (*Region)(nil)

// Dir returns the folder for a region of size bytes: SharedMemory where it has that much room, else fallback. Containers often have
// 64 MiB of shared memory. What other regions there may still take does not count as room.
func Dir(fallback string, size int64) string {
	if free, err := room(SharedMemory); err == nil && unix.Access(SharedMemory, unix.W_OK) == nil && free >= size {
		return SharedMemory
	}
	return fallback
}

func room(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail)*int64(st.Bsize) - owed(dir), nil //nolint:unconvert // Bsize has another type elsewhere
}

// owed is what the regions in dir may take beyond what they have: their pages are taken when first written.
func owed(dir string) (n int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !strings.HasSuffix(e.Name(), suffix) || !e.Type().IsRegular() {
			continue
		}
		var st unix.Stat_t
		if unix.Lstat(filepath.Join(dir, e.Name()), &st) == nil {
			n += max(0, st.Size-st.Blocks*512)
		}
	}
	return n
}

// Create makes zeroed memory of size bytes, page-aligned, that other processes of this user can Open by its Region until it is closed.
// name is for people. Pages are taken when first written: it is an error where dir has no room for size beside what other regions may
// take, but where something else fills the folder later, a first write to a page kills the process (SIGBUS).
func Create(dir, name string, size int64) (*Region, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("shared memory %q: name must be letters, digits, dot, dash, underscore", name)
	}
	if size <= 0 || int64(int(size)) != size {
		return nil, fmt.Errorf("shared memory %q: size %d", name, size)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("shared memory %q: %w", name, err)
	}
	Clean(dir)
	if free, err := room(dir); err != nil {
		return nil, fmt.Errorf("shared memory %q in %s: %w", name, dir, err)
	} else if free < size {
		return nil, fmt.Errorf("shared memory %q: needs %d MiB, %s has %d", name, size>>20, dir, free>>20)
	}
	r, err := create(dir, name, size)
	if err != nil {
		return nil, fmt.Errorf("shared memory %q in %s: %w", name, dir, err)
	}
	if free, err := room(dir); err == nil && free < 0 { // several at once: better none than one that a write kills
		_ = r.Close()
		return nil, fmt.Errorf("shared memory %q: needs %d MiB, %s has none to spare beside other regions", name, size>>20, dir)
	}
	return r, nil
}

func create(dir, name string, size int64) (_ *Region, err error) {
	id := rand.Text()[:10]
	fresh := filepath.Join(dir, unborn+id)
	f, err := os.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, prefix+name+"-"+id+suffix)
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(fresh)
			_ = os.Remove(path)
		}
	}()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := f.Truncate(size); err != nil {
		return nil, err
	}
	// Only a locked file has a name that Clean looks at.
	if err := os.Rename(fresh, path); err != nil {
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	return &Region{path: path, file: f, bytes: b}, nil
}

// Open maps what another process of this user has made, read-only: writing to it kills the process. It refuses whatever Create has not
// made: symbolic links, files of other users or that others may write, and names of another form.
func Open(region string) (*Region, error) {
	base := filepath.Base(region)
	if !filepath.IsAbs(region) || filepath.Clean(region) != region || !strings.HasPrefix(base, prefix) || !strings.HasSuffix(base, suffix) {
		return nil, fmt.Errorf("shared memory %q: is no region's name", region)
	}
	b, err := open(region)
	if err != nil {
		return nil, fmt.Errorf("shared memory %q: %w", region, err)
	}
	return &Region{path: region, bytes: b}, nil
}

func open(region string) ([]byte, error) {
	fd, err := unix.Open(region, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, errors.New("is a symbolic link")
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd) // the mapping stays
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, errors.New("is no plain file")
	case int(st.Uid) != os.Geteuid():
		return nil, errors.New("belongs to another user")
	case st.Mode&0o077 != 0:
		return nil, fmt.Errorf("is open to others (mode %o)", st.Mode&0o777)
	case st.Size <= 0 || int64(int(st.Size)) != st.Size:
		return nil, fmt.Errorf("has size %d", st.Size)
	}
	return unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ, unix.MAP_SHARED)
}

// Region returns the name that Open takes: an absolute path.
func (r *Region) Region() string { return r.path }

// Bytes returns the memory; nil once the region is closed.
func (r *Region) Bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}

// Close ends the mapping, after which slices of Bytes must not be touched. Where r was made by Create the region is removed: who has it
// open keeps it until they close it. A second Close does nothing.
func (r *Region) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes == nil {
		return nil
	}
	err := unix.Munmap(r.bytes)
	r.bytes = nil
	if r.file != nil {
		if rm := os.Remove(r.path); !errors.Is(rm, os.ErrNotExist) {
			err = errors.Join(err, rm)
		}
		err = errors.Join(err, r.file.Close())
	}
	return err
}

// Clean removes regions of this user in dir whose makers are dead. Create calls it.
func Clean(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		young := strings.HasPrefix(name, unborn)
		if !young && !(strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix)) || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, name)
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			continue // of another user, or gone
		}
		var st unix.Stat_t
		switch {
		case unix.Fstat(fd, &st) != nil || int(st.Uid) != os.Geteuid():
		case young && time.Since(time.Unix(st.Mtim.Unix())) < time.Minute: // its maker is about to lock it
		case unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil:
			_ = os.Remove(path)
		}
		_ = unix.Close(fd)
	}
}
