// Package block hands out the blocks of a KV cache: who uses which, which hold KV that can be reused, and which of those goes first when
// room is needed. It knows numbers of blocks, not their bytes, and neither sequences nor steps.
package block

import (
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/kv/hash"
)

// Route is a block's place in the routing hashes: its own sequence hash and that of the block before it, 0 for the first.
type Route struct{ Hash, Parent uint64 }

type meta struct {
	refs       int32
	named      bool // id and route hold, byID points here
	id         hash.ID
	route      Route
	prev, next int32 // in the list of idle blocks, -1 at its ends
}

// Manager counts references to the blocks [0, n). A block is free, in use (referenced), or idle: unreferenced, but named and findable
// until its room is needed; the one that was idle longest goes first. It is not safe for concurrent use. It panics on a block that is
// released too often: that is a programmer's mistake.
type Manager struct {
	blocks      []meta
	free        []int32
	byID        map[hash.ID]int32
	routes      map[uint64]int32 // how many named blocks have a routing hash
	first, last int32            // idle blocks, the one to evict first
	idle        int
	events      []llm.KVEvent
}

// New returns a Manager of n free blocks.
func New(n int) *Manager {
	m := &Manager{blocks: make([]meta, n), free: make([]int32, n), byID: make(map[hash.ID]int32, n), routes: make(map[uint64]int32, n), first: -1, last: -1}
	for i := range m.free {
		m.free[i] = int32(n - 1 - i)
	}
	return m
}

// Total counts all blocks.
func (m *Manager) Total() int { return len(m.blocks) }

// Free counts blocks that hold nothing.
func (m *Manager) Free() int { return len(m.free) }

// Idle counts blocks that nobody uses and that can be found.
func (m *Manager) Idle() int { return m.idle }

// Available counts what Alloc can give: free and idle blocks.
func (m *Manager) Available() int { return len(m.free) + m.idle }

// InUse counts referenced blocks.
func (m *Manager) InUse() int { return len(m.blocks) - m.Available() }

// Acquire references the blocks that hold the longest run of ids from the first on and appends them to dst.
func (m *Manager) Acquire(dst []int32, ids []hash.ID) []int32 {
	for _, id := range ids {
		b, ok := m.byID[id]
		if !ok {
			break
		}
		m.Ref(b)
		dst = append(dst, b)
	}
	return dst
}

// Held returns how many of ids, from the first on, Acquire would find.
func (m *Manager) Held(ids []hash.ID) int {
	for i, id := range ids {
		if _, ok := m.byID[id]; !ok {
			return i
		}
	}
	return len(ids)
}

// Alloc returns a block with one reference and no name. It evicts the block that was idle longest where none is free; false means that
// all are in use.
func (m *Manager) Alloc() (int32, bool) {
	if n := len(m.free); n > 0 {
		b := m.free[n-1]
		m.free = m.free[:n-1]
		m.blocks[b].refs = 1
		return b, true
	}
	b := m.first
	if b < 0 {
		return 0, false
	}
	m.unlink(b)
	m.unname(b)
	m.blocks[b].refs = 1
	return b, true
}

// Ref adds a reference to a block that is in use or idle.
func (m *Manager) Ref(b int32) {
	if m.blocks[b].refs == 0 {
		m.unlink(b)
	}
	m.blocks[b].refs++
}

// Release drops a reference. A named block without references stays idle, another is free.
func (m *Manager) Release(b int32) {
	x := &m.blocks[b]
	if x.refs <= 0 {
		panic("block released more often than referenced")
	}
	x.refs--
	if x.refs > 0 {
		return
	}
	if !x.named {
		m.free = append(m.free, b)
		return
	}
	x.prev, x.next = m.last, -1
	if m.last >= 0 {
		m.blocks[m.last].next = b
	} else {
		m.first = b
	}
	m.last = b
	m.idle++
}

// ReleaseAll releases blocks, the last first: of a sequence that is no longer used the tail goes before what others may share.
func (m *Manager) ReleaseAll(blocks []int32) {
	for i := len(blocks) - 1; i >= 0; i-- {
		m.Release(blocks[i])
	}
}

// Name says that b, referenced and complete, holds the KV of id, so that Acquire finds it. Where another block holds the same KV, Name
// moves the caller's reference to that one and returns it: equal identities mean equal bytes.
func (m *Manager) Name(b int32, id hash.ID, r Route) int32 {
	if o, ok := m.byID[id]; ok {
		if o != b {
			m.Ref(o)
			m.Release(b)
		}
		return o
	}
	x := &m.blocks[b]
	x.named, x.id, x.route = true, id, r
	m.byID[id] = b
	m.routes[r.Hash]++
	if m.routes[r.Hash] == 1 {
		m.stored(r)
	}
	return b
}

// Flush forgets all idle blocks and returns how many they were.
func (m *Manager) Flush() int {
	n := m.idle
	if n > 0 && m.InUse() == 0 {
		m.events = append(m.events, llm.KVEvent{Type: llm.EventCleared, Tier: Tier})
		clear(m.routes)
	}
	for b := m.first; b >= 0; b = m.first {
		m.unlink(b)
		m.unname(b)
		m.free = append(m.free, b)
	}
	return n
}

func (m *Manager) unlink(b int32) {
	x := &m.blocks[b]
	if x.prev >= 0 {
		m.blocks[x.prev].next = x.next
	} else {
		m.first = x.next
	}
	if x.next >= 0 {
		m.blocks[x.next].prev = x.prev
	} else {
		m.last = x.prev
	}
	m.idle--
}

func (m *Manager) unname(b int32) {
	x := &m.blocks[b]
	delete(m.byID, x.id)
	if n, ok := m.routes[x.route.Hash]; ok {
		if n > 1 {
			m.routes[x.route.Hash] = n - 1
		} else {
			delete(m.routes, x.route.Hash)
			m.removed(x.route.Hash)
		}
	}
	x.named = false
}

// Tier is the tier that events name.
const Tier = "device"

func (m *Manager) stored(r Route) {
	if n := len(m.events); n > 0 {
		if e := &m.events[n-1]; e.Type == llm.EventStored && e.Hashes[len(e.Hashes)-1] == r.Parent {
			e.Hashes = append(e.Hashes, r.Hash)
			return
		}
	}
	m.events = append(m.events, llm.KVEvent{Type: llm.EventStored, Parent: r.Parent, Hashes: []uint64{r.Hash}, Tier: Tier})
}

func (m *Manager) removed(h uint64) {
	if n := len(m.events); n > 0 && m.events[n-1].Type == llm.EventRemoved {
		m.events[n-1].Hashes = append(m.events[n-1].Hashes, h)
		return
	}
	m.events = append(m.events, llm.KVEvent{Type: llm.EventRemoved, Hashes: []uint64{h}, Tier: Tier})
}

// Events returns what happened since the last call, nil for nothing. A run of blocks that follow each other is one event. The caller
// owns the slice.
func (m *Manager) Events() []llm.KVEvent {
	e := m.events
	m.events = nil
	return e
}
