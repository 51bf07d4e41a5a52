package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
)

// takesBytes reports whether m wants bytes, not their printable stand-ins.
func (r *hfReader) takesBytes(m wordModel) bool {
	b, ok := m.(*bpe)
	return ok && b.chars == nil
}

func (r *hfReader) model(b json.RawMessage) (wordModel, error) {
	if len(b) == 0 || string(b) == "null" {
		return nil, fmt.Errorf("model: is missing")
	}
	var v struct {
		Type         string
		Vocab        json.RawMessage
		Merges       json.RawMessage
		Dropout      float64
		Unk          *string `json:"unk_token"`
		UnkID        *int64  `json:"unk_id"`
		Prefix       *string `json:"continuing_subword_prefix"`
		Suffix       *string `json:"end_of_word_suffix"`
		Fuse         bool    `json:"fuse_unk"`
		Fallback     bool    `json:"byte_fallback"`
		IgnoreMerges bool    `json:"ignore_merges"`
		MaxChars     *int    `json:"max_input_chars_per_word"`
	}
	if err := decode(b, "model", &v); err != nil {
		return nil, err
	}
	if v.Type == "" && v.Merges != nil {
		v.Type = "BPE" // old files
	}
	if r.t.pre = v.Type; v.Type == "Unigram" {
		return r.unigram(v.Vocab, v.UnkID, v.Fallback)
	}
	switch v.Type {
	case "BPE", "WordPiece", "WordLevel":
	default:
		return nil, unknownType("model", v.Type, "BPE, Unigram, WordLevel, WordPiece")
	}
	var vocab map[string]uint32
	if err := decode(v.Vocab, "model.vocab", &vocab); err != nil {
		return nil, err
	}
	if err := r.vocab(vocab, "model.vocab"); err != nil {
		return nil, err
	}
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	if v.Type != "BPE" {
		unk := "[UNK]"
		if v.Type == "WordLevel" {
			unk = "<unk>"
		}
		if v.Unk != nil {
			unk = *v.Unk
		}
		id, ok := vocab[unk]
		if !ok {
			return nil, fmt.Errorf("model.unk_token: %q is not in model.vocab", unk)
		}
		if v.Type == "WordLevel" {
			return &wordLevel{vocab, id}, nil
		}
		prefix, most := "##", 100
		if v.Prefix != nil {
			prefix = *v.Prefix
		}
		if v.MaxChars != nil {
			most = *v.MaxChars
		}
		if most < 0 || most > 1<<16 {
			return nil, fmt.Errorf("model.max_input_chars_per_word: %d is not between 0 and %d", most, 1<<16)
		}
		return newWordPiece(vocab, prefix, id, most), nil
	}
	if v.Dropout != 0 {
		return nil, fmt.Errorf("model.dropout: %v makes tokens random: it is for training", v.Dropout)
	}
	m := newBPE()
	prefix, suffix := text(v.Prefix), text(v.Suffix)
	if v.Unk != nil {
		id, ok := vocab[*v.Unk]
		if !ok {
			return nil, fmt.Errorf("model.unk_token: %q is not in model.vocab", *v.Unk)
		}
		m.unk = int64(id)
	}
	m.loadBytes(vocab)
	every := true
	for _, id := range m.bytes {
		every = every && id >= 0
	}
	if !r.byteLvl || prefix != "" || suffix != "" || v.Fallback || m.unk >= 0 && !every {
		m.chars = &chars{vocab: vocab, prefix: prefix, suffix: suffix, fallback: v.Fallback, fuse: v.Fuse}
		for b := range m.bytes {
			m.bytes[b] = -1
			if id, ok := vocab[byteToken(byte(b))]; ok {
				m.bytes[b] = int64(id)
			}
		}
	}
	if v.IgnoreMerges {
		m.words = vocab
		if m.chars == nil {
			m.words = make(map[string]uint32, len(vocab))
			for s, id := range vocab {
				if b := appendBytes(nil, s); string(b) != s || isPlain(s) {
					m.words[string(b)] = id
				}
			}
		}
	}
	if m.chars != nil && m.words == nil && prefix == "" && suffix == "" {
		m.borders = bordersOf(maps.Keys(vocab))
	}
	return m, r.merges(v.Merges, m, len(prefix))
}

// isPlain reports whether every byte stands for itself.
func isPlain(s string) bool {
	for _, r := range s {
		if r > '~' {
			return false
		}
	}
	return true
}

// merges reads ["a b", …] or [["a", "b"], …].
func (r *hfReader) merges(b json.RawMessage, m *bpe, prefix int) error {
	var list [][]string
	var old []string
	if json.Unmarshal(b, &old) == nil {
		list = make([][]string, len(old))
		for i, s := range old {
			list[i] = strings.Split(s, " ")
		}
	} else if err := decode(b, "model.merges", &list); err != nil {
		return err
	}
	if len(list) > 4*maxTokens {
		return fmt.Errorf("model.merges: has %d merges: at most %d are believed", len(list), 4*maxTokens)
	}
	m.merges = newMergeTable(len(list))
	for i := len(list) - 1; i >= 0; i-- { // the last of equals counts, and the table keeps the first
		p := list[i]
		if len(p) != 2 {
			return fmt.Errorf("model.merges[%d]: %q is not two tokens", i, p)
		}
		x, okX := r.ids[p[0]]
		y, okY := r.ids[p[1]]
		if !okX || !okY || len(p[1]) < prefix {
			return fmt.Errorf("model.merges[%d]: %q is not two tokens of model.vocab", i, p)
		}
		z, ok := r.ids[p[0]+p[1][prefix:]]
		if !ok {
			return fmt.Errorf("model.merges[%d]: %q makes %q, which is not in model.vocab", i, p, p[0]+p[1][prefix:])
		}
		m.merges.add(x, y, i, z)
	}
	return nil
}

// hfPiece is ["▁the", -3.2].
type hfPiece struct {
	text  string
	score float64
}

func (p *hfPiece) UnmarshalJSON(b []byte) error {
	var v []json.RawMessage
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	ok := len(v) == 2 && json.Unmarshal(v[0], &p.text) == nil
	if ok {
		p.score, ok = scoreOf(string(v[1]))
	}
	if !ok {
		return fmt.Errorf("%.80s is not a piece with its score", b)
	}
	return nil
}

// scoreOf reads a number as the reference does, whose reader rounds twice: the digits as an integer, and what a power of ten makes of it.
// Where two ways to cut a word are equally good the last bit decides.
func scoreOf(s string) (float64, bool) {
	if _, err := strconv.ParseFloat(s, 64); err != nil {
		return 0, false
	}
	digits, neg := strings.CutPrefix(s, "-")
	digits, exp, _ := strings.Cut(strings.ToLower(digits), "e")
	e, _ := strconv.Atoi(exp)
	n, point, full := uint64(0), false, false
	for _, c := range digits {
		if c == '.' {
			point = true
			continue
		}
		if d := uint64(c - '0'); !full && n <= (math.MaxUint64-d)/10 {
			if n = 10*n + d; point {
				e--
			}
		} else if full = true; !point {
			e++
		}
	}
	f := float64(n)
	for ; e < -308; e += 308 {
		f /= 1e308
	}
	if e < 0 {
		f /= math.Pow10(-e)
	} else {
		f *= math.Pow10(e)
	}
	if neg {
		f = -f
	}
	return f, !math.IsInf(f, 0)
}

func (r *hfReader) unigram(b json.RawMessage, unk *int64, fallback bool) (wordModel, error) {
	var list []hfPiece
	if err := decode(b, "model.vocab", &list); err != nil {
		return nil, err
	}
	if len(list) == 0 || len(list) > maxTokens {
		return nil, fmt.Errorf("model.vocab: has %d tokens: want 1 to %d", len(list), maxTokens)
	}
	id := int64(-1)
	if unk != nil {
		if id = *unk; id < 0 || id >= int64(len(list)) {
			return nil, fmt.Errorf("model.unk_id: %d is not a token below %d", id, len(list))
		}
	}
	scores := make([]float64, len(list))
	r.ids = make(map[string]uint32, len(list))
	for i, p := range list {
		if len(p.text) > maxTokenText || math.Abs(p.score) > 1e100 {
			return nil, fmt.Errorf("model.vocab[%d]: a piece of %d bytes with the score %g: at most %d bytes", i, len(p.text), p.score, maxTokenText)
		}
		r.texts = append(r.texts, p.text)
		r.t.kinds = append(r.t.kinds, kindNormal)
		r.ids[p.text], scores[i] = uint32(i), p.score
	}
	m := newUnigram(r.texts, scores, id, func(int) bool { return true })
	m.fallback = fallback
	return m, nil
}

// decoder sets the bytes of each token.
func (r *hfReader) decoder(b json.RawMessage, path string) error {
	t := r.t
	t.pieces = make([]string, len(r.texts))
	copy(t.pieces, r.texts)
	typ, err := typeOf(b, path)
	if err != nil {
		return err
	}
	if typ == "" { // words with a space between
		t.stripLeft = true
		r.each(func(s string) string { return " " + s })
		return nil
	}
	fused := false
	return r.decode(b, path, &fused, 0)
}

// each changes the tokens that are not control tokens.
func (r *hfReader) each(f func(string) string) {
	for i, k := range r.t.kinds {
		if k == kindNormal || k == kindUserDefined {
			r.t.pieces[i] = f(r.t.pieces[i])
		}
	}
}

func (r *hfReader) decode(b json.RawMessage, path string, fused *bool, depth int) error {
	typ, err := typeOf(b, path)
	if err != nil || typ == "" {
		return err
	}
	var v struct {
		Decoders    []json.RawMessage
		Pattern     hfPattern
		Content     *string
		Start, Stop int
		Replacement string
		Scheme      string `json:"prepend_scheme"`
		AddPrefix   *bool  `json:"add_prefix_space"`
		Prefix      string
		Suffix      string
	}
	if err := decode(b, path, &v); err != nil {
		return err
	}
	switch typ {
	case "Sequence":
		if depth > 8 {
			return fmt.Errorf("%s: sequences are nested more than 8 deep", path)
		}
		for i, d := range v.Decoders {
			if err := r.decode(d, fmt.Sprintf("%s.decoders[%d]", path, i), fused, depth+1); err != nil {
				return err
			}
		}
	case "ByteLevel":
		r.t.bytePieces(r.texts)
	case "ByteFallback":
		for b := range 256 {
			if id, ok := r.ids[byteToken(byte(b))]; ok && r.t.kinds[id] == kindNormal {
				r.t.kinds[id], r.t.pieces[id] = kindByte, string([]byte{byte(b)})
			}
		}
	case "Fuse":
		*fused = true
	case "Replace":
		if v.Content == nil {
			return fmt.Errorf("%s: has no content", path)
		}
		p, err := v.Pattern.compile(path)
		if err != nil {
			return err
		}
		r.each(replace(p, *v.Content))
	case "Metaspace":
		_, when, err := metaspaceOf(v.Replacement, v.Scheme, v.AddPrefix, path)
		if err != nil {
			return err
		}
		r.t.stripLeft = when != metaNever
		r.each(func(s string) string { return strings.ReplaceAll(s, v.Replacement, " ") })
	case "Strip":
		if v.Content == nil || *v.Content != " " || v.Start < 0 || v.Start > 1 || v.Stop != 0 || !*fused {
			return fmt.Errorf("%s: only one space at the start of the whole text is supported, behind Fuse", path)
		}
		r.t.stripLeft = v.Start == 1
	case "WordPiece":
		r.t.stripLeft = true
		r.each(func(s string) string {
			if rest, ok := strings.CutPrefix(s, v.Prefix); ok {
				return rest
			}
			return " " + s
		})
	case "BPEDecoder":
		r.each(func(s string) string { return strings.ReplaceAll(s, v.Suffix, " ") })
	default:
		return unknownType(path, typ, "BPEDecoder, ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Sequence, Strip, WordPiece")
	}
	return nil
}
