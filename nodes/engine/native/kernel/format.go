package kernel

import (
	"encoding/binary"
	"math"
)

// Format is how weights are packed: in groups of 16 rows, lane by lane.
type Format uint8

// Formats. The quantised ones take activations in the Row layout, the others float32.
const (
	Q41 Format = iota // 4 bits, scale and minimum a block of 32
	Q40               // 4 bits less 8, scale a block of 32
	Q80               // 8 bits, scale a block of 32
	F32
	F16
	BF16
)

// Quantised reports whether activations come in the Row layout.
func (f Format) Quantised() bool { return f < F32 }

func (f Format) String() string { return [...]string{"Q4_1", "Q4_0", "Q8_0", "F32", "F16", "BF16"}[f] }

// laneBytes is the size of 16 values of one k.
func (f Format) laneBytes() int {
	if f == F32 {
		return 64
	}
	return 32
}

// GroupBytes is the size of a group of 16 rows of k weights.
func (f Format) GroupBytes(k int) int {
	switch f {
	case Q41:
		return k / 32 * 320
	case Q40:
		return k / 32 * 288
	case Q80:
		return k / 32 * 544
	default:
		return k * f.laneBytes()
	}
}

// SourceBytes is the size of one row of k weights as GGUF stores it.
func (f Format) SourceBytes(k int) int {
	switch f {
	case Q41:
		return k / 32 * 20
	case Q40:
		return k / 32 * 18
	case Q80:
		return k / 32 * 34
	case F32:
		return k * 4
	default:
		return k * 2
	}
}

// Pack packs n (at most 16) rows of k weights from src, as GGUF stores them, into a group; missing rows become zero.
func (f Format) Pack(dst, src []byte, k, n int) {
	clear(dst[:f.GroupBytes(k)])
	rb := f.SourceBytes(k)
	for r := range n {
		f.packRow(dst, src[r*rb:(r+1)*rb], k, r)
	}
}

func (f Format) packRow(dst, row []byte, k, r int) {
	switch f {
	case Q41, Q40:
		head, stride := 4, 320
		if f == Q40 {
			head, stride = 2, 288
		}
		for b := range k / 32 {
			d, s := dst[b*stride:(b+1)*stride], row[b*(head+16):(b+1)*(head+16)]
			for j := range 4 {
				binary.LittleEndian.PutUint32(d[j*64+r*4:], nibbles(s[head:], j))
			}
			d[256+r*2], d[257+r*2] = s[0], s[1]
			if f == Q41 {
				d[288+r*2], d[289+r*2] = s[2], s[3]
			}
		}
	case Q80:
		for b := range k / 32 {
			d, s := dst[b*544:(b+1)*544], row[b*34:(b+1)*34]
			for j := range 16 {
				d[j*32+r*2], d[j*32+r*2+1] = s[2+j*2], s[3+j*2]
			}
			d[512+r*2], d[513+r*2] = s[0], s[1]
		}
	case F32:
		for i := range k {
			copy(dst[i*64+r*4:i*64+r*4+4], row[i*4:])
		}
	default:
		for i := range k {
			dst[i*32+r*2], dst[i*32+r*2+1] = row[i*2], row[i*2+1]
		}
	}
}

// nibbles gathers k = 8j..8j+7 of GGUF's 16 bytes (low nibbles are k 0..15, high ones 16..31) so that nibbles p and p+4 of the word are
// k = 8j+2p and 8j+2p+1.
func nibbles(q []byte, j int) uint32 {
	shift, at := uint(0), 8*j
	if at >= 16 {
		shift, at = 4, at-16
	}
	var w uint32
	for p := range 4 {
		lo, hi := uint32(q[at+2*p]>>shift&15), uint32(q[at+2*p+1]>>shift&15)
		w |= lo<<(4*p) | hi<<(16+4*p)
	}
	return w
}

// Row writes row r of a group as float32: scale times integer, rounded, then plus the minimum, rounded.
func (f Format) Row(group []byte, k, r int, out []float32) {
	switch f {
	case Q41, Q40:
		stride := 320
		if f == Q40 {
			stride = 288
		}
		for b := range k / 32 {
			g := group[b*stride : (b+1)*stride]
			d, m, zero := half(g[256+r*2:]), float32(0), 0
			if f == Q41 {
				m = half(g[288+r*2:])
			} else {
				zero = 8
			}
			for j := range 4 {
				w := binary.LittleEndian.Uint32(g[j*64+r*4:])
				for i := range 8 {
					q := int(w>>(4*(i/2)+16*(i%2))&15) - zero
					out[b*32+j*8+i] = float32(d*float32(q)) + m
				}
			}
		}
	case Q80:
		for b := range k / 32 {
			g := group[b*544 : (b+1)*544]
			d := half(g[512+r*2:])
			for i := range 32 {
				out[b*32+i] = d * float32(int8(g[i/2*32+r*2+i%2]))
			}
		}
	case F32:
		for i := range k {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(group[i*64+r*4:]))
		}
	case F16:
		for i := range k {
			out[i] = half(group[i*32+r*2:])
		}
	case BF16:
		for i := range k {
			out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(group[i*32+r*2:])) << 16)
		}
	}
}

func half(b []byte) float32 { return HalfToFloat(binary.LittleEndian.Uint16(b)) }

// HalfToFloat converts a float16; it is exact.
func HalfToFloat(h uint16) float32 {
	sign, exp, frac := uint32(h&0x8000)<<16, uint32(h>>10&31), uint32(h&0x3ff)
	switch exp {
	case 0:
		f := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 31:
		if frac != 0 {
			frac |= 0x200 // quiet, as the processor does
		}
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// floatToHalf rounds a finite float32 of at most 65504 to the nearest float16, ties to even.
func floatToHalf(f float32) uint16 {
	b := math.Float32bits(f)
	sign, a := uint16(b>>16&0x8000), math.Float32frombits(b&0x7fffffff)
	if a < 1.0/(1<<14) { // subnormal: units of 2^-24
		return sign | uint16(math.RoundToEven(float64(a)*(1<<24)))
	}
	m := b & 0x7fffffff
	m += 0xfff + m>>13&1
	return sign | uint16(m>>13-112<<10)
}

// Floats writes src, values of a float format as GGUF stores them, as float32.
func (f Format) Floats(dst, src []byte) {
	for i := range len(dst) / 4 {
		var v uint32
		switch f {
		case F32:
			v = binary.LittleEndian.Uint32(src[4*i:])
		case F16:
			v = math.Float32bits(half(src[2*i:]))
		case BF16:
			v = uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16
		}
		binary.LittleEndian.PutUint32(dst[4*i:], v)
	}
}
