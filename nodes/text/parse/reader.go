package parse

import (
	"slices"
	"strings"
)

// more waits for input and reports whether there is any: false is the end of the output.
func (p *Parser) more() bool {
	if p.eof {
		return false
	}
	if p.keep >= 0 {
		p.old = append(p.old, p.buf[p.keep:p.at]...)
		p.keep = 0
	}
	p.buf, p.at = p.buf[p.at:], 0
	if p.in == "" && !p.yield(struct{}{}) {
		panic(errClosed)
	}
	p.waiting = false
	if p.in == "" {
		return false
	}
	p.buf += p.in
	p.in = ""
	return true
}

// peek reports whether n bytes can be looked at, and waits for them.
func (p *Parser) peek(n int) bool {
	for len(p.buf)-p.at < n {
		if !p.more() {
			return false
		}
	}
	return true
}

// ended reports whether the output ends here.
func (p *Parser) ended() bool { return !p.peek(1) }

// byte returns the next byte without taking it, 0 at the end of the output.
func (p *Parser) byte() byte {
	if p.ended() {
		return 0
	}
	return p.buf[p.at]
}

// space takes blanks, at most maxGap.
func (p *Parser) space() {
	for range maxGap {
		switch p.byte() {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// accept takes the longest of words that stands here, and returns it; "" if none does. One that was cut is taken, too: it is no text.
func (p *Parser) accept(words ...string) string {
	for {
		best, wait := "", false
		rest := p.buf[p.at:]
		for _, w := range words {
			if strings.HasPrefix(rest, w) {
				if len(w) > len(best) {
					best = w
				}
			} else if len(rest) < len(w) && strings.HasPrefix(w, rest) {
				wait = true
			}
		}
		if wait && p.more() {
			continue
		}
		if p.at += len(best); wait && p.cut && best == "" {
			p.at = len(p.buf)
		}
		return best
	}
}

// scan takes text up to the first of marks, which it takes, too, and returns: the longest of those that begin at one place. "" is the end of
// the output. give gets the text as it comes; held back is only what may become a mark, of which one that was cut is no text.
func (p *Parser) scan(m *marks, give func(string)) string {
	for {
		rest := p.buf[p.at:]
		i, word, _ := m.find(rest, p.eof && !p.cut)
		if i > 0 {
			p.at += i
			give(rest[:i])
		}
		if word != "" {
			p.at += len(word)
			return word
		}
		if p.eof {
			p.at = len(p.buf)
			return ""
		}
		p.more()
	}
}

// marks are strings to look for.
type marks struct {
	words []string
	first [256]bool
}

func newMarks(words ...[]string) *marks {
	m := &marks{words: slices.Concat(words...)}
	for _, w := range m.words {
		m.first[w[0]] = true
	}
	return m
}

// find returns how much of s is sure to stand before the first mark, and the mark where it is whole. wait says that more is needed.
func (m *marks) find(s string, eof bool) (sure int, word string, wait bool) {
	for i := range len(s) {
		if !m.first[s[i]] {
			continue
		}
		best := ""
		for _, w := range m.words {
			switch {
			case strings.HasPrefix(s[i:], w):
				if len(w) > len(best) {
					best = w
				}
			case !eof && len(s)-i < len(w) && strings.HasPrefix(w, s[i:]):
				return i, "", true
			}
		}
		if best != "" {
			return i, best, false
		}
	}
	return len(s), "", false
}

// text scans content or reasoning.
func (p *Parser) text(k Kind, m *marks) string {
	p.kind, p.firsts = k, &m.first
	for {
		rest := p.buf[p.at:]
		i, word, _ := m.find(rest, p.eof)
		if i > 0 {
			p.at += i
			p.emit(k, rest[:i])
		}
		if word != "" {
			p.at += len(word)
			return word
		}
		p.waiting = p.at == len(p.buf)
		if !p.more() {
			if p.at == len(p.buf) {
				return ""
			}
		}
	}
}

// mark remembers the place before the last n bytes, which are a mark, for rewind and reject. n may be 0.
func (p *Parser) mark(n int) { p.keep, p.lead, p.old = p.at-n, n, p.old[:0] }

// free forgets the place.
func (p *Parser) free() { p.keep, p.old = -1, p.old[:0] }

// rewind goes back to the place, and forgets it.
func (p *Parser) rewind() {
	if p.keep < 0 {
		return
	}
	if len(p.old) > 0 {
		p.buf, p.keep = string(p.old)+p.buf[p.keep:], 0
	}
	p.at = p.keep
	p.free()
}

// held is how much is kept.
func (p *Parser) held() int {
	if p.keep < 0 {
		return 0
	}
	return len(p.old) + p.at - p.keep
}

// reject makes text of the mark that the remembered place begins with: it came to be no call. What follows it is read again, for it may hold
// one; but where that was much already, it is text, too, so that no output takes more than linear time.
func (p *Parser) reject() {
	if p.keep < 0 {
		return
	}
	n, k := p.lead, Content
	if p.again += p.held(); p.again > maxHeld {
		n = p.held()
	}
	if p.thinking {
		k = Reasoning
	}
	if p.tools.special && p.eof && p.cut && p.at == len(p.buf) { // the beginning of a call, torn
		p.free()
		return
	}
	drop := p.tools.special && n == p.lead
	p.loose = p.loose || p.lead > 0 && !drop
	p.rewind()
	if drop {
		p.at += n
	} else if n > 0 {
		p.at += n
		p.emit(k, p.buf[p.at-n:p.at])
	}
}
