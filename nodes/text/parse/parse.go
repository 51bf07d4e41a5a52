// Package parse reads what a model wrote: reasoning, content and tool calls, as one ordered stream of events. The law of the package: for
// every split of an output into deltas the merged events equal those of the unsplit output. It holds by construction: each format is
// sequential code over a reader that waits where input runs out, and never sees where a delta ended.
//
// No byte of markup becomes content, nothing is lost, and nothing is guessed: what does not come to be a call stays content as it stands;
// arguments stream as they come, and those that are cut end where the output ended.
package parse

import (
	"encoding/json"
	"fmt"
	"iter"
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
	types map[string]map[string]*shape // parameters by function

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
