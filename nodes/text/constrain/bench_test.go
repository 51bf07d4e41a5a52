package constrain_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dynamograph/dynamo/nodes/text/constrain"
)

// big is a vocabulary of the size and the kind of Llama 3's: bytes, and 128,000 texts of up to four parts, many of which begin with a blank.
type big []string

func (b big) Size() int              { return len(b) }
func (b big) Piece(id uint32) string { return b[id] }
func (b big) IsSpecial(uint32) bool  { return false }

func newBig() big {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	var b big
	for i := range 256 {
		b = append(b, string([]byte{byte(i)}))
		seen[b[i]] = true
	}
	parts := []string{"a", "e", "i", "o", "n", "r", "s", "t", "l", "the", "ing", "er", "on", "re", "st", "an", "in", "th", "ou", "qu", "x1", "K", "M", "日", "本", "é", "ст", "ов", "0", "1", "9"}
	marks := []string{`"`, `":`, `",`, `"}`, `{"`, `\`, "\n", "  ", `["`, `"]`, "}", "]", ",", "\t", "(", ";"}
	for len(b) < 128_000 {
		s := ""
		if r.IntN(3) == 0 {
			s = " "
		}
		for range 1 + r.IntN(4) {
			s += parts[r.IntN(len(parts))]
		}
		switch r.IntN(20) {
		case 0:
			s += marks[r.IntN(len(marks))]
		case 1:
			s = marks[r.IntN(len(marks))] + s
		case 2:
			s = marks[r.IntN(len(marks))] + marks[r.IntN(len(marks))]
		}
		if !seen[s] {
			seen[s] = true
			b = append(b, s)
		}
	}
	return append(b, "<end>")
}

var order = `{"type":"object","properties":{"id":{"type":"string"},"total":{"type":"number"},"note":{"type":["string","null"]},"items":{"type":"array","items":{
"type":"object","properties":{"sku":{"type":"string"},"count":{"type":"integer","minimum":1,"maximum":999},"tags":{"type":"array","items":{"type":"string"}}},"required":["sku","count","tags"]}},
"address":{"type":"object","properties":{"street":{"type":"string"},"zip":{"type":"string","pattern":"^[0-9]{5}$"}},"required":["street","zip"]}},"required":["id","total","items","address"]}`

var text = `{"id": "an inter on", "total": 12.5, "note": "the quest in the rest", "items": [{"sku": "inst x1", "count": 19, "tags": ["thing", "onion"]}, {"sku": "another", "count": 1, "tags": []}], "address": {"street": "the street 日本", "zip": "10119"}}`

// BenchmarkToken is a mask and a step, per token, over an answer of about 100 tokens: cold is the first answer of a compiled schema, warm a later one.
func BenchmarkToken(b *testing.B) {
	v := newBig()
	index := map[string]uint32{}
	longest := 0
	for i, s := range v[:len(v)-1] {
		index[s] = uint32(i)
		longest = max(longest, len(s))
	}
	t := constrain.NewTokens(v, []uint32{uint32(len(v) - 1)})
	var ids []uint32
	for at := 0; at < len(text); {
		n := min(longest, len(text)-at)
		for ; n > 1; n-- {
			if _, ok := index[text[at:at+n]]; ok {
				break
			}
		}
		ids = append(ids, index[text[at:at+n]])
		at += n
	}
	answer := func(b *testing.B, p *constrain.Program) {
		m := p.New()
		for _, id := range ids {
			mask, err := m.Mask()
			if err != nil || mask[id>>6]&(1<<(id&63)) == 0 || !m.Accept(id) {
				b.Fatalf("%q: %v", v[id], err)
			}
		}
		if !m.MayEnd() {
			b.Fatal("not at the end")
		}
	}
	perToken := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ids)), "ns/token")
		b.ReportMetric(0, "ns/op")
	}
	compile := func() *constrain.Program {
		p, err := constrain.Compile(context.Background(), constrain.Spec{JSONSchema: order}, t)
		if err != nil {
			b.Fatal(err)
		}
		return p
	}
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			p := compile()
			b.StartTimer()
			answer(b, p)
		}
		perToken(b)
	})
	b.Run("warm", func(b *testing.B) {
		p := compile()
		answer(b, p)
		for b.Loop() {
			answer(b, p)
		}
		perToken(b)
	})
	b.Run("compile", func(b *testing.B) {
		for b.Loop() {
			compile()
		}
	})
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("maxLength=%d", n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				p, err := constrain.Compile(context.Background(), constrain.Spec{JSONSchema: fmt.Sprintf(`{"type":"string","maxLength":%d}`, n)}, t)
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				m := p.New()
				m.Accept('"')
				for range 20 {
					if _, err := m.Mask(); err != nil {
						b.Fatal(err)
					}
					m.Accept(index["the"])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*20), "ns/token")
		})
	}
	b.Run("vocabulary", func(b *testing.B) {
		for b.Loop() {
			constrain.NewTokens(v, nil)
		}
	})
}
