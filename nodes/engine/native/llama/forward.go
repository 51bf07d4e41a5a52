package llama

import (
	"fmt"

	"github.com/dynamograph/dynamo/nodes/engine/native/kernel"
)

// Seq is one sequence's part in a step.
type Seq struct {
	Tokens []uint32    // to compute now, at positions Pos..Pos+len-1
	Pos    int         // tokens of the sequence whose keys and values are already in its blocks
	Blocks []int32     // block table: block i holds tokens 16i..16i+15; covers Pos+len(Tokens)
	Logits [][]float32 // rows of Vocab for the last len(Logits) tokens of Tokens; empty: none
}

// Forward computes all tokens of batch: it writes their keys and values into kv and the logits that are asked for. Block b lies at
// kv[b*BlockBytes:]; kv starts at a multiple of 64 bytes. Blocks that a step writes belong to one sequence of the batch; blocks before Pos
// may be shared. On an error nothing was written. It is not safe for concurrent use, and in the steady state it does not allocate.
func (m *Model) Forward(kv []byte, batch []Seq) error {
	t, rows, err := m.check(kv, batch)
	if err != nil || t == 0 {
		return err
	}
	w := &m.work
	w.reserve(m, t, rows)
	w.kv, w.batch = kv, batch
	w.spread(batch)
	m.each(t, &w.fnEmbed)
	for i := range m.layers {
		l := &m.layers[i]
		w.layer, w.l = i, l
		w.norm, w.quantised = l.attnNorm, l.q.format.Quantised() || l.k.format.Quantised() || l.v.format.Quantised()
		m.each(t, &w.fnNorm)
		m.matmul(t, w.xn, m.shape.dim, product{l.q, w.q}, product{l.k, w.k}, product{l.v, w.v})
		m.each(t, &w.fnStore)
		m.attend()
		if l.o.format.Quantised() {
			m.each(t, &w.fnQuantAtt)
		}
		m.matmul(t, w.att, m.shape.qDim(), product{l.o, w.o})
		w.norm, w.quantised = l.ffnNorm, l.gate.format.Quantised() || l.up.format.Quantised()
		w.residual = true
		m.each(t, &w.fnNorm)
		m.matmul(t, w.xn, m.shape.dim, product{l.gate, w.gate}, product{l.up, w.up})
		m.each(t, &w.fnSilu)
		m.matmul(t, w.gate, m.shape.ff, product{l.down, w.o})
	}
	if rows > 0 {
		m.each(rows, &w.fnLast)
		m.project(rows)
	}
	w.residual = false
	w.kv, w.batch = nil, nil
	return nil
}

// check vouches for everything that the kernels do not check: t tokens, of which rows want logits.
func (m *Model) check(kv []byte, batch []Seq) (t, rows int, err error) {
	blocks := len(kv) / m.info.BlockBytes
	for i := range batch {
		s := &batch[i]
		n := len(s.Tokens)
		switch {
		case s.Pos < 0 || n > m.info.Context-s.Pos:
			return 0, 0, fmt.Errorf("sequence %d: %d tokens at position %d exceed the context of %d", i, n, s.Pos, m.info.Context)
		case len(s.Blocks) < (s.Pos+n+BlockTokens-1)/BlockTokens:
			return 0, 0, fmt.Errorf("sequence %d: %d blocks do not cover %d tokens", i, len(s.Blocks), s.Pos+n)
		case len(s.Logits) > n:
			return 0, 0, fmt.Errorf("sequence %d: %d rows of logits for %d tokens", i, len(s.Logits), n)
		}
		for _, b := range s.Blocks {
			if b < 0 || int(b) >= blocks {
				return 0, 0, fmt.Errorf("sequence %d: block %d is not among %d", i, b, blocks)
			}
		}
		for _, id := range s.Tokens {
			if id >= uint32(m.info.Vocab) {
				return 0, 0, fmt.Errorf("sequence %d: token %d is not in the vocabulary of %d", i, id, m.info.Vocab)
			}
		}
		for _, row := range s.Logits {
			if len(row) < m.info.Vocab {
				return 0, 0, fmt.Errorf("sequence %d: a row of %d logits for a vocabulary of %d", i, len(row), m.info.Vocab)
			}
		}
		t, rows = t+n, rows+len(s.Logits)
	}
	if t > maxTokens {
		return 0, 0, fmt.Errorf("%d tokens in one step: at most %d", t, maxTokens)
	}
	return t, rows, nil
}

// maxTokens bounds one step, so that the items of a phase can be counted.
const maxTokens = 1 << 16

// token is where a row of the batch comes from.
type token struct {
	seq, at int32 // index in batch, index in its Tokens
	pos     int32
}

// last is a row of logits.
type last struct {
	row int32 // in the batch
	out []float32
}

// work is the memory of a step, kept between steps, and the state that phases read.
type work struct {
	capTokens, capRows int
	tokens             []token
	lasts              []last
	x, xn              []float32 // [t][dim]
	q, k, v            []float32 // [t][...]
	turned             []float32 // queries after RoPE: [kv head][t][ratio][head]
	att                []float32 // [t][qDim]
	o                  []float32 // [t][dim]
	gate, up           []float32 // [t][ff]
	cos, sin           []float32 // [t][head]
	rows               []byte    // quantised activations, stride rowStride of the current k
	scratch            []scratch // by worker

	kv        []byte
	batch     []Seq
	layer     int
	l         *layer
	norm      []float32
	quantised bool // the next products want quantised rows
	residual  bool // add o to x before the norm
	chunk     int  // rows an item
	count     int  // rows
	products  []product
	input     []float32
	inputK    int
	items     []attItem

	fnEmbed, fnNorm, fnStore, fnQuantAtt, fnSilu, fnLast, fnMatmul, fnAttend, fnProject phase
}

// scratch belongs to one worker.
type scratch struct {
	tmp     [kernel.Lanes]float32
	turned  []float32 // keys of one token
	halves  []byte
	scores  []float32 // [columns][tokens]
	inverse []float32 // of the sums, by column
	out     []float32 // [columns][head]
	logits  []float32
}

func (m *Model) initWork() {
	w := &m.work
	w.scratch = make([]scratch, m.info.Threads)
	for i := range w.scratch {
		s := &w.scratch[i]
		s.turned = alignedFloats(m.shape.kvDim())
		s.halves = alignedBytes(m.shape.kvDim() * 2)
		s.inverse = make([]float32, m.attColumns())
		s.out = alignedFloats(m.attColumns() * m.shape.headDim)
		s.logits = alignedFloats(logitTile * projectGroups * kernel.Lanes)
	}
	w.fnEmbed, w.fnNorm, w.fnStore = m.phaseEmbed, m.phaseNorm, m.phaseStore
	w.fnQuantAtt, w.fnSilu, w.fnLast = m.phaseQuantAtt, m.phaseSilu, m.phaseLast
	w.fnMatmul, w.fnAttend, w.fnProject = m.phaseMatmul, m.phaseAttend, m.phaseProject
}

// rowStride is the distance of quantised rows of k activations: not a power of two, so that columns do not meet in the cache.
func rowStride(k int) int { return kernel.RowBytes(k) + 64 }

func (w *work) reserve(m *Model, t, rows int) {
	if t > w.capTokens {
		t = max(t, min(2*w.capTokens, maxTokens))
		s := &m.shape
		w.capTokens = t
		w.tokens = make([]token, 0, t)
		w.x, w.xn, w.o = alignedFloats(t*s.dim), alignedFloats(t*s.dim), alignedFloats(t*s.dim)
		w.q, w.turned, w.att = alignedFloats(t*s.qDim()), alignedFloats(t*s.qDim()), alignedFloats(t*s.qDim())
		w.k, w.v = alignedFloats(t*s.kvDim()), alignedFloats(t*s.kvDim())
		w.gate, w.up = alignedFloats(t*s.ff), alignedFloats(t*s.ff)
		w.cos, w.sin = alignedFloats(t*s.headDim), alignedFloats(t*s.headDim)
		w.rows = alignedBytes(t * rowStride(max(s.dim, s.ff, s.qDim())))
	}
	if rows > w.capRows {
		w.capRows = max(rows, 2*w.capRows)
		w.lasts = make([]last, 0, w.capRows)
	}
}

// spread lists the rows of the batch.
func (w *work) spread(batch []Seq) {
	w.tokens, w.lasts = w.tokens[:0], w.lasts[:0]
	for i := range batch {
		s := &batch[i]
		for j := range s.Tokens {
			if k := j - (len(s.Tokens) - len(s.Logits)); k >= 0 {
				w.lasts = append(w.lasts, last{row: int32(len(w.tokens)), out: s.Logits[k]})
			}
			w.tokens = append(w.tokens, token{seq: int32(i), at: int32(j), pos: int32(s.Pos + j)})
		}
	}
}

// each runs a phase over n rows in chunks; few rows are not worth waking anybody.
func (m *Model) each(n int, f *phase) {
	w := &m.work
	w.count, w.chunk = n, n
	if n >= 4 {
		w.chunk = max(1, n/(4*m.info.Threads))
	}
	m.pool.run((n+w.chunk-1)/w.chunk, f)
}

// span is the rows of item i.
func (w *work) span(i int) (from, to int) { return i * w.chunk, min(w.count, (i+1)*w.chunk) }

func (m *Model) phaseEmbed(_, i int) {
	w, s := &m.work, &m.shape
	for t, end := w.span(i); t < end; t++ {
		tok := w.tokens[t]
		id := int(w.batch[tok.seq].Tokens[tok.at])
		e := m.embed
		g := id / kernel.Lanes
		e.format.Row(e.data[g*e.stride:(g+1)*e.stride], e.k, id%kernel.Lanes, w.x[t*s.dim:(t+1)*s.dim])
		h := s.headDim
		angles(m.freqs, int(tok.pos), w.cos[t*h:(t+1)*h], w.sin[t*h:(t+1)*h])
	}
}

// phaseNorm adds the last product to x, norms it and quantises the result.
func (m *Model) phaseNorm(worker, i int) {
	w, d := &m.work, m.shape.dim
	for t, end := w.span(i); t < end; t++ {
		x, xn := w.x[t*d:(t+1)*d], w.xn[t*d:(t+1)*d]
		if w.residual {
			m.set.Add(x, w.o[t*d:(t+1)*d])
		}
		m.set.Norm(x, w.norm, xn, m.shape.eps, &w.scratch[worker].tmp)
		if w.quantised {
			m.quantise(t, xn)
		}
	}
}

func (m *Model) quantise(row int, x []float32) {
	st := rowStride(len(x))
	m.set.Quantise(x, m.work.rows[row*st:(row+1)*st])
}

func (m *Model) phaseQuantAtt(_, i int) {
	w, d := &m.work, m.shape.qDim()
	for t, end := w.span(i); t < end; t++ {
		m.quantise(t, w.att[t*d:(t+1)*d])
	}
}

func (m *Model) phaseSilu(_, i int) {
	w, d := &m.work, m.shape.ff
	for t, end := w.span(i); t < end; t++ {
		g := w.gate[t*d : (t+1)*d]
		m.set.Silu(g, w.up[t*d:(t+1)*d])
		if w.l.down.format.Quantised() {
			m.quantise(t, g)
		}
	}
}

// phaseLast norms the rows whose logits are wanted, gathered.
func (m *Model) phaseLast(worker, i int) {
	w, d := &m.work, m.shape.dim
	for r, end := w.span(i); r < end; r++ {
		t := int(w.lasts[r].row)
		x, xn := w.x[t*d:(t+1)*d], w.xn[r*d:(r+1)*d]
		m.set.Add(x, w.o[t*d:(t+1)*d])
		m.set.Norm(x, m.outNorm, xn, m.shape.eps, &w.scratch[worker].tmp)
		if m.output.format.Quantised() {
			m.quantise(r, xn)
		}
	}
}

// phaseStore turns queries and keys and writes keys and values into their block.
func (m *Model) phaseStore(worker, i int) {
	w, s := &m.work, &m.shape
	sc, h, ratio, n := &w.scratch[worker], s.headDim, s.heads/s.kvHeads, len(w.tokens)
	for t, end := w.span(i); t < end; t++ {
		cos, sin := w.cos[t*h:(t+1)*h], w.sin[t*h:(t+1)*h]
		for j := range s.heads {
			to := ((j/ratio*n+t)*ratio + j%ratio) * h
			m.set.Rope(w.q[t*s.qDim()+j*h:t*s.qDim()+(j+1)*h], cos, sin, w.turned[to:to+h])
		}
		tok := w.tokens[t]
		block, slot := w.batch[tok.seq].Blocks[tok.pos/BlockTokens], int(tok.pos)%BlockTokens
		keys, values := m.blockOf(block)
		k := w.k[t*s.kvDim() : (t+1)*s.kvDim()]
		for j := range s.kvHeads {
			m.set.Rope(k[j*h:(j+1)*h], cos, sin, sc.turned[j*h:(j+1)*h])
			v := w.v[t*s.kvDim()+j*h : t*s.kvDim()+(j+1)*h]
			at := (j*BlockTokens + slot) * h * 2
			m.set.Half(v, values[at:at+2*h])
		}
		m.set.Half(sc.turned, sc.halves)
		for d := range s.kvDim() {
			at := (d*BlockTokens + slot) * 2
			keys[at], keys[at+1] = sc.halves[2*d], sc.halves[2*d+1]
		}
	}
}

// blockOf is the keys and values of the current layer in a block.
func (m *Model) blockOf(block int32) (keys, values []byte) {
	w, n := &m.work, m.shape.layerBytes()
	at := int(block)*m.info.BlockBytes + w.layer*n
	return w.kv[at : at+n/2], w.kv[at+n/2 : at+n]
}

// product is one matrix with the place of its result, n values a row.
type product struct {
	w   *matrix
	out []float32
}

// matmulBytes is about how many bytes of weights one item reads: a part of the second-level cache.
const matmulBytes = 128 << 10

// tile is how many rows of activations meet a group of weights before the next one.
const tile = 8

// chunkGroups is the number of groups of w in an item, when all products together have total groups.
func (m *Model) chunkGroups(w *matrix, total int) int {
	return max(1, min(matmulBytes/w.stride, total/(4*m.info.Threads)))
}

// matmul multiplies t rows of k activations, quantised in w.rows or as they are, with up to three matrices.
func (m *Model) matmul(t int, in []float32, k int, ps ...product) {
	w := &m.work
	w.products = append(w.products[:0], ps...)
	w.count, w.input, w.inputK = t, in, k
	items, total := 0, 0
	for _, p := range ps {
		total += p.w.groups
	}
	for _, p := range ps {
		c := m.chunkGroups(p.w, total)
		items += (p.w.groups + c - 1) / c
	}
	w.chunk = total
	m.pool.run(items, &w.fnMatmul)
}

func (m *Model) phaseMatmul(_, i int) {
	w := &m.work
	for _, p := range w.products {
		c := m.chunkGroups(p.w, w.chunk)
		n := (p.w.groups + c - 1) / c
		if i >= n {
			i -= n
			continue
		}
		g0, g1 := i*c, min(p.w.groups, (i+1)*c)
		x, ldx := ref(&w.input[0]), w.inputK*4
		if p.w.format.Quantised() {
			x, ldx = &w.rows[0], rowStride(w.inputK)
		}
		for t := 0; t < w.count; t += tile {
			n := min(tile, w.count-t)
			for g := g0; g < g1; g++ {
				m.set.Gemm(p.w.format, &p.w.data[g*p.w.stride], p.w.k, at(x, t*ldx), ldx, n, ref(&p.out[t*p.w.n+g*kernel.Lanes]), p.w.n*4)
			}
		}
		return
	}
}

const (
	logitTile     = 8  // rows of logits at a time
	projectGroups = 64 // groups of the output matrix an item
)

// project writes the logits of n normed rows.
func (m *Model) project(n int) {
	m.work.count = n
	m.pool.run((m.output.groups+projectGroups-1)/projectGroups, &m.work.fnProject)
}

func (m *Model) phaseProject(worker, i int) {
	w, o := &m.work, m.output
	g0, g1 := i*projectGroups, min(o.groups, (i+1)*projectGroups)
	width := (g1 - g0) * kernel.Lanes
	out := w.scratch[worker].logits
	x, ldx := ref(&w.xn[0]), m.shape.dim*4
	if o.format.Quantised() {
		x, ldx = &w.rows[0], rowStride(m.shape.dim)
	}
	for r := 0; r < w.count; r += logitTile {
		n := min(logitTile, w.count-r)
		for g := g0; g < g1; g++ {
			m.set.Gemm(o.format, &o.data[g*o.stride], o.k, at(x, r*ldx), ldx, n, ref(&out[(g-g0)*kernel.Lanes]), width*4)
		}
		for j := range n {
			row := w.lasts[r+j].out
			copy(row[g0*kernel.Lanes:min(m.info.Vocab, g1*kernel.Lanes)], out[j*width:(j+1)*width])
		}
	}
}
