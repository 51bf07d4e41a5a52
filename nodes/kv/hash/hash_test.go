package hash_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/kv/hash"
	"github.com/zeebo/xxh3"
)

func tokens(n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i*7 + 3)
	}
	return out
}

// The routing hash is spelt out once more here, from its definition over bytes.
func TestRoutingDefinition(t *testing.T) {
	toks := tokens(40)
	bytesOf := func(ts []uint32) (b []byte) {
		for _, x := range ts {
			b = binary.LittleEndian.AppendUint32(b, x)
		}
		return b
	}
	seed := 1337 + xxh3.HashSeed([]byte("lora-a"), 0) + xxh3.HashSeed([]byte("tenant"), 1)
	b0, b1 := xxh3.HashSeed(bytesOf(toks[:16]), seed), xxh3.HashSeed(bytesOf(toks[16:32]), seed)
	q1 := xxh3.HashSeed(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, b0), b1), 1337)
	got := hash.Sequences(nil, toks, 16, hash.Seed("lora-a", "tenant"))
	if len(got) != 2 || got[0] != b0 || got[1] != q1 {
		t.Fatalf("got %x, want [%x %x]", got, b0, q1)
	}
	if hash.Seed("", "") != hash.ChainSeed {
		t.Fatal("an empty adapter or namespace changes the seed")
	}
	if hash.Block(toks[:2], []uint64{5}, 9) != xxh3.HashSeed(binary.LittleEndian.AppendUint64(bytesOf(toks[:2]), 5), 9) {
		t.Fatal("media hashes are not appended as little-endian u64")
	}
}

func TestRequestSeed(t *testing.T) {
	plain := hash.RequestSeed(&llm.TokensRequest{})
	salt := hash.RequestSeed(&llm.TokensRequest{Salt: "s"})
	if plain != hash.ChainSeed || salt != hash.Seed("", "s") {
		t.Fatal("without a tenant the seed is Dynamo's")
	}
	seen := map[uint64]string{}
	for _, r := range []llm.TokensRequest{{}, {Salt: "s"}, {Tenant: "s"}, {Tenant: "a", Salt: "bc"}, {Tenant: "ab", Salt: "c"}, {Adapter: "s"}} {
		k := hash.RequestSeed(&r)
		if o, ok := seen[k]; ok {
			t.Errorf("%+v and %s share a seed", r, o)
		}
		seen[k] = fmt.Sprintf("%+v", r)
	}
}

func TestIdentityDependsOnEverything(t *testing.T) {
	base := hash.Scope{Graph: "g", ModelID: "m", Numerics: "n", Tenant: "t", Adapter: "a", Salt: "s"}
	toks := tokens(16)
	img := []llm.MediaItem{{Hash: "h", Offset: 2, Length: 4}}
	seen := map[hash.ID]string{}
	add := func(name string, s hash.Scope, parent hash.ID, toks []uint32, m []llm.MediaItem) {
		t.Helper()
		r := s.Root()
		id := r.Identity(parent, 0, toks, m)
		if o, ok := seen[id]; ok {
			t.Errorf("%s and %s have one identity", name, o)
		}
		seen[id] = name
	}
	add("base", base, hash.ID{}, toks, nil)
	for i, f := range []func(*hash.Scope){
		func(s *hash.Scope) { s.Graph = "x" }, func(s *hash.Scope) { s.ModelID = "x" }, func(s *hash.Scope) { s.Numerics = "x" },
		func(s *hash.Scope) { s.Tenant = "x" }, func(s *hash.Scope) { s.Adapter = "x" }, func(s *hash.Scope) { s.Salt = "x" },
		func(s *hash.Scope) { s.Tenant, s.Adapter = "ta", "" }, func(s *hash.Scope) { s.Adapter, s.Salt = "", "as" },
	} {
		s := base
		f(&s)
		add(fmt.Sprint("scope ", i), s, hash.ID{}, toks, nil)
	}
	add("parent", base, hash.ID{1}, toks, nil)
	other := tokens(16)
	other[15]++
	add("tokens", base, hash.ID{}, other, nil)
	add("shorter", base, hash.ID{}, toks[:15], nil)
	add("media", base, hash.ID{}, toks, img)
	add("media moved", base, hash.ID{}, toks, []llm.MediaItem{{Hash: "h", Offset: 3, Length: 4}})
	add("media other", base, hash.ID{}, toks, []llm.MediaItem{{Hash: "i", Offset: 2, Length: 4}})

	r := base.Root()
	if r.Identity(hash.ID{}, 0, toks, []llm.MediaItem{{Hash: "h", Offset: 16, Length: 4}}) != r.Identity(hash.ID{}, 0, toks, nil) {
		t.Error("media beyond the block changes its identity")
	}
}

func TestIdentitiesExtend(t *testing.T) {
	root := hash.Scope{Graph: "g"}.Root()
	toks := tokens(70)
	whole := root.Identities(nil, toks, 16, nil)
	var grown []hash.ID
	for n := range toks {
		grown = root.Identities(grown, toks[:n+1], 16, nil)
	}
	if len(whole) != 4 || fmt.Sprint(whole) != fmt.Sprint(grown) {
		t.Fatalf("at once %v, by token %v", whole, grown)
	}
}

func TestNoAllocations(t *testing.T) {
	root := hash.Scope{Graph: "g"}.Root()
	toks, ids, seqs := tokens(64), make([]hash.ID, 0, 4), make([]uint64, 0, 4)
	if n := testing.AllocsPerRun(100, func() {
		ids = root.Identities(ids[:0], toks, 16, nil)
		seqs = hash.Sequences(seqs[:0], toks, 16, 1337)
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func ExampleSequences() {
	prompt := []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9}
	a := hash.Sequences(nil, prompt, 4, hash.Seed("", ""))
	b := hash.Sequences(nil, prompt[:5], 4, hash.Seed("", ""))
	fmt.Println(len(a), len(b), a[0] == b[0])
	// Output: 2 1 true
}

func ExampleRoot_Identities() {
	root := hash.Scope{Graph: "llama", ModelID: "sha256:…", Numerics: "int16-1"}.Root()
	ids := root.Identities(nil, []uint32{1, 2, 3, 4, 5, 6, 7, 8}, 4, nil)
	fmt.Println(len(ids), ids[0] == ids[1])
	// Output: 2 false
}

func BenchmarkIdentity(b *testing.B) {
	root := hash.Scope{Graph: "g"}.Root()
	toks := tokens(16)
	b.ReportAllocs()
	for b.Loop() {
		root.Identity(hash.ID{}, 0, toks, nil)
	}
}
