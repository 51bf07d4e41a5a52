// Package gguftest writes small GGUF files for tests. It is not a general writer: everything is held in memory.
package gguftest

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/dynamograph/dynamo/graph/model/gguf"
)

// KV is a key with its value: a bool, string, any sized integer, float32, float64, or a slice of one of these.
type KV struct {
	Key   string
	Value any
}

// K makes a KV.
func K(key string, value any) KV { return KV{Key: key, Value: value} }

// Tensor is a tensor with its bytes as they stand in the file.
type Tensor struct {
	Name string
	Type gguf.Type
	Dims []int64 // GGML's order: Dims[0] is contiguous
	Data []byte
}

// F32 is a tensor of float32 values.
func F32(name string, dims []int64, values []float32) Tensor {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return Tensor{Name: name, Type: gguf.F32, Dims: dims, Data: b}
}

// Build returns a version 3 file with the keys and tensors in this order. It panics on a value that the format cannot hold: that is a
// mistake in the test.
func Build(kvs []KV, tensors []Tensor) []byte {
	le := binary.LittleEndian
	b := []byte("GGUF")
	b = le.AppendUint32(b, 3)
	b = le.AppendUint64(b, uint64(len(tensors)))
	b = le.AppendUint64(b, uint64(len(kvs)))
	alignment := uint64(32)
	for _, kv := range kvs {
		if kv.Key == "general.alignment" {
			alignment = uint64(kv.Value.(uint32))
		}
		b = Value(String(b, kv.Key), kv.Value)
	}
	up := func(n uint64) uint64 { return (n + alignment - 1) / alignment * alignment }
	off := uint64(0)
	for _, t := range tensors {
		b = String(b, t.Name)
		b = le.AppendUint32(b, uint32(len(t.Dims)))
		for _, d := range t.Dims {
			b = le.AppendUint64(b, uint64(d))
		}
		b = le.AppendUint32(b, uint32(t.Type))
		b = le.AppendUint64(b, off)
		off += up(uint64(len(t.Data)))
	}
	pad := func() { b = append(b, make([]byte, up(uint64(len(b)))-uint64(len(b)))...) }
	pad()
	for _, t := range tensors {
		b = append(b, t.Data...)
		pad()
	}
	return b
}

// String appends a string with its length.
func String(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// Value appends a value with its type.
func Value(b []byte, v any) []byte {
	typ, raw, n, list := encode(v)
	if list {
		b = binary.LittleEndian.AppendUint32(b, 9)
	}
	b = binary.LittleEndian.AppendUint32(b, typ)
	if list {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return append(b, raw...)
}

func encode(v any) (typ uint32, raw []byte, n int, list bool) {
	switch v := v.(type) {
	case string:
		return 8, String(nil, v), 1, false
	case []string:
		for _, s := range v {
			raw = String(raw, s)
		}
		return 8, raw, len(v), true
	}
	typ, n, list = numeric(v)
	raw, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		panic(fmt.Sprintf("gguftest: value of type %T: %v", v, err))
	}
	return typ, raw, n, list
}

func numeric(v any) (typ uint32, n int, list bool) {
	switch v := v.(type) {
	case uint8:
		return 0, 1, false
	case int8:
		return 1, 1, false
	case uint16:
		return 2, 1, false
	case int16:
		return 3, 1, false
	case uint32:
		return 4, 1, false
	case int32:
		return 5, 1, false
	case float32:
		return 6, 1, false
	case bool:
		return 7, 1, false
	case uint64:
		return 10, 1, false
	case int64:
		return 11, 1, false
	case float64:
		return 12, 1, false
	case []uint8:
		return 0, len(v), true
	case []int8:
		return 1, len(v), true
	case []uint16:
		return 2, len(v), true
	case []int16:
		return 3, len(v), true
	case []uint32:
		return 4, len(v), true
	case []int32:
		return 5, len(v), true
	case []float32:
		return 6, len(v), true
	case []bool:
		return 7, len(v), true
	case []uint64:
		return 10, len(v), true
	case []int64:
		return 11, len(v), true
	case []float64:
		return 12, len(v), true
	}
	panic(fmt.Sprintf("gguftest: a file cannot hold a %T", v))
}
