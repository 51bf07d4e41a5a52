// Package detok turns tokens into text one at a time: every piece is valid UTF-8, no rune is cut, and the pieces joined are exactly what
// decoding all tokens at once gives. It finds stop strings wherever they fall, across tokens too, and holds back no more than what may
// yet become one. There is no clean-up of spaces: an incremental path could not do it, so no path does.
package detok

import (
	"strings"
	"unicode/utf8"
)

// Vocabulary gives the text of tokens. Implementations are safe for concurrent use.
type Vocabulary interface {
	Piece(id uint32) string // exact bytes; need not be whole runes
	IsSpecial(id uint32) bool
}

// MaxStops is the number of stop strings of one request that callers should allow.
const MaxStops = 32

// Options say what becomes of special tokens and when text ends.
type Options struct {
	Stops       []string // text ends before the first that is complete, the longest where several end at once; "" is no stop string
	IncludeStop bool     // text ends behind it
	KeepSpecial bool     // special tokens are text
	// Keep, if set, says which special tokens are text even where KeepSpecial is false: the markers of tool calls and reasoning. To a stop
	// string such a marker is as little text as it was without Keep: none ends in a part of it, or reaches across it, but those that
	// contain the whole marker.
	Keep      func(id uint32) bool
	MinTokens int // the text of the first MinTokens tokens holds no part of a stop string
}

// Decoder decodes one sequence. It is not safe for concurrent use.
type Decoder struct {
	v       Vocabulary
	o       Options
	stops   []matcher
	first   [256]bool // bytes that stop strings begin with
	n       int       // tokens so far
	raw     []byte    // an incomplete rune
	text    []byte    // decoded and not taken
	direct  string    // the same, where it is one token as it stands
	held    int       // bytes at the end of text that begin a stop string
	stopped bool
	stop    string
}

// New returns a decoder for one sequence.
func New(v Vocabulary, o Options) *Decoder {
	d := &Decoder{v: v, o: o}
	for _, s := range o.Stops {
		if s != "" {
			d.stops = append(d.stops, newMatcher(s))
			d.first[s[0]] = true
		}
	}
	return d
}

// Add takes the next token and reports whether the text is over because of a stop string: what follows is not looked at.
func (d *Decoder) Add(id uint32) (stopped bool) {
	if d.stopped {
		return true
	}
	d.n++
	special := !d.o.KeepSpecial && d.v.IsSpecial(id)
	if special && (d.o.Keep == nil || !d.o.Keep(id)) {
		return false
	}
	s := d.v.Piece(id)
	if special && len(d.stops) > 0 && utf8.ValidString(s) {
		if d.decode(true) {
			return true
		}
		d.text = append(d.text, s...)
		return d.find(len(d.text)-len(s), s)
	}
	if len(d.stops) == 0 && len(d.raw) == 0 && len(d.text) == 0 && d.direct == "" && utf8.ValidString(s) {
		d.direct = s
		return false
	}
	d.raw = append(d.raw, s...)
	return d.decode(false)
}

// Finish says that no token follows: an incomplete rune becomes U+FFFD, and what was held back is text. It reports whether that U+FFFD
// completed a stop string.
func (d *Decoder) Finish() (stopped bool) {
	if !d.stopped {
		d.decode(true)
		d.held = 0
	}
	return d.stopped
}

// Text is what can be shown and was not taken before: it is never taken back.
func (d *Decoder) Text() string {
	if d.direct != "" {
		s := d.direct
		d.direct = ""
		return s
	}
	n := len(d.text) - d.held
	if n <= 0 {
		return ""
	}
	s := string(d.text[:n])
	d.text = d.text[:copy(d.text, d.text[n:])]
	return s
}

// Stop is the stop string that ended the text; "" while none did.
func (d *Decoder) Stop() string { return d.stop }

// Tokens is how many tokens were taken, the one that completed a stop string included.
func (d *Decoder) Tokens() int { return d.n }

// decode moves raw to text and looks for stop strings in what is new.
func (d *Decoder) decode(end bool) (stopped bool) {
	if d.direct != "" {
		d.text = append(d.text, d.direct...)
		d.direct = ""
	}
	from := len(d.text)
	var rest int
	d.text, rest = AppendValid(d.text, d.raw, end)
	d.raw = d.raw[:copy(d.raw, d.raw[len(d.raw)-rest:])]
	return d.find(from, "")
}

// find looks for stop strings in text[from:], which is mark if that is not "".
func (d *Decoder) find(from int, mark string) (stopped bool) {
	if len(d.stops) == 0 || d.n <= d.o.MinTokens {
		return false
	}
	at := 0 // the most that a stop string has
	for k := range d.stops {
		m := &d.stops[k]
		if m.blind = !strings.Contains(m.stop, mark); m.blind {
			m.at = 0
		}
		at = max(at, m.at)
	}
	for i := from; i < len(d.text); i++ {
		b := d.text[i]
		if at == 0 && !d.first[b] {
			continue
		}
		at = 0
		longest := 0
		for k := range d.stops {
			m := &d.stops[k]
			if !m.blind && m.step(b) && len(m.stop) > longest {
				longest, d.stop = len(m.stop), m.stop
			}
			at = max(at, m.at)
		}
		if longest > 0 {
			d.stopped, d.held = true, 0
			if i++; !d.o.IncludeStop {
				i -= longest
			}
			d.text = d.text[:i]
			return true
		}
	}
	d.held = at
	return false
}

// matcher finds one string in a stream of bytes (Knuth, Morris, Pratt).
type matcher struct {
	stop string
	back []int // back[i]: length of the longest proper border of stop[:i]
	at   int   // bytes of stop that the stream ends with
	// blind: what comes is a marker that stop knows nothing of
	blind bool
}

func newMatcher(s string) matcher {
	m := matcher{stop: s, back: make([]int, len(s)+1)}
	for i, k := 1, 0; i < len(s); i++ {
		for k > 0 && s[k] != s[i] {
			k = m.back[k]
		}
		if s[k] == s[i] {
			k++
		}
		m.back[i+1] = k
	}
	return m
}

// step takes one byte and reports whether the stream now ends with the whole string.
func (m *matcher) step(b byte) bool {
	if m.at == len(m.stop) {
		m.at = m.back[m.at]
	}
	for m.at > 0 && m.stop[m.at] != b {
		m.at = m.back[m.at]
	}
	if m.stop[m.at] == b {
		m.at++
	}
	return m.at == len(m.stop)
}
