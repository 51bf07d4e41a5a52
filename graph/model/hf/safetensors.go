package hf

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph/model"
)

// Tensor says what lies where in a safetensors file.
type Tensor struct {
	Name  string
	DType string // as the file writes it: "BF16"
	Shape []int64
	Bytes int64
}

// Elements is the number of elements.
func (t Tensor) Elements() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d // Header has seen to it that this does not overflow
	}
	return n
}

// maxHeader bounds the header of a safetensors file, as the format itself does.
const maxHeader = 100_000_000

// Header reads the header of a safetensors file of size bytes, and nothing beyond it. Tensors are in the order of their names. With a
// size below 0 the size is not known, and what needs it is not checked.
func Header(r io.ReaderAt, size int64) ([]Tensor, error) {
	var head [8]byte
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return nil, fmt.Errorf("safetensors: length of the header: %w", ended(err))
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > maxHeader || n < 2 || size >= 0 && n > uint64(max(size-8, 0)) {
		return nil, fmt.Errorf("safetensors: a header of %d bytes: not a safetensors file, or cut off", n)
	}
	// A size that is not true costs no more memory than the bytes that really come.
	b, err := io.ReadAll(io.NewSectionReader(r, 8, int64(n)))
	if err != nil || uint64(len(b)) < n {
		return nil, fmt.Errorf("safetensors: header of %d bytes: %w", n, errors.Join(err, io.ErrUnexpectedEOF))
	}
	return parseHeader(b, size)
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func parseHeader(b []byte, size int64) ([]Tensor, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, fmt.Errorf("safetensors: header: %w", err)
	}
	room := int64(1 << 50)
	if size >= 0 {
		room = size - 8 - int64(len(b))
	}
	var out []Tensor
	for name, v := range raw {
		if name == "__metadata__" {
			continue
		}
		var t struct {
			DType   string  `json:"dtype"`
			Shape   []int64 `json:"shape"`
			Offsets []int64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(v, &t); err != nil {
			return nil, fmt.Errorf("safetensors: tensor %q: %w", name, err)
		}
		if len(t.Offsets) != 2 || t.Offsets[0] < 0 || t.Offsets[1] < t.Offsets[0] || t.Offsets[1] > room {
			return nil, fmt.Errorf("safetensors: tensor %q: offsets %v do not lie in the file", name, t.Offsets)
		}
		n := int64(1)
		for _, d := range t.Shape {
			if d < 0 || d > 0 && n > 1<<50/d {
				return nil, fmt.Errorf("safetensors: tensor %q: shape %v is not believed", name, t.Shape)
			}
			n *= d
		}
		out = append(out, Tensor{Name: name, DType: t.DType, Shape: t.Shape, Bytes: t.Offsets[1] - t.Offsets[0]})
	}
	slices.SortFunc(out, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Index is a model.safetensors.index.json: a model whose tensors lie in several files.
type Index struct {
	Bytes int64    // of all tensors; 0 where the file does not say
	Files []string // names beside the index, sorted; never a path out of its folder
}

// maxIndex bounds an index; that of a model with 100,000 tensors has 10 MB.
const maxIndex = 64 << 20

// ReadIndex reads an index.
func ReadIndex(b []byte) (Index, error) {
	if len(b) > maxIndex {
		return Index{}, fmt.Errorf("safetensors index: %d bytes: at most %d are read", len(b), maxIndex)
	}
	var raw struct {
		Metadata struct {
			Total float64 `json:"total_size"`
		} `json:"metadata"`
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return Index{}, fmt.Errorf("safetensors index: %w", err)
	}
	if len(raw.Map) == 0 {
		return Index{}, errors.New("safetensors index: no weight_map")
	}
	var x Index
	if t := raw.Metadata.Total; t > 0 && t < 1<<60 {
		x.Bytes = int64(t)
	}
	for _, f := range raw.Map {
		x.Files = append(x.Files, f)
	}
	slices.Sort(x.Files)
	x.Files = slices.Compact(x.Files)
	for _, f := range x.Files {
		if f == "" || f != path.Base(f) || strings.Contains(f, `\`) || f == ".." || f == "." {
			return Index{}, fmt.Errorf("safetensors index: file %q is not beside it", f)
		}
	}
	return x, nil
}

// Weigh adds to facts what the headers of all the model's files say: bytes, the experts' share, and where the config does not tell them,
// the number of parameters and their type.
func Weigh(f *model.Facts, tensors []Tensor) {
	f.Format = "safetensors"
	f.FileBytes, f.ExpertBytes = 0, 0
	var elements, experts int64
	count := map[string]int64{}
	packed := false
	for _, t := range tensors {
		n := t.Elements()
		f.FileBytes = add(f.FileBytes, t.Bytes)
		elements = add(elements, n)
		if routed(t.Name) {
			f.ExpertBytes = add(f.ExpertBytes, t.Bytes)
			experts = add(experts, n)
		}
		if len(t.Shape) > 1 {
			count[t.DType] = add(count[t.DType], n)
		}
		packed = packed || strings.HasPrefix(t.DType, "I") || strings.HasPrefix(t.DType, "U") // several parameters in one element
	}
	best := ""
	for d, n := range count {
		if best == "" || n > count[best] || n == count[best] && d < best {
			best = d
		}
	}
	if f.DType == "" && best != "" && !packed {
		f.DType = shortType(best)
	}
	if f.Parameters == 0 && !packed {
		f.Parameters, f.ExpertParameters = elements, experts
	}
}

func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// routed reports whether a tensor belongs to routed experts: "model.layers.3.mlp.experts.7.up_proj.weight".
func routed(name string) bool {
	return strings.Contains(name, ".experts.")
}
