// Package tokenizer turns text into a model's tokens and back: byte-level BPE (GPT-2, SmolLM, Llama 3, Qwen 2) and SentencePiece-style BPE
// (Llama 2), made from the arrays of a GGUF file. It knows no chat templates and does no streaming: see packages template and detok.
//
// Special tokens are only matched where the caller asks for it (Options.Special), so that text of users that spells one stays text; Guard
// keeps it so inside of a rendered template.
package tokenizer

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/dynamograph/dynamo/nodes/text/detok"
)

// Tokenizer is a model's vocabulary with its rules. It does not change after it was made and is safe for concurrent use.
type Tokenizer struct {
	pre      string
	pieces   []string // bytes of each token
	kinds    []kind
	special  trie // control tokens: matched with Options.Special
	added    trie // user-defined tokens: always matched
	both     trie // all of them
	maxBytes int
	model    model

	bos      uint32
	hasBOS   bool
	addBOS   bool // what Options.BOS does
	end      []uint32
	encoders sync.Pool // *encoder
}

// model encodes a run of text that holds no special token.
type model interface {
	// encode appends the tokens of s; first says that a special token, or nothing, stands before s.
	encode(e *encoder, dst []uint32, s string, first bool) []uint32
}

// kind is a token's type as GGUF numbers it.
type kind uint8

const (
	kindNormal      kind = 1
	kindUnknown     kind = 2
	kindControl     kind = 3
	kindUserDefined kind = 4
	kindUnused      kind = 5
	kindByte        kind = 6
)

// Options say how Encode treats special tokens.
type Options struct {
	Special bool // text that spells a control token becomes that token
	BOS     bool // begin with the BOS token where the model wants one; one that the text spells (with Special) is not repeated
	Mark    rune // dropped from the text after special tokens were matched; see Guard. 0: none
}

// Encode appends the tokens of text to dst. Bytes that the vocabulary cannot express are dropped, or become the unknown token where the
// model has one. The result depends on nothing but the arguments.
func (t *Tokenizer) Encode(dst []uint32, text string, o Options) []uint32 {
	e, _ := t.encoders.Get().(*encoder)
	if e == nil {
		e = new(encoder)
	}
	defer t.encoders.Put(e)
	base := len(dst)
	if o.BOS && t.addBOS {
		dst = append(dst, t.bos)
	}
	match := &t.added
	if o.Special {
		match = &t.both
	}
	mark := ""
	if o.Mark != 0 && strings.ContainsRune(text, o.Mark) {
		mark = string(o.Mark)
	}
	start, first := 0, true
	flush := func(end int) {
		if s := text[start:end]; s != "" {
			if mark != "" {
				s = strings.ReplaceAll(s, mark, "")
			}
			dst = t.run(e, dst, s, first, mark != "")
			first = false
		}
	}
	for i := 0; i < len(text); {
		if !match.starts[text[i]] {
			i++
			continue
		}
		id, n := match.longest(text[i:])
		if n == 0 {
			i++
			continue
		}
		flush(i)
		dst = append(dst, id)
		i += n
		start, first = i, true
	}
	flush(len(text))
	if o.BOS && t.addBOS && len(dst) > base+1 && dst[base+1] == t.bos {
		dst = slices.Delete(dst, base, base+1)
	}
	return dst
}

// run encodes text without control tokens. Where marks were taken out, user-defined tokens may have come together.
func (t *Tokenizer) run(e *encoder, dst []uint32, s string, first, again bool) []uint32 {
	if again && len(t.added.nodes) > 0 {
		start := 0
		for i := 0; i < len(s); {
			id, n := uint32(0), 0
			if t.added.starts[s[i]] {
				id, n = t.added.longest(s[i:])
			}
			if n == 0 {
				i++
				continue
			}
			if start < i {
				dst = t.model.encode(e, dst, s[start:i], first)
			}
			dst = append(dst, id)
			i += n
			start, first = i, true
		}
		s = s[start:]
	}
	if s == "" {
		return dst
	}
	return t.model.encode(e, dst, s, first)
}

// Size is the number of tokens: ids are below it.
func (t *Tokenizer) Size() int { return len(t.pieces) }

// Pre names the pre-tokenizer: "llama-bpe".
func (t *Tokenizer) Pre() string { return t.pre }

// MaxBytes is the length of the longest token in bytes: a text of n bytes has at least n/MaxBytes tokens.
func (t *Tokenizer) MaxBytes() int { return t.maxBytes }

// Piece is the exact bytes of a token, which need not be whole runes; "" for an id beyond the vocabulary. A special token's are its
// spelling. SentencePiece's "▁" is a space: the space before the first word is kept.
func (t *Tokenizer) Piece(id uint32) string {
	if int64(id) >= int64(len(t.pieces)) {
		return ""
	}
	return t.pieces[id]
}

// Bytes is Piece as a new slice.
func (t *Tokenizer) Bytes(id uint32) []byte { return []byte(t.Piece(id)) }

// IsSpecial reports whether id is a control token (or the unknown token), which is not shown to users.
func (t *Tokenizer) IsSpecial(id uint32) bool {
	return int64(id) < int64(len(t.kinds)) && (t.kinds[id] == kindControl || t.kinds[id] == kindUnknown)
}

// BOS is the token that begins a sequence, if the model has one.
func (t *Tokenizer) BOS() (id uint32, ok bool) { return t.bos, t.hasBOS }

// EOS are the tokens that end an answer, the main one first: of the file's eos, eot and eom keys, and control tokens whose name is
// commonly used so. The caller must not change it.
func (t *Tokenizer) EOS() []uint32 { return t.end }

// Decode is the text of ids: their bytes joined, each maximal ill-formed run of bytes as one U+FFFD. Special tokens are left out unless
// keepSpecial.
func (t *Tokenizer) Decode(ids []uint32, keepSpecial bool) string {
	var b []byte
	for _, id := range ids {
		if keepSpecial || !t.IsSpecial(id) {
			b = append(b, t.Piece(id)...)
		}
	}
	if utf8.Valid(b) {
		return string(b)
	}
	b, _ = detok.AppendValid(nil, b, true)
	return string(b)
}
