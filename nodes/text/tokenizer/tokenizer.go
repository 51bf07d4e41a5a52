// Package tokenizer turns text into a model's tokens and back: byte-level BPE, BPE over runes with byte fallback, SentencePiece's BPE and
// unigram models, WordPiece and whole words, made from the arrays of a GGUF file, from Hugging Face's tokenizer.json, or from tiktoken's
// ranks. It knows no chat templates and does no streaming: see packages template and detok.
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
	pre       string
	pieces    []string // bytes of each token
	kinds     []kind
	special   trie // every control token: what Guard takes apart
	plain     tokenSet
	all       tokenSet // with control tokens
	guarded   tokenSet // with control tokens, which are matched in the text as it is and nowhere else
	flags     map[uint32]addedFlags
	norm      []normalizer
	model     model
	maxBytes  int
	stripLeft bool // Decode drops a space at the start

	bos            uint32
	hasBOS         bool
	prefix, suffix []uint32 // what Options.BOS puts around a text
	end            []uint32
	encoders       sync.Pool // *encoder
}

// tokenSet are the tokens that are looked for in the text: as it came, and after normalization.
type tokenSet struct{ raw, norm trie }

// addedFlags are the odd rules of a token that was added to a vocabulary.
type addedFlags struct{ single, left, right bool }

// model encodes a run of text that holds no special token.
type model interface {
	// encode appends the tokens of s; first says that a special token, or nothing, stands before s, start that nothing does.
	encode(e *encoder, dst []uint32, s string, first, start bool) []uint32
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
	Special bool   // text that spells a control token becomes that token
	BOS     bool   // add the tokens that the model wants around a text, as BOS; one that the text begins with (with Special) is not repeated
	Mark    rune   // dropped from the text after special tokens were matched; see Guard. 0: none
	Cache   *Cache // of texts that were encoded before; nil: none. It does not change the result
}

// add puts a token into the sets in which it is looked for.
func (t *Tokenizer) add(s string, id uint32, special, normalized bool) {
	if special {
		t.special.add(s, id)
		t.guarded.raw.add(s, id)
	}
	n := s
	if normalized {
		n = normalize(t.norm, s)
	}
	put := func(set *tokenSet) {
		if normalized {
			set.norm.add(n, id)
		} else {
			set.raw.add(s, id)
		}
	}
	put(&t.all)
	if !special {
		put(&t.plain)
		put(&t.guarded)
	}
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
	if o.BOS {
		dst = append(dst, t.prefix...)
	}
	w := work{t: t, e: e, set: &t.plain, cache: o.Cache, first: true}
	mark := ""
	if o.Special {
		w.set = &t.all
		if o.Mark != 0 {
			w.set = &t.guarded
		}
	}
	if o.Mark != 0 && strings.ContainsRune(text, o.Mark) {
		mark = string(o.Mark)
	}
	t.matches(&w.set.raw, text, func(lo, hi int, id int64) {
		if id >= 0 {
			dst = append(dst, uint32(id))
			w.first = true
			return
		}
		s := text[lo:hi]
		w.start, w.again = lo == 0, mark != ""
		if mark != "" {
			s = strings.ReplaceAll(s, mark, "")
		}
		dst = w.cached(dst, s)
		w.first = false
	})
	if o.BOS {
		if len(t.prefix) == 1 && len(dst) > base+1 && dst[base+1] == t.prefix[0] {
			dst = slices.Delete(dst, base, base+1)
		}
		dst = append(dst, t.suffix...)
	}
	return dst
}

// work is the encoding of text between control tokens.
type work struct {
	t            *Tokenizer
	e            *encoder
	set          *tokenSet
	cache        *Cache
	first, start bool // see model
	again        bool // marks were taken out: tokens that are always matched may have come together
}

func (w *work) run(dst []uint32, s string) []uint32 {
	if !w.again || len(w.t.plain.raw.nodes) == 0 {
		return w.normal(dst, s, w.first, w.start)
	}
	first := w.first
	w.t.matches(&w.t.plain.raw, s, func(lo, hi int, id int64) {
		if id >= 0 {
			dst, first = append(dst, uint32(id)), true
			return
		}
		dst, first = w.normal(dst, s[lo:hi], first, w.start && lo == 0), false
	})
	return dst
}

// normal encodes text in which no raw token stands.
func (w *work) normal(dst []uint32, s string, first, start bool) []uint32 {
	t := w.t
	if start && s != "" {
		for i := range t.norm {
			if r, _ := utf8.DecodeRuneInString(s); t.norm[i].stripsLeft && isSpace(r) {
				start = false
			}
		}
	}
	s = normalize(t.norm, s)
	t.matches(&w.set.norm, s, func(lo, hi int, id int64) {
		if id >= 0 {
			dst, first = append(dst, uint32(id)), true
			return
		}
		dst = t.model.encode(w.e, dst, s[lo:hi], first, start && lo == 0)
		first = false
	})
	return dst
}

// matches cuts s into tokens of a set (id >= 0) and what stands between (id < 0): the leftmost token first, the longest of those.
func (t *Tokenizer) matches(set *trie, s string, emit func(lo, hi int, id int64)) {
	done := 0
	for i := 0; i < len(s) && len(set.nodes) > 0; {
		if !set.starts[s[i]] {
			if i++; set.single {
				n := strings.IndexByte(s[i:], set.first)
				if n < 0 {
					break
				}
				i += n
			}
			continue
		}
		id, n := set.longest(s[i:])
		if n == 0 {
			i++
			continue
		}
		lo, hi := i, i+n
		i = hi
		if f, ok := t.flags[id]; ok {
			if f.single && (wordBefore(s[:lo]) || wordBehind(s[hi:])) {
				continue
			}
			if f.left {
				lo = max(done, len(strings.TrimRightFunc(s[:lo], isSpace)))
			}
			if f.right {
				hi = len(s) - len(strings.TrimLeftFunc(s[hi:], isSpace))
			}
		}
		if done < lo {
			emit(done, lo, -1)
		}
		emit(lo, hi, int64(id))
		done = hi
	}
	if done < len(s) {
		emit(done, len(s), -1)
	}
}

func wordBefore(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && wordRune(r)
}

func wordBehind(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && wordRune(r)
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
	if t.stripLeft && len(b) > 0 && b[0] == ' ' {
		b = b[1:]
	}
	if utf8.Valid(b) {
		return string(b)
	}
	b, _ = detok.AppendValid(nil, b, true)
	return string(b)
}
