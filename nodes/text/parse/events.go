package parse

import "crypto/rand"

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
