package tokenizer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// hfPattern is {"String": " "} or {"Regex": "\\s+"}.
type hfPattern struct{ String, Regex *string }

func (p hfPattern) compile(path string) (*pattern, error) {
	switch {
	case p.Regex != nil && p.String == nil:
		x, err := rxCompile(*p.Regex)
		if err != nil {
			return nil, fmt.Errorf("%s.pattern: %w", path, err)
		}
		return &pattern{rx: x}, nil
	case p.String != nil && p.Regex == nil && *p.String != "":
		return &pattern{text: *p.String}, nil
	}
	return nil, fmt.Errorf("%s.pattern: want one of String and Regex that is not empty", path)
}

// normalizers reads a normalizer, or a sequence of them.
func (r *hfReader) normalizers(b json.RawMessage, path string, depth int) ([]normalizer, error) {
	typ, err := typeOf(b, path)
	if err != nil || typ == "" {
		return nil, err
	}
	one := func(f func(string) string) ([]normalizer, error) { return []normalizer{{apply: f}}, nil }
	var v struct {
		Normalizers []json.RawMessage
		StripLeft   *bool `json:"strip_left"`
		StripRight  *bool `json:"strip_right"`
		Prepend     *string
		Pattern     hfPattern
		Content     *string
		Charsmap    string `json:"precompiled_charsmap"`
		Clean       *bool  `json:"clean_text"`
		Chinese     *bool  `json:"handle_chinese_chars"`
		Accents     *bool  `json:"strip_accents"`
		Lower       *bool  `json:"lowercase"`
	}
	if err := decode(b, path, &v); err != nil {
		return nil, err
	}
	yes := func(b *bool) bool { return b == nil || *b }
	switch typ {
	case "Sequence":
		if depth > 8 {
			return nil, fmt.Errorf("%s: sequences are nested more than 8 deep", path)
		}
		var all []normalizer
		for i, n := range v.Normalizers {
			more, err := r.normalizers(n, fmt.Sprintf("%s.normalizers[%d]", path, i), depth+1)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
		return all, nil
	case "NFC":
		return one(form(norm.NFC))
	case "NFD":
		return one(form(norm.NFD))
	case "NFKC":
		return one(form(norm.NFKC))
	case "NFKD":
		return one(form(norm.NFKD))
	case "Lowercase":
		return one(lower)
	case "StripAccents":
		return one(stripAccents)
	case "Nmt":
		return one(nmt)
	case "ByteLevel":
		return one(byteChars)
	case "Strip":
		left := yes(v.StripLeft)
		return []normalizer{{strip(left, yes(v.StripRight)), left}}, nil
	case "Prepend":
		if v.Prepend == nil {
			return nil, fmt.Errorf("%s: has no prepend", path)
		}
		return one(prepend(*v.Prepend))
	case "Replace":
		if v.Content == nil {
			return nil, fmt.Errorf("%s: has no content", path)
		}
		p, err := v.Pattern.compile(path)
		if err != nil {
			return nil, err
		}
		if r.growth *= 1 + len(*v.Content)/max(len(p.text), 1); r.growth > maxGrowth {
			return nil, fmt.Errorf("%s.content: the replacements together may make a text more than %d times as long", path, maxGrowth)
		}
		return one(replace(p, *v.Content))
	case "Precompiled":
		raw, err := base64.StdEncoding.DecodeString(v.Charsmap)
		if err != nil {
			return nil, fmt.Errorf("%s.precompiled_charsmap: %w", path, err)
		}
		m, err := newCharsmap(raw)
		if err != nil {
			return nil, fmt.Errorf("%s.precompiled_charsmap: %w", path, err)
		}
		return one(m.apply)
	case "BertNormalizer":
		o := bertOptions{clean: yes(v.Clean), chinese: yes(v.Chinese), lower: yes(v.Lower)}
		if o.accents = o.lower; v.Accents != nil {
			o.accents = *v.Accents
		}
		return one(bertNormalize(o))
	}
	return nil, unknownType(path, typ, "BertNormalizer, ByteLevel, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, Precompiled, Prepend, Replace, Sequence, Strip, StripAccents")
}

var behaviors = map[string]behavior{
	"Isolated": isolated, "Removed": removed, "MergedWithPrevious": withBefore, "MergedWithNext": withAfter, "Contiguous": contiguous,
}

// preTokenizers reads a pre-tokenizer, or a sequence of them.
func (r *hfReader) preTokenizers(b json.RawMessage, path string, depth int) ([]cut, error) {
	typ, err := typeOf(b, path)
	if err != nil || typ == "" {
		return nil, err
	}
	var v struct {
		PreTokenizers []json.RawMessage `json:"pretokenizers"`
		Prefix        *bool             `json:"add_prefix_space"`
		UseRegex      *bool             `json:"use_regex"`
		Pattern       json.RawMessage
		Behavior      string
		Invert        bool
		Individual    bool `json:"individual_digits"`
		Replacement   string
		Scheme        string `json:"prepend_scheme"`
		Split         *bool
		Delimiter     string
	}
	if err := decode(b, path, &v); err != nil {
		return nil, err
	}
	if r.byteLvl { // what comes behind sees the stand-ins of the bytes
		r.byteLvl = false
		cuts, err := r.preTokenizers(b, path, depth)
		return append([]cut{{change: func(s string, _ bool) string { return byteChars(s) }}}, cuts...), err
	}
	yes := func(b *bool) bool { return b == nil || *b }
	switch typ {
	case "Sequence":
		if depth > 8 {
			return nil, fmt.Errorf("%s: sequences are nested more than 8 deep", path)
		}
		var all []cut
		for i, p := range v.PreTokenizers {
			more, err := r.preTokenizers(p, fmt.Sprintf("%s.pretokenizers[%d]", path, i), depth+1)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
		return all, nil
	case "ByteLevel":
		var c cut
		if yes(v.Prefix) {
			c.change = prefixSpace
		}
		if yes(v.UseRegex) {
			c.scan = scanGPT2
		}
		if r.byteLvl = true; c.change == nil && c.scan == nil {
			return nil, nil
		}
		return []cut{c}, nil
	case "Split":
		var p hfPattern
		if err := decode(v.Pattern, path+".pattern", &p); err != nil {
			return nil, err
		}
		by, ok := behaviors[v.Behavior]
		if !ok {
			return nil, fmt.Errorf("%s.behavior: %q is not one of Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous", path, v.Behavior)
		}
		if p.Regex != nil {
			if f, ok := isolators[*p.Regex]; ok && (by == isolated || by == removed && v.Invert && whole[*p.Regex]) {
				return []cut{{scan: f}}, nil
			}
		}
		x, err := p.compile(path)
		if err != nil {
			return nil, err
		}
		x.by, x.invert = by, v.Invert
		return []cut{{pattern: x}}, nil
	case "Digits":
		return []cut{{next: runs(unicode.IsNumber, v.Individual, false)}}, nil
	case "Punctuation":
		if v.Behavior == "" {
			v.Behavior = "Isolated"
		}
		by, ok := behaviors[v.Behavior]
		if !ok {
			return nil, fmt.Errorf("%s.behavior: %q is not one of Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous", path, v.Behavior)
		}
		x := &rx{insts: []rxInst{{op: rxOne, set: newSet(isPunct)}, {op: rxDone}}}
		return []cut{{pattern: &pattern{rx: x, by: by}}}, nil
	case "Whitespace":
		return []cut{{next: words}}, nil
	case "WhitespaceSplit":
		return []cut{{next: runs(isSpace, false, true)}}, nil
	case "CharDelimiterSplit":
		if utf8.RuneCountInString(v.Delimiter) != 1 {
			return nil, fmt.Errorf("%s.delimiter: %q is not one character", path, v.Delimiter)
		}
		return []cut{{pattern: &pattern{text: v.Delimiter, by: removed}}}, nil
	case "BertPreTokenizer":
		return []cut{{next: bertCut}}, nil
	case "Metaspace":
		c, _, err := metaspaceOf(v.Replacement, v.Scheme, v.Prefix, path)
		if err == nil && yes(v.Split) {
			c.scan = before(v.Replacement)
		}
		return []cut{c}, err
	}
	return nil, unknownType(path, typ, "BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, Metaspace, Punctuation, Sequence, Split, Whitespace, WhitespaceSplit")
}

// metaspaceOf reads what Metaspace says of the start of a text, as pre-tokenizer and as decoder.
func metaspaceOf(replacement, scheme string, prefix *bool, path string) (cut, metaspace, error) {
	if utf8.RuneCountInString(replacement) != 1 {
		return cut{}, 0, fmt.Errorf("%s.replacement: %q is not one character", path, replacement)
	}
	when := metaAlways
	switch scheme {
	case "", "always":
		if prefix != nil && !*prefix {
			when = metaNever
		}
	case "first":
		when = metaFirst
	case "never":
		when = metaNever
	default:
		return cut{}, 0, fmt.Errorf("%s.prepend_scheme: %q is not one of always, first, never", path, scheme)
	}
	return cut{change: metaChange(replacement, when)}, when, nil
}
