package llama

import (
	"math"
	"testing"

	"github.com/dynamograph/dynamo/graph/model/gguf/gguftest"
)

// slow is the plain reading of the architecture in float64 over the same weights: no blocks, no quantised activations, no float16.
type slow struct {
	c    tiny
	mats map[string][][]float64
}

func newSlow(c tiny) *slow {
	_, ts := c.parts()
	s := &slow{c: c, mats: map[string][][]float64{}}
	for _, t := range ts {
		s.mats[t.Name] = dequantise(t)
	}
	return s
}

// dequantise is GGUF's own reading of a tensor, row by row.
func dequantise(t gguftest.Tensor) [][]float64 {
	k, n := int(t.Dims[0]), 1
	if len(t.Dims) > 1 {
		n = int(t.Dims[1])
	}
	f := formats[t.Type]
	rb := f.SourceBytes(k)
	rows := make([][]float64, n)
	for r := range rows {
		src, row := t.Data[r*rb:(r+1)*rb], make([]float64, k)
		half := func(at int) float64 { return halfValue(uint16(src[at]) | uint16(src[at+1])<<8) }
		for i := range row {
			b, j := i/32, i%32
			nibble := func(at int) float64 {
				v := src[at+j%16]
				if j >= 16 {
					v >>= 4
				}
				return float64(v & 15)
			}
			switch f.String() {
			case "Q4_1":
				row[i] = half(b*20)*nibble(b*20+4) + half(b*20+2)
			case "Q4_0":
				row[i] = half(b*18) * (nibble(b*18+2) - 8)
			case "Q8_0":
				row[i] = half(b*34) * float64(int8(src[b*34+2+j]))
			case "F32":
				row[i] = float64(floats(src[4*i : 4*i+4])[0])
			case "F16":
				row[i] = half(2 * i)
			case "BF16":
				row[i] = float64(math.Float32frombits(uint32(src[2*i])<<16 | uint32(src[2*i+1])<<24))
			}
		}
		rows[r] = row
	}
	return rows
}

func halfValue(h uint16) float64 {
	v := float64(h&0x3ff) / (1 << 10)
	e := int(h >> 10 & 31)
	if e == 0 {
		v = math.Ldexp(v, -14)
	} else {
		v = math.Ldexp(1+v, e-15)
	}
	if h>>15 == 1 {
		return -v
	}
	return v
}

func (s *slow) mul(name string, x []float64) []float64 {
	w := s.mats[name]
	out := make([]float64, len(w))
	for i, row := range w {
		for j, v := range row {
			out[i] += v * x[j]
		}
	}
	return out
}

func (s *slow) norm(name string, x []float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	inv := 1 / math.Sqrt(sum/float64(len(x))+1e-5)
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * inv * s.mats[name][0][i]
	}
	return out
}

func (s *slow) rope(x []float64, pos int) {
	c := s.c
	rot, base, linear := c.rotated, float64(c.base), float64(c.linear)
	if rot == 0 {
		rot = c.headDim
	}
	if base == 0 {
		base = 10000
	}
	if linear == 0 {
		linear = 1
	}
	for h := 0; h < len(x); h += c.headDim {
		for i := 0; i < rot/2; i++ {
			a := float64(pos) * math.Pow(base, -2*float64(i)/float64(rot)) / linear
			if c.factors {
				a /= s.mats["rope_freqs.weight"][0][i]
			}
			p, q := x[h+2*i], x[h+2*i+1]
			x[h+2*i], x[h+2*i+1] = p*math.Cos(a)-q*math.Sin(a), p*math.Sin(a)+q*math.Cos(a)
		}
	}
}

// forward returns the logits of every token.
func (s *slow) forward(tokens []uint32) [][]float64 {
	c := s.c
	keys, values := make([][][]float64, c.layers), make([][][]float64, c.layers)
	var out [][]float64
	for pos, id := range tokens {
		x := append([]float64{}, s.mats["token_embd.weight"][id]...)
		for l := range c.layers {
			p := "blk." + string(rune('0'+l)) + "."
			h := s.norm(p+"attn_norm.weight", x)
			q, k := s.mul(p+"attn_q.weight", h), s.mul(p+"attn_k.weight", h)
			s.rope(q, pos)
			s.rope(k, pos)
			keys[l], values[l] = append(keys[l], k), append(values[l], s.mul(p+"attn_v.weight", h))
			o := s.mul(p+"attn_output.weight", s.attend(q, keys[l], values[l]))
			for i := range x {
				x[i] += o[i]
			}
			h = s.norm(p+"ffn_norm.weight", x)
			g, u := s.mul(p+"ffn_gate.weight", h), s.mul(p+"ffn_up.weight", h)
			for i := range g {
				g[i] *= u[i] / (1 + math.Exp(-g[i]))
			}
			for i, v := range s.mul(p+"ffn_down.weight", g) {
				x[i] += v
			}
		}
		name := "output.weight"
		if c.tied {
			name = "token_embd.weight"
		}
		out = append(out, s.mul(name, s.norm("output_norm.weight", x)))
	}
	return out
}

func (s *slow) attend(q []float64, keys, values [][]float64) []float64 {
	c := s.c
	out := make([]float64, len(q))
	for h := range c.heads {
		at := h / (c.heads / c.kvHeads) * c.headDim
		score, sum := make([]float64, len(keys)), 0.0
		for t, k := range keys {
			for d := range c.headDim {
				score[t] += q[h*c.headDim+d] * k[at+d]
			}
			score[t] = math.Exp(score[t] / math.Sqrt(float64(c.headDim)))
			sum += score[t]
		}
		for t, v := range values {
			for d := range c.headDim {
				out[h*c.headDim+d] += score[t] / sum * v[at+d]
			}
		}
	}
	return out
}

// TestForwardIsRight compares every tiny model with the slow reading.
func TestForwardIsRight(t *testing.T) {
	for _, c := range tinies {
		t.Run(c.name, func(t *testing.T) {
			m := mustOpen(t, Options{Path: c.write(t), Threads: 1})
			tokens := randTokens(40, c.vocab, 1)
			want := newSlow(c).forward(tokens)
			got := logitRows(len(tokens), c.vocab)
			kv := alignedBytes(3 * m.Info().BlockBytes)
			if err := m.Forward(kv, []Seq{{Tokens: tokens, Blocks: []int32{2, 0, 1}, Logits: got}}); err != nil {
				t.Fatal(err)
			}
			var sum, size float64
			for i := range want {
				for j := range want[i] {
					d := want[i][j] - float64(got[i][j])
					sum += d * d
					size += want[i][j] * want[i][j]
				}
			}
			n := float64(len(tokens) * c.vocab)
			rms, scale := math.Sqrt(sum/n), math.Sqrt(size/n)
			t.Logf("rms of the difference %.2g, of the logits %.2g", rms, scale)
			if scale < 0.1 || rms > 0.003*scale {
				t.Errorf("rms of the difference %.3g, of the logits %.3g", rms, scale)
			}
		})
	}
}
