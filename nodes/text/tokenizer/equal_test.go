package tokenizer

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// equalStrings is how many strings are tried on each vocabulary.
const equalStrings = 10_000

// reference runs testdata/hf.py.
func reference(t testing.TB, args ...string) {
	t.Helper()
	python := os.Getenv("DYNAMO_TEST_PYTHON")
	if python == "" {
		t.Skip("NOT RUN: set DYNAMO_TEST_PYTHON to a Python interpreter with the packages of tests/requirements.txt")
	}
	cmd := exec.CommandContext(t.Context(), python, append([]string{"testdata/hf.py"}, args...)...)
	cmd.Env = append(os.Environ(), "TOKENIZERS_PARALLELISM=true")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", args[0], err, out)
	}
}

// corpus is text of many kinds: this project's own files, and some of languages that they do not speak.
func corpus(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for _, pattern := range []string{"*.go", "../../../docs/*.md", "../../../*.md", "../template/*.go", "../../../graph/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(src)
		}
	}
	for range 40 {
		for _, s := range samples {
			b.WriteString(s)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

var samples = []string{
	"Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.", "Où est la bibliothèque ? Là-bas, à côté de l'église.", "Съешь же ещё этих мягких французских булок.",
	"敏捷的棕色狐狸跳过了懒狗。一九八四年，他们说：“你好”！", "いろはにほへと ちりぬるを ワガヨタレゾ", "다람쥐 헌 쳇바퀴에 타고파", "نص حكيم له سر قاطع وذو شأن عظيم", "דג סקרן שט בים מאוכזב", "ऋषियों को सताने वाले दुष्ट राक्षसों",
	"เป็นมนุษย์สุดประเสริฐเลิศคุณค่า", "Đây là một câu tiếng Việt có dấu.", "Ο γρήγορος ΚΑΦΕΣ αλεπού", "İstanbul ıssız IŞIK", "e\u0301tude co\u0308operate \u1100\u1161\u11a8",
	"👩\u200d💻👨\u200d👩\u200d👧\u200d👦 🇩🇪🇫🇷 👍🏽 🙂🙃 ❤\ufe0f \u20e3", "ﬁne ﬂow ① ② ㍿ ½ Ⅷ ℌ ﷺ ｆｕｌｌ ｗｉｄｔｈ ㌔", "function f(x) { return x?.y ?? `${z}`; }", "\tif (a[i] != 0x1F && !b) {\r\n\t\treturn -1e-9;\r\n\t}",
	"3.14159 1,000,000 42nd 2024-01-31T12:34:56Z 0b1010 ١٢٣ १२३", "don't I'll we've they'RE it'S you'D 'tis", "    \n\n\n  \t\t  \n", "<|im_start|>user\nhi<|im_end|><|endoftext|><s></s><unk><0x0A>[CLS][MASK]<|end|>",
	"\x00\x01\x1b[31m\x7f\u0085\u00a0\u2028\u2029\u200b\u200e\ufeff\ufffd", "▁already ▁marked Ġtoo Ċ", "https://example.com/a/b?c=d&e=%20#f user@example.com C:\\path\\file", "<mask> Tool Tools <think>  \n<pad>  x",
	"ǅ ǈ ß ẞ ſ K Å ª º ʰ ⅷ Ⓐ", "\U00020000\U0002A6DF\U0001F9FF\U000E0041\U0010FFFF\ue000\uFDD0",
}

// generate makes strings out of pieces of a text, of samples, of tokens that the vocabulary names, and of any code points.
func generate(seed uint64, n int, text string, tokens []string) []string {
	rng := rand.New(rand.NewPCG(seed, 7))
	runes := []rune(text)
	mixed := []rune(strings.Join(samples, " "))
	out := make([]string, 0, n+2)
	out = append(out, "", strings.Repeat("a", 3000))
	for len(out) < n {
		var b strings.Builder
		for range 1 + rng.IntN(6) {
			switch k := rng.IntN(12); k {
			case 0, 1, 2:
				i := rng.IntN(len(runes))
				b.WriteString(string(runes[i:min(len(runes), i+rng.IntN(60))]))
			case 3, 4, 5:
				i := rng.IntN(len(mixed))
				b.WriteString(string(mixed[i:min(len(mixed), i+rng.IntN(25))]))
			case 6:
				for range rng.IntN(8) {
					b.WriteRune(mixed[rng.IntN(len(mixed))])
				}
			case 7:
				r := rune(rng.IntN(utf8.MaxRune))
				if rng.IntN(3) > 0 {
					r = rune(rng.IntN(0x3000))
				}
				if utf8.ValidRune(r) {
					b.WriteRune(r)
				}
			case 8:
				for range rng.IntN(6) {
					b.WriteString([]string{" ", "  ", "\n", "\t", "\r\n", "\u00a0", "\u3000"}[rng.IntN(7)])
				}
			case 9:
				if len(tokens) > 0 {
					s := tokens[rng.IntN(len(tokens))]
					if rng.IntN(4) == 0 {
						s = s[:rng.IntN(len(s)+1)]
					}
					b.WriteString(strings.ToValidUTF8(s, ""))
				}
			case 10:
				for range rng.IntN(12) {
					b.WriteByte("0123456789.,"[rng.IntN(12)])
				}
			default:
				s := samples[rng.IntN(len(samples))]
				b.WriteString(strings.Repeat(s, 1+rng.IntN(2)))
			}
		}
		out = append(out, b.String())
	}
	return out
}

// equal holds a tokenizer against the reference on generated strings.
func equal(t *testing.T, file string, text string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	src := b
	tok, err := FromHF(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	var head struct{ Decoder struct{ Type string } }
	if err := json.Unmarshal(b, &head); err != nil {
		t.Fatal(err)
	}
	exact := head.Decoder.Type == "ByteLevel" || head.Decoder.Type == "Sequence" && !tok.stripLeft
	var names []string
	for id, k := range tok.kinds {
		if k == kindControl || k == kindUserDefined {
			names = append(names, tok.Piece(uint32(id)))
		}
	}
	for _, n := range names { // the reference gives such a token's normal form
		exact = exact && normalize(tok.norm, n) == n
	}
	strs := generate(1, equalStrings, text, names)
	dir := t.TempDir()
	in, out := filepath.Join(dir, "strings.json"), filepath.Join(dir, "ids.json")
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(strs); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	reference(t, "encode", file, in, out)
	var want struct {
		Plain, Special, Whole [][]uint32
		Text                  []string
	}
	if b, err = os.ReadFile(out); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Plain) != len(strs) || len(want.Special) != len(strs) || len(want.Whole) != len(strs) || len(want.Text) != len(strs) {
		t.Fatal("the reference gave fewer answers than strings")
	}
	cache := NewCache(1 << 22)
	wrong, ids := 0, 0
	for i, s := range strs {
		for name, c := range map[string]struct {
			o    Options
			want []uint32
		}{
			"special as text": {Options{Cache: cache}, want.Plain[i]}, "special": {Options{Special: true, Cache: cache}, want.Special[i]},
			"whole": {Options{Special: true, BOS: true}, want.Whole[i]},
		} {
			got := tok.Encode(nil, s, c.o)
			ids += len(got)
			if name == "whole" && len(tok.prefix) == 1 && len(want.Special[i]) > 0 && want.Special[i][0] == tok.prefix[0] {
				c.want = c.want[1:] // one that the text begins with is not repeated here
			}
			if !slices.Equal(got, c.want) {
				if wrong++; wrong <= 5 {
					t.Errorf("%s: %q:\n got %v %q\nwant %v %q", name, s, got, show(tok, got), c.want, show(tok, c.want))
				}
			}
		}
		// The reference writes one U+FFFD for each byte, and has ways of its own where words are joined.
		if got := tok.Decode(want.Special[i], true); exact && got != want.Text[i] && !strings.ContainsRune(want.Text[i], utf8.RuneError) {
			if wrong++; wrong <= 5 {
				t.Errorf("decoded:\n got %q\nwant %q", got, want.Text[i])
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d wrong", wrong)
	}
	incremental(t, tok)
	t.Logf("%d strings, %d ids, %d wrong", len(strs), ids, wrong)
	containers(t, file, src, tok, strs)
}

// TestEqualTrained: vocabularies of every kind that the reference trains on the spot.
func TestEqualTrained(t *testing.T) {
	dir := t.TempDir()
	text := corpus(t)
	path := filepath.Join(dir, "corpus.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	reference(t, "train", path, dir)
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d vocabularies, %v", len(files), err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".json"), func(t *testing.T) { equal(t, f, text) })
	}
}

// TestEqualPublished: vocabularies of published models, NAME.json each in the folder that DYNAMO_TEST_TOKENIZERS names.
func TestEqualPublished(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(os.Getenv("DYNAMO_TEST_TOKENIZERS"), "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("DYNAMO_TEST_TOKENIZERS") == "" {
		t.Skip("NOT RUN: set DYNAMO_TEST_TOKENIZERS to a folder of tokenizer.json files, see tests/run.sh")
	}
	if len(files) == 0 {
		t.Fatal("the folder of DYNAMO_TEST_TOKENIZERS has no files")
	}
	text := corpus(t)
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".json"), func(t *testing.T) { equal(t, f, text) })
	}
}
