package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkPublished encodes this project's text with the vocabularies that DYNAMO_TEST_TOKENIZERS names, each chunk of 2 KiB by itself, in
// one thread; beside it what the reference does in Python in the same minute (hf-MB/s).
func BenchmarkPublished(b *testing.B) {
	files, err := filepath.Glob(filepath.Join(os.Getenv("DYNAMO_TEST_TOKENIZERS"), "*.json"))
	if err != nil || len(files) == 0 || os.Getenv("DYNAMO_TEST_TOKENIZERS") == "" {
		b.Skip("NOT RUN: set DYNAMO_TEST_TOKENIZERS to a folder of tokenizer.json files, see tests/run.sh")
	}
	text := corpus(b)
	for _, f := range files {
		b.Run(strings.TrimSuffix(filepath.Base(f), ".json"), func(b *testing.B) {
			src, err := os.ReadFile(f)
			if err != nil {
				b.Fatal(err)
			}
			tok, err := FromHF(src, nil)
			if err != nil {
				b.Fatal(err)
			}
			var ids []uint32
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				for at := 0; at < len(text); {
					end := min(at+2048, len(text))
					ids = tok.Encode(ids[:0], text[at:end], Options{})
					at = end
				}
			}
			b.StopTimer()
			if os.Getenv("DYNAMO_TEST_PYTHON") == "" {
				return
			}
			dir := b.TempDir()
			in, out := filepath.Join(dir, "text"), filepath.Join(dir, "speed.json")
			if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
				b.Fatal(err)
			}
			reference(b, "speed", f, in, out)
			var speed float64
			if src, err = os.ReadFile(out); err != nil {
				b.Fatal(err)
			}
			if err := json.Unmarshal(src, &speed); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(speed/1e6, "hf-MB/s")
		})
	}
}

// TestNotSuperLinear: a mebibyte of one letter, of spaces, of no space and of one control token's beginning takes no more than a multiple of
// what text takes.
func TestNotSuperLinear(t *testing.T) {
	bytesTok, err := FromHF([]byte(hfBPE(hfByteLevel)), nil)
	if err != nil {
		t.Fatal(err)
	}
	uni, err := FromHF([]byte(`{"model": {"type": "Unigram", "vocab": [["<unk>", 0], ["a", -1.5], ["aa", -2], ["▁a", -1], ["aaaa", -3]], "unk_id": 0},
		"pre_tokenizer": {"type": "Metaspace", "replacement": "▁"}, "added_tokens": [{"id": 5, "content": "<aaaaaaaaaaaaaaaaaaaa>", "special": true}]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tok := range map[string]*Tokenizer{"bytes": bytesTok, "unigram": uni, "spm": tiny(t)} {
		for _, s := range []string{"a", " ", "ab", "<aaaaaaaaaaaa", "中", "\n", "a\u0301", "1"} {
			text := strings.Repeat(s, 1<<20/len(s))
			begin := time.Now()
			tok.Encode(nil, text, Options{Special: true})
			if d := time.Since(begin); d > 10*time.Second { // some tenths, on an idle machine; hours where it is quadratic
				t.Errorf("%s: a mebibyte of %q takes %v", name, s, d)
			}
		}
	}
}
