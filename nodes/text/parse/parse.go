// Package parse reads what a model wrote: reasoning, content and tool calls, as one ordered stream of events. The law of the package: for
// every split of an output into deltas the merged events equal those of the unsplit output. It holds by construction: each format is
// sequential code over a reader that waits where input runs out, and never sees where a delta ended.
//
// No byte of markup becomes content, nothing is lost, and nothing is guessed: what does not come to be a call stays content as it stands;
// arguments stream as they come, and those that are cut end where the output ended.
package parse

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Kind is what an Event tells.
type Kind uint8

// The kinds.
const (
	Content       Kind = iota + 1
	Reasoning          // thoughts, without their marks
	CallBegin          // Call, ID and Name are set
	CallArguments      // a piece of the arguments' JSON text
	CallEnd            // the arguments are over. A call without it was cut
)

// Event is one step of an answer.
type Event struct {
	Kind Kind
	Text string // of Content, Reasoning and CallArguments
	Call int    // from 0, in the order of begin
	Name string
	ID   string
}

// Function is one tool of the request.
type Function struct {
	Name       string
	Parameters json.RawMessage // JSON Schema; nil: none
}

// Options say how to read.
type Options struct {
	Tools     string // format of tool calls (ToolFormats); "": there are none
	Reasoning string // format of reasoning (ReasoningFormats); "": there is none
	// Functions give formats without types the types of their values. A name that is not among them is no fault.
	Functions []Function
	// Tail is the end of the rendered prompt: a template may have opened the reasoning. 256 bytes suffice.
	Tail string
	// Continue: the output continues a message whose text ends Tail.
	Continue bool
	NewID    func(call int, name string) string // of calls; nil: as the format has them
	OneCall  bool                               // calls behind the first are dropped
}

// Parser reads one output. It is not safe for concurrent use. After Finish or Close it holds nothing.
type Parser struct {
	o     Options
	tools *toolFormat
	think *reasonFormat
	types map[string]*object // parameters by function

	events []Event
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	over   bool

	buf     string // not consumed, but for what stands before at
	at      int
	keep    int    // from here on buf may be needed again, behind old; -1: nothing is
	old     []byte // kept, and not in buf any more
	lead    int    // length of the mark that what is kept begins with
	again   int    // bytes that were read twice
	in      string
	eof     bool
	cut     bool
	waiting bool // in scan, with nothing held: text without a first byte of a mark is sure
	firsts  *[256]bool
	kind    Kind // of scanned text

	calls    int
	open     bool // a call has begun and not ended
	mute     bool // the open call is dropped
	loose    bool // a mark that begins calls was text: so is the next one that ends them
	thinking bool // now
	ids      map[string]bool
	joined   []byte // text of the last event, if joining
	joining  bool
	trim     trim
}

// New returns a parser for one output, or an error that names a format that is not known.
func New(o Options) (*Parser, error) {
	p := &Parser{o: o, keep: -1}
	if o.Tools != "" {
		if p.tools = tools()[o.Tools]; p.tools == nil {
			return nil, fmt.Errorf("tools: there is no format %q; there are %s", o.Tools, strings.Join(ToolFormats(), ", "))
		}
	}
	if o.Reasoning != "" {
		if p.think = reasons()[o.Reasoning]; p.think == nil {
			return nil, fmt.Errorf("reasoning: there is no format %q; there are %s", o.Reasoning, strings.Join(ReasoningFormats(), ", "))
		}
	}
	p.thinking = p.think != nil && p.think.opened(o.Tail, o.Continue)
	p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil && r != errClosed { //nolint:errorlint // a mark of our own
				panic(r)
			}
		}()
		p.yield = yield
		p.run()
		p.text(Content, &marks{}) // run reads to the end, but nothing of a fault in a format may be lost
		p.end()
	})
	return p, nil
}

type closed struct{}

var errClosed = closed{}

// Feed takes what the output gained. The events are valid until the next call; adjacent ones of one kind are merged.
func (p *Parser) Feed(text string) []Event {
	p.events = p.events[:0]
	if p.over || text == "" {
		return p.events
	}
	if p.waiting && p.plain(text) {
		p.emit(p.kind, text)
		return p.events
	}
	p.in = text
	p.next()
	p.settle()
	return p.events
}

// plain reports whether no mark begins in text.
func (p *Parser) plain(text string) bool {
	for i := range len(text) {
		if p.firsts[text[i]] {
			return false
		}
	}
	return true
}

// Finish takes the end of the output. cut says that it ended by length: then what is open stays so.
func (p *Parser) Finish(cut bool) []Event {
	p.events = p.events[:0]
	if p.over {
		return p.events
	}
	p.eof, p.cut, p.over = true, cut, true
	p.in = ""
	p.next()
	p.settle()
	p.stop()
	return p.events
}

// Close ends the parser before the end of the output.
func (p *Parser) Close() {
	p.over = true
	p.stop()
}

// Calls is how many calls have begun.
func (p *Parser) Calls() int { return p.calls }

// InReasoning reports whether what comes next would be reasoning.
func (p *Parser) InReasoning() bool { return p.thinking }

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

// eof is what byte returns at the end of the output: no byte of UTF-8.
const eof = 0xff

// byte returns the next byte without taking it.
func (p *Parser) byte() byte {
	if !p.peek(1) {
		return eof
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

// emit appends an event, or adds to the last one.
func (p *Parser) emit(k Kind, text string) {
	if k == Content || k == Reasoning {
		if text = p.trim.add(p, k, text); text == "" {
			return
		}
	}
	p.put(k, text)
}

// put appends text as it stands, or adds it to the last event.
func (p *Parser) put(k Kind, text string) {
	call := 0
	if k == CallArguments {
		call = p.calls - 1
	}
	if n := len(p.events); n > 0 && p.events[n-1].Kind == k && p.events[n-1].Call == call {
		if !p.joining {
			p.joining, p.joined = true, append(p.joined[:0], p.events[n-1].Text...)
		}
		p.joined = append(p.joined, text...)
		return
	}
	p.event(Event{Kind: k, Text: text, Call: call})
}

func (p *Parser) event(e Event) {
	p.settle()
	p.events = append(p.events, e)
}

// settle gives the last event the text that was added to it.
func (p *Parser) settle() {
	if p.joining {
		p.joining = false
		p.events[len(p.events)-1].Text = string(p.joined)
	}
}

// begin starts a call. id may be "": then it is made.
func (p *Parser) begin(name, id string) {
	p.free()
	p.open = true
	if p.mute = p.o.OneCall && p.calls > 0; p.mute {
		return
	}
	p.trim.call(p)
	n := p.calls
	p.calls++
	switch {
	case p.o.NewID != nil:
		id = p.o.NewID(n, name)
	case id != "" && p.tools.textID != nil && p.tools.textID(id) && !p.ids[id]:
	case p.tools.id != nil:
		id = p.tools.id(n, name)
	default:
		id = "call_" + token(24)
	}
	if p.ids == nil {
		p.ids = map[string]bool{}
	}
	p.ids[id] = true
	p.event(Event{Kind: CallBegin, Call: n, Name: name, ID: id})
}

// args adds to the arguments of the open call.
func (p *Parser) args(text string) {
	if text != "" && !p.mute {
		p.emit(CallArguments, text)
	}
}

// done ends the open call.
func (p *Parser) done() {
	if p.open && !p.mute {
		p.event(Event{Kind: CallEnd, Call: p.calls - 1})
	}
	p.open, p.mute = false, false
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

// end closes what the end of the output leaves.
func (p *Parser) end() {
	p.open, p.mute = false, false
	p.trim.end(p)
}

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// token is n random characters.
func token(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	for i := range b {
		b[i] = alphabet[int(b[i])%len(alphabet)]
	}
	return string(b)
}
