package llama

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/dynamograph/dynamo/nodes/engine/native/kernel"
)

func randTokens(n, vocab int, seed uint64) []uint32 {
	r := rand.New(rand.NewPCG(seed, 99))
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(r.IntN(vocab))
	}
	return out
}

func logitRows(n, vocab int) [][]float32 {
	out := make([][]float32, n)
	for i := range out {
		out[i] = make([]float32, vocab)
	}
	return out
}

// way is one way to compute a sequence: cut into chunks, beside others, in some blocks.
type way struct {
	name   string
	chunks func(left, turn int) int
	mates  int // sequences beside it in each step
}

var ways = []way{
	{name: "one shot", chunks: func(left, _ int) int { return left }},
	{name: "token by token", chunks: func(int, int) int { return 1 }},
	{name: "ragged chunks", chunks: func(left, turn int) int { return min(left, 1+turn*13%29) }},
	{name: "chunks of 16", chunks: func(left, _ int) int { return min(left, 16) }},
	{name: "with mates", chunks: func(left, turn int) int { return min(left, 1+turn*7%17) }, mates: 5},
	{name: "token by token with mates", chunks: func(int, int) int { return 1 }, mates: 2},
}

// outcome is what must not depend on the way: all logits, and the sequence's own blocks.
type outcome struct{ logits, blocks []byte }

// compute runs tokens through m in a way. The cache starts as noise, as memory that other sequences used does.
func (y way) compute(t testing.TB, m *Model, tokens []uint32, rows int, seed uint64) outcome {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	info := m.Info()
	per := (len(tokens) + BlockTokens - 1) / BlockTokens
	total := (1 + y.mates) * per
	kv := alignedBytes(total * info.BlockBytes)
	for i := range kv {
		kv[i] = byte(r.Uint32())
	}
	place := make([]int32, total)
	for i, b := range r.Perm(total) {
		place[i] = int32(b)
	}
	logits := logitRows(rows, info.Vocab)
	for pos, turn := 0, 0; pos < len(tokens); turn++ {
		n := y.chunks(len(tokens)-pos, turn)
		s := Seq{Tokens: tokens[pos : pos+n], Pos: pos, Blocks: place[:per]}
		if from := max(pos, len(tokens)-rows); from < pos+n {
			s.Logits = logits[from-(len(tokens)-rows) : pos+n-(len(tokens)-rows)]
		}
		batch := []Seq{s}
		for i := range y.mates {
			k := max(0, pos-i) // mates stand elsewhere; theirs is whatever the noise makes of it
			mate := Seq{Tokens: randTokens(1+(turn+i)%9, info.Vocab, seed+uint64(i)), Pos: k, Blocks: place[(1+i)*per : (2+i)*per]}
			if over := k + len(mate.Tokens) - per*BlockTokens; over > 0 {
				mate.Pos -= over
			}
			if i%2 == 0 {
				mate.Logits = logitRows(1, info.Vocab)
			}
			batch = append(batch, mate)
		}
		r.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
		if err := m.Forward(kv, batch); err != nil {
			t.Fatal(err)
		}
		pos += n
	}
	var o outcome
	for _, row := range logits {
		o.logits = append(o.logits, unsafe.Slice((*byte)(unsafe.Pointer(&row[0])), 4*len(row))...)
	}
	for _, b := range place[:per] {
		o.blocks = append(o.blocks, kv[int(b)*info.BlockBytes:(int(b)+1)*info.BlockBytes]...)
	}
	return o
}

// used keeps of the blocks only what tokens wrote: the last block may hold noise behind them.
func (o outcome) used(m *Model, tokens int) []byte {
	info := m.Info()
	out := slices.Clone(o.blocks)
	s := &m.shape
	for b := 0; b*BlockTokens < tokens; b++ {
		for l := range info.Layers {
			base := b*info.BlockBytes + l*s.layerBytes()
			for slot := range BlockTokens {
				if b*BlockTokens+slot < tokens {
					continue
				}
				for d := range s.kvDim() {
					at := base + (d*BlockTokens+slot)*2
					out[at], out[at+1] = 0, 0
				}
				for h := range s.kvHeads {
					at := base + s.layerBytes()/2 + (h*BlockTokens+slot)*s.headDim*2
					clear(out[at : at+2*s.headDim])
				}
			}
		}
	}
	return out
}

func differing(a, b []byte) int {
	n := 0
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// variants are the ways to open a model that must not matter.
func variants() []Options {
	var out []Options
	for _, s := range kernel.All() {
		for _, threads := range []int{1, 2, 3} {
			out = append(out, Options{Kernels: s.Name(), Threads: threads})
		}
	}
	return out
}

// TestDeterminism: a token's logits, keys and values depend on nothing but the tokens before it.
func TestDeterminism(t *testing.T) {
	for _, c := range tinies {
		t.Run(c.name, func(t *testing.T) {
			path, n := c.write(t), 53
			tokens := randTokens(n, c.vocab, 2)
			var want outcome
			compared := 0
			for i, o := range variants() {
				o.Path = path
				m := mustOpen(t, o)
				for j, y := range ways {
					if m.set == kernel.Portable() && (o.Threads != 2 || j%2 != 0) { // slow
						continue
					}
					got := y.compute(t, m, tokens, n, uint64(100*i+j))
					if want.logits == nil {
						want = got
						want.blocks = got.used(m, n)
						continue
					}
					compared++
					if d := differing(got.logits, want.logits); d > 0 {
						t.Errorf("%s, %d threads, %s: %d of %d bytes of logits differ", o.Kernels, o.Threads, y.name, d, len(want.logits))
					}
					if d := differing(got.used(m, n), want.blocks); d > 0 {
						t.Errorf("%s, %d threads, %s: %d of %d bytes of blocks differ", o.Kernels, o.Threads, y.name, d, len(want.blocks))
					}
				}
			}
			t.Logf("%d computations compared with the first: %d bytes of logits, %d of blocks each", compared, len(want.logits), len(want.blocks))
		})
	}
}

// TestMoved: blocks copied to another model, as a hand-off does, continue the same.
func TestMoved(t *testing.T) {
	c := tinies[0]
	path := c.write(t)
	a, b := mustOpen(t, Options{Path: path, Threads: 2}), mustOpen(t, Options{Path: path, Threads: 1})
	tokens := randTokens(33, c.vocab, 5)
	size := a.Info().BlockBytes
	from, to := alignedBytes(3*size), alignedBytes(4*size)
	rows := logitRows(2, c.vocab)
	run := func(m *Model, kv []byte, s Seq) {
		if err := m.Forward(kv, []Seq{s}); err != nil {
			t.Fatal(err)
		}
	}
	run(a, from, Seq{Tokens: tokens[:32], Blocks: []int32{0, 1}})
	copy(to[3*size:], from[:size])
	copy(to[size:2*size], from[size:2*size])
	run(a, from, Seq{Tokens: tokens[32:], Pos: 32, Blocks: []int32{0, 1, 2}, Logits: rows[:1]})
	run(b, to, Seq{Tokens: tokens[32:], Pos: 32, Blocks: []int32{3, 1, 0}, Logits: rows[1:]})
	if !slices.Equal(rows[0], rows[1]) || bytes.Equal(make([]byte, size), from[:size]) {
		t.Error("logits differ after the move")
	}
}
