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
)

// tekken is a file of 256 bytes, some words and 20 control tokens.
func tekken(special string, words ...string) string {
	var b strings.Builder
	for i := range 256 + len(words) {
		s := string([]byte{byte(i)})
		if i >= 256 {
			s = words[i-256]
		}
		fmt.Fprintf(&b, `,{"rank":%d,"token_bytes":%q,"token_str":null}`, i, base64.StdEncoding.EncodeToString([]byte(s)))
	}
	pattern, _ := json.Marshal(reTekken)
	return fmt.Sprintf(`{"config":{"pattern":%s,"default_vocab_size":%d,"default_num_special_tokens":20,"version":"v3"},"vocab":[%s]%s}`,
		pattern, 276+len(words), b.String()[1:], special)
}

func TestFromTekken(t *testing.T) {
	tok, err := FromTekken([]byte(tekken("", "ab", "abc", " abc")))
	if err != nil {
		t.Fatal(err)
	}
	if got := show(tok, tok.Encode(nil, "abc abcd[INST]", Options{BOS: true, Special: true})); got != "<s>|abc| abc|d|[INST]" {
		t.Errorf("got %q", got)
	}
	if got := show(tok, tok.Encode(nil, "abc[INST]", Options{})); got != "abc|[|I|N|S|T|]" {
		t.Errorf("control tokens as text: %q", got)
	}
	if bos, _ := tok.BOS(); bos != 1 || !slices.Equal(tok.EOS(), []uint32{2}) || tok.Size() != 279 {
		t.Errorf("bos %d, end %v, size %d", bos, tok.EOS(), tok.Size())
	}
	tok, err = FromTekken([]byte(strings.Replace(tekken(`,"special_tokens":[{"rank":5,"token_str":"<s>","is_control":true}]`), `"v3"`, `"v13"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if got := show(tok, tok.Encode(nil, "a<SPECIAL_7>", Options{BOS: true, Special: true})); got != "<s>|a|<SPECIAL_7>" {
		t.Errorf("listed: %q", got)
	}
	good := tekken("")
	for name, c := range map[string]struct{ in, want string }{
		"json":     {good[:40], "tekken.json: 1:"},
		"pattern":  {strings.Replace(good, `"pattern"`, `"p"`, 1), "config.pattern: it is empty or missing"},
		"bad":      {strings.Replace(good, `"pattern":"`, `"pattern":"(`, 1), "config.pattern"},
		"size":     {strings.Replace(good, `"default_vocab_size":276`, `"default_vocab_size":277`, 1), "do not fit a vocabulary of 256"},
		"control":  {strings.Replace(good, `"default_num_special_tokens":20`, `"default_num_special_tokens":4000000000`, 1), "do not fit"},
		"negative": {strings.Replace(good, `"default_num_special_tokens":20`, `"default_num_special_tokens":-1`, 1), "found a JSON number"},
		"rank":     {strings.Replace(good, `"rank":3,`, `"rank":4,`, 1), "vocab[3].rank: 4"},
		"bytes":    {strings.Replace(good, `"AA=="`, `"?"`, 1), "vocab[0].token_bytes"},
		"twice":    {strings.Replace(good, `"AA=="`, `"AQ=="`, 1), `vocab[1]: the token`},
		"special":  {tekken(`,"special_tokens":[{"rank":20,"token_str":"x"}]`), `special_tokens[0]: "x" has the number 20, of 20`},
		"same":     {tekken(`,"special_tokens":[{"rank":1,"token_str":"x"},{"rank":1,"token_str":"y"}]`), `special_tokens[1]`},
		"none":     {strings.Replace(good, `"v3"`, `"v11"`, 1), `special_tokens: missing, which version "v11" may not`},
	} {
		if _, err := FromTekken([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestEqualTekken: the vocabularies that Mistral's own library carries.
func TestEqualTekken(t *testing.T) {
	dir := t.TempDir()
	text := corpus(t)
	strs := generate(3, equalStrings, text, []string{"[INST]", "</s>", "[TOOL_CALLS]", "<SPECIAL_42>"})
	b, err := json.Marshal(strs)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "strings.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	reference(t, "tekken", filepath.Join(dir, "strings.json"), dir)
	files, err := filepath.Glob(filepath.Join(dir, "tekken_*.json"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d vocabularies, %v", len(files), err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			tok, err := FromTekken(b)
			if err != nil {
				t.Fatal(err)
			}
			if b, err = os.ReadFile(f + ".ids"); err != nil {
				t.Fatal(err)
			}
			var want struct {
				Size   int
				Pieces []string
				IDs    [][]uint32
				Text   []string
			}
			if err := json.Unmarshal(b, &want); err != nil {
				t.Fatal(err)
			}
			if tok.Size() != want.Size || len(want.IDs) != len(strs) || len(want.Text) != len(strs) || len(want.Pieces) < 1000 {
				t.Fatalf("%d tokens of %d, %d answers, %d control tokens", tok.Size(), want.Size, len(want.IDs), len(want.Pieces))
			}
			for id, s := range want.Pieces {
				if tok.Piece(uint32(id)) != s || !tok.IsSpecial(uint32(id)) {
					t.Errorf("%d: %q, want %q", id, tok.Piece(uint32(id)), s)
				}
			}
			wrong, ids := 0, 0
			for i, s := range strs {
				got := tok.Encode(nil, s, Options{BOS: true})
				ids += len(got)
				if !slices.Equal(got, want.IDs[i]) || tok.Decode(got, false) != want.Text[i] || want.Text[i] != s {
					if wrong++; wrong <= 5 {
						t.Errorf("%q:\n got %v %q\nwant %v %q", s, got, show(tok, got), want.IDs[i], show(tok, want.IDs[i]))
					}
				}
			}
			incremental(t, tok)
			t.Logf("%d strings, %d ids, %d wrong", len(strs), ids, wrong)
		})
	}
}
