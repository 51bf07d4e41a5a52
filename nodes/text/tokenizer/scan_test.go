package tokenizer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// recorder is a model that keeps the pre-tokens.
type recorder struct{ words []string }

func (r *recorder) word(_ *encoder, dst []uint32, w string) []uint32 {
	r.words = append(r.words, w)
	return dst
}

// pieces is what pre-tokenizers make of a text.
func pieces(cs []cut, s string) []string {
	loadClasses()
	r := &recorder{}
	(&pipeline{cuts: cs, model: r}).encode(new(encoder), nil, s, true, true)
	return r.words
}

// TestCuts compares with what Hugging Face's tokenizers 0.23 made of the same texts with the models' regular expressions.
func TestCuts(t *testing.T) {
	b, err := os.ReadFile("testdata/cuts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c struct {
			Pre, S string
			Cuts   []string
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		n++
		if got := pieces(pres[c.Pre].cuts, c.S); !slices.Equal(got, c.Cuts) {
			t.Errorf("%s %q:\n got %q\nwant %q", c.Pre, c.S, got, c.Cuts)
		}
	}
	if n < 60 {
		t.Fatalf("only %d cases", n)
	}
}

// FuzzScan: every scanner goes forward and loses nothing, whatever the bytes.
func FuzzScan(f *testing.F) {
	for _, s := range []string{"I'm 12 \n\n  x\r\n", "\xff\xc3\xf0\x9f 'LL\u00a0", "' '' 's"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, p := range pres {
			c := pieces(p.cuts, s)
			if strings.Join(c, "") != s || slices.Contains(c, "") {
				t.Fatalf("%s: %q cut into %q", name, s, c)
			}
		}
	})
}
