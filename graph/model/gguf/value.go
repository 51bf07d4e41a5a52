package gguf

import (
	"encoding/binary"
	"math"
	"slices"
)

// The file's numbers for types of values.
const (
	vU8, vI8, vU16, vI16     = 0, 1, 2, 3
	vU32, vI32, vF32, vBool  = 4, 5, 6, 7
	vString, vArray          = 8, 9
	vU64, vI64, vF64, vCount = 10, 11, 12, 13
)

var (
	valueSizes = [vCount]int{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8}
	valueNames = [vCount]string{"uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool", "string", "array", "uint64", "int64", "float64"}
)

// value says where a key's value lies in the header; it is decoded when asked for.
type value struct {
	at       int // of the type, for messages
	typ      uint32
	array    bool
	n        int // elements; 1 for a scalar
	from, to int // bytes; of strings with their lengths if array
}

func (p *parser) key(f *File, i, of int) error {
	p.begin("key", "", i, of)
	at := p.pos
	from, to, err := p.str("key", maxName)
	if err != nil {
		return err
	}
	if from == to {
		return p.fail(at, "has no name")
	}
	name := string(p.buf[from:to])
	p.name = name
	if v, ok := f.values[name]; ok {
		return p.fail(at, "was given before, at byte %d", v.at)
	}
	v, err := p.value()
	if err != nil {
		return err
	}
	f.keys = append(f.keys, name)
	f.values[name] = v
	return nil
}

func (p *parser) value() (v value, err error) {
	v.at, v.n = p.pos, 1
	if v.typ, err = p.u32("type of the value"); err != nil {
		return v, err
	}
	if v.typ == vArray {
		v.array = true
		at := p.pos
		if v.typ, err = p.u32("type of the elements"); err != nil {
			return v, err
		}
		if v.typ == vArray {
			return v, p.fail(at, "an array of arrays: not supported")
		}
	}
	if v.typ >= vCount {
		return v, p.fail(p.pos-4, "value of type %d: not known", v.typ)
	}
	size := valueSizes[v.typ]
	if v.array {
		each := size
		if v.typ == vString {
			each = 8 // its length
		}
		if v.n, err = p.count("elements of type "+valueNames[v.typ], int64(each)); err != nil {
			return v, err
		}
	}
	v.from = p.pos
	switch {
	case v.typ != vString:
		if err := p.need(uint64(v.n)*uint64(size), "value of type "+valueNames[v.typ]); err != nil {
			return v, err
		}
		p.pos += v.n * size
		if v.typ == vBool {
			if i := slices.IndexFunc(p.buf[v.from:p.pos], func(b byte) bool { return b > 1 }); i >= 0 {
				return v, p.fail(v.from+i, "bool is %d", p.buf[v.from+i])
			}
		}
	case v.array:
		for range v.n {
			if _, _, err := p.str("string", maxHeader); err != nil {
				return v, err
			}
		}
	default:
		if v.from, _, err = p.str("string", maxHeader); err != nil {
			return v, err
		}
	}
	v.to = p.pos
	return v, nil
}

// Keys returns the names of all keys in the order of the file.
func (f *File) Keys() []string { return slices.Clone(f.keys) }

// Has reports whether key is there, whatever its type.
func (f *File) Has(key string) bool { _, ok := f.values[key]; return ok }

// ValueType names the type of key's value: "string", "uint32", "array of string"; n is the number of elements, 1 for a scalar. It is ""
// where the key is absent.
func (f *File) ValueType(key string) (typ string, n int) {
	v, ok := f.values[key]
	switch {
	case !ok:
		return "", 0
	case v.array:
		return "array of " + valueNames[v.typ], v.n
	}
	return valueNames[v.typ], 1
}

// String returns a string. ok is false, here and below, where the key is absent or of another type.
func (f *File) String(key string) (s string, ok bool) {
	v, ok := f.values[key]
	if !ok || v.array || v.typ != vString {
		return "", false
	}
	return string(f.header[v.from:v.to]), true
}

// Strings returns an array of strings; they share one backing buffer.
func (f *File) Strings(key string) ([]string, bool) {
	v, ok := f.values[key]
	if !ok || !v.array || v.typ != vString {
		return nil, false
	}
	all := string(f.header[v.from:v.to])
	out := make([]string, v.n)
	pos := v.from
	for i := range out {
		n := int(binary.LittleEndian.Uint64(f.header[pos:]))
		pos += 8
		out[i] = all[pos-v.from : pos-v.from+n]
		pos += n
	}
	return out, true
}

// Uint returns an integer of any type that is not negative.
func (f *File) Uint(key string) (uint64, bool) {
	v, ok := f.values[key]
	if !ok {
		return 0, false
	}
	return f.uintAt(f.header, v)
}

func (f *File) uintAt(buf []byte, v value) (uint64, bool) {
	if v.array || !integer(v.typ) {
		return 0, false
	}
	if v.typ == vU64 {
		return binary.LittleEndian.Uint64(buf[v.from:]), true
	}
	i := intAt(buf[v.from:], v.typ)
	return uint64(i), i >= 0
}

// Ints returns an array of integers of any type. It fails where one is above math.MaxInt64.
func (f *File) Ints(key string) ([]int64, bool) {
	v, ok := f.values[key]
	if !ok || !v.array || !integer(v.typ) {
		return nil, false
	}
	out := make([]int64, v.n)
	size := valueSizes[v.typ]
	for i := range out {
		out[i] = intAt(f.header[v.from+i*size:], v.typ)
		if v.typ == vU64 && out[i] < 0 {
			return nil, false
		}
	}
	return out, true
}

// Float returns a float32 or float64.
func (f *File) Float(key string) (float64, bool) {
	v, ok := f.values[key]
	if !ok || v.array || (v.typ != vF32 && v.typ != vF64) {
		return 0, false
	}
	return floatAt(f.header[v.from:], v.typ), true
}

// Floats returns an array of float32 or float64.
func (f *File) Floats(key string) ([]float64, bool) {
	v, ok := f.values[key]
	if !ok || !v.array || (v.typ != vF32 && v.typ != vF64) {
		return nil, false
	}
	out := make([]float64, v.n)
	size := valueSizes[v.typ]
	for i := range out {
		out[i] = floatAt(f.header[v.from+i*size:], v.typ)
	}
	return out, true
}

// Bool returns a bool.
func (f *File) Bool(key string) (b, ok bool) {
	v, ok := f.values[key]
	if !ok || v.array || v.typ != vBool {
		return false, false
	}
	return f.header[v.from] == 1, true
}

func integer(typ uint32) bool { return typ <= vI32 || typ == vU64 || typ == vI64 }

func intAt(b []byte, typ uint32) int64 {
	switch typ {
	case vU8:
		return int64(b[0])
	case vI8:
		return int64(int8(b[0]))
	case vU16:
		return int64(binary.LittleEndian.Uint16(b))
	case vI16:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case vU32:
		return int64(binary.LittleEndian.Uint32(b))
	case vI32:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

func floatAt(b []byte, typ uint32) float64 {
	if typ == vF32 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}
