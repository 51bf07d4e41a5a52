package block_test

import (
	"fmt"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/kv/block"
	"github.com/dynamograph/dynamo/nodes/kv/hash"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func id(n int) hash.ID { return hash.ID{byte(n), byte(n >> 8), 1} }

func route(n int) block.Route {
	if n == 0 {
		return block.Route{Hash: 1000}
	}
	return block.Route{Hash: uint64(1000 + n), Parent: uint64(999 + n)}
}

func TestReuseAndEviction(t *testing.T) {
	m := block.New(3)
	var blocks []int32
	for i := range 3 {
		b, ok := m.Alloc()
		if !ok {
			t.Fatal("no block")
		}
		blocks = append(blocks, m.Name(b, id(i), route(i)))
	}
	if _, ok := m.Alloc(); ok {
		t.Fatal("a block in use was given away")
	}
	m.ReleaseAll(blocks)
	if m.Idle() != 3 || m.Available() != 3 || m.InUse() != 0 {
		t.Fatalf("idle %d, available %d, in use %d", m.Idle(), m.Available(), m.InUse())
	}
	got := m.Acquire(nil, []hash.ID{id(0), id(1), id(9), id(2)})
	if fmt.Sprint(got) != fmt.Sprint(blocks[:2]) {
		t.Fatalf("acquired %v of %v", got, blocks)
	}
	b, ok := m.Alloc()
	if !ok || b != blocks[2] {
		t.Fatalf("alloc gave %d, %v: want the idle block %d", b, ok, blocks[2])
	}
	if m.Held([]hash.ID{id(2)}) != 0 {
		t.Fatal("an evicted block is still found")
	}
	want := []llm.KVEvent{
		{Type: llm.EventStored, Hashes: []uint64{1000, 1001, 1002}, Tier: "device"},
		{Type: llm.EventRemoved, Hashes: []uint64{1002}, Tier: "device"},
	}
	if e := m.Events(); fmt.Sprint(e) != fmt.Sprint(want) {
		t.Fatalf("events %v, want %v", e, want)
	}
}

// The tail of a released sequence is evicted before its head.
func TestTailGoesFirst(t *testing.T) {
	m := block.New(4)
	var blocks []int32
	for i := range 4 {
		b, _ := m.Alloc()
		blocks = append(blocks, m.Name(b, id(i), route(i)))
	}
	m.ReleaseAll(blocks)
	for i := 3; i >= 0; i-- {
		if b, _ := m.Alloc(); b != blocks[i] {
			t.Fatalf("evicted block %d, want %d", b, blocks[i])
		}
	}
}

func TestNameJoinsEqualBlocks(t *testing.T) {
	m := block.New(2)
	a, _ := m.Alloc()
	b, _ := m.Alloc()
	a = m.Name(a, id(0), route(0))
	if got := m.Name(b, id(0), route(0)); got != a {
		t.Fatalf("second copy is block %d, want %d", got, a)
	}
	if m.InUse() != 1 || m.Free() != 1 {
		t.Fatalf("in use %d, free %d", m.InUse(), m.Free())
	}
	m.Release(a)
	m.Release(a)
	if m.Idle() != 1 {
		t.Fatal("the block has lost its second reference")
	}
	defer func() {
		if recover() == nil {
			t.Fatal("no panic on one release too many")
		}
	}()
	m.Release(a)
}

func TestFlush(t *testing.T) {
	m := block.New(3)
	a, _ := m.Alloc()
	b, _ := m.Alloc()
	a, b = m.Name(a, id(0), route(0)), m.Name(b, id(1), route(1))
	m.Release(b)
	m.Events()
	if n := m.Flush(); n != 1 || m.Free() != 2 {
		t.Fatalf("flushed %d, free %d", n, m.Free())
	}
	if e := m.Events(); len(e) != 1 || e[0].Type != llm.EventRemoved {
		t.Fatalf("events %v: the block in use is still held", e)
	}
	m.Release(a)
	m.Flush()
	if e := m.Events(); len(e) != 1 || e[0].Type != llm.EventCleared || m.Free() != 3 {
		t.Fatalf("events %v, free %d", e, m.Free())
	}
}

// The manager against a naive model: maps and counts.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const total = 6
		m := block.New(total)
		refs := map[int32]int{}
		names := map[int32]hash.ID{}
		byID := map[hash.ID]int32{}
		held := map[uint64]bool{}
		var used []int32 // one entry a reference
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0:
				b, ok := m.Alloc()
				if ok != (len(refs) < total) {
					t.Fatalf("alloc %v with %d in use", ok, len(refs))
				}
				if ok {
					if refs[b] != 0 {
						t.Fatalf("block %d given twice", b)
					}
					if old, ok := names[b]; ok {
						delete(names, b)
						delete(byID, old)
					}
					refs[b] = 1
					used = append(used, b)
				}
			case 1:
				if len(used) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(used)-1).Draw(t, "release")
				b := used[i]
				used = append(used[:i], used[i+1:]...)
				m.Release(b)
				if refs[b]--; refs[b] == 0 {
					delete(refs, b)
				}
			case 2:
				if len(used) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(used)-1).Draw(t, "name")
				n := rapid.IntRange(0, 7).Draw(t, "id")
				b := used[i]
				if _, ok := names[b]; ok {
					continue
				}
				got := m.Name(b, id(n), block.Route{Hash: uint64(n + 1)})
				if o, ok := byID[id(n)]; ok {
					if got != o {
						t.Fatalf("name gave %d, want %d", got, o)
					}
					used[i] = o
					refs[o]++
					if refs[b]--; refs[b] == 0 {
						delete(refs, b)
					}
				} else {
					byID[id(n)], names[b] = b, id(n)
				}
			case 3:
				n := rapid.IntRange(0, 7).Draw(t, "acquire")
				got := m.Acquire(nil, []hash.ID{id(n)})
				o, ok := byID[id(n)]
				if ok != (len(got) == 1) || ok && got[0] != o {
					t.Fatalf("acquire gave %v, model has %d, %v", got, o, ok)
				}
				if ok {
					refs[o]++
					used = append(used, o)
				}
			case 4:
				m.Flush()
				for b, i := range names {
					if refs[b] == 0 {
						delete(names, b)
						delete(byID, i)
					}
				}
			}
			if m.InUse() != len(refs) {
				t.Fatalf("in use %d, model %d", m.InUse(), len(refs))
			}
			for _, e := range m.Events() {
				switch e.Type {
				case llm.EventStored:
					for _, h := range e.Hashes {
						held[h] = true
					}
				case llm.EventRemoved:
					for _, h := range e.Hashes {
						delete(held, h)
					}
				case llm.EventCleared:
					clear(held)
				}
			}
			if len(held) != len(byID) {
				t.Fatalf("events tell of %d blocks, model has %d", len(held), len(byID))
			}
		}
	})
}

func ExampleManager() {
	m := block.New(8)
	b, _ := m.Alloc()                                     // a sequence takes a block,
	b = m.Name(b, hash.ID{1}, block.Route{Hash: 17})      // fills it,
	m.Release(b)                                          // and ends:
	fmt.Println(len(m.Acquire(nil, []hash.ID{{1}, {2}}))) // the next one finds it
	// Output: 1
}
