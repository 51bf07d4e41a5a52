package numerics

import (
	"math/rand/v2"
	"testing"

	"github.com/dynamograph/dynamo/nodes/engine/native/kernel"
	"github.com/dynamograph/dynamo/nodes/engine/native/llama"
)

// way cuts a prompt into steps, beside other sequences.
type way struct {
	name  string
	chunk func(left, turn int) int
	mates int
}

var ways = []way{
	{name: "one shot", chunk: func(left, _ int) int { return left }},
	{name: "ragged chunks", chunk: func(left, turn int) int { return min(left, 1+turn*13%29) }},
	{name: "token by token", chunk: func(int, int) int { return 1 }},
	{name: "ragged chunks with mates", chunk: func(left, turn int) int { return min(left, 1+turn*7%17) }, mates: 4},
}

// compute returns the logits of the last n tokens and the keys and values of all, as bytes, in the order of the sequence.
func (y way) compute(t *testing.T, m *llama.Model, tokens []uint32, n int, seed uint64) (logits, kv []byte) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	per := (len(tokens) + llama.BlockTokens - 1) / llama.BlockTokens
	mem := slab(m, (1+y.mates)*per)
	for i := range mem {
		mem[i] = byte(r.Uint32()) // as memory that others used
	}
	place := make([]int32, (1+y.mates)*per)
	for i, b := range r.Perm(len(place)) {
		place[i] = int32(b)
	}
	out := rows(m, n)
	for pos, turn := 0, 0; pos < len(tokens); turn++ {
		end := pos + y.chunk(len(tokens)-pos, turn)
		s := llama.Seq{Tokens: tokens[pos:end], Pos: pos, Blocks: place[:per]}
		if first := len(tokens) - n; end > first {
			s.Logits = out[max(pos, first)-first : end-first]
		}
		batch := []llama.Seq{s}
		for i := range y.mates {
			batch = append(batch, llama.Seq{Tokens: tokens[:1+(turn+i)%7], Pos: pos / 2, Blocks: place[(1+i)*per : (2+i)*per], Logits: rows(m, i%2)})
		}
		r.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
		if err := m.Forward(mem, batch); err != nil {
			t.Fatal(err)
		}
		pos = end
	}
	for _, row := range out {
		logits = append(logits, bits(row)...)
	}
	size := m.Info().BlockBytes
	for i, b := range place[:per] {
		kv = append(kv, written(m, mem[int(b)*size:(int(b)+1)*size], len(tokens)-i*llama.BlockTokens)...)
	}
	return logits, kv
}

// written clears what no token wrote: the slots of a block from n on.
func written(m *llama.Model, block []byte, n int) []byte {
	info := m.Info()
	out := append([]byte{}, block...)
	half := info.KVHeads * info.HeadDim * llama.BlockTokens * 2
	for slot := max(0, n); slot < llama.BlockTokens; slot++ {
		for l := range info.Layers {
			keys, values := out[2*l*half:(2*l+1)*half], out[(2*l+1)*half:(2*l+2)*half]
			for d := 0; d < half; d += 2 * llama.BlockTokens {
				clear(keys[d+2*slot : d+2*slot+2])
			}
			for h := range info.KVHeads {
				at := (h*llama.BlockTokens + slot) * info.HeadDim * 2
				clear(values[at : at+2*info.HeadDim])
			}
		}
	}
	return out
}

// TestBits computes one prompt in many ways, on one to three threads and with every set of kernels, and counts differing bytes.
func TestBits(t *testing.T) {
	model(t)
	const n, last = 77, 3
	r := rand.New(rand.NewPCG(2, 2))
	tokens := make([]uint32, n)
	for i := range tokens {
		tokens[i] = uint32(r.IntN(40000))
	}
	var logits, kv []byte
	seed := uint64(0)
	for _, set := range kernel.All() {
		for threads := 1; threads <= 3; threads++ {
			use := ways
			switch {
			case set == kernel.Portable() && threads != 2:
				continue // some 20 s of processor time each
			case set == kernel.Portable():
				use = ways[:1]
			case threads == 3:
				use = ways[1:2]
			}
			m := open(t, llama.Options{Kernels: set.Name(), Threads: threads})
			for _, y := range use {
				seed++
				l, k := y.compute(t, m, tokens, last, seed)
				if logits == nil {
					logits, kv = l, k
					continue
				}
				dl, dk := differing(l, logits), differing(k, kv)
				t.Logf("%s, %d threads, %s: differing bytes: %d of %d of logits, %d of %d of keys and values", set.Name(), threads, y.name, dl, len(l), dk, len(k))
				if dl+dk > 0 {
					t.Errorf("%s, %d threads, %s: bits differ", set.Name(), threads, y.name)
				}
			}
		}
	}
}

func differing(a, b []byte) int {
	n := max(len(a), len(b)) - min(len(a), len(b))
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}
