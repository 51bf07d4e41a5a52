package llama

import (
	"math"

	"github.com/dynamograph/dynamo/nodes/engine/native/kernel"
)

// attItem is some tokens of one sequence with the query heads of one key-value head.
type attItem struct {
	row, pos int32 // of the first token: in the batch, in the sequence
	tokens   int32
	seq      int32
	head     int32 // of keys and values
}

// attTokens is how many tokens meet a block of keys at once.
func (m *Model) attTokens() int { return max(1, 24/(m.shape.heads/m.shape.kvHeads)) }

// attColumns is the queries of an item.
func (m *Model) attColumns() int { return m.attTokens() * (m.shape.heads / m.shape.kvHeads) }

// attend runs attention of the current layer over the whole batch.
func (m *Model) attend() {
	w := &m.work
	if w.layer == 0 {
		w.items = w.items[:0]
		row, step := 0, m.attTokens()
		for i := range w.batch {
			s := &w.batch[i]
			for t := 0; t < len(s.Tokens); t += step {
				for h := range m.shape.kvHeads {
					w.items = append(w.items, attItem{row: int32(row + t), pos: int32(s.Pos + t), tokens: int32(min(step, len(s.Tokens)-t)),
						seq: int32(i), head: int32(h)})
				}
			}
			row += len(s.Tokens)
		}
	}
	m.pool.run(len(w.items), &w.fnAttend)
}

// phaseAttend does scores, softmax and the weighted sum of values. Positions are those of the sequence, so that lanes and order do not
// depend on how the tokens came here; a masked weight is exactly zero.
func (m *Model) phaseAttend(worker, i int) {
	w, s := &m.work, &m.shape
	sc, it := &w.scratch[worker], w.items[i]
	h, ratio, head := s.headDim, s.heads/s.kvHeads, int(it.head)
	cols := int(it.tokens) * ratio
	valid := int(it.pos + it.tokens) // tokens that the last column sees
	blocks := w.batch[it.seq].Blocks[:(valid+BlockTokens-1)/BlockTokens]
	width := len(blocks) * BlockTokens
	if len(sc.scores) < cols*width {
		sc.scores = alignedFloats(m.attColumns() * min(2*width, (s.context+2*BlockTokens)&^(BlockTokens-1)))
	}
	q := ref(&w.turned[(head*len(w.tokens)+int(it.row))*ratio*h])
	for b, block := range blocks {
		keys, _ := m.blockOf(block)
		m.set.Half16(&keys[head*h*BlockTokens*2], q, ref(&sc.scores[b*BlockTokens]), h, BlockTokens*2, h*4, width*4, cols, false)
	}
	scale := float32(1 / math.Sqrt(float64(h)))
	for c := range cols {
		n := int(it.pos) + c/ratio + 1
		row := sc.scores[c*width : (c+1)*width]
		end := (n + kernel.Lanes - 1) &^ (kernel.Lanes - 1)
		sc.inverse[c] = m.set.Softmax(row[:end], n, scale, &sc.tmp)
		clear(row[end:])
	}
	for b, block := range blocks {
		_, values := m.blockOf(block)
		for d := 0; d < h; d += kernel.Lanes {
			m.set.Half16(&values[(head*BlockTokens*h+d)*2], ref(&sc.scores[b*BlockTokens]), ref(&sc.out[d]), min(BlockTokens, valid-b*BlockTokens),
				h*2, width*4, h*4, cols, b > 0)
		}
	}
	for c := range cols {
		to := (int(it.row)+c/ratio)*s.qDim() + (head*ratio+c%ratio)*h
		m.set.Scale(sc.out[c*h:(c+1)*h], w.att[to:to+h], sc.inverse[c])
	}
}
