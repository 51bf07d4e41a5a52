// Package gguf reads what a GGUF file (version 2 or 3, little endian) says about itself: its keys and its table of tensors. It does not
// read tensors, and it does no I/O but through the io.ReaderAt that it is handed.
//
// Input is hostile until proven otherwise: a count or length is believed only as far as bytes are really there, so that memory stays
// within a small multiple of the header, and every fault is one *Error that names the key or tensor and the byte.
package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
)

// File is a parsed header. It does not change after Read and is safe for concurrent use.
type File struct {
	Version    uint32
	Tensors    []Tensor // in the order of the file's table
	Alignment  int64    // bytes; of every tensor's offset within the data
	DataOffset int64    // bytes from the start of the file to the tensors' data
	Size       int64    // bytes, as given to Read

	header []byte // the file's first bytes, up to the end of the table
	keys   []string
	values map[string]value
}

// Tensor says where a tensor lies.
type Tensor struct {
	Name   string
	Type   Type
	Dims   []int64 // GGML's order: Dims[0] is contiguous; none is zero
	Offset int64   // bytes from the start of the file
	Size   int64   // bytes; where Type is not known, all up to the next tensor
}

// Elements is the number of elements; math.MaxInt64 where that overflows (which Read refuses).
func (t Tensor) Elements() int64 {
	n := int64(1)
	for _, d := range t.Dims {
		if d != 0 && n > math.MaxInt64/d {
			return math.MaxInt64
		}
		n *= d
	}
	return n
}

// Error is a fault of the file.
type Error struct {
	Offset int64  // bytes from the start of the file
	Item   string // `key "general.name"`, `tensor "output.weight"` or "header"
	Msg    string
	Err    error // what the reader said, if it failed
}

func (e *Error) Error() string {
	s := fmt.Sprintf("gguf: %s at byte %d: %s", e.Item, e.Offset, e.Msg)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// What a file may ask for. Real headers stay below 40 MiB (256 k tokens with merges), names below 100 bytes.
const (
	maxHeader = 256 << 20
	maxName   = 1<<16 - 1
	maxDims   = 4
	firstRead = 256 << 10
)

// Read parses the header of a file of size bytes. It reads little beyond the header; an error is *Error.
func Read(r io.ReaderAt, size int64) (*File, error) {
	p := &parser{r: r, size: size, item: "header"}
	f := &File{Size: size, Alignment: 32, values: map[string]value{}}
	if err := p.file(f); err != nil {
		return nil, err
	}
	f.header = p.buf[:p.pos]
	return f, nil
}

// parser walks over buf, which holds the file's first len(buf) bytes and grows on demand.
type parser struct {
	r    io.ReaderAt
	size int64
	buf  []byte
	pos  int

	// What is being read, for messages: "header", "key" or "tensor", its name once that is known, until then which of how many.
	item, name string
	i, of      int
}

func (p *parser) begin(item, name string, i, of int) { p.item, p.name, p.i, p.of = item, name, i, of }

func (p *parser) what() string {
	switch {
	case p.name != "":
		return fmt.Sprintf("%s %q", p.item, p.name)
	case p.of > 0:
		return fmt.Sprintf("%s %d of %d", p.item, p.i+1, p.of)
	}
	return p.item
}

func (p *parser) fail(at int, format string, args ...any) error {
	return &Error{Offset: int64(at), Item: p.what(), Msg: fmt.Sprintf(format, args...)}
}

// need makes sure that n more bytes are in buf. what is named where they are not.
func (p *parser) need(n uint64, what string) error {
	if n <= uint64(len(p.buf)-p.pos) {
		return nil
	}
	if left := p.size - int64(p.pos); left < 0 || n > uint64(left) {
		return p.fail(p.pos, "%s needs %d bytes, the file has %d left", what, n, max(left, 0))
	}
	if n > maxHeader-uint64(p.pos) {
		return p.fail(p.pos, "%s needs %d bytes: headers above %d bytes are refused", what, n, maxHeader)
	}
	// Grow step by step, so that a size that is not true costs no more memory than the bytes that really came.
	for end := p.pos + int(n); len(p.buf) < end; {
		have := len(p.buf)
		next := int(min(int64(max(firstRead, 2*have)), p.size, maxHeader))
		buf := make([]byte, next)
		copy(buf, p.buf)
		got, err := p.r.ReadAt(buf[have:], int64(have))
		p.buf = buf[:have+got]
		if have+got < next && len(p.buf) < end {
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			return &Error{Offset: int64(have + got), Item: p.what(), Msg: "cannot read " + what, Err: err}
		}
	}
	return nil
}

func (p *parser) u32(what string) (uint32, error) {
	if err := p.need(4, what); err != nil {
		return 0, err
	}
	v := binary.LittleEndian.Uint32(p.buf[p.pos:])
	p.pos += 4
	return v, nil
}

func (p *parser) u64(what string) (uint64, error) {
	if err := p.need(8, what); err != nil {
		return 0, err
	}
	v := binary.LittleEndian.Uint64(p.buf[p.pos:])
	p.pos += 8
	return v, nil
}

// str skips a string and returns where its bytes lie.
func (p *parser) str(what string, limit uint64) (from, to int, err error) {
	at := p.pos
	n, err := p.u64("length of " + what)
	if err != nil {
		return 0, 0, err
	}
	if n > limit {
		return 0, 0, p.fail(at, "%s of %d bytes: at most %d are allowed", what, n, limit)
	}
	if err := p.need(n, what); err != nil {
		return 0, 0, err
	}
	from = p.pos
	p.pos += int(n)
	return from, p.pos, nil
}

// count reads a count of things of at least each bytes and refuses one for which the file has no room.
func (p *parser) count(what string, each int64) (int, error) {
	at := p.pos
	n, err := p.u64("number of " + what)
	if err != nil {
		return 0, err
	}
	if left := p.size - int64(p.pos); n > uint64(left/each) {
		return 0, p.fail(at, "%d %s cannot fit: the file has %d bytes left", n, what, left)
	}
	return int(n), nil
}

func (p *parser) file(f *File) error {
	magic, err := p.u32("magic")
	if err != nil {
		return err
	}
	if magic != 0x46554747 {
		return p.fail(0, "not a GGUF file: it begins with %q, not \"GGUF\"", p.buf[:4])
	}
	if f.Version, err = p.u32("version"); err != nil {
		return err
	}
	switch {
	case f.Version == 2 || f.Version == 3:
	case f.Version != 0 && f.Version&0xffff == 0:
		return p.fail(4, "a big-endian file: only little endian is read")
	default:
		return p.fail(4, "version %d: only 2 and 3 are read", f.Version)
	}
	tensors, err := p.count("tensors", 24)
	if err != nil {
		return err
	}
	keys, err := p.count("keys", 13)
	if err != nil {
		return err
	}
	for i := range keys {
		if err := p.key(f, i, keys); err != nil {
			return err
		}
	}
	p.begin("key", "general.alignment", 0, 0)
	if v, ok := f.values["general.alignment"]; ok {
		n, ok := f.uintAt(p.buf, v)
		if !ok || n == 0 || n&(n-1) != 0 || n > 1<<20 {
			return p.fail(v.at, "must be a power of two up to %d", 1<<20)
		}
		f.Alignment = int64(n)
	}
	starts := make([]int, 0, min(tensors, 4096)) // of the table's entries, for messages
	for i := range tensors {
		p.begin("tensor", "", i, tensors)
		starts = append(starts, p.pos)
		t, err := p.tensor()
		if err != nil {
			return err
		}
		f.Tensors = append(f.Tensors, t)
	}
	f.DataOffset = (int64(p.pos) + f.Alignment - 1) &^ (f.Alignment - 1)
	return p.place(f, starts)
}

// tensor reads an entry of the table; its offset is still relative to the data.
func (p *parser) tensor() (t Tensor, err error) {
	from, to, err := p.str("name", maxName)
	if err != nil {
		return t, err
	}
	if from == to {
		return t, p.fail(from, "has no name")
	}
	t.Name = string(p.buf[from:to])
	p.name = t.Name
	at := p.pos
	dims, err := p.u32("number of dimensions")
	if err != nil {
		return t, err
	}
	if dims > maxDims {
		return t, p.fail(at, "%d dimensions: at most %d are allowed", dims, maxDims)
	}
	t.Dims = make([]int64, dims)
	elements := int64(1)
	for i := range t.Dims {
		at := p.pos
		d, err := p.u64("dimension")
		if err != nil {
			return t, err
		}
		if d == 0 {
			return t, p.fail(at, "dimension %d is 0", i)
		}
		if d > uint64(math.MaxInt64/elements) {
			return t, p.fail(at, "dimension %d is %d: the number of elements overflows", i, d)
		}
		t.Dims[i] = int64(d)
		elements *= int64(d)
	}
	at = p.pos
	typ, err := p.u32("type")
	if err != nil {
		return t, err
	}
	t.Type = Type(typ)
	if block := t.Type.BlockSize(); block > 0 {
		if row := rowLength(t.Dims); row%block != 0 {
			return t, p.fail(at, "rows of %d elements do not divide into blocks of %d (%s)", row, block, t.Type)
		}
		if elements/block > math.MaxInt64/t.Type.BytesPerBlock() {
			return t, p.fail(at, "%d elements of %s: the size overflows", elements, t.Type)
		}
		t.Size = elements / block * t.Type.BytesPerBlock()
	}
	at = p.pos
	off, err := p.u64("offset")
	if err != nil {
		return t, err
	}
	if off > uint64(p.size) {
		return t, p.fail(at, "offset %d lies beyond the file of %d bytes", off, p.size)
	}
	t.Offset = int64(off)
	return t, nil
}

func rowLength(dims []int64) int64 {
	if len(dims) == 0 {
		return 1
	}
	return dims[0]
}

// place makes offsets absolute and checks that every tensor is aligned, inside the file and alone in its bytes.
func (p *parser) place(f *File, starts []int) error {
	names := make(map[string]int, len(f.Tensors))
	order := make([]int, len(f.Tensors))
	for i := range f.Tensors {
		t := &f.Tensors[i]
		p.begin("tensor", t.Name, 0, 0)
		if j, ok := names[t.Name]; ok {
			return p.fail(starts[i], "was named before, at byte %d", starts[j])
		}
		names[t.Name], order[i] = i, i
		if t.Offset%f.Alignment != 0 {
			return p.fail(starts[i], "offset %d is not a multiple of the alignment %d", t.Offset, f.Alignment)
		}
		if room := f.Size - f.DataOffset; room < 0 || t.Offset > room || t.Size > room-t.Offset {
			return p.fail(starts[i], "its %d bytes at data offset %d end beyond the file of %d bytes (data begins at byte %d)",
				t.Size, t.Offset, f.Size, f.DataOffset)
		}
		t.Offset += f.DataOffset
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if d := f.Tensors[a].Offset - f.Tensors[b].Offset; d != 0 {
			return int(min(max(d, -1), 1))
		}
		return 0
	})
	for n, i := range order {
		t := &f.Tensors[i]
		end := f.Size
		if n+1 < len(order) {
			end = f.Tensors[order[n+1]].Offset
		}
		if t.Type.BlockSize() == 0 {
			t.Size = end - t.Offset
		}
		if n+1 < len(order) && (t.Offset+t.Size > end || t.Size == 0) {
			p.begin("tensor", f.Tensors[order[n+1]].Name, 0, 0)
			return p.fail(starts[order[n+1]], "overlaps tensor %q: it begins at byte %d, the other ends at %d", t.Name, end, t.Offset+t.Size)
		}
		if t.Size == 0 {
			p.begin("tensor", t.Name, 0, 0)
			return p.fail(starts[i], "begins at byte %d, the end of the file", t.Offset)
		}
	}
	return nil
}
