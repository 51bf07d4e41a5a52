package gguf_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/model/gguf"
	"github.com/dynamograph/dynamo/graph/model/gguf/gguftest"
)

var le = binary.LittleEndian

// raw is a file's start by hand: magic, version and the two counts.
func raw(version uint32, tensors, keys uint64) []byte {
	b := le.AppendUint32([]byte("GGUF"), version)
	return le.AppendUint64(le.AppendUint64(b, tensors), keys)
}

// entry is a line of the tensor table.
func entry(b []byte, name string, dims []uint64, typ uint32, off uint64) []byte {
	b = le.AppendUint32(gguftest.String(b, name), uint32(len(dims)))
	for _, d := range dims {
		b = le.AppendUint64(b, d)
	}
	return le.AppendUint64(le.AppendUint32(b, typ), off)
}

func pad(b []byte, n int) []byte { return append(b, make([]byte, n)...) }

func TestHostile(t *testing.T) {
	key := func(name string) []byte { return gguftest.String(raw(3, 0, 1), name) }
	array := func(typ uint32, n uint64) []byte {
		return le.AppendUint64(le.AppendUint32(le.AppendUint32(key("k"), 9), typ), n)
	}
	tests := []struct {
		name string
		file []byte
		at   int64
		want string
	}{
		{"empty", nil, 0, "gguf: header at byte 0: magic needs 4 bytes, the file has 0 left"},
		{"magic", pad([]byte("PK\x03\x04"), 60), 0, `gguf: header at byte 0: not a GGUF file: it begins with "PK\x03\x04", not "GGUF"`},
		{"version 1", pad(raw(1, 0, 0), 8), 4, "version 1: only 2 and 3 are read"},
		{"big endian", pad(raw(3<<24, 0, 0), 8), 4, "a big-endian file: only little endian is read"},
		{"tensor count", pad(raw(3, math.MaxUint64, 0), 100), 8, "18446744073709551615 tensors cannot fit: the file has 108 bytes left"},
		{"key count", pad(raw(3, 0, 1<<40), 100), 16, "1099511627776 keys cannot fit: the file has 100 bytes left"},
		{"key length", pad(le.AppendUint64(raw(3, 0, 1), 1<<62), 40), 24, "key 1 of 1 at byte 24: key of 4611686018427387904 bytes: at most 65535"},
		{"key cut", pad(le.AppendUint64(raw(3, 0, 1), 500), 40), 32, "key 1 of 1 at byte 32: key needs 500 bytes, the file has 40 left"},
		{"key empty", pad(le.AppendUint64(raw(3, 0, 1), 0), 40), 24, "key 1 of 1 at byte 24: has no name"},
		{"key twice", gguftest.Build([]gguftest.KV{gguftest.K("a", true), gguftest.K("a", true)}, nil), 38, `key "a" at byte 38: was given before, at byte 33`},
		{"value type", pad(le.AppendUint32(key("k"), 13), 8), 33, `key "k" at byte 33: value of type 13: not known`},
		{"nested", pad(array(9, 1), 64), 37, `key "k" at byte 37: an array of arrays: not supported`},
		{"array overflow", pad(array(10, 1<<61), 64), 41, `key "k" at byte 41: 2305843009213693952 elements of type uint64 cannot fit`},
		{"array of strings", pad(array(8, 9), 64), 41, `key "k" at byte 41: 9 elements of type string cannot fit: the file has 64 bytes left`},
		{"string in array", pad(le.AppendUint64(array(8, 2), 90), 60), 57, `key "k" at byte 57: string needs 90 bytes, the file has 60 left`},
		{"string length", pad(le.AppendUint64(le.AppendUint32(key("k"), 8), math.MaxUint64), 40), 37, `key "k" at byte 37: string of 18446744073709551615 bytes: at most`},
		{"bool", pad(append(le.AppendUint32(key("k"), 7), 7), 40), 37, `key "k" at byte 37: bool is 7`},
		{"alignment", gguftest.Build([]gguftest.KV{gguftest.K("general.alignment", uint32(24))}, nil), 49, `key "general.alignment" at byte 49: must be a power of two`},
		{"tensor without name", pad(raw(3, 1, 0), 80), 32, "tensor 1 of 1 at byte 32: has no name"},
		{"tensor name", pad(le.AppendUint64(raw(3, 1, 0), 70000), 80000), 24, "tensor 1 of 1 at byte 24: name of 70000 bytes: at most 65535"},
		{"dimensions", pad(entry(raw(3, 1, 0), "t", []uint64{1, 1, 1, 1, 1}, 0, 0), 99), 33, `tensor "t" at byte 33: 5 dimensions: at most 4`},
		{"no dimension", pad(entry(raw(3, 1, 0), "t", []uint64{4, 0}, 0, 0), 99), 45, `tensor "t" at byte 45: dimension 1 is 0`},
		{"dims overflow", pad(entry(raw(3, 1, 0), "t", []uint64{1 << 32, 1 << 32}, 0, 0), 99), 45, `dimension 1 is 4294967296: the number of elements overflows`},
		{"size overflow", pad(entry(raw(3, 1, 0), "t", []uint64{1 << 62}, 0, 0), 99), 45, `4611686018427387904 elements of F32: the size overflows`},
		{"block", pad(entry(raw(3, 1, 0), "t", []uint64{33}, 3, 0), 99), 45, `rows of 33 elements do not divide into blocks of 32 (Q4_1)`},
		{"misaligned", pad(entry(raw(3, 1, 0), "t", []uint64{4}, 0, 4), 99), 24, `tensor "t" at byte 24: offset 4 is not a multiple of the alignment 32`},
		{"offset", pad(entry(raw(3, 1, 0), "t", []uint64{4}, 0, math.MaxUint64), 99), 49, `offset 18446744073709551615 lies beyond the file`},
		{"outside", pad(entry(raw(3, 1, 0), "t", []uint64{4}, 0, 96), 99), 24, `tensor "t" at byte 24: its 16 bytes at data offset 96 end beyond the file of 156 bytes (data begins at byte 64)`},
		{"overlap", pad(entry(entry(raw(3, 2, 0), "b", []uint64{4}, 0, 0), "a", []uint64{4}, 0, 0), 99), 57,
			`tensor "a" at byte 57: overlaps tensor "b": it begins at byte 96, the other ends at 112`},
		{"overlap by part", pad(entry(entry(raw(3, 2, 0), "b", []uint64{4}, 0, 32), "a", []uint64{16}, 0, 0), 150), 24,
			`tensor "b" at byte 24: overlaps tensor "a": it begins at byte 128, the other ends at 160`},
		{"tensor twice", pad(entry(entry(raw(3, 2, 0), "a", []uint64{4}, 0, 0), "a", []uint64{4}, 0, 32), 99), 57, `tensor "a" at byte 57: was named before, at byte 24`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := gguf.Read(bytes.NewReader(tt.file), int64(len(tt.file)))
			var e *gguf.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if e.Offset != tt.at || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s (byte %d)", err, tt.want, tt.at)
			}
		})
	}
}

// TestTruncated cuts a file at every byte: before the end of the data it must be an error, and never a panic.
func TestTruncated(t *testing.T) {
	b := small()
	whole := read(t, b)
	last := whole.Tensors[len(whole.Tensors)-1]
	for n := range len(b) {
		_, err := gguf.Read(bytes.NewReader(b[:n]), int64(n))
		if (err == nil) != (int64(n) >= last.Offset+last.Size) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
}

// TestLyingSize hands in a size that is far above what can be read, with counts that would fit it.
func TestLyingSize(t *testing.T) {
	array := func(typ uint32) []byte {
		b := le.AppendUint32(le.AppendUint32(gguftest.String(raw(3, 0, 1), "k"), 9), typ)
		return pad(le.AppendUint64(b, 200<<20), 1<<20)
	}
	for name, b := range map[string][]byte{
		"string":  pad(le.AppendUint64(le.AppendUint32(gguftest.String(raw(3, 0, 1), "k"), 8), 200<<20), 1<<20),
		"bytes":   array(0),
		"strings": array(8),
		"keys":    pad(raw(3, 0, 1<<36), 1<<20),
		"tensors": append(raw(3, 1<<36, 0), bytes.Repeat(entry(nil, "t", nil, 0, 0), 1<<20/25)...),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := gguf.Read(bytes.NewReader(b), 1<<50)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 { // all that growing slices left behind; what lives at once is a fraction
			t.Errorf("%s: %d bytes allocated for a file of 1 MiB", name, used)
		}
	}
	b := array(0)
	if _, err := gguf.Read(bytes.NewReader(b), 1<<50); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want io.EOF as the cause", err)
	}
	huge := le.AppendUint64(le.AppendUint32(le.AppendUint32(gguftest.String(raw(3, 0, 1), "k"), 9), 0), 1<<40)
	if _, err := gguf.Read(zeros{huge}, 1<<50); err == nil || !strings.Contains(err.Error(), "headers above 268435456 bytes are refused") {
		t.Errorf("an array of 1 TiB: %v", err)
	}
}

// zeros is b, then zeros for ever.
type zeros struct{ b []byte }

func (z zeros) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < int64(len(z.b)) {
		copy(p, z.b[off:])
	}
	return len(p), nil
}

func TestReadError(t *testing.T) {
	cause := errors.New("disk on fire")
	_, err := gguf.Read(failing{cause}, 1000)
	if !errors.Is(err, cause) || err.Error() != "gguf: header at byte 0: cannot read magic: disk on fire" {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

func TestUnknownType(t *testing.T) {
	b := entry(entry(raw(3, 2, 0), "a", []uint64{7}, 99, 0), "b", []uint64{4}, 0, 64)
	b = pad(b, 96-len(b)+64+16)
	f := read(t, b)
	if a := f.Tensors[0]; a.Type.String() != "type 99" || a.Size != 64 || a.Type.BlockSize() != 0 {
		t.Errorf("got %+v", a)
	}
}

func TestFactsErrors(t *testing.T) {
	arch := gguftest.K("general.architecture", "llama")
	for _, tt := range []struct {
		name string
		kv   []gguftest.KV
		want string
	}{
		{"no architecture", nil, `key "general.architecture" at byte 0: must be a string`},
		{"type", []gguftest.KV{arch, gguftest.K("llama.block_count", "six")}, `key "llama.block_count" at byte 94: must be an integer that is not negative, not string`},
		{"negative", []gguftest.KV{arch, gguftest.K("llama.block_count", int32(-1))}, `must be an integer that is not negative, not int32`},
		{"negative in list", []gguftest.KV{arch, gguftest.K("llama.attention.head_count_kv", []int32{3, -1})}, `holds -1`},
		{"empty list", []gguftest.KV{arch, gguftest.K("llama.feed_forward_length", []int32{})}, `not array of int32`},
		{"too many", []gguftest.KV{arch, gguftest.K("llama.block_count", uint64(1<<60))}, `is 1152921504606846976: at most 16384 is believed`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := read(t, gguftest.Build(tt.kv, nil))
			if _, err := f.Facts(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(small())
	f.Add(gguftest.Build(nil, nil))
	f.Add(pad(entry(entry(raw(2, 2, 0), "b", []uint64{4}, 0, 32), "a", []uint64{16}, 99, 0), 150))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := gguf.Read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			var e *gguf.Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > int64(len(b)) {
				t.Fatalf("%v: not an *Error with an offset in the file of %d bytes", err, len(b))
			}
			return
		}
		end := file.DataOffset
		for _, x := range file.Tensors {
			if x.Offset < file.DataOffset || x.Size < 0 || x.Offset+x.Size > int64(len(b)) || x.Offset%file.Alignment != 0 && x.Offset != 0 {
				t.Fatalf("tensor %+v outside its file of %d bytes, data from %d", x, len(b), end)
			}
		}
		for _, k := range file.Keys() {
			typ, n := file.ValueType(k)
			ss, isStrings := file.Strings(k)
			is, isInts := file.Ints(k)
			xs, isFloats := file.Floats(k)
			file.String(k)
			file.Uint(k)
			file.Float(k)
			file.Bool(k)
			if isStrings && len(ss) != n || isInts && len(is) != n || isFloats && len(xs) != n || typ == "" {
				t.Fatalf("key %q: %s of %d, but %d strings, %d ints, %d floats", k, typ, n, len(ss), len(is), len(xs))
			}
		}
		if m, err := file.Facts(); err == nil && (m.Parameters < 0 || m.KVBytesPerToken(8) < 0) {
			t.Fatalf("facts overflow: %+v", m)
		}
	})
}
