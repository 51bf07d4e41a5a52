package hash

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// Scheme names the identity as contracts compare it. A change of any byte that is hashed needs a new name.
const Scheme = "sha256-128-1"

// ID is the identity of a complete block: what its KV depends on, the blocks before it included. The zero ID is the parent of the first.
type ID [16]byte

// String returns id in hex.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Scope is what the KV of a whole sequence depends on beside its tokens.
type Scope struct {
	Graph    string // key: equal prompts have different identities in different graphs
	ModelID  string // content id of the weights
	Numerics string // activation mode, kernel semantics, KV dtype
	Tenant   string
	Adapter  string
	Salt     string
}

// Root is a digest of a Scope: make it once a sequence.
type Root [sha256.Size]byte

// Root returns the digest of s. Fields are length-prefixed, so that no two scopes run into each other.
func (s Scope) Root() Root {
	b := append(make([]byte, 0, 256), "dynamo kv identity 1\n"...)
	for _, f := range [...]string{s.Graph, s.ModelID, s.Numerics, s.Tenant, s.Adapter, s.Salt} {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(f)))
		b = append(b, f...)
	}
	return sha256.Sum256(b)
}

// Identity is the identity of the block of tokens that follows parent. start is the position of its first token in the sequence; media
// are all items of the sequence: those that reach into the block are part of its identity.
func (r *Root) Identity(parent ID, start int, tokens []uint32, media []llm.MediaItem) ID {
	var stack [512]byte
	b := append(stack[:0], r[:]...)
	b = append(b, parent[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(tokens)))
	for _, t := range tokens {
		b = binary.LittleEndian.AppendUint32(b, t)
	}
	for _, m := range media {
		if m.Offset < start+len(tokens) && m.Offset+m.Length > start {
			b = binary.LittleEndian.AppendUint64(b, uint64(len(m.Hash)))
			b = append(b, m.Hash...)
			b = binary.LittleEndian.AppendUint64(b, uint64(int64(m.Offset-start)))
			b = binary.LittleEndian.AppendUint64(b, uint64(m.Length))
		}
	}
	sum := sha256.Sum256(b)
	return ID(sum[:16])
}

// Identities appends the identities of the complete blocks of tokens, the whole sequence, to dst, which holds those of the first len(dst)
// blocks already.
func (r *Root) Identities(dst []ID, tokens []uint32, blockSize int, media []llm.MediaItem) []ID {
	for i := len(dst); (i+1)*blockSize <= len(tokens); i++ {
		var parent ID
		if i > 0 {
			parent = dst[i-1]
		}
		dst = append(dst, r.Identity(parent, i*blockSize, tokens[i*blockSize:(i+1)*blockSize], media))
	}
	return dst
}
