package models

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/model/gguf"
)

// record is what is known of a file: as long as size and time are the same, its hash is.
type record struct {
	SHA256 string    `json:"sha256"`
	Size   int64     `json:"size"`
	Time   time.Time `json:"time"`   // the file's modification time
	Path   string    `json:"path"`   // of the file
	Source string    `json:"source"` // as written, without secrets
}

func (c *Cache) dir(parts ...string) string {
	return filepath.Join(append([]string{c.o.CacheDir, "models"}, parts...)...)
}

func (c *Cache) blob(sum string) string { return c.dir(sum + ".gguf") }

// keyOf is a file name for any text.
func keyOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (c *Cache) makeDirs() error {
	for _, d := range []string{c.dir("known"), c.dir("partial"), c.dir("locks")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return cacheError(err)
		}
	}
	return nil
}

// cached returns the cache's file with this hash. A file that is not what its record says is hashed again, and removed if it is wrong.
func (j *job) cached(ctx context.Context, sum string) (File, error) {
	path := j.blob(sum)
	st, err := os.Stat(path)
	if err != nil {
		return File{}, errAbsent
	}
	side := path + ".json"
	r, ok := readRecord(side)
	if !ok || !r.matches(st) || r.SHA256 != sum {
		got, err := j.hashFile(ctx, path, st.Size(), "cache")
		if err != nil {
			return File{}, err
		}
		if got != sum {
			j.o.Log.Warn("model in the cache has changed and is removed", "path", path, "sha256", got)
			if err := os.Remove(path); err != nil {
				return File{}, cacheError(err)
			}
			return File{}, errAbsent
		}
		r = record{SHA256: sum, Size: st.Size(), Time: st.ModTime(), Path: path, Source: r.Source}
		if err := writeJSON(side, r); err != nil {
			j.o.Log.Warn("model cannot be recorded; it will be hashed again", "path", side, "err", err)
		}
	}
	return j.open(path, sum, j.pin == sum)
}

// inPlace returns a file that is not the cache's own.
func (j *job) inPlace(ctx context.Context, s model.Source, path string) (File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return File{}, err
	}
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return File{}, err
	case st.IsDir():
		return File{}, fmt.Errorf("%s is a folder: name the file itself", path)
	}
	side := j.dir("known", keyOf("path "+path)+".json")
	r, ok := readRecord(side)
	if !ok {
		j.mu.Lock()
		r, ok = j.seen[path]
		j.mu.Unlock()
	}
	if !ok || !r.matches(st) || r.Path != path {
		sum, err := j.hashFile(ctx, path, st.Size(), s.Redacted())
		if err != nil {
			return File{}, err
		}
		r = record{SHA256: sum, Size: st.Size(), Time: st.ModTime(), Path: path, Source: s.Redacted()}
		j.mu.Lock()
		j.seen[path] = r
		j.mu.Unlock()
		err = os.MkdirAll(filepath.Dir(side), 0o755)
		if err == nil {
			err = writeJSON(side, r)
		}
		if err != nil {
			j.o.Log.Warn("model cannot be recorded; it will be hashed again", "path", side, "err", err)
		}
	}
	if j.pin != "" && r.SHA256 != j.pin {
		return File{}, &hashError{got: r.SHA256, want: j.pin, by: "the graph"}
	}
	return j.open(path, r.SHA256, j.pin != "")
}

// known returns the hash of the bytes that an unpinned source had, "" where that is not known.
func (j *job) known(source string) string {
	r, ok := readRecord(j.dir("known", keyOf("source "+source)+".json"))
	if !ok || !isSHA256(r.SHA256) {
		return ""
	}
	return r.SHA256
}

// publish gives a complete file its name in the cache. It takes the file at tmp, whose hash is sum, away in any case.
func (t *try) publish(tmp, sum string) (File, error) {
	defer func() { _ = os.Remove(tmp) }() // it has its new name, or is of no use
	if t.pin != "" && sum != t.pin {
		return File{}, &hashError{got: sum, want: t.pin, by: "the graph"}
	}
	if _, err := t.open(tmp, sum, t.pin != ""); err != nil {
		return File{}, err
	}
	path := t.blob(sum)
	if err := os.Rename(tmp, path); err != nil {
		return File{}, cacheError(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		return File{}, cacheError(err)
	}
	r := record{SHA256: sum, Size: st.Size(), Time: st.ModTime(), Path: path, Source: t.src.Redacted()}
	if err := writeJSON(path+".json", r); err != nil {
		return File{}, cacheError(err)
	}
	if err := writeJSON(t.dir("known", keyOf("source "+t.src.String())+".json"), r); err != nil {
		return File{}, cacheError(err)
	}
	return t.open(path, sum, t.pin != "")
}

// open reads the header of the file at path.
func (c *Cache) open(path, sum string, pinned bool) (File, error) {
	r, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer r.Close()
	st, err := r.Stat()
	if err != nil {
		return File{}, err
	}
	g, err := gguf.Read(r, st.Size())
	if err != nil {
		return File{}, &unusable{err: err, final: pinned}
	}
	facts, err := g.Facts()
	if err != nil {
		return File{}, &unusable{err: err, final: pinned}
	}
	return File{Path: path, SHA256: sum, Size: st.Size(), Facts: facts}, nil
}

func (r record) matches(st fs.FileInfo) bool {
	return r.Size == st.Size() && r.Time.Equal(st.ModTime())
}

func readRecord(path string) (r record, ok bool) {
	b, err := os.ReadFile(path)
	return r, err == nil && json.Unmarshal(b, &r) == nil
}

// writeJSON writes a small file at once: another process sees the old one or the new one.
func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error counts
	}
	return err
}

// hashFile reads the whole file.
func (c *Cache) hashFile(ctx context.Context, path string, size int64, source string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	m := c.meter(Progress{Source: source, Step: "verify", Total: size})
	if _, err := io.Copy(h, &meterReader{ctx: ctx, r: f, m: m}); err != nil {
		return "", err
	}
	m.end()
	return hex.EncodeToString(h.Sum(nil)), nil
}

// room makes sure that the cache's disk takes n more bytes.
func (c *Cache) room(n int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(c.dir(), &st); n <= 0 || err != nil {
		return nil //nolint:nilerr // the write will tell
	}
	free := int64(st.Bavail) * int64(st.Bsize) //nolint:unconvert // Bsize has another type elsewhere
	if free >= 0 && free < n {
		return fmt.Errorf("%w: %d MB are needed, %d MB are free", ErrDiskFull, (n+999_999)/1_000_000, free/1_000_000)
	}
	return nil
}

// lock waits until no other process holds name. The returned function lets it go.
func (c *Cache) lock(ctx context.Context, name string, s model.Source) (func(), error) {
	f, err := os.OpenFile(c.dir("locks", name), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, cacheError(err)
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing lets the lock go
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = f.Close()
			return nil, cacheError(fmt.Errorf("lock %s: %w", f.Name(), err))
		}
		c.o.Progress(Progress{Source: s.Redacted(), Step: "wait"})
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
