package preprocess

import (
	"strings"
	"unicode/utf8"

	"github.com/dynamograph/dynamo/nodes/text/detok"
	"github.com/dynamograph/dynamo/nodes/text/tokenizer"
)

// place tells where tokens stand in the text that they make. It looks at none where no log-probabilities are asked for.
type place struct {
	tok     *tokenizer.Tokenizer
	special bool   // special tokens are text
	written string // the prompt as its author wrote it; "" where it came as tokens
	at      int    // characters that are complete
	tail    []byte // the begin of one that is not
	text    []byte
}

// prompt takes the i-th token of the prompt. What the author wrote is text even where it spells a special token; a BOS put before it is not.
func (p *place) prompt(id uint32, i int) int {
	if p.written == "" {
		return p.output(id)
	}
	s := p.tok.Piece(id)
	return p.add(s, i > 0 || !p.tok.IsSpecial(id) || strings.HasPrefix(p.written, s))
}

// output takes a token and returns how many characters stood before it.
func (p *place) output(id uint32) int {
	return p.add(p.tok.Piece(id), p.special || !p.tok.IsSpecial(id))
}

func (p *place) add(s string, text bool) int {
	at := p.at
	if !text {
		return at
	}
	p.tail = append(p.tail, s...)
	var rest int
	p.text, rest = detok.AppendValid(p.text[:0], p.tail, false)
	p.at += utf8.RuneCount(p.text)
	p.tail = p.tail[:copy(p.tail, p.tail[len(p.tail)-rest:])]
	return at
}
