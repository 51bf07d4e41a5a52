package detok_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dynamograph/dynamo/nodes/text/detok"
)

// vocabulary gives each token the bytes of its place; special tokens are written <|…|>.
type vocabulary []string

func (v vocabulary) Piece(id uint32) string   { return v[id] }
func (v vocabulary) IsSpecial(id uint32) bool { return strings.HasPrefix(v[id], "<|") }

// play decodes pieces one at a time and returns the deltas (empty ones too), and whether a stop string ended them.
func play(pieces []string, o detok.Options) (deltas []string, stopped bool, d *detok.Decoder) {
	d = detok.New(vocabulary(pieces), o)
	for i := range pieces {
		stopped = d.Add(uint32(i))
		deltas = append(deltas, d.Text())
		if stopped {
			return deltas, true, d
		}
	}
	stopped = d.Finish()
	return append(deltas, d.Text()), stopped, d
}

// TestDeltas has one row a case; the last delta is what Finish gives.
func TestDeltas(t *testing.T) {
	for name, c := range map[string]struct {
		pieces []string
		o      detok.Options
		want   []string
	}{
		"a rune over two tokens": {[]string{"\xf0\x9f", "\x99\x84", " ok"}, detok.Options{}, []string{"", "🙄", " ok", ""}},
		"over three, twice": {[]string{"\xf0\x9f", "\xa4", "\xa3", "\xf0\x9f", "\xa4", "\xa3", "\xf0\x9f\x98", "\x80"}, detok.Options{},
			[]string{"", "", "🤣", "", "", "🤣", "", "😀", ""}},
		"joined by ZWJ": {[]string{"\xf0\x9f\x91", "\xa9\xe2\x80", "\x8d\xf0\x9f", "\x92\xbb"}, detok.Options{}, []string{"", "👩", "\u200d", "💻", ""}},
		"space before":  {[]string{" \xe2\x9c", "\x93"}, detok.Options{}, []string{" ", "✓", ""}},
		"no clean-up":   {[]string{"Hello", " ,", " world", " !"}, detok.Options{}, []string{"Hello", " ,", " world", " !", ""}},
		"special inside of a rune": {[]string{"<|im_start|>", "\xe5", "<|x|>", "\xaf\xab…"}, detok.Options{},
			[]string{"", "", "", "寫…", ""}},
		"special kept":         {[]string{"a", "<|x|>"}, detok.Options{KeepSpecial: true}, []string{"a", "<|x|>", ""}},
		"cut off":              {[]string{"a\xf0\x9f", "\x98"}, detok.Options{}, []string{"a", "", "\uFFFD"}},
		"cut off, special":     {[]string{"a\xf0\x9f", "<|x|>"}, detok.Options{KeepSpecial: true}, []string{"a", "\uFFFD<|x|>", ""}},
		"ill-formed":           {[]string{"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xe2\x82", "b"}, detok.Options{}, []string{"\uFFFD", "\uFFFD\uFFFD", "\uFFFD\uFFFD\uFFFD", "", "\uFFFDb", ""}},
		"stop over tokens":     {[]string{"abc E", "N", "D def"}, detok.Options{Stops: []string{"END"}}, []string{"abc ", "", ""}},
		"stop is all":          {[]string{" uno", " dos", " tres"}, detok.Options{Stops: []string{" uno dos tres"}}, []string{"", "", ""}},
		"stop comes not":       {[]string{" uno", " dos"}, detok.Options{Stops: []string{" uno dos tres"}}, []string{"", "", " uno dos"}},
		"stop included":        {[]string{"aE", "ND b"}, detok.Options{Stops: []string{"END"}, IncludeStop: true}, []string{"a", "END"}},
		"only a prefix waits":  {[]string{"A\n", "B"}, detok.Options{Stops: []string{"\n\nUser:"}}, []string{"A", "\nB", ""}},
		"the end waits not":    {[]string{"Hi there"}, detok.Options{Stops: []string{"###"}}, []string{"Hi there", ""}},
		"empty stops":          {[]string{"a", "b"}, detok.Options{Stops: []string{"", ""}}, []string{"a", "b", ""}},
		"borders":              {[]string{"aaa", "ab", "x"}, detok.Options{Stops: []string{"aab"}}, []string{"a", "a"}},
		"the first to be full": {[]string{"abcd"}, detok.Options{Stops: []string{"abcd", "bc"}}, []string{"a"}},
		"the longest at once":  {[]string{"xabc"}, detok.Options{Stops: []string{"bc", "abc", "c"}}, []string{"x"}},
		"min tokens":           {[]string{"a", " a", " a", " a"}, detok.Options{Stops: []string{"a"}, MinTokens: 3}, []string{"a", " a", " a", " "}},
		"stop with runes":      {[]string{"x\xe2\x9c", "\x93\xc3", "\xbc y"}, detok.Options{Stops: []string{"✓ü"}}, []string{"x", "", ""}},
		"rune like the stop":   {[]string{"x\xe2\x9c", "\x94"}, detok.Options{Stops: []string{"✓ü"}}, []string{"x", "✔", ""}},
		"stop of U+FFFD":       {[]string{"a\xe2"}, detok.Options{Stops: []string{"\uFFFD"}}, []string{"a", ""}},
	} {
		got, _, _ := play(c.pieces, c.o)
		if strings.Join(got, "|") != strings.Join(c.want, "|") || len(got) != len(c.want) {
			t.Errorf("%s: deltas %q, want %q", name, got, c.want)
		}
	}
}

func TestStopIsTold(t *testing.T) {
	_, stopped, d := play([]string{"x", "aE", "ND b", "never"}, detok.Options{Stops: []string{"none", "END"}})
	if !stopped || d.Stop() != "END" || d.Tokens() != 3 {
		t.Errorf("stopped %v by %q after %d tokens", stopped, d.Stop(), d.Tokens())
	}
	if !d.Add(3) || d.Text() != "" || !d.Finish() || d.Tokens() != 3 {
		t.Error("text goes on behind the stop string")
	}
}

// batch decodes all at once, in another way than the decoder does.
func batch(s, stop string) string {
	out, _ := detok.AppendValid(nil, []byte(s), true)
	if i := strings.Index(string(out), stop); stop != "" && i >= 0 {
		return string(out[:i])
	}
	return string(out)
}

// TestSplits cuts texts at every set of places: what comes out joined is the same, and each delta is valid.
func TestSplits(t *testing.T) {
	for _, s := range []string{"ü👋🏽 ok", "a\xf0\x9f\x98b\xff\xe2\x82", "abENENDx✓", "\xe0\x80\xed\xa0\xf4\x90"} {
		for _, stop := range []string{"", "END", "✓", "zz", "\uFFFD"} {
			want := batch(s, stop)
			for cuts := range 1 << (len(s) - 1) {
				var pieces []string
				from := 0
				for i := 1; i <= len(s); i++ {
					if i == len(s) || cuts&(1<<(i-1)) != 0 {
						pieces = append(pieces, s[from:i])
						from = i
					}
				}
				deltas, stopped, _ := play(pieces, detok.Options{Stops: []string{stop}})
				if got := strings.Join(deltas, ""); got != want || stopped != (stop != "" && strings.Contains(batch(s, ""), stop)) {
					t.Fatalf("%q with stop %q: %q, want %q", pieces, stop, got, want)
				}
				for _, d := range deltas {
					if !utf8.ValidString(d) {
						t.Fatalf("%q: delta %q is not valid", pieces, d)
					}
				}
			}
		}
	}
}

func FuzzSplits(f *testing.F) {
	f.Add("a\xf0\x9f\x98b END", "END", uint64(0x5555), true)
	f.Add("aabaab", "aab", uint64(3), false)
	f.Fuzz(func(t *testing.T, s, stop string, cuts uint64, takeAll bool) {
		if !utf8.ValidString(stop) {
			return
		}
		var pieces []string
		from := 0
		for i := 1; i <= len(s); i++ {
			if i == len(s) || cuts>>(i%64)&1 != 0 {
				pieces = append(pieces, s[from:i])
				from = i
			}
		}
		d := detok.New(vocabulary(pieces), detok.Options{Stops: []string{stop}, KeepSpecial: true})
		var got strings.Builder
		stopped := false
		for i := range pieces {
			stopped = d.Add(uint32(i))
			if takeAll || i%3 == 0 {
				x := d.Text()
				if !utf8.ValidString(x) {
					t.Fatalf("%q is not valid", x)
				}
				got.WriteString(x)
			}
			if stopped {
				break
			}
		}
		d.Finish()
		got.WriteString(d.Text())
		if want := batch(s, stop); got.String() != want {
			t.Fatalf("%q with stop %q: %q, want %q", pieces, stop, got.String(), want)
		}
	})
}

func TestAllocations(t *testing.T) {
	pieces := vocabulary{" token", "\xf0\x9f", "\x99\x84", " E"}
	for name, c := range map[string]struct {
		o    detok.Options
		ids  []uint32
		most float64
	}{
		"whole runes": {detok.Options{}, []uint32{0}, 0},
		"half runes":  {detok.Options{}, []uint32{1, 2}, 0.5},
		"stops":       {detok.Options{Stops: []string{"END", "###"}}, []uint32{0, 3}, 1},
	} {
		d := detok.New(pieces, c.o)
		i := 0
		got := testing.AllocsPerRun(1000, func() {
			d.Add(c.ids[i%len(c.ids)])
			d.Text()
			i++
		})
		if got > c.most {
			t.Errorf("%s: %.2f allocations a token, want at most %.2f", name, got, c.most)
		}
	}
}

func ExampleDecoder() {
	v := vocabulary{"Hi \xf0\x9f", "\x91\x8b", "\n", "\nUser: no"}
	d := detok.New(v, detok.Options{Stops: []string{"\n\nUser:"}})
	for id := range v {
		stopped := d.Add(uint32(id))
		fmt.Printf("%q\n", d.Text())
		if stopped {
			fmt.Printf("ended by %q\n", d.Stop())
		}
	}
	// Output:
	// "Hi "
	// "👋"
	// ""
	// ""
	// ended by "\n\nUser:"
}
