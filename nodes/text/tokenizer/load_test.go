package tokenizer

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/model/gguf/gguftest"
)

// hfBPE is a byte-level tokenizer.json; with is put before its model.
func hfBPE(with string) string {
	var vocab []string
	for i, r := range byteRunes {
		vocab = append(vocab, fmt.Sprintf("%q: %d", string(r), i))
	}
	return `{"added_tokens": [{"id": 258, "content": "<s>", "special": true}, {"id": 259, "content": "<think>", "normalized": true}], ` + with + `
"model": {"type": "BPE", "vocab": {` + strings.Join(vocab, ", ") + `, "ab": 256, "Ġab": 257}, "merges": [["a", "b"], ["Ġ", "ab"]]}}`
}

const hfByteLevel = `"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"}, `

func TestFromHF(t *testing.T) {
	tok, err := FromHF([]byte(hfBPE(hfByteLevel)), []byte(`{"bos_token": {"content": "<s>"}, "eos_token": "ab"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := show(tok, tok.Encode(nil, "ab ab<s><think>ü", Options{Special: true})); got != "ab| ab|<s>|<think>|\xc3|\xbc" {
		t.Errorf("got %q", got)
	}
	if got := show(tok, tok.Encode(nil, "<s>", Options{})); got != "<|s|>" {
		t.Errorf("user's text became %q", got)
	}
	if b, ok := tok.BOS(); !ok || b != 258 || !slices.Equal(tok.EOS(), []uint32{256}) {
		t.Errorf("BOS %d, EOS %v", b, tok.EOS())
	}
}

// TestGuardNormalized: a control token that the library looks for in normalized text is not made by a user who writes what becomes it.
func TestGuardNormalized(t *testing.T) {
	src := strings.Replace(hfBPE(`"normalizer": {"type": "Lowercase"}, `+hfByteLevel), `"content": "<s>", "special": true`, `"content": "<s>", "special": true, "normalized": true`, 1)
	tok, err := FromHF([]byte(src), nil)
	if err != nil {
		t.Fatal(err)
	}
	const mark = '\uFDD0'
	for _, user := range []string{"<S>", "<s>", "a<S> <s>"} {
		n := 0
		for _, id := range tok.Encode(nil, "<s>"+tok.Guard(user, mark)+"<s>", Options{Special: true, Mark: mark}) {
			if tok.IsSpecial(id) {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%q makes %d control tokens, want the template's 2", user, n)
		}
	}
	if got := tok.Encode(nil, "<S>", Options{Special: true}); !slices.Equal(got, []uint32{258}) {
		t.Errorf("without a mark, as the library: %v", got)
	}
}

func TestFromHFRefused(t *testing.T) {
	model := func(s string) string { return `{"model": ` + s + `}` }
	for name, c := range map[string]struct{ src, want string }{
		"not JSON":     {"{\n  \"model\": oops}", "tokenizer.json: 2:12: invalid character 'o'"},
		"cut":          {`{"model": {`, "1:11: unexpected end"},
		"array":        {`[]`, "JSON array, not an object"},
		"nothing":      {`{}`, "model: is missing"},
		"model's type": {model(`{"type": "RNN"}`), `model.type: "RNN" is not supported; supported: BPE, Unigram`},
		"normalizer":   {hfBPE(`"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Rot13"}]}, `), `normalizer.normalizers[1].type: "Rot13" is not supported`},
		"growth": {hfBPE(`"normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": "` + strings.Repeat("a", 2000) + `"}, `),
			"normalizer.content: the replacements together"},
		"no type":        {hfBPE(`"normalizer": {}, `), "normalizer: has no type"},
		"pre-tokenizer":  {hfBPE(`"pre_tokenizer": {"type": "UnicodeScripts"}, `), `pre_tokenizer.type: "UnicodeScripts" is not supported`},
		"expression":     {hfBPE(`"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(?<=a)b"}, "behavior": "Isolated"}, `), `pre_tokenizer.pattern: regular expression "(?<=a)b": at byte 2`},
		"behavior":       {hfBPE(`"pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "Odd"}, `), `pre_tokenizer.behavior: "Odd"`},
		"no pattern":     {hfBPE(`"pre_tokenizer": {"type": "Split", "pattern": {}, "behavior": "Isolated"}, `), "want one of String and Regex"},
		"decoder":        {hfBPE(`"decoder": {"type": "CTC"}, `), `decoder.type: "CTC"`},
		"charsmap":       {hfBPE(`"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA/w=="}, `), "precompiled_charsmap: a map of characters says"},
		"dropout":        {model(`{"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.1}`), "model.dropout: 0.1"},
		"same number":    {model(`{"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []}`), `model.vocab: "a" and "b" have the same number 0`},
		"far number":     {model(`{"type": "BPE", "vocab": {"a": 4000000000}, "merges": []}`), "one of number 4000000000"},
		"merge":          {model(`{"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a b"]}`), `model.merges[0]: ["a" "b"] makes "ab", which is not in model.vocab`},
		"merge of one":   {model(`{"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]}`), `model.merges[0]: ["a"] is not two tokens`},
		"unknown":        {model(`{"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "?"}`), `model.unk_token: "?" is not in model.vocab`},
		"unigram":        {model(`{"type": "Unigram", "vocab": [["a"]]}`), `["a"] is not a piece with its score`},
		"unigram's unk":  {model(`{"type": "Unigram", "vocab": [["a", 0]], "unk_id": 7}`), "model.unk_id: 7"},
		"vocab's kind":   {model(`{"type": "WordLevel", "vocab": []}`), "model.vocab: found a JSON array, want an object"},
		"post-processor": {hfBPE(`"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<x>"}}], "special_tokens": {}}, `), `post_processor.single[0]: "<x>" is not among`},
		"added":          {strings.Replace(hfBPE(""), `"id": 258`, `"id": 3`, 1), `added_tokens[0]: "<s>" has the number 3`},
		"added, no id":   {strings.Replace(hfBPE(""), `"id": 258, `, ``, 1), "added_tokens[0]: has no id"},
	} {
		if _, err := FromHF([]byte(c.src), nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %q", name, err, c.want)
		}
	}
	if _, err := FromHF([]byte(hfBPE("")), []byte(`{"eos_token": "<none>"}`)); err == nil || !strings.Contains(err.Error(), `tokenizer_config.json: eos_token: "<none>" is no token`) {
		t.Error(err)
	}
}

// tikRanks are 256 bytes and some tokens.
func tikRanks(more ...string) string {
	var b strings.Builder
	for i := range 256 {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(i)}), i)
	}
	for i, s := range more {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(s)), 256+i)
	}
	return b.String()
}

func TestFromTiktoken(t *testing.T) {
	tok, err := FromTiktoken([]byte(tikRanks("ab", "bc", "abc", " abc")), "cl100k_base", map[string]uint32{"<|endoftext|>": 300})
	if err != nil {
		t.Fatal(err)
	}
	if got := show(tok, tok.Encode(nil, "abc abcd bcd<|endoftext|>", Options{Special: true})); got != "abc| abc|d| |bc|d|<|endoftext|>" {
		t.Errorf("got %q", got)
	}
	if !slices.Equal(tok.EOS(), []uint32{300}) || tok.Size() != 301 {
		t.Errorf("end %v, size %d", tok.EOS(), tok.Size())
	}
	for name, c := range map[string]struct {
		ranks, enc string
		special    map[string]uint32
		want       string
	}{
		"encoding": {tikRanks(), "x", nil, `"x" is not supported; supported: cl100k_base`},
		"line":     {"YQ== 0\n!! 1\n", "cl100k_base", nil, `line 2: "!! 1"`},
		"byte":     {"YQ== 0\n", "cl100k_base", nil, "the byte 0x00 is no token"},
		"twice":    {tikRanks("a"), "cl100k_base", nil, `line 257: the token "a" comes twice`},
		"number":   {tikRanks(), "cl100k_base", map[string]uint32{"<s>": 3}, `"<s>" has the number 3`},
		"far":      {tikRanks(), "cl100k_base", map[string]uint32{"<s>": 1 << 30}, "numbers are below"},
	} {
		if _, err := FromTiktoken([]byte(c.ranks), c.enc, c.special); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestGGUFUnigramAndWordPiece(t *testing.T) {
	uni, err := load(t, gguftest.K("tokenizer.ggml.model", "t5"), gguftest.K("tokenizer.ggml.tokens", []string{"<unk>", "</s>", "▁a", "▁ab", "b", "c"}),
		gguftest.K("tokenizer.ggml.token_type", []int32{2, 3, 1, 1, 1, 1}), gguftest.K("tokenizer.ggml.scores", []float32{0, 0, -1, -5, -2, -3}),
		gguftest.K("tokenizer.ggml.eos_token_id", uint32(1)), gguftest.K("tokenizer.ggml.add_eos_token", true))
	if err != nil {
		t.Fatal(err)
	}
	ids := uni.Encode(nil, "  ab  abcxyc", Options{BOS: true})
	if got := show(uni, ids); got != " a|b| a|b|c|<unk>|c|</s>" {
		t.Errorf("unigram: %q", got)
	}
	if got := uni.Decode(ids[:2], false); got != "ab" {
		t.Errorf("decoded %q", got)
	}
	bert, err := load(t, gguftest.K("tokenizer.ggml.model", "bert"), gguftest.K("tokenizer.ggml.tokens", []string{"[UNK]", "[CLS]", "[SEP]", "▁un", "aff", "able", "▁,"}),
		gguftest.K("tokenizer.ggml.token_type", []int32{3, 3, 3, 1, 1, 1, 1}), gguftest.K("tokenizer.ggml.bos_token_id", uint32(1)))
	if err != nil {
		t.Fatal(err)
	}
	if got := show(bert, bert.Encode(nil, "UNÁFFable, x", Options{BOS: true})); got != "[CLS]| un|aff|able| ,|[UNK]|[SEP]" {
		t.Errorf("WordPiece: %q", got)
	}
}

// FuzzFromHF: no file makes the reader panic, and what it takes encodes anything.
func FuzzFromHF(f *testing.F) {
	f.Add([]byte(hfBPE(hfByteLevel)), "ab <s>\xff")
	for _, s := range []string{
		`{"model": {"type": "Unigram", "vocab": [["<unk>", 0], ["a", -1.5], ["▁a", -1]], "unk_id": 0, "byte_fallback": true}, "pre_tokenizer": {"type": "Metaspace", "replacement": "▁"}}`,
		`{"model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 1, "##b": 2}}, "normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece", "prefix": "##"}}`,
		`{"model": {"type": "BPE", "vocab": {"a</w>": 0, "a": 1, "aa</w>": 2}, "merges": ["a a</w>"], "end_of_word_suffix": "</w>"}, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "MergedWithNext"}}`,
		`{"model": {"type": "WordLevel", "vocab": {"<unk>": 0, "a": 1}}, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "CAAAAAAAAAAAAAAAYQA="}, "post_processor": {"type": "BertProcessing", "sep": ["a", 1], "cls": ["a", 1]}}`,
	} {
		f.Add([]byte(s), "aab b ▁a")
	}
	f.Fuzz(func(t *testing.T, src []byte, text string) {
		tok, err := FromHF(src, nil)
		if err != nil || len(text) > 1<<12 {
			return
		}
		ids := tok.Encode(nil, tok.Guard(text, '\uFDD0'), Options{Special: true, BOS: true, Mark: '\uFDD0'})
		for _, id := range ids {
			if int64(id) >= int64(tok.Size()) {
				t.Fatalf("token %d of %d", id, tok.Size())
			}
		}
		tok.Decode(ids, true)
	})
}

// FuzzTiktoken: whatever the text, its bytes come back.
func FuzzTiktoken(f *testing.F) {
	tok, err := FromTiktoken([]byte(tikRanks("ab", "abc", " a", "é", "中")), "o200k_base", nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("abcé中 a\xff")
	f.Fuzz(func(t *testing.T, s string) {
		var b strings.Builder
		for _, id := range tok.Encode(nil, s, Options{}) {
			b.WriteString(tok.Piece(id))
		}
		if b.String() != s {
			t.Fatalf("%q became %q", s, b.String())
		}
	})
}
