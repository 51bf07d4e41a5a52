package tokenizer

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/dynamograph/dynamo/graph/model/gguf"
)

// loadUnigram reads the model "t5".
func (t *Tokenizer) loadUnigram(f *gguf.File, tokens []string) error {
	scores, err := scoresOf(f, len(tokens))
	if err != nil {
		return err
	}
	if b, ok := f.Ints("tokenizer.ggml.precompiled_charsmap"); ok {
		raw := make([]byte, len(b))
		for i, v := range b {
			raw[i] = byte(v)
		}
		m, err := newCharsmap(raw)
		if err != nil {
			return fmt.Errorf("tokenizer.ggml.precompiled_charsmap: %w", err)
		}
		t.norm = append(t.norm, normalizer{apply: m.apply})
	} else if f.Has("tokenizer.ggml.precompiled_charsmap") {
		return errors.New("tokenizer.ggml.precompiled_charsmap must be an array of bytes")
	}
	if v, ok := f.Bool("tokenizer.ggml.remove_extra_whitespaces"); !ok || v {
		t.norm = append(t.norm, normalizer{apply: squeeze})
	}
	when := metaAlways
	if v, ok := f.Bool("tokenizer.ggml.add_space_prefix"); ok && !v {
		when = metaNever
	}
	unk := int64(-1)
	if id, ok := f.Uint("tokenizer.ggml.unknown_token_id"); ok && id < uint64(len(tokens)) {
		unk = int64(id)
	}
	t.pieces = make([]string, len(tokens))
	fallback := false
	for i, s := range tokens {
		t.pieces[i] = s
		switch t.kinds[i] {
		case kindUnknown:
			unk = int64(i)
		case kindByte:
			b, err := byteOf(s, i)
			if err != nil {
				return err
			}
			fallback, t.pieces[i] = true, string([]byte{b})
		case kindNormal, kindUserDefined, kindUnused:
			t.pieces[i] = strings.ReplaceAll(s, spmSpace, " ")
		}
	}
	m := newUnigram(tokens, scores, unk, func(i int) bool { return t.kinds[i] != kindControl && t.kinds[i] != kindUnused })
	m.fallback = fallback
	t.pre, t.stripLeft = "unigram", when != metaNever
	t.model = &pipeline{cuts: []cut{{change: metaChange(spmSpace, when), scan: before(spmSpace)}}, model: m}
	return nil
}

func scoresOf(f *gguf.File, n int) ([]float64, error) {
	scores, ok := f.Floats("tokenizer.ggml.scores")
	if !ok || len(scores) != n {
		return nil, fmt.Errorf("tokenizer.ggml.scores must be an array of %d floats, one a token", n)
	}
	for i, s := range scores {
		if math.IsNaN(s) || math.IsInf(s, 0) {
			return nil, fmt.Errorf("tokenizer.ggml.scores: the score of token %d is no number", i)
		}
	}
	return scores, nil
}

// loadWordPiece reads the model "bert", whose words begin with "▁" and whose pieces behind do not. The file does not say whether words are
// brought to lower case: they are where no token has a capital.
func (t *Tokenizer) loadWordPiece(f *gguf.File, tokens []string) error {
	m := &wordPiece{first: map[string]uint32{}, rest: map[string]uint32{}, maxRunes: 100}
	cased, known := false, false
	t.pieces = make([]string, len(tokens))
	for i, s := range tokens {
		t.pieces[i] = s
		if s == "[UNK]" {
			m.unk, known = uint32(i), true
		}
		if t.kinds[i] != kindNormal {
			continue
		}
		word, ok := strings.CutPrefix(s, spmSpace)
		if m.longest = max(m.longest, len(s)); ok {
			m.first[word], t.pieces[i] = uint32(i), " "+word
		} else {
			m.rest[s] = uint32(i)
		}
		cased = cased || lower(s) != s
	}
	if id, ok := f.Uint("tokenizer.ggml.unknown_token_id"); ok && id < uint64(len(tokens)) {
		m.unk, known = uint32(id), true
	}
	if !known {
		return errors.New("tokenizer.ggml.tokens: there is no unknown token [UNK]")
	}
	t.pre, t.stripLeft = "wordpiece", true
	t.norm = []normalizer{{apply: bertNormalize(bertOptions{clean: true, chinese: true, accents: !cased, lower: !cased})}}
	t.model = &pipeline{cuts: []cut{{next: bertCut}}, model: m}
	id := func(key, name string) (uint32, bool) {
		if v, ok := f.Uint("tokenizer.ggml." + key + "_token_id"); ok && v < uint64(len(tokens)) {
			return uint32(v), true
		}
		for i, s := range tokens {
			if s == name {
				return uint32(i), true
			}
		}
		return 0, false
	}
	if v, ok := id("bos", "[CLS]"); ok {
		t.bos, t.hasBOS = v, true
	}
	if v, ok := id("seperator", "[SEP]"); ok {
		t.suffix = []uint32{v}
	}
	return nil
}
