package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// pipeline is a model behind its pre-tokenizers.
type pipeline struct {
	cuts  []cut
	model wordModel
}

// wordModel appends the tokens of one pre-token.
type wordModel interface {
	word(e *encoder, dst []uint32, w string) []uint32
}

// cut is one step of pre-tokenization. It may change a piece, and then cuts it by scan, by next or by pattern, if by any.
type cut struct {
	change  func(s string, start bool) string // start: the piece begins where the whole text does
	scan    func(string) int                  // bytes of the first piece of a text that is not empty
	next    func(string) (n int, drop bool)   // the same where pieces may be dropped
	pattern *pattern                          // a regular expression
}

// pattern cuts by a regular expression or, where rx is nil, a string.
type pattern struct {
	rx     *rx
	text   string
	by     behavior
	invert bool // what does not match counts as the match
}

func (p *pattern) find(x *rxState, s string, from int) (start, end int, ok bool) {
	if p.rx != nil {
		return p.rx.find(x, s, from)
	}
	i := strings.Index(s[from:], p.text)
	return from + i, from + i + len(p.text), i >= 0
}

// behavior says what becomes of the matches of a pattern.
type behavior uint8

const (
	isolated behavior = iota // a piece each
	removed
	withBefore // joined to what stands before
	withAfter
	contiguous // neighbours are one piece
)

// span is a piece that ends at end, and begins where the one before ends.
type span struct {
	end  int
	drop bool
}

func (p *pipeline) encode(e *encoder, dst []uint32, s string, _, start bool) []uint32 {
	return p.cut(e, dst, 0, s, start)
}

func (p *pipeline) cut(e *encoder, dst []uint32, i int, s string, start bool) []uint32 {
	if i == len(p.cuts) {
		if s == "" {
			return dst
		}
		return p.model.word(e, dst, s)
	}
	c := &p.cuts[i]
	if c.change != nil {
		s = c.change(s, start)
	}
	last := i+1 == len(p.cuts)
	switch {
	case c.scan != nil:
		for s != "" {
			n := c.scan(s)
			if last {
				dst = p.model.word(e, dst, s[:n])
			} else {
				dst = p.cut(e, dst, i+1, s[:n], start)
			}
			s, start = s[n:], false
		}
		return dst
	case c.next != nil:
		for s != "" {
			n, drop := c.next(s)
			if !drop {
				dst = p.cut(e, dst, i+1, s[:n], start)
			}
			s, start = s[n:], false
		}
		return dst
	case c.pattern != nil:
		for len(e.spans) <= i {
			e.spans = append(e.spans, nil)
		}
		spans := c.pattern.spans(&e.rx, s, e.spans[i][:0])
		at := 0
		for _, p2 := range spans {
			if !p2.drop {
				dst = p.cut(e, dst, i+1, s[at:p2.end], start && at == 0)
			}
			at = p2.end
		}
		if cap(spans) > 1<<16 {
			spans = nil
		}
		e.spans[i] = spans
		return dst
	}
	return p.cut(e, dst, i+1, s, start)
}

// spans appends the pieces of s.
func (p *pattern) spans(x *rxState, s string, out []span) []span {
	x.begin(len(s))
	done := 0
	put := func(end int, match bool) {
		if end == done {
			return
		}
		match = match != p.invert
		join := false
		if len(out) > 0 {
			switch p.by {
			case withBefore:
				join = match && !out[len(out)-1].drop
			case withAfter:
				join = !match && out[len(out)-1].drop
			case contiguous:
				join = match == out[len(out)-1].drop
			}
		}
		if join {
			out[len(out)-1].end = end
			out[len(out)-1].drop = p.by == contiguous && match || p.by == withBefore
		} else {
			out = append(out, span{end, match}) // drop tells matches until all are there
		}
		done = end
	}
	for at := 0; at < len(s); {
		from, to, ok := p.find(x, s, at)
		if !ok {
			break
		}
		put(from, false)
		put(to, true)
		at = to
	}
	put(len(s), false)
	for i := range out {
		out[i].drop = out[i].drop && p.by == removed
	}
	if cap(x.stack) > 1<<16 || cap(x.seen) > 1<<16 {
		*x = rxState{}
	}
	return out
}

// runs cuts by a class of runes: runs of what is in it (each alone, with single; not given, with drop), and of what is not.
func runs(in func(rune) bool, single, drop bool) func(string) (int, bool) {
	set := newSet(in)
	return func(s string) (int, bool) {
		n := set.at(s)
		if n == 0 {
			for n < len(s) && set.at(s[n:]) == 0 {
				n += runeLen(s[n:])
			}
			return n, false
		}
		if !single {
			for n < len(s) {
				k := set.at(s[n:])
				if k == 0 {
					break
				}
				n += k
			}
		}
		return n, drop
	}
}

// words is \w+|[^\w\s]+ as Rust's regex reads it, and nothing else.
func words(s string) (int, bool) {
	kindOf := func(s string) (int, int) {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case wordRune(r):
			return 1, n
		case isSpace(r):
			return 0, n
		}
		return 2, n
	}
	k, n := kindOf(s)
	for n < len(s) {
		j, m := kindOf(s[n:])
		if j != k {
			break
		}
		n += m
	}
	return n, k == 0
}

// bertCut: white space is dropped, punctuation stands alone.
func bertCut(s string) (int, bool) {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case isSpace(r):
		return n, true
	case isPunct(r):
		return n, false
	}
	for n < len(s) {
		r, m := utf8.DecodeRuneInString(s[n:])
		if isSpace(r) || isPunct(r) {
			break
		}
		n += m
	}
	return n, false
}

// metaspace says where "▁" goes before a text.
type metaspace uint8

const (
	metaNever  metaspace = iota
	metaFirst            // before the first piece of the whole text
	metaAlways           // before every piece
)

func metaChange(mark string, when metaspace) func(string, bool) string {
	return func(s string, start bool) string {
		s = strings.ReplaceAll(s, " ", mark)
		if (when == metaAlways || when == metaFirst && start) && !strings.HasPrefix(s, mark) {
			s = mark + s
		}
		return s
	}
}

// before cuts before every mark.
func before(mark string) func(string) int {
	return func(s string) int {
		n := runeLen(s)
		if i := strings.Index(s[n:], mark); i >= 0 {
			return n + i
		}
		return len(s)
	}
}

// byteChars spells the bytes of s in GPT-2's printable runes.
func byteChars(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		b.WriteRune(byteRunes[s[i]])
	}
	return b.String()
}

func prefixSpace(s string, _ bool) string {
	if s != "" && s[0] != ' ' {
		return " " + s
	}
	return s
}
