// Package hash names blocks of tokens, in two ways that must not be confused.
//
// The routing hash is NVIDIA Dynamo's: 64 bits of xxh3 over a block's tokens, chained into a sequence hash. It is public and can be
// forged; it says where KV probably lies and never that KV is right.
//
// The identity is 128 bits of SHA-256 over everything that the KV of a block depends on. KV is reused on the strength of this alone.
//
// Only complete blocks have hashes. All functions are pure and safe for concurrent use.
package hash

import (
	"encoding/binary"

	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/zeebo/xxh3"
)

// ChainSeed is the seed of Dynamo's sequence hash and the base of its block hash.
const ChainSeed = 1337

// Seed is the seed of the block hashes of one adapter and cache namespace. An empty string is the same as none.
func Seed(adapter, namespace string) uint64 {
	s := uint64(ChainSeed)
	if adapter != "" {
		s += xxh3.HashStringSeed(adapter, 0)
	}
	if namespace != "" {
		s += xxh3.HashStringSeed(namespace, 1)
	}
	return s
}

// RequestSeed is the Seed of a request: its adapter, and a namespace of its tenant and salt. With a salt and no tenant the namespace is
// the salt, as in Dynamo.
func RequestSeed(r *llm.TokensRequest) uint64 {
	ns := r.Salt
	if r.Tenant != "" {
		b := binary.AppendUvarint(make([]byte, 0, 64), uint64(len(r.Tenant)))
		ns = string(append(append(b, r.Tenant...), r.Salt...))
	}
	return Seed(r.Adapter, ns)
}

// Block is the routing hash of one block alone. media holds the hashes of the media items that the block touches, sorted.
func Block(tokens []uint32, media []uint64, seed uint64) uint64 {
	var stack [512]byte
	b := stack[:0]
	for _, t := range tokens {
		b = binary.LittleEndian.AppendUint32(b, t)
	}
	for _, m := range media {
		b = binary.LittleEndian.AppendUint64(b, m)
	}
	return xxh3.HashSeed(b, seed)
}

// Next is the sequence hash of a block that follows the one with sequence hash parent. The first block's sequence hash is its block hash.
func Next(parent, block uint64) uint64 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], parent)
	binary.LittleEndian.PutUint64(b[8:], block)
	return xxh3.HashSeed(b[:], ChainSeed)
}

// Sequences appends the sequence hashes of all complete blocks of tokens to dst. blockSize is in tokens and positive.
func Sequences(dst []uint64, tokens []uint32, blockSize int, seed uint64) []uint64 {
	first := len(dst)
	for ; len(tokens) >= blockSize; tokens = tokens[blockSize:] {
		h := Block(tokens[:blockSize], nil, seed)
		if len(dst) > first {
			h = Next(dst[len(dst)-1], h)
		}
		dst = append(dst, h)
	}
	return dst
}

// Sum is the checksum of a block's bytes in a hand-off: xxh3, 64 bits.
func Sum(b []byte) uint64 { return xxh3.Hash(b) }
