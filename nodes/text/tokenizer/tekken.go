package tokenizer

import (
	"encoding/base64"
	"fmt"
	"slices"
)

// tekkenOld are the control tokens of files that do not list theirs, by number.
var tekkenOld = []string{
	"<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]",
	"[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]",
}

// FromTekken makes a tokenizer from Mistral's tekken.json. Its control tokens have the first numbers; where the file does not list them they
// are those of version 7. The file is not trusted: what is not as the format says is an error with its place.
func FromTekken(b []byte) (*Tokenizer, error) {
	t, err := fromTekken(b)
	if err != nil {
		return nil, fmt.Errorf("tekken.json: %w", err)
	}
	return t, nil
}

func fromTekken(b []byte) (*Tokenizer, error) {
	loadClasses()
	var f struct {
		Config struct {
			Pattern string
			Size    uint32 `json:"default_vocab_size"`
			Control uint32 `json:"default_num_special_tokens"`
			Version string
		}
		Vocab []struct {
			Rank  uint32
			Bytes string `json:"token_bytes"`
		}
		Special *[]struct {
			Rank uint32
			Text string `json:"token_str"`
		} `json:"special_tokens"`
	}
	if err := decode(b, "", &f); err != nil {
		return nil, err
	}
	c := f.Config
	if c.Pattern == "" {
		return nil, fmt.Errorf("config.pattern: it is empty or missing")
	}
	if c.Size > maxTokens || c.Control >= c.Size || int64(c.Size-c.Control) > int64(len(f.Vocab)) {
		return nil, fmt.Errorf("config: %d tokens, %d special ones of them, do not fit a vocabulary of %d", c.Size, c.Control, len(f.Vocab))
	}
	x, err := hfPattern{Regex: &c.Pattern}.compile("config")
	if err != nil {
		return nil, err
	}
	x.by, x.invert = removed, true // what does not match is no text to the library
	step := cut{pattern: x}
	if scan, ok := isolators[c.Pattern]; ok && whole[c.Pattern] {
		step = cut{scan: scan}
	}
	r := newRanked("tekken", []cut{step})
	for i, v := range f.Vocab[:c.Size-c.Control] {
		s, err := base64.StdEncoding.DecodeString(v.Bytes)
		if err != nil || len(s) == 0 || len(s) > maxTokenText {
			return nil, fmt.Errorf("vocab[%d].token_bytes: %.80q is no token in base64", i, v.Bytes)
		}
		if v.Rank != uint32(i) {
			return nil, fmt.Errorf("vocab[%d].rank: %d, but tokens stand in the order of their ranks", i, v.Rank)
		}
		if err := r.word(string(s), c.Control+v.Rank); err != nil {
			return nil, fmt.Errorf("vocab[%d]: %w", i, err)
		}
	}
	if err := r.merge(); err != nil {
		return nil, err
	}
	names := make([]string, c.Control)
	if f.Special == nil {
		if !slices.Contains([]string{"v1", "v2", "v3", "v7"}, c.Version) {
			return nil, fmt.Errorf("special_tokens: missing, which version %q may not", c.Version)
		}
		copy(names, tekkenOld)
	} else {
		for i, s := range *f.Special {
			if s.Rank >= c.Control || names[s.Rank] != "" || s.Text == "" {
				return nil, fmt.Errorf("special_tokens[%d]: %q has the number %d, of %d", i, s.Text, s.Rank, c.Control)
			}
			names[s.Rank] = s.Text
		}
	}
	for id, s := range names {
		if s == "" { // so does the library
			s = fmt.Sprintf("<SPECIAL_%d>", id)
		}
		if err := r.special(s, uint32(id)); err != nil {
			return nil, fmt.Errorf("special_tokens: %w", err)
		}
	}
	t := r.t
	if bos := slices.Index(names, "<s>"); bos >= 0 {
		t.bos, t.hasBOS, t.prefix = uint32(bos), true, []uint32{uint32(bos)}
	}
	if eos := slices.Index(names, "</s>"); eos >= 0 {
		t.end = append([]uint32{uint32(eos)}, t.end...)
	}
	t.measure()
	return t, nil
}
