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
		case kindControl:
			t.special.add(s, uint32(i))
			t.both.add(s, uint32(i))
		case kindUserDefined:
			t.added.add(s, uint32(i))
			t.both.add(s, uint32(i))
		}
	}
	var err error
	switch kindOf {
	case "gpt2":
		err = t.loadBPE(f, tokens)
	case "llama":
		err = t.loadSPM(f, tokens)
	default:
		return nil, fmt.Errorf("tokenizer.ggml.model %q is not supported; supported: gpt2 (byte-level BPE), llama (SentencePiece BPE)", kindOf)
	}
	if err != nil {
		return nil, err
	}
	for _, p := range t.pieces {
		t.maxBytes = max(t.maxBytes, len(p))
	}
	return t, t.loadEnds(f, tokens)
}

// loadEnds reads which tokens begin and end a sequence.
func (t *Tokenizer) loadEnds(f *gguf.File, tokens []string) error {
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
	var err error
	if t.bos, t.hasBOS, err = id("tokenizer.ggml.bos_token_id"); err != nil {
		return err
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
		t.addBOS = v
	}
	t.addBOS = t.addBOS && t.hasBOS
	return nil
}

// endNames are control tokens that end an answer though files seldom say so.
var endNames = map[string]bool{
	"<|im_end|>": true, "<|endoftext|>": true, "<|end_of_text|>": true, "<|eot_id|>": true, "<|eom_id|>": true, "<|end|>": true,
	"<end_of_turn>": true, "<EOT>": true,
}

func (t *Tokenizer) loadBPE(f *gguf.File, tokens []string) error {
	pre, ok := f.String("tokenizer.ggml.pre")
	if !ok {
		return errors.New("the file says no tokenizer.ggml.pre: how text is cut before merging is not known (old files lack it: convert the model anew)")
	}
	scan, ok := scanners[pre]
	if !ok {
		return fmt.Errorf("tokenizer.ggml.pre %q is not supported; supported: %s", pre,
			strings.Join(slices.Sorted(maps.Keys(scanners)), ", "))
	}
	t.pre = pre
	m := &bpe{scan: scan, unk: -1, hashKey: maphash.MakeSeed()}
	t.model = m
	byText := make(map[string]uint32, len(tokens))
	unchar := map[rune]byte{}
	for b, r := range byteRunes {
		unchar[r] = byte(b)
		m.bytes[b] = -1
	}
	t.pieces = make([]string, len(tokens))
	var blob strings.Builder
	ends := make([]int, len(tokens))
	for i, s := range tokens {
		if t.kinds[i] == kindNormal || t.kinds[i] == kindUnused {
			if _, ok := byText[s]; !ok {
				byText[s] = uint32(i)
			}
			for _, r := range s {
				if b, ok := unchar[r]; ok {
					blob.WriteByte(b)
				} else {
					blob.WriteRune(r)
				}
			}
		} else {
			if _, ok := byText[s]; !ok { // merges may lead to added tokens
				byText[s] = uint32(i)
			}
			blob.WriteString(s)
		}
		ends[i] = blob.Len()
	}
	all, from := blob.String(), 0
	for i, end := range ends {
		t.pieces[i] = all[from:end]
		from = end
	}
	for b, r := range byteRunes {
		if id, ok := byText[string(r)]; ok {
			m.bytes[b] = int64(id)
		}
	}
	merges, ok := f.Strings("tokenizer.ggml.merges")
	if !ok && f.Has("tokenizer.ggml.merges") {
		return errors.New("tokenizer.ggml.merges must be an array of strings")
	}
	m.merges = newMergeTable(len(merges))
	for rank, s := range merges {
		a, b, ok := strings.Cut(s, " ")
		x, okA := byText[a]
		y, okB := byText[b]
		z, okC := byText[a+b]
		if !ok || !okA || !okB || !okC {
			return fmt.Errorf("tokenizer.ggml.merges: merge %d, %q, is not of two tokens that make a token", rank, s)
		}
		m.merges.add(x, y, rank, z)
	}
	switch pre {
	case "llama-bpe", "llama3", "llama-v3":
		t.addBOS = true
		m.words = make(map[string]uint32, len(tokens))
		for i := len(tokens) - 1; i >= 0; i-- {
			if t.kinds[i] == kindNormal {
				m.words[t.pieces[i]] = uint32(i)
			}
		}
	case "qwen2", "deepseek-r1-qwen":
		m.nfc = true
	}
	return nil
}

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

func (t *Tokenizer) loadSPM(f *gguf.File, tokens []string) error {
	scores, ok := f.Floats("tokenizer.ggml.scores")
	if !ok || len(scores) != len(tokens) {
		return fmt.Errorf("tokenizer.ggml.scores must be an array of %d floats, one a token", len(tokens))
	}
	m := &spm{tokens: make(map[string]scored, len(tokens)), unk: -1, prefix: true}
	for b := range m.bytes {
		m.bytes[b] = -1
	}
	t.model, t.pre, t.addBOS = m, "spm", true
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
			b, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(s, "<0x"), ">"), 16, 8)
			if err != nil || len(s) != len("<0x00>") {
				return fmt.Errorf("tokenizer.ggml.tokens: byte token %d is %q, not of the form <0x0A>", i, s)
			}
			m.bytes[b] = int64(i)
			t.pieces[i] = string([]byte{byte(b)})
		case kindUnknown:
			m.unk = int64(i)
		}
	}
	return nil
}
