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

// cuts is what a scanner makes of a text.
func cuts(sc scanner, s string) []string {
	var out []string
	for s != "" {
		run := s
		if sc.digits {
			if n, _ := firstNumber(s); n == 0 {
				run = s[:runeLen(s)]
				out, s = append(out, run), s[len(run):]
				continue
			} else {
				run = s[:n]
			}
		}
		s = s[len(run):]
		for run != "" {
			n := sc.next(run)
			out, run = append(out, run[:n]), run[n:]
		}
	}
	return out
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
		if got := cuts(scanners[c.Pre], c.S); !slices.Equal(got, c.Cuts) {
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
		for name, sc := range scanners {
			c := cuts(sc, s)
			if strings.Join(c, "") != s || slices.Contains(c, "") {
				t.Fatalf("%s: %q cut into %q", name, s, c)
			}
		}
	})
}
