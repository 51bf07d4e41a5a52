package llm

import "fmt"

// Diff names the fields in which c and other differ, each with both values, c's first: `model "a" and "b"`. It is empty where they fit.
func (c Contract) Diff(other Contract) []string {
	var out []string
	text := func(field, a, b string) {
		if a != b {
			out = append(out, fmt.Sprintf("%s %q and %q", field, a, b))
		}
	}
	number := func(field string, a, b int) {
		if a != b {
			out = append(out, fmt.Sprintf("%s %d and %d", field, a, b))
		}
	}
	text("model", c.ModelID, other.ModelID)
	number("blockSize", c.BlockSize, other.BlockSize)
	text("dtype", c.DType, other.DType)
	text("layout", c.Layout, other.Layout)
	text("hash", c.Hash, other.Hash)
	text("numerics", c.Numerics, other.Numerics)
	number("tp", c.TP, other.TP)
	number("blockBytes", c.BlockBytes, other.BlockBytes)
	return out
}
