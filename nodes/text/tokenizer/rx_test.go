package tokenizer

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestScannersAsWritten: every scanner cuts as the expression that it stands for, run by the engine.
func TestScannersAsWritten(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for re, scan := range isolators {
		x, err := rxCompile(re)
		if err != nil {
			t.Fatal(err)
		}
		for range 4000 {
			s := strange(rng)
			got, want := pieces([]cut{{scan: scan}}, s), pieces([]cut{{pattern: &pattern{rx: x}}}, s)
			if !slices.Equal(got, want) {
				t.Fatalf("%s\n%q:\n got %q\nwant %q", re, s, got, want)
			}
			if whole[re] {
				if only := pieces([]cut{{pattern: &pattern{rx: x, by: removed, invert: true}}}, s); !slices.Equal(only, got) {
					t.Fatalf("%s\n%q: something stands between matches: %q, %q", re, s, only, got)
				}
			}
		}
	}
}

// strange is a short text of what scanners stumble over.
func strange(rng *rand.Rand) string {
	parts := []string{
		"a", "B", "e\u0301", "\u0301", "ß", "ſ", "ǅ", "ʰ", "中", "字", "ア", "の", "1", "23", "４", "Ⅷ", "½", " ", "  ", "\u00a0", "\u3000", "\n", "\r\n", "\r", "\t",
		"'s", "'S", "'ll", "'LL", "'ſ", "'", "’", "-", "/", "//", "_", "$", "+", "。", "🙂", "👩\u200d💻", "\x00", "\u200b", "\ufeff", "\u0085", "ال", "שׁ", "ก็",
		"Abc", "HTTPServer", "camelCase", "xYZ", "\ue000", "!", "(", "İ", "K", "\x7f",
	}
	var b strings.Builder
	for range 1 + rng.IntN(12) {
		b.WriteString(parts[rng.IntN(len(parts))])
	}
	return b.String()
}

// TestRxAsGo: where Go's regexp reads the same expression, the matches are the same, whether or not failures are remembered.
func TestRxAsGo(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, re := range []string{
		`a|ab|b+?c`, `(?:ab|a)(?:c|bcd)(?:d*)e?x`, `[a-c&]+d`, `a{2,3}`, `a{2,3}?b`, `(a|b)+c`, `(?i:k|s)+`, `[^ab\n]+`, `a.c`, `x*y`, `(?:a+)+b`, `[\]a-]+`, `\x61|\x{62}`,
	} {
		x, err := rxCompile(re)
		if err != nil {
			t.Fatal(err)
		}
		g := regexp.MustCompile(re)
		for range 3000 {
			n := rng.IntN(40)
			b := make([]byte, n)
			for i := range b {
				b[i] = "aaabbcdexyK \n]-"[rng.IntN(15)]
			}
			s := string(b)
			for _, hurry := range []bool{false, true} {
				var st rxState
				st.begin(len(s))
				var got [][]int
				for at := 0; at < len(s); {
					if hurry { // as after many steps
						st.steps = 1 << 30
					}
					from, to, ok := x.find(&st, s, at)
					if !ok {
						break
					}
					got, at = append(got, []int{from, to}), to
				}
				if want := g.FindAllStringIndex(s, -1); !slices.EqualFunc(got, want, slices.Equal) {
					t.Fatalf("%s in %q, remembering %v: %v, want %v", re, s, hurry, got, want)
				}
			}
		}
	}
}

func TestRxRefused(t *testing.T) {
	for re, want := range map[string]string{
		`(a`: "not closed", `a)`: "not opened", `[a`: "too early", `a{2`: "not closed", `a{x}`: "no count", `*a`: "nothing to repeat", `(?<=a)b`: "is not supported",
		`\bword`: `\b is not supported`, `^a`: "^ is not supported", `(a*)*`: "may be empty", `a*`: "can match nothing", `\p{Nope}`: "no known category", `(?:ab)++`: "possessive",
		`a(?=b*)`: "without a bound", `[b-a]`: "is empty", `a{1001}`: "no count", `((a{999}){999})`: "too large", `\1a`: `\1 is not supported`, `[[:alpha:]]`: "[:alpha:]",
		`a(?!b)*`: "takes no text", `\x{110000}`: "no code point", `a\xB`: "too early", `[\u00`: "too early", "\xff": "not valid UTF-8", strings.Repeat("(", 100): "nested",
	} {
		if _, err := rxCompile(re); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", re, err, want)
		}
	}
}

func TestRxMatches(t *testing.T) {
	for _, c := range []struct {
		re, s string
		want  []string
	}{
		{`\s+(?!\S)|\s+`, "a  b ", []string{"a", " ", " ", "b", " "}},
		{`\p{N}++x`, "12x 34", []string{"12x", " 34"}},
		{`[^\r\n\p{L}\p{N}]?+\p{L}++`, ".ab", []string{".ab"}},
		{` ?[^(\s|[.,!?…。，、।۔،])]+`, "ab, (c)|d", []string{"ab", ", (", "c", ")|", "d"}},
		{`\w+|[^\w\s]+`, "a_é1 --", []string{"a_é1", " ", "--"}},
		{`a$`, "ba\na", []string{"b", "a", "\n", "a"}},
		{`[a-z&&[^b]]+`, "abc", []string{"a", "b", "c"}},
		{`\P{L}+`, "a12b", []string{"a", "12", "b"}},
		{`\p{Han}+`, "a中b", []string{"a", "中", "b"}},
	} {
		x, err := rxCompile(c.re)
		if err != nil {
			t.Fatal(err)
		}
		if got := pieces([]cut{{pattern: &pattern{rx: x}}}, c.s); !slices.Equal(got, c.want) {
			t.Errorf("%s in %q: %q, want %q", c.re, c.s, got, c.want)
		}
	}
}

// TestRxLinear: expressions that make backtracking engines hang take time in proportion to the text.
func TestRxLinear(t *testing.T) {
	for _, re := range []string{`(?:a|aa)+b`, `(?:a+)+b`, `(?:a+)(?:a+)(?:a+)b`, `[a-z]+[0-9]`, `\s*[\r\n]+|x`} {
		x, err := rxCompile(re)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{strings.Repeat("a", 1<<17), strings.Repeat(" ", 1<<17)} {
			var st rxState
			begin := time.Now()
			(&pattern{rx: x}).spans(&st, s, nil)
			if d := time.Since(begin); d > 5*time.Second {
				t.Errorf("%s takes %v", re, d)
			}
		}
	}
}

// FuzzRx: no expression makes the engine panic or loop, and pieces lose nothing.
func FuzzRx(f *testing.F) {
	for _, re := range []string{reGPT2, reO200k, `(?:a|b){2,3}?`, `[^a-z&&[^b]]`, `(?i)x|(?!a)b`} {
		f.Add(re, "ab12 \n'S")
	}
	f.Fuzz(func(t *testing.T, re, s string) {
		x, err := rxCompile(re)
		if err != nil || len(s) > 1<<12 {
			return
		}
		var st rxState
		at := 0
		for _, p := range (&pattern{rx: x}).spans(&st, s, nil) {
			if p.end <= at {
				t.Fatalf("%q in %q: a piece ends at %d and %d", re, s, at, p.end)
			}
			at = p.end
		}
		if at != len(s) {
			t.Fatalf("%q in %q: pieces end at %d", re, s, at)
		}
	})
}
