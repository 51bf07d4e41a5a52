package tokenizer

import (
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamograph/dynamo/graph/model/gguf"
)

const maxTokens = 1 << 22 // sixteen times the largest vocabulary in use

// FromGGUF makes a tokenizer from the tokenizer.ggml.* keys of f. The file is not trusted: arrays that do not fit each other are an error,
// as are a kind of tokenizer or pre-tokenizer that is not known, by name.
func FromGGUF(f *gguf.File) (*Tokenizer, error) {
	t, err := fromGGUF(f)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return t, nil
}

func fromGGUF(f *gguf.File) (*Tokenizer, error) {
	kindOf, ok := f.String("tokenizer.ggml.model")
	if !ok {
		return nil, errors.New("the file says no tokenizer.ggml.model: it carries no tokenizer")
	}
	tokens, ok := f.Strings("tokenizer.ggml.tokens")
	if !ok || len(tokens) == 0 {
		return nil, errors.New("tokenizer.ggml.tokens must be an array of strings")
	}
	if len(tokens) > maxTokens {
		return nil, fmt.Errorf("tokenizer.ggml.tokens has %d tokens: at most %d are believed", len(tokens), maxTokens)
	}
	t := &Tokenizer{kinds: make([]kind, len(tokens))}
	for i := range t.kinds {
		t.kinds[i] = kindNormal
	}
	if f.Has("tokenizer.ggml.token_type") {
		types, ok := f.Ints("tokenizer.ggml.token_type")
		if !ok || len(types) != len(tokens) {
			return nil, fmt.Errorf("tokenizer.ggml.token_type must be an array of %d integers, one a token", len(tokens))
		}
		for i, k := range types {
			if k < int64(kindNormal) || k > int64(kindByte) {
				k = int64(kindNormal)
			}
			t.kinds[i] = kind(k)
		}
	}
	for i, s := range tokens {
		switch t.kinds[i] {
		case kindControl, kindUnknown:
			t.add(s, uint32(i), true, false)
		case kindUserDefined:
			t.add(s, uint32(i), false, false)
		}
	}
	loadClasses()
	var err error
	addBOS := false
	switch kindOf {
	case "gpt2":
		addBOS, err = t.loadBPE(f, tokens)
	case "llama":
		addBOS, err = true, t.loadSPM(f, tokens)
	case "t5":
		err = t.loadUnigram(f, tokens)
	case "bert":
		addBOS, err = true, t.loadWordPiece(f, tokens)
	default:
		return nil, fmt.Errorf("tokenizer.ggml.model %q is not supported; supported: bert (WordPiece), gpt2 (byte-level BPE), llama (SentencePiece BPE), t5 (unigram)", kindOf)
	}
	if err != nil {
		return nil, err
	}
	t.measure()
	return t, t.loadEnds(f, tokens, addBOS)
}

func (t *Tokenizer) measure() {
	for _, p := range t.pieces {
		t.maxBytes = max(t.maxBytes, len(p))
	}
}

// loadEnds reads which tokens begin and end a sequence.
func (t *Tokenizer) loadEnds(f *gguf.File, tokens []string, addBOS bool) error {
	id := func(key string) (uint32, bool, error) {
		if !f.Has(key) {
			return 0, false, nil
		}
		v, ok := f.Uint(key)
		if n, _ := f.Ints(key); !ok && n == nil {
			if typ, _ := f.ValueType(key); strings.HasPrefix(typ, "int") {
				return 0, false, nil // -1 is written for "none"
			}
		}
		if v == math.MaxUint32 {
			return 0, false, nil
		}
		if !ok || v >= uint64(len(tokens)) {
			return 0, false, fmt.Errorf("%s must be a token below %d", key, len(tokens))
		}
		return uint32(v), true, nil
	}
	if v, ok, err := id("tokenizer.ggml.bos_token_id"); err != nil {
		return err
	} else if ok {
		t.bos, t.hasBOS = v, true
	}
	for _, key := range []string{"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"} {
		v, ok, err := id(key)
		if err != nil {
			return err
		}
		if ok && !slices.Contains(t.end, v) {
			t.end = append(t.end, v)
		}
	}
	for i, s := range tokens {
		if t.kinds[i] == kindControl && endNames[s] && !slices.Contains(t.end, uint32(i)) {
			t.end = append(t.end, uint32(i))
		}
	}
	if v, ok := f.Bool("tokenizer.ggml.add_bos_token"); ok {
		addBOS = v
	}
	if addBOS && t.hasBOS {
		t.prefix = []uint32{t.bos}
	}
	if v, ok := f.Bool("tokenizer.ggml.add_eos_token"); ok && v && len(t.end) > 0 && t.pre == "unigram" {
		t.suffix = t.end[:1]
	}
	return nil
}

// endNames are control tokens that end an answer though files seldom say so.
var endNames = map[string]bool{
	"<|im_end|>": true, "<|endoftext|>": true, "<|end_of_text|>": true, "<|eot_id|>": true, "<|eom_id|>": true, "<|end|>": true,
	"<end_of_turn>": true, "<EOT>": true,
}

// loadBPE returns whether texts begin with BOS where the file does not say.
func (t *Tokenizer) loadBPE(f *gguf.File, tokens []string) (bool, error) {
	pre, ok := f.String("tokenizer.ggml.pre")
	if !ok {
		return false, errors.New("the file says no tokenizer.ggml.pre: how text is cut before merging is not known (old files lack it: convert the model anew)")
	}
	how, ok := pres[pre]
	if !ok {
		return false, fmt.Errorf("tokenizer.ggml.pre %q is not supported; supported: %s", pre, preNames())
	}
	merges, ok := f.Strings("tokenizer.ggml.merges")
	if !ok && f.Has("tokenizer.ggml.merges") {
		return false, errors.New("tokenizer.ggml.merges must be an array of strings")
	}
	t.pre = pre
	if how.nfc {
		t.norm = []normalizer{nfc}
	}
	m := newBPE()
	t.model = &pipeline{cuts: how.cuts, model: m}
	t.bytePieces(tokens)
	byText := make(map[string]uint32, len(tokens)) // merges may lead to added tokens
	for i, s := range tokens {
		if _, ok := byText[s]; !ok {
			byText[s] = uint32(i)
		}
	}
	m.loadBytes(byText)
	m.merges = newMergeTable(len(merges))
	for rank, s := range merges {
		a, b, ok := strings.Cut(s, " ")
		x, okA := byText[a]
		y, okB := byText[b]
		z, okC := byText[a+b]
		if !ok || !okA || !okB || !okC {
			return false, fmt.Errorf("tokenizer.ggml.merges: merge %d, %q, is not of two tokens that make a token", rank, s)
		}
		m.merges.add(x, y, rank, z)
	}
	if how.words {
		t.loadWords(m)
	}
	return how.bos, nil
}

func newBPE() *bpe {
	m := &bpe{unk: -1, hashKey: maphash.MakeSeed()}
	for b := range m.bytes {
		m.bytes[b] = -1
	}
	return m
}

// loadBytes finds the token of each byte by its printable stand-in.
func (m *bpe) loadBytes(byText map[string]uint32) {
	for b, r := range byteRunes {
		if id, ok := byText[string(r)]; ok {
			m.bytes[b] = int64(id)
		}
	}
}

// loadWords makes the model take words that are tokens as they are.
func (t *Tokenizer) loadWords(m *bpe) {
	m.words = make(map[string]uint32, len(t.pieces))
	for i := len(t.pieces) - 1; i >= 0; i-- {
		if t.kinds[i] == kindNormal {
			m.words[t.pieces[i]] = uint32(i)
		}
	}
}

// bytePieces sets the bytes of tokens that are spelled in printable stand-ins; one that is not of those stands for itself.
func (t *Tokenizer) bytePieces(tokens []string) {
	t.pieces = make([]string, len(tokens))
	var blob []byte
	ends := make([]int, len(tokens))
	for i, s := range tokens {
		from := len(blob)
		blob = append(blob, s...)
		if t.kinds[i] == kindNormal || t.kinds[i] == kindUnused {
			blob = appendBytes(blob[:from], s)
		}
		ends[i] = len(blob)
	}
	all, from := string(blob), 0
	for i, end := range ends {
		t.pieces[i] = all[from:end]
		from = end
	}
}

func appendBytes(dst []byte, s string) []byte {
	from := len(dst)
	for _, r := range s {
		b, ok := runeBytes[r]
		if !ok {
			return append(dst[:from], s...)
		}
		dst = append(dst, b)
	}
	return dst
}

var runeBytes = func() map[rune]byte {
	m := make(map[rune]byte, 256)
	for b, r := range byteRunes {
		m[r] = byte(b)
	}
	return m
}()

// byteRunes is GPT-2's printable stand-in for each byte.
var byteRunes = func() (m [256]rune) {
	n := rune(256)
	for b := range m {
		if b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE {
			m[b] = rune(b)
		} else {
			m[b] = n
			n++
		}
	}
	return m
}()

// byteOf reads <0x0A>.
func byteOf(s string, i int) (byte, error) {
	b, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(s, "<0x"), ">"), 16, 8)
	if err != nil || len(s) != len("<0x00>") {
		return 0, fmt.Errorf("tokenizer.ggml.tokens: byte token %d is %q, not of the form <0x0A>", i, s)
	}
	return byte(b), nil
}

func (t *Tokenizer) loadSPM(f *gguf.File, tokens []string) error {
	scores, ok := f.Floats("tokenizer.ggml.scores")
	if !ok || len(scores) != len(tokens) {
		return fmt.Errorf("tokenizer.ggml.scores must be an array of %d floats, one a token", len(tokens))
	}
	m := &spm{tokens: make(map[string]scored, len(tokens)), unk: -1, prefix: true, seed: maphash.MakeSeed()}
	for b := range m.bytes {
		m.bytes[b] = -1
	}
	t.model, t.pre = m, "spm"
	if v, ok := f.Bool("tokenizer.ggml.add_space_prefix"); ok {
		m.prefix = v
	}
	t.pieces = make([]string, len(tokens))
	for i, s := range tokens {
		t.pieces[i] = s
		switch t.kinds[i] {
		case kindNormal, kindUserDefined:
			if math.IsNaN(scores[i]) {
				return fmt.Errorf("tokenizer.ggml.scores: the score of token %d is no number", i)
			}
			if _, ok := m.tokens[s]; !ok && s != "" {
				m.tokens[s] = scored{uint32(i), float32(scores[i])}
			}
			t.pieces[i] = strings.ReplaceAll(s, spmSpace, " ")
		case kindUnused:
			t.pieces[i] = strings.ReplaceAll(s, spmSpace, " ")
		case kindByte:
			b, err := byteOf(s, i)
			if err != nil {
				return err
			}
			m.bytes[b] = int64(i)
			t.pieces[i] = string([]byte{b})
		case kindUnknown:
			m.unk = int64(i)
		}
	}
	m.borders = bordersOf(maps.Keys(m.tokens))
	return nil
}
