package grpc

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto" // registers the codec that ours falls back on
	"google.golang.org/grpc/mem"
)

// raw is a message in its wire form. On the way out, buf's memory goes to the transport; on the way in it is reused.
type raw struct {
	buf  *[]byte
	pool *bufferPool // of buf on the way out
}

// codec is gRPC's protobuf codec, but that *raw passes as it is: the bytes are protobuf all the same.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(*raw)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	if m.buf == nil {
		return nil, fmt.Errorf("raw message was sent twice")
	}
	b := mem.NewBuffer(m.buf, m.pool)
	m.buf = nil
	return mem.BufferSlice{b}, nil
}

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*raw)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	if m.buf == nil {
		m.buf = new([]byte)
	}
	b := (*m.buf)[:0]
	for _, s := range data {
		b = append(b, s.ReadOnlyData()...)
	}
	*m.buf = b
	return nil
}

// bufferPool keeps the memory of sent messages.
type bufferPool struct {
	pool sync.Pool
	keep int // bytes: larger buffers are left to the collector
}

var (
	buffers = &bufferPool{keep: 4 * batchBytes}
	blocks  = &bufferPool{keep: 4 << 20} // of KV blocks
)

// minBuffer is above the size from which package mem hands buffers back.
const minBuffer = 4 << 10

// Get returns a buffer of the given length.
func (p *bufferPool) Get(length int) *[]byte {
	b, _ := p.pool.Get().(*[]byte)
	if b == nil {
		b = new([]byte)
	}
	if cap(*b) < length || cap(*b) < minBuffer {
		*b = make([]byte, length, max(length, minBuffer))
	}
	*b = (*b)[:length]
	return b
}

// Put takes a buffer back.
func (p *bufferPool) Put(b *[]byte) {
	if cap(*b) <= p.keep {
		p.pool.Put(b)
	}
}
