package tokenizer

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dynamograph/dynamo/nodes/text/detok"
)

// incremental holds that what a decoder gives token by token is what decoding all at once gives, for ids of texts and for ids at random, which
// cut runes wherever they can be cut.
func incremental(t *testing.T, tok *Tokenizer) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 8))
	texts := strings.SplitAfter("Grüße, 世界! 👩‍💻🇩🇪 a\tb\r\n  x = [1, 2]; naïve e\u0301 \u00a0\u200b "+strings.Repeat("🙂日本語", 30), " ")
	for n := range 3000 {
		var ids []uint32
		if n%2 == 0 {
			for range 1 + r.IntN(40) {
				ids = append(ids, uint32(r.IntN(tok.Size())))
			}
		} else {
			for range 1 + r.IntN(4) {
				ids = tok.Encode(ids, texts[r.IntN(len(texts))], Options{})
			}
		}
		keep := n%3 == 0
		d := detok.New(tok, detok.Options{KeepSpecial: keep})
		var b strings.Builder
		for _, id := range ids {
			d.Add(id)
			if r.IntN(3) > 0 {
				s := d.Text()
				if !utf8.ValidString(s) {
					t.Fatalf("%v: %q cuts a rune", ids, s)
				}
				b.WriteString(s)
			}
		}
		d.Finish()
		b.WriteString(d.Text())
		got, want := b.String(), tok.Decode(ids, keep)
		if tok.stripLeft { // which is of a whole text: an answer goes on behind a prompt
			got = strings.TrimPrefix(got, " ")
		}
		if got != want {
			t.Fatalf("%v:\n got %q\nwant %q", ids, got, want)
		}
	}
}
