package tokenizer

import (
	"bufio"
	"bytes"
	"encoding/json"
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

// TestRecorded compares with ids that Hugging Face's tokenizers gave for the same vocabulary.
func TestRecorded(t *testing.T) {
	tok := realModel(t)
	dir := os.Getenv("DYNAMO_SHARED")
	if dir == "" {
		t.Skip("NOT RUN: set DYNAMO_SHARED to the folder with the recorded cases")
	}
	b, err := os.ReadFile(filepath.Join(dir, "prototype", "tokenizer", "smollm2_cases.jsonl"))
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
	if n < 1000 {
		t.Fatalf("only %d cases", n)
	}
	t.Logf("%d of %d wrong", wrong, n)
}

func BenchmarkEncode(b *testing.B) {
	tok := realModel(b)
	src, err := os.ReadFile("load.go")
	if err != nil {
		b.Fatal(err)
	}
	text := string(bytes.Repeat(src, 1+(1<<18)/len(src)))
	var ids []uint32
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		ids = tok.Encode(ids[:0], text, Options{})
	}
}
