package detok_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dynamograph/dynamo/nodes/text/detok"
)

// cases are faults that users of other servers reported, as inputs of ours: each row names the thread that told of it. Deltas are what each
// token gives, the last one what the end gives; "" is no delta.
var cases = []struct {
	id, from string
	pieces   []string
	o        detok.Options
	want     []string
	stop     string // what ended it
}{
	{"A-001", "exo-explore/exo#1691, Luce-Org/lucebox#641, antonellof/ferrox#124: a rune over two tokens became two U+FFFD",
		[]string{"\xf0\x9f", "\x99\x84", " ok"}, detok.Options{}, []string{"", "🙄", " ok", ""}, ""},
	{"A-002", "nobodywho-ooo/nobodywho#101: three pieces a rune, twice, then two",
		[]string{"\xf0\x9f", "\xa4", "\xa3", "\xf0\x9f", "\xa4", "\xa3", "\xf0\x9f\x98", "\x80"}, detok.Options{},
		[]string{"", "", "🤣", "", "", "🤣", "", "😀", ""}, ""},
	{"A-003 joined", "turboderp-org/exllamav3#171: runes joined by ZWJ cut across",
		[]string{"\xf0\x9f\x91", "\xa9\xe2\x80", "\x8d\xf0\x9f", "\x92\xbb"}, detok.Options{}, []string{"", "👩", "\u200d", "💻", ""}, ""},
	{"A-003 flag", "likewise: a flag is two runes, and each may be shown when it is whole",
		[]string{"\xf0\x9f\x87", "\xa9\xf0\x9f", "\x87", "\xaa"}, detok.Options{}, []string{"", "🇩", "", "🇪", ""}, ""},
	{"A-003 tone", "likewise: a hand and its tone",
		[]string{"\xf0\x9f\x91\x8d\xf0", "\x9f\x8f\xbd"}, detok.Options{}, []string{"👍", "🏽", ""}, ""},
	{"A-007", "tenstorrent/tt-inference-server#2594: a blank before half a rune became a blank and U+FFFD",
		[]string{" \xe2\x9c", "\x93"}, detok.Options{}, []string{" ", "✓", ""}, ""},
	{"A-009", "clean_up_tokenization_spaces of Hugging Face: a stream and a whole answer differed",
		[]string{"Hello", " ,", " world", " !", " do", " n't"}, detok.Options{}, []string{"Hello", " ,", " world", " !", " do", " n't", ""}, ""},
	{"A-010", "vllm-project/vllm#3672: a stop string over tokens leaked",
		[]string{"abc E", "N", "D def", "never"}, detok.Options{Stops: []string{"END"}}, []string{"abc ", "", ""}, "END"},
	{"A-011 whole", "ai-dynamo/dynamo#14378: all fragments but the last leaked",
		[]string{" uno", " dos", " tres"}, detok.Options{Stops: []string{" uno dos tres"}}, []string{"", "", ""}, " uno dos tres"},
	{"A-011 cut", "likewise: what was held back was lost at the end",
		[]string{" uno", " dos"}, detok.Options{Stops: []string{" uno dos tres"}}, []string{"", "", " uno dos"}, ""},
	{"A-013", "vllm-project/vllm#1973, #1976: an included stop string was dropped, or what follows it was kept",
		[]string{"aE", "ND b"}, detok.Options{Stops: []string{"END"}, IncludeStop: true}, []string{"a", "END"}, "END"},
	{"A-014", "vllm-project/vllm#8468: the tail that was held back was never sent",
		[]string{"Hi ", "there#", "#"}, detok.Options{Stops: []string{"###"}}, []string{"Hi ", "there", "", "##"}, ""},
	{"A-015", "vllm-project/vllm#13087: a fixed window was held back, not what may become the stop string",
		[]string{"A\n", "B"}, detok.Options{Stops: []string{"\n\nUser:"}}, []string{"A", "\nB", ""}, ""},
	{"A-017", "ai-dynamo/dynamo#14463: an empty stop string stopped at once",
		[]string{"a", "b"}, detok.Options{Stops: []string{"", ""}}, []string{"a", "b", ""}, ""},
	{"A-019", "min_tokens of vLLM: stop strings act behind the first tokens only",
		[]string{"a", " a", " a", " a", " a", " a"}, detok.Options{Stops: []string{"a"}, MinTokens: 5}, []string{"a", " a", " a", " a", " a", " "}, "a"},
	{"A-019 across", "likewise: a stop string that begins within them does not count",
		[]string{"xE", "N", "D", " END"}, detok.Options{Stops: []string{"END"}, MinTokens: 2}, []string{"xE", "N", "D", " "}, "END"},
	{"A-035", "stream_interval of vLLM: one chunk with several tokens and half a rune",
		[]string{"a b", "\xe2\x9c", "\x93 c\xc3", "\xbc"}, detok.Options{}, []string{"a b", "", "✓ c", "ü", ""}, ""},
	{"A-037", "vllm-project/vllm#10051: half a character as the first output behind a special token crashed the engine",
		[]string{"<|im_start|>", "\xe5", "\xaf\xab…"}, detok.Options{}, []string{"", "", "寫…", ""}, ""},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.id, func(t *testing.T) {
			got, stopped, d := play(c.pieces, c.o)
			if strings.Join(got, "|") != strings.Join(c.want, "|") || len(got) != len(c.want) {
				t.Errorf("deltas %q, want %q (%s)", got, c.want, c.from)
			}
			if stopped != (c.stop != "") || d.Stop() != c.stop {
				t.Errorf("stopped %v by %q, want %q", stopped, d.Stop(), c.stop)
			}
			for _, s := range got {
				if !utf8.ValidString(s) {
					t.Errorf("%q is not valid", s)
				}
			}
			// However deltas are taken, the text is the same.
			for every := 1; every <= len(c.pieces)+1; every++ {
				d := detok.New(vocabulary(c.pieces), c.o)
				var text strings.Builder
				for i := range c.pieces {
					stopped = d.Add(uint32(i))
					if (i+1)%every == 0 {
						text.WriteString(d.Text())
					}
					if stopped {
						break
					}
				}
				d.Finish()
				if text.WriteString(d.Text()); text.String() != strings.Join(c.want, "") {
					t.Errorf("taken every %d tokens: %q", every, text.String())
				}
			}
		})
	}
}
