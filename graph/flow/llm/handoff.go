package llm

import "time"

// Mode says how the two sides of a hand-off meet.
type Mode string

// The modes.
const (
	ModeAfter  Mode = "after"  // prefill's answer carries what decode needs
	ModeBeside Mode = "beside" // both are dispatched at once on an agreed ID
)

// HandOff carries a prompt's KV from the instance that computed it to the one that continues.
type HandOff struct {
	ID           string // unique; names the pinned blocks at Peer
	Mode         Mode
	Contract     Contract
	Peer         string // instance that holds the blocks
	Tokens       int    // prompt tokens whose KV is held; the rest (less than a block, or none) is computed by decode
	First        uint32 // the token that prefill sampled; decode gives it as its first output
	FirstLogprob *Logprob
	Opaque       []byte    // of foreign engines
	Deadline     time.Time // after it the blocks may be gone
}

// Contract is what both ends of a kv edge must agree on before a byte moves. Two contracts fit if Diff is empty.
type Contract struct {
	ModelID    string `json:"model"`     // content id: hash of the weights
	BlockSize  int    `json:"blockSize"` // tokens
	DType      string `json:"dtype"`     // "f16"
	Layout     string `json:"layout"`    // "native-1": see nodes/engine/native
	Hash       string `json:"hash"`      // identity scheme
	Numerics   string `json:"numerics"`  // activation mode and kernel semantics: equal means bit-equal
	TP         int    `json:"tp"`
	BlockBytes int    `json:"blockBytes"`
}

// KVFetch asks for the blocks of a hand-off, or releases them.
type KVFetch struct {
	HandOff      string
	Contract     Contract // of the asking side: compared before the first byte
	From, To     int      // blocks [From, To) of the hand-off
	Release      bool     // the asker is done (whatever came of it): unpin, answer nothing
	SharedMemory bool     // the asker can map shared memory of this machine: answer with places, not bytes
}

// KVBlock is one block: its bytes, or the place in shared memory where they lie until the hand-off is released.
type KVBlock struct {
	Index  int      // in the hand-off
	Tokens int      // filled; < block size only in the last
	Hash   [16]byte // identity of the block's content (nodes/kv/hash); zero for a partial block
	Sum    uint64   // xxh3 of the bytes
	Bytes  []byte   // nil where Region is set
	Region string   // shared memory object
	Offset int64
	Length int
}

// Subscribe asks for what followed sequence number After; 0 asks for a snapshot first.
type Subscribe struct{ After uint64 }

// EventBatch is a run of KV events. Sequence numbers rise by one a batch; a gap means: subscribe anew.
type EventBatch struct {
	Sequence uint64
	Snapshot bool // replaces all that was known of the instance
	Events   []KVEvent
}

// KVEvent tells that blocks came or went.
type KVEvent struct {
	Type   EventType
	Parent uint64   // routing sequence hash of the block before the first; 0 is the root
	Hashes []uint64 // routing sequence hashes
	Tier   string   // "device"
}

// EventType is the type of a KVEvent.
type EventType uint8

// The types.
const (
	EventStored EventType = iota + 1
	EventRemoved
	EventCleared
)

// Load is how busy an instance is.
type Load struct {
	Sequence                uint64
	Running, Waiting        int // sequences
	PrefillTokens           int // prompt tokens admitted and not yet computed
	BlocksUsed, BlocksTotal int
	BlocksCached            int // unreferenced, reusable
}
