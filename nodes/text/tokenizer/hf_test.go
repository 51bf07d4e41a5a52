package tokenizer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dynamograph/dynamo/graph/model/gguf"
)

// realModel reads the tokenizer of the model that DYNAMO_TEST_MODEL names.
func realModel(t testing.TB) *Tokenizer {
	t.Helper()
	path := os.Getenv("DYNAMO_TEST_MODEL")
	if path == "" {
		t.Skip("NOT RUN: set DYNAMO_TEST_MODEL to SmolLM2-135M-Instruct as GGUF")
	}
	fd, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer fd.Close()
	st, err := fd.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Read(fd, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	tok, err := FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestRecorded compares with ids that Hugging Face's tokenizers 0.23 gave for the same vocabulary: a few texts of the repository, and
// where DYNAMO_SHARED names the folder with them, some twelve hundred more.
func TestRecorded(t *testing.T) {
	tok := realModel(t)
	recorded(t, tok, filepath.Join("testdata", "smollm2.jsonl"), 14)
	if dir := os.Getenv("DYNAMO_SHARED"); dir != "" {
		recorded(t, tok, filepath.Join(dir, "prototype", "tokenizer", "smollm2_cases.jsonl"), 1237)
	} else {
		t.Log("NOT RUN in full: set DYNAMO_SHARED to the folder with the recorded cases")
	}
}

func recorded(t *testing.T, tok *Tokenizer, path string, want int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n, wrong := 0, 0
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var c struct {
			S   string
			IDs []uint32
		}
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		n++
		if got := tok.Encode(nil, c.S, Options{Special: true}); !slices.Equal(got, c.IDs) {
			wrong++
			t.Errorf("%q:\n got %v\nwant %v", c.S, got, c.IDs)
		}
	}
	if n != want {
		t.Fatalf("%s has %d cases, want %d", path, n, want)
	}
	t.Logf("%s: %d of %d wrong", filepath.Base(path), wrong, n)
}

// BenchmarkEncode encodes text that repeats itself as text does, and BenchmarkEncodeCold text of which no word comes twice.
func BenchmarkEncode(b *testing.B) {
	tok := realModel(b)
	var text []byte
	for _, name := range []string{"load.go", "bpe.go", "spm.go", "scan.go", "special.go", "tokenizer.go", "tokenizer_test.go"} {
		src, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		text = append(text, src...)
	}
	benchmark(b, tok, string(text))
}

func BenchmarkEncodeCold(b *testing.B) {
	tok := realModel(b)
	var text []byte
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1 << 15 {
		text = append(text, ' ')
		for range 3 + rng.IntN(8) {
			text = append(text, byte('a'+rng.IntN(26)))
		}
	}
	benchmark(b, tok, string(text))
}

func benchmark(b *testing.B, tok *Tokenizer, text string) {
	b.Helper()
	var ids []uint32
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		ids = tok.Encode(ids[:0], text, Options{})
	}
}

func BenchmarkFromGGUF(b *testing.B) {
	path := os.Getenv("DYNAMO_TEST_MODEL")
	if path == "" {
		b.Skip("NOT RUN: set DYNAMO_TEST_MODEL to SmolLM2-135M-Instruct as GGUF")
	}
	fd, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer fd.Close()
	st, err := fd.Stat()
	if err != nil {
		b.Fatal(err)
	}
	f, err := gguf.Read(fd, st.Size())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := FromGGUF(f); err != nil {
			b.Fatal(err)
		}
	}
}
