package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dynamograph/dynamo/graph/model/gguf/gguftest"
)

// byteKeys are the keys of a byte-level BPE model: 256 bytes, the given merges, then the special tokens (type 3) and added (type 4).
func byteKeys(pre string, merges, special, added []string) []gguftest.KV {
	var tokens []string
	var types []int32
	for _, r := range byteRunes {
		tokens, types = append(tokens, string(r)), append(types, 1)
	}
	for _, m := range merges {
		tokens, types = append(tokens, strings.Replace(m, " ", "", 1)), append(types, 1)
	}
	for _, s := range special {
		tokens, types = append(tokens, s), append(types, 3)
	}
	for _, s := range added {
		tokens, types = append(tokens, s), append(types, 4)
	}
	return []gguftest.KV{
		gguftest.K("tokenizer.ggml.model", "gpt2"), gguftest.K("tokenizer.ggml.pre", pre), gguftest.K("tokenizer.ggml.tokens", tokens),
		gguftest.K("tokenizer.ggml.token_type", types), gguftest.K("tokenizer.ggml.merges", merges),
	}
}

func byteModel(t testing.TB, pre string, merges, special, added []string, more ...gguftest.KV) *Tokenizer {
	t.Helper()
	tok, err := load(t, append(byteKeys(pre, merges, special, added), more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// show writes ids as their pieces, separated by bars.
func show(t *Tokenizer, ids []uint32) string {
	var out []string
	for _, id := range ids {
		out = append(out, t.Piece(id))
	}
	return strings.Join(out, "|")
}

func TestOptions(t *testing.T) {
	tok := byteModel(t, "gpt-2", []string{"a b", "ab c"}, []string{"<s>", "<|x|>", "<|x|>>"}, []string{"<think>"},
		gguftest.K("tokenizer.ggml.bos_token_id", uint32(258)), gguftest.K("tokenizer.ggml.add_bos_token", true))
	for name, c := range map[string]struct {
		text string
		o    Options
		want string
	}{
		"merges":               {"abcab", Options{}, "abc|ab"},
		"special is text":      {"a<|x|>", Options{}, "a|<|||x|||>"},
		"special":              {"ab<|x|>ab", Options{Special: true}, "ab|<|x|>|ab"},
		"longest":              {"<|x|>><|x|", Options{Special: true}, "<|x|>>|<|||x||"},
		"added always":         {"<think>a", Options{}, "<think>|a"},
		"bos":                  {"a", Options{BOS: true}, "<s>|a"},
		"bos of nothing":       {"", Options{BOS: true}, "<s>"},
		"bos is there":         {"<s>a", Options{BOS: true, Special: true}, "<s>|a"},
		"bos spelled as text":  {"<s>a", Options{BOS: true}, "<s>|<|s|>|a"},
		"mark":                 {"<\uFDD0|x|>ab\uFDD0c", Options{Special: true, Mark: '\uFDD0'}, "<|||x|||>|abc"},
		"mark, added together": {"<th\uFDD0ink>", Options{Special: true, Mark: '\uFDD0'}, "<think>"},
		"no mark":              {"a\uFDD0", Options{Mark: '\uFDD1'}, "a|\xEF|\xB7|\x90"},
		"not valid UTF-8":      {"a\xFFb", Options{}, "a|\xFF|b"},
	} {
		if got := show(tok, tok.Encode(nil, c.text, c.o)); got != c.want {
			t.Errorf("%s: %q gives %q, want %q", name, c.text, got, c.want)
		}
	}
	if got := tok.Encode([]uint32{7}, "<s>", Options{BOS: true, Special: true}); !slices.Equal(got, []uint32{7, 258}) {
		t.Errorf("behind other tokens: %v", got)
	}
}

func TestGuard(t *testing.T) {
	tok := byteModel(t, "smollm", nil, []string{"<|im_end|>", "<|im_start|>", "<s>"}, []string{"<think>"})
	for in, want := range map[string]string{
		"plain <b> text": "plain <b> text", "<think>": "<think>", "x<|im_end|>y": "x<^|im_end|>y", "<s><s>": "<^s><^s>", "a<": "a<^",
		"<|im_": "<^|im_", "<|im_<|im_end|>": "<|im_<^|im_end|>", "<|im_end|": "<^|im_end|",
	} {
		if got := tok.Guard(in, '^'); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

// FuzzGuard: whatever a user writes, and however a template joins it, only the template's special tokens are special.
func FuzzGuard(f *testing.F) {
	tok := byteModel(f, "gpt-2", []string{"< |", "<| i"}, []string{"<|im_end|>", "<|im_start|>", "<s>"}, []string{"<think>"})
	f.Add("<|im_", "end|>")
	f.Add("<s", "><s><")
	f.Add("\uFDD0<|im_end|>", "")
	f.Fuzz(func(t *testing.T, a, b string) {
		const mark = '\uFDD1'
		if strings.ContainsRune(a+b, mark) {
			return
		}
		text := "<s>" + tok.Guard(a, mark) + tok.Guard(b, mark) + "<|im_end|>"
		ids := tok.Encode(nil, text, Options{Special: true, Mark: mark})
		n := 0
		for _, id := range ids {
			if tok.IsSpecial(id) {
				n++
			}
		}
		var bytes strings.Builder
		for _, id := range ids {
			bytes.WriteString(tok.Piece(id))
		}
		if n != 2 || bytes.String() != "<s>"+a+b+"<|im_end|>" {
			t.Fatalf("%q, %q: %d special tokens in %q", a, b, n, show(tok, ids))
		}
	})
}

// TestLong: long words are merged by a heap; it must do what the plain loop does.
func TestLong(t *testing.T) {
	tok := byteModel(t, "gpt-2", []string{"a a", "aa aa", "b a", "a b", "aaaa b", "ba ba", "ab ab"}, nil, nil)
	m := tok.model.(*pipeline).model.(*bpe)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		w := make([]byte, 1+rng.IntN(shortWord))
		for i := range w {
			w[i] = "aaab"[rng.IntN(4)]
		}
		ids := make([]uint32, len(w))
		for i, b := range w {
			ids[i] = uint32(m.bytes[b])
		}
		long := m.mergeLong(new(encoder), nil, slices.Clone(ids))
		if short := m.mergeShort(ids); !slices.Equal(short, long) {
			t.Fatalf("%s: loop %v, heap %v", w, show(tok, short), show(tok, long))
		}
	}
	huge := strings.Repeat("aaab", 1<<18)
	if got := tok.Decode(tok.Encode(nil, huge, Options{}), false); got != huge {
		t.Error("a word of a mebibyte is not the same after decoding")
	}
}

func TestRefused(t *testing.T) {
	base := func() []gguftest.KV { return byteKeys("gpt-2", []string{"a b"}, []string{"<s>"}, nil) }
	with := func(key string, v any) []gguftest.KV {
		kvs := base()
		for i := range kvs {
			if kvs[i].Key == key {
				kvs[i].Value = v
				return kvs
			}
		}
		return append(kvs, gguftest.K(key, v))
	}
	spm := func(token string, kind int32, score float32) []gguftest.KV {
		return []gguftest.KV{
			gguftest.K("tokenizer.ggml.model", "llama"), gguftest.K("tokenizer.ggml.tokens", []string{token}),
			gguftest.K("tokenizer.ggml.token_type", []int32{kind}), gguftest.K("tokenizer.ggml.scores", []float32{score}),
		}
	}
	nan := float32(0)
	nan /= nan
	for name, c := range map[string]struct {
		kvs  []gguftest.KV
		want string
	}{
		"nothing":         {nil, "carries no tokenizer"},
		"model":           {with("tokenizer.ggml.model", "x"), `"x" is not supported`},
		"pre":             {with("tokenizer.ggml.pre", "none"), `"none" is not supported; supported: command-r, deepseek-coder, deepseek-r1-qwen`},
		"no pre":          {slices.Delete(base(), 1, 2), "no tokenizer.ggml.pre"},
		"tokens":          {with("tokenizer.ggml.tokens", "x"), "must be an array of strings"},
		"no tokens":       {with("tokenizer.ggml.tokens", []string{}), "must be an array of strings"},
		"types":           {with("tokenizer.ggml.token_type", []int32{1}), "array of 258 integers"},
		"merges":          {with("tokenizer.ggml.merges", []int32{1}), "must be an array of strings"},
		"merge":           {with("tokenizer.ggml.merges", []string{"a b", "ab c"}), `merge 1, "ab c"`},
		"merge of one":    {with("tokenizer.ggml.merges", []string{"ab"}), `merge 0, "ab"`},
		"bos":             {with("tokenizer.ggml.bos_token_id", uint32(258)), "bos_token_id must be a token below 258"},
		"eos":             {with("tokenizer.ggml.eos_token_id", "x"), "eos_token_id must be a token"},
		"no scores":       {spm("a", 1, 0)[:3], "scores must be an array of 1 floats"},
		"byte":            {spm("<0xZZ>", 6, 0), "not of the form"},
		"byte of no form": {spm("0A", 6, 0), "not of the form"},
		"score":           {spm("a", 1, nan), "is no number"},
	} {
		if _, err := load(t, c.kvs...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	tok := byteModel(t, "gpt-2", nil, []string{"<s>"}, nil, gguftest.K("tokenizer.ggml.bos_token_id", int32(-1)), gguftest.K("tokenizer.ggml.eos_token_id", ^uint32(0)))
	if _, ok := tok.BOS(); ok || len(tok.EOS()) > 0 {
		t.Error("-1 and 2^32-1 do not mean none")
	}
}

func TestEOS(t *testing.T) {
	tok := byteModel(t, "llama-bpe", nil, []string{"<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|other|>"}, []string{"<|end|>"},
		gguftest.K("tokenizer.ggml.eos_token_id", uint32(258)), gguftest.K("tokenizer.ggml.bos_token_id", uint32(256)))
	if got := tok.EOS(); !slices.Equal(got, []uint32{258, 257, 259}) {
		t.Errorf("end tokens %v", got)
	}
	if got := tok.Encode(nil, "a", Options{BOS: true}); !slices.Equal(got, []uint32{256, 'a' - '!'}) && show(tok, got) != "<|begin_of_text|>|a" {
		t.Errorf("llama-bpe begins with BOS where the file does not say: %v", got)
	}
}

// TestWholeWords: Llama 3 takes a word that is a token as it is, though no merges lead to it.
func TestWholeWords(t *testing.T) {
	kvs := byteKeys("llama-bpe", []string{"a b"}, nil, nil)
	kvs[2].Value = append(kvs[2].Value.([]string), "Ġxyz")
	kvs[3].Value = append(kvs[3].Value.([]int32), 1)
	tok, err := load(t, kvs...)
	if err != nil {
		t.Fatal(err)
	}
	if got := show(tok, tok.Encode(nil, "ab xyz xyzz", Options{})); got != "ab| xyz| |x|y|z|z" {
		t.Errorf("got %q", got)
	}
}

func TestNFC(t *testing.T) {
	tok := byteModel(t, "qwen2", nil, nil, nil)
	if got := tok.Decode(tok.Encode(nil, "e\u0301", Options{}), false); got != "é" {
		t.Errorf("got %q", got)
	}
}

func TestSPMOptions(t *testing.T) {
	tok := tiny(t)
	for text, want := range map[string]string{
		"":             "<s>",
		"the graph":    "<s>| the| graph",
		"</s>the":      "<s>|</s>| the",
		"x<think>the":  "<s>| |x|<think>| the",
		"<s>the":       "<s>| the",
		"\U0001F44B":   "<s>| |\xF0|\x9F|\x91|\x8B",
		"the\u2581the": "<s>| the| the",
	} {
		if got := show(tok, tok.Encode(nil, text, Options{Special: true, BOS: true})); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
	if got := show(tok, tok.Encode(nil, "</s>", Options{})); strings.Contains(got, "</s>") {
		t.Errorf("text made a control token: %q", got)
	}
	bare := tiny(t, gguftest.K("tokenizer.ggml.add_space_prefix", false), gguftest.K("tokenizer.ggml.add_bos_token", false))
	if got := show(bare, bare.Encode(nil, "the", Options{BOS: true})); got != "t|he" {
		t.Errorf("without prefix and BOS: %q", got)
	}
	long := strings.Repeat("graph of nodes ", 100_000)
	if got := tok.Decode(tok.Encode(nil, long, Options{}), false); got != " "+long {
		t.Error("a text of more than a mebibyte is not the same after decoding")
	}
}

func TestDecode(t *testing.T) {
	tok := byteModel(t, "gpt-2", nil, []string{"<s>"}, []string{"<think>"})
	id := func(b byte) uint32 { return uint32(b) }
	for name, c := range map[string]struct {
		ids  []uint32
		keep bool
		want string
	}{
		"special":       {[]uint32{256, id('a'), 257}, false, "a<think>"},
		"kept":          {[]uint32{256, id('a')}, true, "<s>a"},
		"ill-formed":    {[]uint32{id(0xF0), id(0x9F), id('a'), id(0xC0), id(0xE2), id(0x82)}, false, "\uFFFDa\uFFFD\uFFFD"},
		"beyond":        {[]uint32{9999, id('a'), ^uint32(0)}, false, "a"},
		"across a mark": {[]uint32{id(0xC3), 256, id(0xBC)}, false, "ü"},
	} {
		if got := tok.Decode(c.ids, c.keep); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if string(tok.Bytes(0xC3)) != "\xC3" || tok.Size() != 258 || tok.MaxBytes() != len("<think>") || tok.Pre() != "gpt-2" {
		t.Error("Bytes, Size, MaxBytes or Pre is wrong")
	}
}

// TestConcurrent: one tokenizer, many callers, the same result. Worth running under the race detector.
func TestConcurrent(t *testing.T) {
	tok := byteModel(t, "llama-bpe", []string{"a b", "c d", "Ġ a", "Ġ c"}, []string{"<s>"}, nil)
	text := strings.Repeat("ab cd abcd <s> 123 ", 50)
	want := tok.Encode(nil, text, Options{Special: true})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got := tok.Encode(nil, text, Options{Special: true}); !slices.Equal(got, want) {
					t.Error("differs")
				}
			}
		})
	}
	wg.Wait()
}

// FuzzEncode: every model decodes to what was encoded (a SentencePiece model to its own form of spaces), whatever the bytes.
func FuzzEncode(f *testing.F) {
	models := []*Tokenizer{
		Raw(), byteModel(f, "gpt-2", []string{"a b", "Ġ a"}, []string{"<s>"}, []string{"<think>"}),
		byteModel(f, "smollm", []string{"a b", "Ġ a"}, nil, nil), byteModel(f, "llama-bpe", []string{"a b", "Ġ a"}, []string{"<s>"}, nil),
	}
	spm := tiny(f)
	for _, s := range []string{"abc <s> 12", "\xff\xfe", "  \n ab", "<think>\u2581 x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, m := range models {
			var b strings.Builder
			for _, id := range m.Encode(nil, s, Options{Special: true}) {
				b.WriteString(m.Piece(id))
			}
			if b.String() != s {
				t.Fatalf("%s: %q became %q", m.Pre(), s, b.String())
			}
		}
		spm.Encode(nil, s, Options{Special: true})
	})
}

// FuzzLoad: arrays that fit nothing are an error or a tokenizer that works, never a panic.
func FuzzLoad(f *testing.F) {
	f.Add("gpt2", "gpt-2", "a\nb\nab\n<s>", "a b\nb", []byte{1, 1, 1, 3}, uint32(3), "ab<s>")
	f.Add("llama", "", "<unk>\n▁\na\n▁a\n<0x0A>", "", []byte{2, 1, 1, 1, 6}, uint32(0), "a a\n")
	f.Fuzz(func(t *testing.T, model, pre, tokens, merges string, types []byte, bos uint32, text string) {
		list := strings.Split(tokens, "\n")
		kinds := make([]int32, len(list))
		scores := make([]float32, len(list))
		for i := range kinds {
			if i < len(types) {
				kinds[i] = int32(int8(types[i]))
				scores[i] = float32(types[i]) - float32(i)
			}
		}
		tok, err := load(t, gguftest.K("tokenizer.ggml.model", model), gguftest.K("tokenizer.ggml.pre", pre), gguftest.K("tokenizer.ggml.tokens", list),
			gguftest.K("tokenizer.ggml.merges", strings.Split(merges, "\n")), gguftest.K("tokenizer.ggml.token_type", kinds),
			gguftest.K("tokenizer.ggml.scores", scores), gguftest.K("tokenizer.ggml.bos_token_id", bos))
		if err != nil {
			return
		}
		for _, id := range tok.Encode(nil, tok.Guard(text, '\uFDD0'), Options{Special: true, BOS: true, Mark: '\uFDD0'}) {
			if int(id) >= tok.Size() {
				t.Fatalf("token %d of %d", id, tok.Size())
			}
		}
	})
}
