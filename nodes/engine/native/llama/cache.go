package llama

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/dynamograph/dynamo/nodes/engine/native/kernel"
)

// The repacked file: magic, version, id of the layout, SHA-256 of the source, number of pieces, CRC of this header and the sums; then one
// CRC a piece; then, from a page boundary on, the tensors.
const (
	cacheMagic   = "DYNAMOWT"
	cacheVersion = 1
	headerBytes  = 8 + 4 + 4 + 32 + 32 + 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// weights is the repacked file in memory.
type weights struct {
	data  []byte
	unmap func([]byte) error
}

func (w *weights) close() error {
	if w.unmap == nil {
		return nil
	}
	unmap := w.unmap
	w.unmap = nil
	return unmap(w.data)
}

// openWeights maps the repacked file. Where the cache folder cannot be used, it repacks into memory and says so in warning.
func openWeights(f *os.File, l *layout, o Options, threads int) (w *weights, warning string, err error) {
	sum, err := sourceSum(f, o)
	if err != nil {
		return nil, "", err
	}
	if o.CacheDir != "" {
		w, err = cachedWeights(f, l, o, sum, threads)
		if err == nil {
			return w, "", nil
		}
		var src *sourceError
		if errors.As(err, &src) {
			return nil, "", err
		}
		warning = fmt.Sprintf("weights cache: %v; the weights are repacked into this process's own memory at each start", err)
		o.Progress(warning)
	}
	w, err = newMemory(l.size)
	if err != nil {
		return nil, "", fmt.Errorf("%d bytes for the weights: %w", l.size, err)
	}
	if _, err = repack(f, l, o, threads, memoryAt(w.data)); err != nil {
		_ = w.close()
		return nil, "", err
	}
	return w, warning, nil
}

// sourceSum is the SHA-256 of the file, as told or as computed.
func sourceSum(f *os.File, o Options) (sum [sha256.Size]byte, err error) {
	if o.SHA256 != "" {
		b, err := hex.DecodeString(o.SHA256)
		if err != nil || len(b) != len(sum) {
			return sum, fmt.Errorf("sha256 %q: must be %d hexadecimal digits", o.SHA256, 2*len(sum))
		}
		return [sha256.Size]byte(b), nil
	}
	if o.CacheDir == "" {
		return sum, nil // names nothing
	}
	h := sha256.New()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return sum, err
	}
	if _, err := io.Copy(h, f); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	return sum, nil
}

// CacheName is the file name of the repacked weights of a GGUF file with this SHA-256 in hex.
func CacheName(sha256 string) string { return fmt.Sprintf("%s-v%d.weights", sha256, cacheVersion) }

func cachedWeights(f *os.File, l *layout, o Options, sum [sha256.Size]byte, threads int) (*weights, error) {
	if err := os.MkdirAll(o.CacheDir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(o.CacheDir, CacheName(hex.EncodeToString(sum[:])))
	w, err := mapWeights(path, l, sum, threads)
	if err == nil {
		return w, nil
	}
	unlock, err2 := lockFile(path+".lock", func() { o.Progress("waiting for another process that repacks the weights") })
	if err2 != nil {
		return nil, err2
	}
	defer unlock()
	if w, err := mapWeights(path, l, sum, threads); err == nil { // made meanwhile
		return w, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		o.Progress(fmt.Sprintf("weights cache: %v; making it again", err))
	}
	if left, err := filepath.Glob(path + ".tmp-*"); err == nil { // of processes that were killed: whoever writes holds the lock
		for _, name := range left {
			_ = os.Remove(name)
		}
	}
	if err := writeWeights(path, f, l, o, sum, threads); err != nil {
		return nil, err
	}
	return mapWeights(path, l, sum, threads)
}

// writeWeights makes the file under another name and moves it into place.
func writeWeights(path string, f *os.File, l *layout, o Options, sum [sha256.Size]byte, threads int) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tmp.Close()
			_ = os.Remove(tmp.Name())
		}
	}()
	sums, err := repack(f, l, o, threads, tmp)
	if err != nil {
		return err
	}
	if err = tmp.Truncate(l.size); err != nil {
		return err
	}
	if _, err = tmp.WriteAt(header(l, sum, sums), 0); err != nil {
		return err
	}
	if err = tmp.Sync(); err != nil {
		return err
	}
	if err = tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

func header(l *layout, sum [sha256.Size]byte, sums []uint32) []byte {
	b := append(make([]byte, 0, l.header), cacheMagic...)
	b = binary.LittleEndian.AppendUint32(b, cacheVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(sums)))
	b = append(b, l.id[:]...)
	b = append(b, sum[:]...)
	b = append(b, make([]byte, 8)...)
	for _, s := range sums {
		b = binary.LittleEndian.AppendUint32(b, s)
	}
	binary.LittleEndian.PutUint32(b[headerBytes-8:], crc32.Checksum(b, castagnoli))
	return append(b, make([]byte, int(l.header)-len(b))...)
}

// mapWeights maps the file and checks every byte of it.
func mapWeights(path string, l *layout, sum [sha256.Size]byte, threads int) (*weights, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() != l.size {
		return nil, fmt.Errorf("%s has %d bytes, not %d", path, st.Size(), l.size)
	}
	w, err := mapFile(f, l.size)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	if err := checkWeights(w.data, l, sum, threads); err != nil {
		_ = w.close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return w, nil
}

func checkWeights(data []byte, l *layout, sum [sha256.Size]byte, threads int) error {
	sums := make([]uint32, len(l.pieces))
	for i := range sums {
		sums[i] = binary.LittleEndian.Uint32(data[headerBytes+4*i:])
	}
	if !bytes.Equal(data[:l.header], header(l, sum, sums)) {
		return errors.New("its header is damaged or of another model")
	}
	var bad atomic.Bool
	parallel(threads, len(l.pieces), func(i int) {
		p := l.pieces[i]
		if crc32.Checksum(data[p.off:p.off+p.size], castagnoli) != sums[i] {
			bad.Store(true)
		}
	})
	if bad.Load() {
		return errors.New("its checksum is wrong")
	}
	return nil
}

// sourceError is a failure to read the GGUF file, as against one to write the cache.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

// repack writes every piece at its offset and returns their sums.
func repack(f io.ReaderAt, l *layout, o Options, threads int, to io.WriterAt) ([]uint32, error) {
	sums := make([]uint32, len(l.pieces))
	var (
		mu    sync.Mutex
		first error
		done  int
		shown = -1
		stop  atomic.Bool
	)
	bufs := sync.Pool{New: func() any { return new([2][]byte) }}
	parallel(threads, len(l.pieces), func(i int) {
		if stop.Load() {
			return
		}
		b := bufs.Get().(*[2][]byte)
		err := repackPiece(f, l.pieces[i], to, b, &sums[i])
		bufs.Put(b)
		mu.Lock()
		defer mu.Unlock()
		if err != nil && first == nil {
			first = err
			stop.Store(true)
		}
		done++
		if p := done * 100 / len(l.pieces); p/10 != shown {
			shown = p / 10
			o.Progress(fmt.Sprintf("repacking weights: %d %%", p))
		}
	})
	return sums, first
}

func repackPiece(f io.ReaderAt, p piece, to io.WriterAt, b *[2][]byte, sum *uint32) error {
	t := p.t
	row := int64(t.format.SourceBytes(t.k))
	from, rows := int64(0), 1
	if !t.vector {
		from, rows = int64(p.g0)*kernel.Lanes*row, min(t.n, p.g1*kernel.Lanes)-p.g0*kernel.Lanes
	}
	src := grow(&b[0], int(row)*rows)
	if _, err := f.ReadAt(src, t.src.Offset+from); err != nil {
		return &sourceError{fmt.Errorf("tensor %q: %w", t.src.Name, err)}
	}
	dst := grow(&b[1], int(p.size))
	if t.vector {
		t.format.Floats(dst, src)
	} else {
		gb := t.format.GroupBytes(t.k)
		for g := 0; g < p.g1-p.g0; g++ {
			r := g * kernel.Lanes
			t.format.Pack(dst[g*gb:(g+1)*gb], src[int64(r)*row:], t.k, min(kernel.Lanes, rows-r))
		}
	}
	*sum = crc32.Checksum(dst, castagnoli)
	_, err := to.WriteAt(dst, p.off)
	return err
}

func grow(b *[]byte, n int) []byte {
	if cap(*b) < n {
		*b = make([]byte, n)
	}
	return (*b)[:n]
}

// memoryAt is memory as an io.WriterAt; pieces never overlap, so it needs no lock.
type memoryAt []byte

func (m memoryAt) WriteAt(p []byte, off int64) (int, error) { return copy(m[off:], p), nil }

// parallel runs f for 0..n-1 on some goroutines and waits.
func parallel(threads, n int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(threads, n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}
