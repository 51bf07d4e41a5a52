package parse

import (
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/nodes/text/constrain"
)

// letters is a vocabulary of all bytes.
type letters struct{}

func (letters) Size() int               { return 257 }
func (letters) IsSpecial(i uint32) bool { return i == 256 }
func (letters) Piece(i uint32) string {
	if i == 256 {
		return "<end>"
	}
	return string([]byte{byte(i)})
}

// TestTag: what a structural tag allows is what models write of the format, and reads back as the calls.
func TestTag(t *testing.T) {
	tokens := constrain.NewTokens(letters{}, []uint32{256})
	n := 0
	for _, name := range ToolFormats() {
		if tools()[name].tag == nil {
			if tag, ok := Tag(name, lawFunctions, Mode{}); ok {
				t.Errorf("%s: %s", name, tag)
			}
			continue
		}
		n++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wire := func(c []wcall) string { return strings.TrimPrefix(wires[name](c), "<|python_tag|>") }
			accepts := func(m Mode, text string) (upTo int, end bool) {
				tag, ok := Tag(name, lawFunctions, m)
				if !ok {
					t.Fatal("no tag")
				}
				p, err := constrain.Compile(t.Context(), constrain.Spec{Tags: tag}, tokens)
				if err != nil {
					t.Fatalf("%v: %s", err, tag)
				}
				at := p.New()
				for i := range len(text) {
					if !at.Accept(uint32(text[i])) {
						return i, false
					}
				}
				return len(text), at.MayEnd()
			}
			for _, c := range [][]wcall{lawOne, lawNone, lawTwo} {
				text := wire(c)
				if i, end := accepts(Mode{}, text); !end {
					t.Errorf("refused behind %q: %q", text[:i], text[i:])
				}
				if _, end := accepts(Mode{OneCall: true}, text); end != (len(c) == 1) {
					t.Errorf("one call: %v: %s", end, text)
				}
				other := wire([]wcall{{"other", c[0].args}})
				if _, end := accepts(Mode{}, other); end {
					t.Errorf("another function: %s", other)
				}
			}
			if _, end := accepts(Mode{}, "text"); end {
				t.Error("text")
			}
			two := wire(lawTwo)
			if _, end := accepts(Mode{}, strings.Replace(two, `12`, `"12"`, 1)); end {
				t.Error("a value of another type")
			}
		})
	}
	if n < 8 {
		t.Errorf("%d formats", n)
	}
}
