package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Limits of what a file may make Decode and Encode hold.
const (
	maxSteps     = 64      // normalizers or pre-tokenizers in a row
	maxTokenText = 1 << 16 // bytes of a token
	maxGrowth    = 1 << 10 // of a text by replacements
)

// FromHF makes a tokenizer from Hugging Face's tokenizer.json and, for the tokens that begin and end a sequence, tokenizer_config.json,
// which may be nil. The files are not trusted: what is not as the format says is an error with its place ("pre_tokenizer.type") and what was
// found; a part of a kind that is not known is refused by name, as what it does to text cannot be guessed.
func FromHF(tokenizerJSON, configJSON []byte) (*Tokenizer, error) {
	r := &hfReader{t: &Tokenizer{}, growth: 1}
	if err := r.read(tokenizerJSON); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	if configJSON != nil {
		if err := r.config(configJSON); err != nil {
			return nil, fmt.Errorf("tokenizer_config.json: %w", err)
		}
	}
	return r.t, nil
}

type hfReader struct {
	t       *Tokenizer
	texts   []string // of each token
	ids     map[string]uint32
	byteLvl bool // byte-level pre-tokenizer comes last: the model may take bytes
	special map[string]uint32
	growth  int // by which the replacements of the normalizers may lengthen a text
}

type hfFile struct {
	Added         []hfAdded       `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         json.RawMessage `json:"model"`
}

type hfAdded struct {
	ID         *uint32 `json:"id"`
	Content    string  `json:"content"`
	Single     bool    `json:"single_word"`
	Left       bool    `json:"lstrip"`
	Right      bool    `json:"rstrip"`
	Normalized bool    `json:"normalized"`
	Special    bool    `json:"special"`
}

func (r *hfReader) read(b []byte) error {
	loadClasses()
	var f hfFile
	if err := decode(b, "", &f); err != nil {
		return err
	}
	var err error
	if r.t.norm, err = r.normalizers(f.Normalizer, "normalizer", 0); err != nil {
		return err
	}
	cuts, err := r.preTokenizers(f.PreTokenizer, "pre_tokenizer", 0)
	if err != nil {
		return err
	}
	if len(cuts) > maxSteps || len(r.t.norm) > maxSteps {
		return fmt.Errorf("it has %d normalizers and %d pre-tokenizers: at most %d each", len(r.t.norm), len(cuts), maxSteps)
	}
	model, err := r.model(f.Model)
	if err != nil {
		return err
	}
	if r.byteLvl && !r.takesBytes(model) {
		cuts = append(cuts, cut{change: func(s string, _ bool) string { return byteChars(s) }})
	}
	r.t.model = &pipeline{cuts: cuts, model: model}
	if err := r.added(f.Added); err != nil {
		return err
	}
	if err := r.decoder(f.Decoder, "decoder"); err != nil {
		return err
	}
	r.t.measure()
	if err := r.post(f.PostProcessor, "post_processor", 0); err != nil {
		return err
	}
	for i, s := range r.texts {
		if r.t.kinds[i] == kindControl && endNames[s] {
			r.t.end = append(r.t.end, uint32(i))
		}
	}
	return nil
}

// grow makes room for a token of number id.
func (r *hfReader) grow(id uint32, path string) error {
	if id >= maxTokens {
		return fmt.Errorf("%s: token %d: numbers are below %d", path, id, maxTokens)
	}
	for uint32(len(r.texts)) <= id {
		r.texts = append(r.texts, "")
		r.t.kinds = append(r.t.kinds, kindUnused)
	}
	return nil
}

// vocab takes the tokens of a model.
func (r *hfReader) vocab(v map[string]uint32, path string) error {
	if len(v) == 0 {
		return fmt.Errorf("%s: has no tokens", path)
	}
	if len(v) > maxTokens {
		return fmt.Errorf("%s: has %d tokens: at most %d are believed", path, len(v), maxTokens)
	}
	most := uint32(0)
	for _, id := range v {
		most = max(most, id)
	}
	if most >= maxTokens || int64(most) > 16*int64(len(v))+1<<16 {
		return fmt.Errorf("%s: has %d tokens, and one of number %d", path, len(v), most)
	}
	if err := r.grow(most, path); err != nil {
		return err
	}
	for s, id := range v {
		if len(s) > maxTokenText {
			return fmt.Errorf("%s: token %d has %d bytes: at most %d", path, id, len(s), maxTokenText)
		}
		if r.t.kinds[id] != kindUnused {
			a, b := min(s, r.texts[id]), max(s, r.texts[id])
			return fmt.Errorf("%s: %q and %q have the same number %d", path, a, b, id)
		}
		r.texts[id], r.t.kinds[id] = s, kindNormal
	}
	r.ids = v
	return nil
}

// token is the number of a token that the file names.
func (r *hfReader) token(s, path string) (uint32, error) {
	id, ok := r.ids[s]
	if !ok {
		if id, ok = r.special[s]; !ok {
			return 0, fmt.Errorf("%s: %q is no token", path, s)
		}
	}
	return id, nil
}

func (r *hfReader) added(list []hfAdded) error {
	t := r.t
	r.special = map[string]uint32{}
	for i, a := range list {
		path := fmt.Sprintf("added_tokens[%d]", i)
		switch {
		case a.ID == nil:
			return fmt.Errorf("%s: has no id", path)
		case a.Content == "":
			return fmt.Errorf("%s: has no content", path)
		case len(a.Content) > maxTokenText:
			return fmt.Errorf("%s: has %d bytes: at most %d", path, len(a.Content), maxTokenText)
		case int64(*a.ID) > int64(len(r.texts))+1<<16:
			return fmt.Errorf("%s: %q has the number %d, far beyond the %d tokens of the vocabulary", path, a.Content, *a.ID, len(r.texts))
		}
		id := *a.ID
		if own, ok := r.ids[a.Content]; ok { // the model's number counts, as for the library
			id = own
		}
		if err := r.grow(id, path); err != nil {
			return err
		}
		if old := r.texts[id]; old != a.Content && t.kinds[id] != kindUnused {
			return fmt.Errorf("%s: %q has the number %d, which is that of %q", path, a.Content, id, old)
		}
		r.texts[id], r.special[a.Content] = a.Content, id
		if t.kinds[id] = kindUserDefined; a.Special {
			t.kinds[id] = kindControl
		}
		if a.Single || a.Left || a.Right {
			if t.flags == nil {
				t.flags = map[uint32]addedFlags{}
			}
			t.flags[id] = addedFlags{a.Single, a.Left, a.Right}
		}
		t.add(a.Content, id, a.Special, a.Normalized)
	}
	return nil
}

// post reads what the library calls a post-processor as far as it puts tokens around a text.
func (r *hfReader) post(b json.RawMessage, path string, depth int) error {
	typ, err := typeOf(b, path)
	if err != nil || typ == "" {
		return err
	}
	switch typ {
	case "ByteLevel":
		return nil
	case "Sequence":
		var v struct{ Processors []json.RawMessage }
		if err := decode(b, path, &v); err != nil {
			return err
		}
		if depth > 8 {
			return fmt.Errorf("%s: sequences are nested more than 8 deep", path)
		}
		for i, p := range v.Processors {
			if err := r.post(p, fmt.Sprintf("%s.processors[%d]", path, i), depth+1); err != nil {
				return err
			}
		}
		return nil
	case "BertProcessing", "RobertaProcessing":
		var v struct {
			Sep, Cls []any
		}
		if err := decode(b, path, &v); err != nil {
			return err
		}
		return errors.Join(r.around(v.Cls, path+".cls", &r.t.prefix), r.around(v.Sep, path+".sep", &r.t.suffix))
	case "TemplateProcessing":
		return r.template(b, path)
	}
	return unknownType(path, typ, "ByteLevel, BertProcessing, RobertaProcessing, Sequence, TemplateProcessing")
}

// around reads ["</s>", 2].
func (r *hfReader) around(v []any, path string, to *[]uint32) error {
	if len(v) == 2 {
		if n, ok := v[1].(float64); ok && n >= 0 && n < float64(len(r.texts)) && n == float64(uint32(n)) {
			*to = []uint32{uint32(n)}
			return nil
		}
	}
	return fmt.Errorf("%s: %v is not a token's text and number", path, v)
}

func (r *hfReader) template(b json.RawMessage, path string) error {
	var v struct {
		Single []map[string]struct {
			ID string `json:"id"`
		}
		Special map[string]struct {
			IDs []uint32 `json:"ids"`
		} `json:"special_tokens"`
	}
	if err := decode(b, path, &v); err != nil {
		return err
	}
	var around [2][]uint32
	behind := 0
	for i, piece := range v.Single {
		at := fmt.Sprintf("%s.single[%d]", path, i)
		if p, ok := piece["SpecialToken"]; ok && len(piece) == 1 {
			tok, ok := v.Special[p.ID]
			if !ok {
				return fmt.Errorf("%s: %q is not among special_tokens", at, p.ID)
			}
			for _, id := range tok.IDs {
				if int64(id) >= int64(len(r.texts)) {
					return fmt.Errorf("%s: %q is token %d of %d", at, p.ID, id, len(r.texts))
				}
			}
			around[behind] = append(around[behind], tok.IDs...)
			continue
		}
		if p, ok := piece["Sequence"]; !ok || len(piece) != 1 || p.ID != "A" || behind == 1 {
			return fmt.Errorf("%s: it must be special tokens around one sequence A", at)
		}
		behind = 1
	}
	if behind == 0 {
		return fmt.Errorf("%s.single: the sequence A is not in it", path)
	}
	r.t.prefix, r.t.suffix = around[0], around[1]
	if len(around[0]) > 0 {
		r.t.bos, r.t.hasBOS = around[0][0], true
	}
	return nil
}

// config reads tokenizer_config.json: only which tokens begin and end.
func (r *hfReader) config(b []byte) error {
	var c struct {
		BOS json.RawMessage `json:"bos_token"`
		EOS json.RawMessage `json:"eos_token"`
	}
	if err := decode(b, "", &c); err != nil {
		return err
	}
	read := func(b json.RawMessage, path string) (uint32, bool, error) {
		if len(b) == 0 || string(b) == "null" {
			return 0, false, nil
		}
		var v struct{ Content string }
		if json.Unmarshal(b, &v.Content) != nil {
			if err := decode(b, path, &v); err != nil {
				return 0, false, err
			}
		}
		id, err := r.token(v.Content, path)
		return id, err == nil, err
	}
	id, ok, err := read(c.BOS, "bos_token")
	if err != nil {
		return err
	}
	if ok {
		r.t.bos, r.t.hasBOS = id, true
	}
	if id, ok, err = read(c.EOS, "eos_token"); err != nil {
		return err
	}
	if ok {
		r.t.end = append([]uint32{id}, slices.DeleteFunc(r.t.end, func(e uint32) bool { return e == id })...)
	}
	return nil
}

// decode reads JSON into v; an error names the place.
func decode(b []byte, path string, v any) error {
	err := json.Unmarshal(b, v)
	if err == nil {
		return nil
	}
	var syn *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syn):
		before := b[:min(int(syn.Offset), len(b))]
		line := strings.Count(string(before), "\n") + 1
		column := len(before) - strings.LastIndexByte(string(before), '\n') - 1
		return fmt.Errorf("%d:%d: %w", line, max(column, 1), err)
	case errors.As(err, &typ):
		if typ.Field != "" {
			path = strings.TrimPrefix(path+"."+strings.ToLower(typ.Field), ".")
		}
		if path == "" {
			return fmt.Errorf("it is a JSON %s, not an object", typ.Value)
		}
		return fmt.Errorf("%s: found a JSON %s, want %s", path, typ.Value, jsonName(typ.Type.Kind().String()))
	}
	if path != "" {
		return fmt.Errorf("%s: %w", path, err)
	}
	return err
}

func jsonName(kind string) string {
	switch {
	case kind == "slice":
		return "an array"
	case kind == "map" || kind == "struct":
		return "an object"
	case kind == "bool":
		return "true or false"
	case strings.HasPrefix(kind, "int") || strings.HasPrefix(kind, "uint") || strings.HasPrefix(kind, "float"):
		return "a number (" + kind + ")"
	}
	return "a " + kind
}

// typeOf is the type of a part; "" where the part is null or missing.
func typeOf(b json.RawMessage, path string) (string, error) {
	if len(b) == 0 || string(b) == "null" {
		return "", nil
	}
	var v struct{ Type *string }
	if err := decode(b, path, &v); err != nil {
		return "", err
	}
	if v.Type == nil {
		return "", fmt.Errorf("%s: has no type", path)
	}
	return *v.Type, nil
}

func unknownType(path, typ, known string) error {
	return fmt.Errorf("%s.type: %s is not supported; supported: %s", path, strconv.Quote(typ), known)
}
