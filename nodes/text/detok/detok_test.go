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

// TestKeep has rows of markers that are special tokens: they are text, and no stop string takes a part of them for its own.
func TestKeep(t *testing.T) {
	pieces := []string{"a|", "<|call|>", "|x", "<|end|>", "\nUser:"}
	for name, c := range map[string]struct {
		o    detok.Options
		want string
		stop string
	}{
		"none is kept":              {detok.Options{}, "a||x\nUser:", ""},
		"one is kept":               {detok.Options{Keep: call}, "a|<|call|>|x\nUser:", ""},
		"all are":                   {detok.Options{KeepSpecial: true}, "a|<|call|>|x<|end|>\nUser:", ""},
		"a part of a marker":        {detok.Options{Keep: call, Stops: []string{"call", "<|", "l|"}}, "a|<|call|>|x\nUser:", ""},
		"across its borders":        {detok.Options{Keep: call, Stops: []string{"|<", ">|"}}, "a|<|call|>|x\nUser:", ""},
		"the marker itself":         {detok.Options{Keep: call, Stops: []string{"ll", "<|call|>"}}, "a|", "<|call|>"},
		"more than the marker":      {detok.Options{Keep: call, Stops: []string{"|<|call|>|x\n"}}, "a", "|<|call|>|x\n"},
		"where it is all text":      {detok.Options{KeepSpecial: true, Stops: []string{"call"}}, "a|<|", "call"},
		"it takes away no attempt":  {detok.Options{Keep: call, Stops: []string{"||", "x\n"}}, "a|<|call|>|", "x\n"},
		"without it, they do touch": {detok.Options{Stops: []string{"||"}}, "a", "||"},
		"among the first tokens":    {detok.Options{Keep: call, MinTokens: 2, Stops: []string{"<|call|>", "x"}}, "a|<|call|>|", "x"},
	} {
		deltas, stopped, d := play(pieces, c.o)
		if got := strings.Join(deltas, ""); got != c.want || d.Stop() != c.stop || stopped != (c.stop != "") {
			t.Errorf("%s: %q, ended by %q; want %q, by %q", name, got, d.Stop(), c.want, c.stop)
		}
	}
	deltas, _, _ := play([]string{"\xf0\x9f", "<|call|>", "\x99"}, detok.Options{Keep: call, Stops: []string{"zz"}})
	if got := strings.Join(deltas, "·"); got != "·\uFFFD<|call|>·\uFFFD·" {
		t.Errorf("a marker inside of a rune: %q", got)
	}
}

func call(id uint32) bool { return id == 1 }

// FuzzKeep holds texts with markers against the rule told plainly: of all stretches of text that are a stop string, lie behind the first
// tokens and cut into no marker that the stop string does not contain, the one that ends first ends the text.
func FuzzKeep(f *testing.F) {
	f.Add([]byte{0, 6, 2, 1, 6, 3, 4, 5}, "|", "<|m|>|", uint8(0), false)
	f.Add([]byte{2, 7, 2, 6, 6, 0}, "||", "a<|m|>", uint8(2), true)
	alphabet := vocabulary{"a", "b|", "|", "<", "\xc3", "\xbc", "<|m|>", "<|n|>", "m|>a"}
	f.Fuzz(func(t *testing.T, ids []byte, stop1, stop2 string, least uint8, include bool) {
		if !utf8.ValidString(stop1) || !utf8.ValidString(stop2) || len(ids) > 64 {
			return
		}
		o := detok.Options{Stops: []string{stop1, stop2}, IncludeStop: include, MinTokens: int(least % 8), Keep: func(id uint32) bool { return id == 6 }}
		d := detok.New(alphabet, o)
		var got strings.Builder
		var raw, all []byte
		type span struct{ from, to int }
		var marks []span
		from, stopped := 0, false // from: where stop strings count
		for n, b := range ids {
			id := uint32(b) % uint32(len(alphabet))
			if id != 7 {
				if raw = append(raw, alphabet[id]...); id == 6 {
					all, _ = detok.AppendValid(nil, raw, true)
					marks = append(marks, span{len(all) - len(alphabet[6]), len(all)})
				}
			}
			if n < o.MinTokens {
				all, _ = detok.AppendValid(nil, raw, false)
				from = len(all)
			}
			if !stopped {
				stopped = d.Add(id)
				if b >= 128 {
					got.WriteString(d.Text())
				}
			}
		}
		d.Finish()
		got.WriteString(d.Text())
		all, _ = detok.AppendValid(nil, raw, true)
		want := string(all)
	find:
		for end := from; end <= len(all); end++ {
			longest := ""
			for _, s := range o.Stops {
				at := end - len(s)
				fits := s != "" && at >= from && string(all[at:end]) == s
				for _, m := range marks {
					fits = fits && (m.to <= at || m.from >= end || strings.Contains(s, alphabet[6]))
				}
				if fits && len(s) > len(longest) {
					longest = s
				}
			}
			if longest != "" {
				if want = string(all[:end]); !include {
					want = string(all[:end-len(longest)])
				}
				break find
			}
		}
		if got.String() != want {
			t.Fatalf("%v with stops %q, the first %d tokens free: %q, want %q", ids, o.Stops, o.MinTokens, got.String(), want)
		}
	})
}

var sink string // what is not used may be left out

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
			sink = d.Text()
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

func BenchmarkDecoder(b *testing.B) {
	pieces := vocabulary{" token", "\xf0\x9f", "\x99\x84", " \n", "<|call|>"}
	stops := make([]string, detok.MaxStops)
	for i := range stops {
		stops[i] = "\n\nUser " + string(rune('a'+i)) + ":"
	}
	for _, c := range []struct {
		name string
		o    detok.Options
		ids  []uint32
	}{
		{"whole", detok.Options{}, []uint32{0}},
		{"halves", detok.Options{}, []uint32{1, 2}},
		{"marks", detok.Options{Keep: func(id uint32) bool { return id == 4 }, Stops: stops[:1]}, []uint32{0, 4}},
		{"stops=4", detok.Options{Stops: stops[:4]}, []uint32{0, 3}},
		{"stops=32", detok.Options{Stops: stops}, []uint32{0, 3}},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := detok.New(pieces, c.o)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				d.Add(c.ids[i%len(c.ids)])
				sink = d.Text()
			}
		})
	}
}
