package tokenizer

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// tiktokens are the encodings of which the pre-tokenization is known, by their published names.
var tiktokens = map[string][]cut{
	"gpt2": scans(reGPT2), "r50k_base": scans(reGPT2), "p50k_base": scans(reGPT2), "cl100k_base": scans(reLlama3), "o200k_base": scans(reO200k),
	"o200k_harmony": scans(reO200k), "qwen": scans(reQwen2), "llama3": scans(reLlama3), "tekken": scans(reTekken),
}

// FromTiktoken makes a tokenizer from a file of tiktoken's ranks: a line for each token, its bytes in base64 and its number, which is also
// the order in which pairs are merged. The encoding names how text is cut: cl100k_base, o200k_base. Special maps control tokens to their
// numbers. A line that is not of the form is an error with its number.
func FromTiktoken(ranks []byte, encoding string, special map[string]uint32) (*Tokenizer, error) {
	t, err := fromTiktoken(ranks, encoding, special)
	if err != nil {
		return nil, fmt.Errorf("tiktoken: %w", err)
	}
	return t, nil
}

func fromTiktoken(ranks []byte, encoding string, special map[string]uint32) (*Tokenizer, error) {
	loadClasses()
	cuts, ok := tiktokens[encoding]
	if !ok {
		return nil, fmt.Errorf("the encoding %q is not supported; supported: %s", encoding, strings.Join(slices.Sorted(maps.Keys(tiktokens)), ", "))
	}
	r := newRanked(encoding, cuts)
	lines := bufio.NewScanner(bytes.NewReader(ranks))
	lines.Buffer(nil, 2*maxTokenText)
	n := 0
	for lines.Scan() {
		n++
		if len(lines.Bytes()) == 0 {
			continue
		}
		a, b, ok := strings.Cut(lines.Text(), " ")
		s, err := base64.StdEncoding.DecodeString(a)
		id, err2 := strconv.ParseUint(b, 10, 32)
		if !ok || err != nil || err2 != nil || len(s) == 0 {
			return nil, fmt.Errorf("line %d: %.80q is not a token in base64 and its number", n, lines.Text())
		}
		if err := r.word(string(s), uint32(id)); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	if err := r.merge(); err != nil {
		return nil, err
	}
	for _, s := range slices.Sorted(maps.Keys(special)) {
		if err := r.special(s, special[s]); err != nil {
			return nil, err
		}
	}
	r.t.measure()
	return r.t, nil
}

// ranked makes a tokenizer of tokens whose numbers are the order in which they are merged.
type ranked struct {
	t *Tokenizer
	m *bpe
}

func newRanked(pre string, cuts []cut) *ranked {
	m := newBPE()
	m.words = map[string]uint32{}
	return &ranked{t: &Tokenizer{pre: pre, model: &pipeline{cuts: cuts, model: m}}, m: m}
}

func (r *ranked) put(s string, id uint32, k kind) error {
	t := r.t
	if id >= maxTokens {
		return fmt.Errorf("%q has the number %d: numbers are below %d", s, id, maxTokens)
	}
	for uint32(len(t.pieces)) <= id {
		t.pieces, t.kinds = append(t.pieces, ""), append(t.kinds, kindUnused)
	}
	if t.kinds[id] != kindUnused {
		return fmt.Errorf("%q has the number %d, which is that of %q", s, id, t.pieces[id])
	}
	t.pieces[id], t.kinds[id] = s, k
	return nil
}

func (r *ranked) word(s string, id uint32) error {
	if err := r.put(s, id, kindNormal); err != nil {
		return err
	}
	if _, ok := r.m.words[s]; ok {
		return fmt.Errorf("the token %q comes twice", s)
	}
	r.m.words[s] = id
	return nil
}

// special adds a control token.
func (r *ranked) special(s string, id uint32) error {
	if s == "" {
		return errors.New("a special token is empty")
	}
	if err := r.put(s, id, kindControl); err != nil {
		return err
	}
	r.t.add(s, id, true, false)
	if endNames[s] {
		r.t.end = append(r.t.end, id)
	}
	return nil
}

// merge finds of which pairs the words are made, behind the last of them.
func (r *ranked) merge() error {
	m := r.m
	total := 0
	for b := range m.bytes {
		id, ok := m.words[string([]byte{byte(b)})]
		if !ok {
			return fmt.Errorf("the byte %#02x is no token", b)
		}
		m.bytes[b] = int64(id)
	}
	pairs := func(f func(a, b, z uint32)) { // all ways to make a token of two
		for z, s := range r.t.pieces {
			for i := 1; i < len(s); i++ {
				if a, ok := m.words[s[:i]]; ok {
					if b, ok := m.words[s[i:]]; ok {
						f(a, b, uint32(z))
					}
				}
			}
		}
	}
	pairs(func(_, _, _ uint32) { total++ })
	if total > 8*maxTokens {
		return fmt.Errorf("the tokens can be made in %d ways: at most %d are believed", total, 8*maxTokens)
	}
	m.merges = newMergeTable(total)
	pairs(func(a, b, z uint32) { m.merges.add(a, b, int(z), z) })
	return nil
}
