// Package constrain says which tokens may come next so that an output is JSON by a schema, matches a regular expression or a grammar, is one of
// several choices, or has the form of a structural tag. Tokens may cross the borders of whatever the grammar is made of: it is read byte by
// byte. A constraint is never weaker than what was asked for: what cannot be honoured is refused.
package constrain

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynamograph/dynamo/graph/flow"
)

// Spec is what an output must be. One field beside After is set.
type Spec struct {
	JSONSchema string
	Regex      string   // of the whole output
	Choice     []string // one of them
	Grammar    string   // GBNF
	Tags       string   // a structural tag in xgrammar's JSON
	After      string   // what stands before the first occurrence of this text, and it, are free
}

// MaxSource bounds the bytes of a Spec.
const MaxSource = 1 << 20

// Program is a compiled Spec for one vocabulary. It is safe for concurrent use; its matchers share what they found out.
type Program struct {
	m     *machine
	start *dstate
}

// Compile makes a program. Errors are *flow.Error of class InvalidRequest; Param names the field as requests have it.
func Compile(ctx context.Context, s Spec, t *Tokens) (*Program, error) {
	if err := ctx.Err(); err != nil {
		return nil, flow.AsError(err)
	}
	g, param, err := s.grammar()
	if err == nil {
		var n *nfa
		if n, err = build(g); err == nil {
			p := &Program{m: newMachine(n, t)}
			if err = p.locked(func() { p.start = p.m.start(); p.m.warm(g) }); err == nil {
				if p.start == nil {
					err = errors.New("nothing satisfies it")
				} else {
					return p, nil
				}
			}
		}
	}
	e := flow.Errorf(flow.InvalidRequest, "constraint.invalid", "%s: %v", param, err)
	e.Param = param
	return nil, e
}

// grammar reads the field that is set.
func (s Spec) grammar() (g *Grammar, param string, err error) {
	size := len(s.JSONSchema) + len(s.Regex) + len(s.Grammar) + len(s.Tags) + len(s.After)
	set := 0
	for _, is := range []bool{s.JSONSchema != "", s.Regex != "", len(s.Choice) > 0, s.Grammar != "", s.Tags != ""} {
		if is {
			set++
		}
	}
	for _, c := range s.Choice {
		size += len(c)
	}
	g = &Grammar{}
	root := g.Add("output", nil)
	var body Node
	switch {
	case set != 1:
		return nil, "structured_outputs", fmt.Errorf("%d constraints are set; one is wanted", set)
	case s.JSONSchema != "":
		param = "response_format"
	case s.Regex != "":
		param = "regex"
	case len(s.Choice) > 0:
		param = "choice"
	case s.Grammar != "":
		param = "grammar"
	default:
		param = "structural_tag"
	}
	if size > MaxSource {
		return nil, param, fmt.Errorf("%d bytes; at most %d are taken", size, MaxSource)
	}
	switch param {
	case "response_format":
		body, err = Schema(g, []byte(s.JSONSchema))
	case "regex":
		body, err = Regex(s.Regex)
	case "choice":
		var a Alt
		for _, c := range s.Choice {
			a = append(a, Text(c))
		}
		body = a
	case "grammar":
		body, err = GBNF(g, s.Grammar)
	default:
		body, err = Tags(g, []byte(s.Tags))
	}
	if err != nil {
		return nil, param, err
	}
	if s.After != "" {
		body = Free{Stops: []string{s.After}, Then: []Node{body}}
	}
	g.Rules[root].Body = body
	return g, param, nil
}

// locked runs f, which uses the machine, and returns what bound it hit.
func (p *Program) locked(f func()) (err error) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	defer p.m.tidy()
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(limitError)
			if !ok {
				panic(r)
			}
			err = e
		}
	}()
	p.m.left = maxWork
	f()
	return nil
}

// Matcher follows one output. It is not safe for concurrent use.
type Matcher struct {
	p  *Program
	at *dstate
}

// New returns a matcher at the begin of an output.
func (p *Program) New() *Matcher { return &Matcher{p, p.start} }

// Clone returns a matcher that goes on by itself.
func (m *Matcher) Clone() *Matcher { return &Matcher{m.p, m.at} }

// Mask is the set of tokens that may come next, a bit a token: bit id&63 of word id>>6. End tokens are in it where the output may end. It is not
// to be changed. It is empty where the vocabulary cannot spell what must follow; the error says that the grammar hit a bound.
func (m *Matcher) Mask() (mask []uint64, err error) {
	err = m.p.locked(func() {
		m.at = m.p.m.adopt(m.at)
		mask = m.p.m.bits(m.at)
	})
	return mask, err
}

// Accept takes the next token and reports whether it may stand there; if not, nothing changes. End tokens change nothing.
func (m *Matcher) Accept(id uint32) bool {
	t := m.p.m.t
	if int64(id) >= int64(t.size) {
		return false
	}
	for _, e := range t.ends {
		if e == id {
			return m.at.accept
		}
	}
	text := t.v.Piece(id)
	if text == "" {
		return false
	}
	at := m.at
	err := m.p.locked(func() {
		at = m.p.m.adopt(at)
		if t.v.IsSpecial(id) {
			at = m.p.m.spell(at, text)
			return
		}
		for i := 0; i < len(text) && at != nil; i++ {
			if at.filled {
				at = at.next[text[i]]
			} else {
				at = m.p.m.step(at, text[i], false)
			}
		}
	})
	if err != nil || at == nil {
		return false
	}
	m.at = at
	return true
}

// MayEnd reports whether the output may end here.
func (m *Matcher) MayEnd() bool { return m.at.accept }

// Done reports whether the output can only end here.
func (m *Matcher) Done() bool { return m.at.accept && len(m.at.configs) == 0 }
