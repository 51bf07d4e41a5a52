package tokenizer

import (
	"bufio"
	"bytes"
	"encoding/base64"
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
	t := &Tokenizer{pre: encoding}
	m := newBPE()
	m.words = map[string]uint32{}
	t.model = &pipeline{cuts: cuts, model: m}
	put := func(s string, id uint32, k kind) error {
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
		if err := put(string(s), uint32(id), kindNormal); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if _, ok := m.words[string(s)]; ok {
			return nil, fmt.Errorf("line %d: the token %q comes twice", n, s)
		}
		m.words[string(s)] = uint32(id)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	total := 0
	for b := range m.bytes {
		id, ok := m.words[string([]byte{byte(b)})]
		if !ok {
			return nil, fmt.Errorf("the byte %#02x is no token", b)
		}
		m.bytes[b] = int64(id)
	}
	pairs := func(f func(a, b, z uint32)) { // all ways to make a token of two
		for z, s := range t.pieces {
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
		return nil, fmt.Errorf("the tokens can be made in %d ways: at most %d are believed", total, 8*maxTokens)
	}
	m.merges = newMergeTable(total)
	pairs(func(a, b, z uint32) { m.merges.add(a, b, int(z), z) })
	for _, s := range slices.Sorted(maps.Keys(special)) {
		if s == "" {
			return nil, fmt.Errorf("a special token is empty")
		}
		if err := put(s, special[s], kindControl); err != nil {
			return nil, err
		}
		t.add(s, special[s], true, false)
		if endNames[s] {
			t.end = append(t.end, special[s])
		}
	}
	t.measure()
	return t, nil
}
