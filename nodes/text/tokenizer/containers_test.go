package tokenizer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/model/gguf/gguftest"
)

// containers holds the same vocabulary in other files, GGUF and tiktoken's ranks, to the same tokens.
func containers(t *testing.T, file string, raw []byte, tok *Tokenizer, strs []string) {
	t.Helper()
	name := strings.TrimSuffix(filepath.Base(file), ".json")
	pre := map[string]string{
		"deepseek_v3": "deepseek-v3", "gpt4o": "gpt-4o", "gptoss": "gpt-4o", "llama3_1": "llama-bpe", "qwen3": "qwen2", "bpe-tekken": "tekken",
		"bpe-deepseek-coder": "deepseek-coder",
	}[name]
	var f struct {
		Model struct {
			Vocab  json.RawMessage
			Merges json.RawMessage
		}
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		t.Fatal(err)
	}
	var others []*Tokenizer
	if enc := map[string]string{"gpt35turbo": "cl100k_base", "gpt4o": "o200k_base", "gptoss": "o200k_base"}[name]; enc != "" {
		var ranks strings.Builder
		special := map[string]uint32{}
		for id, k := range tok.kinds {
			switch k {
			case kindControl:
				special[tok.pieces[id]] = uint32(id)
			case kindNormal:
				fmt.Fprintf(&ranks, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(tok.pieces[id])), id)
			}
		}
		o, err := FromTiktoken([]byte(ranks.String()), enc, special)
		if err != nil {
			t.Fatal(err)
		}
		others = append(others, o)
	}
	if pre != "" {
		texts := make([]string, tok.Size())
		types := make([]int32, tok.Size())
		var vocab map[string]uint32
		if err := json.Unmarshal(f.Model.Vocab, &vocab); err != nil {
			t.Fatal(err)
		}
		for s, id := range vocab {
			texts[id] = s
		}
		for id, k := range tok.kinds {
			types[id] = int32(k)
			if k == kindControl || k == kindUserDefined {
				texts[id] = tok.pieces[id]
			}
		}
		kvs := []gguftest.KV{gguftest.K("tokenizer.ggml.tokens", texts), gguftest.K("tokenizer.ggml.token_type", types)}
		var merges []string
		if json.Unmarshal(f.Model.Merges, &merges) != nil {
			var two [][2]string
			if err := json.Unmarshal(f.Model.Merges, &two); err != nil {
				t.Fatal(err)
			}
			merges = merges[:0]
			for _, m := range two {
				merges = append(merges, m[0]+" "+m[1])
			}
		}
		kvs = append(kvs, gguftest.K("tokenizer.ggml.model", "gpt2"), gguftest.K("tokenizer.ggml.pre", pre), gguftest.K("tokenizer.ggml.merges", merges))
		o, err := load(t, kvs...)
		if err != nil {
			t.Fatal(err)
		}
		others = append(others, o)
	}
	for _, o := range others {
		wrong, tried := 0, 0
		for _, s := range strs {
			skip := false
			for id := range tok.flags { // single_word and the like are not in these files
				skip = skip || strings.Contains(s, tok.pieces[id])
			}
			if skip {
				continue
			}
			tried++
			got, want := o.Encode(nil, s, Options{Special: true}), tok.Encode(nil, s, Options{Special: true})
			if !slices.Equal(got, want) {
				if wrong++; wrong <= 3 {
					t.Errorf("%s: %q:\n got %q\nwant %q", o.Pre(), s, show(o, got), show(tok, want))
				}
			}
		}
		if tried < len(strs)*3/4 {
			t.Errorf("only %d strings tried", tried)
		}
		t.Logf("%s: %d strings, %d wrong", o.Pre(), tried, wrong)
	}
}

// TestEqualSentencePiece: a BPE model of SentencePiece's as GGUF holds it.
func TestEqualSentencePiece(t *testing.T) {
	dir, text := t.TempDir(), corpus(t)
	strs := generate(2, equalStrings, text, nil)
	for i := range strs {
		strs[i] = strings.ReplaceAll(strs[i], "\x00", "") // which ends a string there
	}
	in, out, lines := filepath.Join(dir, "strings.json"), filepath.Join(dir, "ids.json"), filepath.Join(dir, "corpus.txt")
	b, err := json.Marshal(strs)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{in: b, lines: []byte(text)} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reference(t, "spm", lines, dir, in, out)
	var want struct {
		Tokens []string
		Scores []float32
		Types  []int32
		IDs    [][]uint32
	}
	if b, err = os.ReadFile(out); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	tok, err := load(t, gguftest.K("tokenizer.ggml.model", "llama"), gguftest.K("tokenizer.ggml.tokens", want.Tokens),
		gguftest.K("tokenizer.ggml.scores", want.Scores), gguftest.K("tokenizer.ggml.token_type", want.Types))
	if err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for i, s := range strs {
		if got := tok.Encode(nil, s, Options{}); !slices.Equal(got, want.IDs[i]) {
			if wrong++; wrong <= 3 {
				t.Errorf("%q:\n got %q\nwant %q", s, show(tok, got), show(tok, want.IDs[i]))
			}
		}
	}
	t.Logf("%d strings, %d wrong", len(strs), wrong)
}
