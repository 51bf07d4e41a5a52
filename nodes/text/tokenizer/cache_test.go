package tokenizer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestCacheSame: with a cache, of whatever size, by whoever at the same time, the tokens are those without one.
func TestCacheSame(t *testing.T) {
	models := []*Tokenizer{
		byteModel(t, "llama-bpe", []string{"a b", "c d", "Ġ a"}, []string{"<s>", "<|end|>"}, []string{"<think>"}), tiny(t),
	}
	for _, size := range []int{0, 1 << 12, 1 << 16, 1 << 22} {
		cache := NewCache(size)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(size), uint64(g)))
				text := ""
				for range 400 {
					if rng.IntN(20) == 0 {
						text = ""
					}
					tok := models[rng.IntN(2)]
					turn := strings.Repeat(strange(rng), 1+rng.IntN(6))
					if rng.IntN(2) == 0 {
						turn = tok.Guard("<s>"+turn+"<|end|><think", '\uFDD0')
					}
					text += []string{"<s>", "<|end|>", "<think>", "</s>", ""}[rng.IntN(5)] + turn
					o := Options{Special: rng.IntN(3) > 0, BOS: rng.IntN(2) == 0}
					if rng.IntN(2) == 0 {
						o.Mark = '\uFDD0'
					}
					want := tok.Encode(nil, text, o)
					o.Cache = cache
					if got := tok.Encode([]uint32{1}, text, o); !slices.Equal(got[1:], want) {
						t.Errorf("%q: with a cache %v, without %v", text, got[1:], want)
						return
					}
				}
			})
		}
		wg.Wait()
		if n := cache.Bytes(); n > size {
			t.Errorf("a cache of %d bytes holds %d", size, n)
		}
	}
}

// TestCacheFinds: the turns of a conversation that came before are not encoded again.
func TestCacheFinds(t *testing.T) {
	tok := byteModel(t, "gpt-2", []string{"a b"}, []string{"<|im_start|>", "<|im_end|>"}, nil)
	cache := NewCache(1 << 20)
	text := ""
	for i := range 20 {
		text += fmt.Sprintf("<|im_start|>%d %s<|im_end|>\n", i, strings.Repeat("ab ", 40))
		before := cache.Bytes()
		tok.Encode(nil, text, Options{Special: true, Cache: cache})
		if grown := cache.Bytes() - before; grown == 0 || grown > 2000 {
			t.Fatalf("turn %d makes the cache grow by %d bytes", i, grown)
		}
	}
}

// BenchmarkTurn is a turn of 100 bytes after a conversation of 64 KiB.
func BenchmarkTurn(b *testing.B) {
	tok := byteModel(b, "gpt-2", []string{"a b"}, []string{"<|im_start|>", "<|im_end|>"}, nil)
	rng := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for text.Len() < 1<<16 {
		text.WriteString("<|im_start|>user\n")
		for range 150 {
			fmt.Fprintf(&text, "word%d ", rng.IntN(1000))
		}
		text.WriteString("<|im_end|>\n")
	}
	for name, cache := range map[string]*Cache{"cached": NewCache(1 << 22), "uncached": nil} {
		b.Run(name, func(b *testing.B) {
			var ids []uint32
			n := 0
			for b.Loop() {
				n++
				turn := fmt.Sprintf("<|im_start|>user\n%d %s<|im_end|>", n, strings.Repeat("new ", 20))
				ids = tok.Encode(ids[:0], text.String()+turn, Options{Special: true, Cache: cache})
			}
		})
	}
}
