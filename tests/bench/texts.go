package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/dynamograph/dynamo/graph/model/gguf"
	"github.com/dynamograph/dynamo/nodes/text/tokenizer"
)

// prose is what prompts are made of.
const prose = `A river begins where rain has nowhere else to go. It collects in a hollow, finds the lowest edge of it and leaves, and the path that
it takes once becomes the path that it takes again, because water carries away a little of whatever it touches. After some thousand years
there is a valley. People settle near it, since a valley has flat ground, and wood, and a road that needs no building. They put a mill at the
narrow place and a bridge at the wide one. When the mill burns down they build it again at the same spot, and nobody asks why. The children
learn where the current is strong, which stones are slippery in spring, and how long a boat takes to the town. Merchants measure the year by
its floods. A clerk writes down how high the water stood at the door of the church, every time, for three hundred years, and his successors
keep the ink dry and the numbers honest. Later somebody draws these numbers as a line and sees that the floods come in pairs. There is a
reason for that, in the snow of the mountains and in the wind of the sea, but the clerks did not need the reason to move the grain upstairs. `

// texts makes prompts that nobody has seen: each begins with a number of its own, so that no cached prefix helps.
type texts struct {
	tok  *tokenizer.Tokenizer
	used int
}

func newTexts(model string) (*texts, error) {
	f, err := os.Open(model)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	g, err := gguf.Read(f, st.Size())
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.FromGGUF(g)
	if err != nil {
		return nil, err
	}
	return &texts{tok: t}, nil
}

// prompts returns n prompts of size tokens.
func (t *texts) prompts(n, size int) [][]uint32 {
	out := make([][]uint32, n)
	for i := range out {
		t.used++
		from := t.used * 97 % len(prose)
		from += strings.IndexByte(prose[from:], ' ')
		text := fmt.Sprintf("Letter %d.", t.used) + strings.Repeat(prose[from:]+prose[:from], 1+size/100)
		out[i] = t.tok.Encode(nil, text, tokenizer.Options{})[:size]
	}
	return out
}

// text is what tokens spell.
func (t *texts) text(tokens []uint32) string { return t.tok.Decode(tokens, true) }
