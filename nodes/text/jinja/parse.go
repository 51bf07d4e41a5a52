package jinja

import (
	"slices"
	"strings"
)

// parser builds the tree. Syntax errors are panics with *Error; what does not hinder the parser is collected.
type parser struct {
	tokens []token
	at     int
	depth  int        // of what is being parsed
	ends   [][]string // words that end the open blocks
	opened []string   // open blocks
	loops  int        // around the statement, in its function
	found  Errors     // unknown tags and the like
	bad    map[string]bool
}

func (p *parser) now() *token { return &p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tEOF {
		p.at++
	}
	return t
}

func (p *parser) isOp(op string) bool { t := p.now(); return t.kind == tOp && t.text == op }

func (p *parser) isName(name string) bool { t := p.now(); return t.kind == tName && t.text == name }

func (p *parser) peek() *token { return &p.tokens[min(p.at+1, len(p.tokens)-1)] }

func (p *parser) skipOp(op string) bool {
	if p.isOp(op) {
		p.at++
		return true
	}
	return false
}

func (p *parser) skipName(name string) bool {
	if p.isName(name) {
		p.at++
		return true
	}
	return false
}

func (p *parser) fail(format string, args ...any) { panic(syntaxError(p.now().line, format, args...)) }

func (p *parser) expected(what string) {
	if p.now().kind == tEOF {
		p.fail("unexpected end of template, expected '%s'.", what)
	}
	p.fail("expected token '%s', got %s", what, quote(p.now().String()))
}

func (p *parser) wantOp(op string) {
	if !p.skipOp(op) {
		p.expected(op)
	}
}

func (p *parser) wantName(name string) {
	if !p.skipName(name) {
		p.expected(name)
	}
}

func (p *parser) ident() string {
	if p.now().kind != tName {
		p.expected("name")
	}
	return p.next().text
}

func (p *parser) want(k tokenKind) {
	if p.now().kind != k {
		p.expected(token{kind: k}.String())
	}
	p.next()
}

// deeper counts nesting; the function that it gives ends it.
func (p *parser) deeper() func() {
	if p.depth++; p.depth > maxNesting {
		p.fail("nested more than %d deep", maxNesting)
	}
	return func() { p.depth-- }
}

// body parses statements up to a tag of one of ends, which is the current token then; none: to the end of the template.
func (p *parser) body(ends ...string) []stmt {
	defer p.deeper()()
	if len(ends) > 0 {
		p.skipOp(":")
		p.want(tBlockEnd)
		p.ends = append(p.ends, ends)
		defer func() { p.ends = p.ends[:len(p.ends)-1] }()
	}
	var out []stmt
	for {
		switch t := p.next(); t.kind {
		case tEOF:
			if len(ends) > 0 {
				p.at = len(p.tokens) - 1
				p.unclosed("")
			}
			return out
		case tData:
			out = append(out, &stData{t.text})
		case tVarBegin:
			line := p.now().line
			out = append(out, &stOutput{p.tuple(true, nil, false), line})
			p.want(tVarEnd)
		case tBlockBegin:
			if n := p.now(); n.kind == tName && slices.Contains(ends, n.text) {
				return out
			}
			if s := p.statement(); s != nil {
				out = append(out, s)
			}
			p.want(tBlockEnd)
		}
	}
}

// closed parses statements up to a tag of one word, and takes the word.
func (p *parser) closed(end string) []stmt {
	b := p.body(end)
	p.next()
	return b
}

// unclosed tells of a tag that is not known here, or of the end of the template inside of a block.
func (p *parser) unclosed(tag string) {
	msg := "Unexpected end of template."
	if tag != "" {
		msg = "Encountered unknown tag " + quote(tag) + "."
	}
	if n := len(p.ends); n > 0 {
		var words []string
		for _, w := range p.ends[n-1] {
			words = append(words, "'"+w+"'")
		}
		looking := strings.Join(words, " or ")
		nesting := false
		for _, e := range p.ends {
			nesting = nesting || tag != "" && slices.Contains(e, tag)
		}
		if nesting {
			msg += " You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for " + looking + "."
		} else {
			msg += " Jinja was looking for the following tags: " + looking + "."
		}
	}
	if n := len(p.opened); n > 0 {
		msg += " The innermost block that needs to be closed is '" + p.opened[n-1] + "'."
	}
	p.fail("%s", msg)
}

func (p *parser) statement() stmt {
	t := *p.now()
	if t.kind != tName {
		p.fail("tag name expected")
	}
	parse := map[string]func(int) stmt{
		"for": p.forLoop, "if": p.ifElse, "set": p.set, "macro": p.macro, "call": p.call, "filter": p.filterBlock, "with": p.with,
		"block": p.block, "print": p.print, "generation": p.generation,
	}[t.text]
	switch {
	case parse != nil:
		p.next()
		p.opened = append(p.opened, t.text)
		s := parse(t.line)
		p.opened = p.opened[:len(p.opened)-1]
		return s
	case t.text == "break" || t.text == "continue":
		p.next()
		if p.loops == 0 {
			panic(syntaxError(t.line, "'%s' outside loop", t.text))
		}
		if t.text == "break" {
			return &stBreak{t.line}
		}
		return &stContinue{t.line}
	case t.text == "include" || t.text == "import" || t.text == "from" || t.text == "extends":
		p.problem(t.line, "'"+t.text+"' is not supported: a chat template is one file")
	case t.text == "autoescape":
		p.fail("'autoescape' is not supported: prompts are not HTML")
	case slices.ContainsFunc(p.ends, func(e []string) bool { return slices.Contains(e, t.text) }):
		p.unclosed(t.text)
	case strings.HasPrefix(t.text, "end") && p.bad[t.text[3:]]:
	case strings.HasPrefix(t.text, "end"), t.text == "else", t.text == "elif":
		p.unclosed(t.text)
	default:
		p.problem(t.line, "Encountered unknown tag "+quote(t.text)+".")
		if p.bad == nil {
			p.bad = map[string]bool{}
		}
		p.bad[t.text] = true
	}
	for p.now().kind != tBlockEnd && p.now().kind != tEOF { // go on behind it, to find what else is wrong
		p.next()
	}
	return nil
}

func (p *parser) problem(line int, msg string) {
	p.found = append(p.found, syntaxError(line, "%s", msg))
}

func (p *parser) forLoop(line int) stmt {
	s := &stFor{line: line}
	s.target = p.target(false, "in")
	p.wantName("in")
	s.iter = p.tuple(false, []string{"recursive"}, false)
	if p.skipName("if") {
		s.test = p.expression(true)
	}
	s.recursive = p.skipName("recursive")
	outer := p.loops
	p.loops++
	if s.recursive {
		p.loops = 1
	}
	s.body = p.body("endfor", "else")
	p.loops = outer
	if s.recursive {
		p.loops = 0
	}
	if p.next().text == "else" {
		s.other = p.closed("endfor")
	}
	p.loops = outer
	return s
}

func (p *parser) ifElse(line int) stmt {
	s := &stIf{line: line}
	for {
		s.tests = append(s.tests, p.tuple(false, nil, false))
		s.bodies = append(s.bodies, p.body("elif", "else", "endif"))
		switch p.next().text {
		case "elif":
			continue
		case "else":
			s.bodies = append(s.bodies, p.closed("endif"))
		}
		return s
	}
}

func (p *parser) set(line int) stmt {
	target := p.target(true)
	if p.skipOp("=") {
		return &stSet{target, p.tuple(true, nil, false), line}
	}
	var filter expr
	if p.isOp("|") {
		filter = p.filters(nil)
	}
	return &stSetBlock{target, filter, p.closed("endset"), line}
}

// function parses a body that is a function of its own.
func (p *parser) function(end string) []stmt {
	outer := p.loops
	p.loops = 0
	b := p.closed(end)
	p.loops = outer
	return b
}

func (p *parser) macro(line int) stmt {
	m := &stMacro{name: p.ident(), line: line}
	p.signature(m)
	m.body = p.function("endmacro")
	return m
}

func (p *parser) signature(m *stMacro) {
	p.wantOp("(")
	for !p.isOp(")") {
		if len(m.params) > 0 {
			p.wantOp(",")
		}
		name := p.ident()
		if slices.Contains(m.params, name) {
			p.fail("duplicate argument '%s' in function definition", name)
		}
		m.params = append(m.params, name)
		if p.skipOp("=") {
			m.defaults = append(m.defaults, p.expression(true))
		} else if len(m.defaults) > 0 {
			p.fail("non-default argument follows default argument")
		}
	}
	p.next()
}

func (p *parser) call(line int) stmt {
	m := &stMacro{line: line}
	if p.isOp("(") {
		p.signature(m)
	}
	call, ok := p.expression(true).(*exCall)
	if !ok {
		panic(syntaxError(line, "expected call"))
	}
	m.body = p.function("endcall")
	return &stCall{call, m, line}
}

func (p *parser) generation(line int) stmt {
	return &stCall{nil, &stMacro{line: line, body: p.function("endgeneration")}, line}
}

func (p *parser) filterBlock(line int) stmt {
	f := p.filters1(nil)
	f = p.filters(f)
	return &stFilter{f, p.closed("endfilter"), line}
}

func (p *parser) with(line int) stmt {
	s := &stWith{line: line}
	for p.now().kind != tBlockEnd {
		if len(s.targets) > 0 {
			p.wantOp(",")
		}
		s.targets = append(s.targets, p.target(false))
		p.wantOp("=")
		s.values = append(s.values, p.expression(true))
	}
	s.body = p.closed("endwith")
	return s
}

func (p *parser) block(int) stmt {
	s := &stBlock{name: p.ident()}
	p.skipName("scoped")
	p.skipName("required")
	s.body = p.function("endblock")
	p.skipName(s.name)
	return s
}

func (p *parser) print(line int) stmt {
	parts := []expr{}
	for p.now().kind != tBlockEnd {
		if len(parts) > 0 {
			p.wantOp(",")
		}
		parts = append(parts, p.expression(true))
	}
	return &stOutput{&exConcat{parts}, line}
}

// target parses what is assigned to; ns allows attributes of namespaces. ends are names that end a tuple.
func (p *parser) target(ns bool, ends ...string) expr {
	line := p.now().line
	t := p.tuple(true, ends, true)
	var check func(e expr)
	check = func(e expr) {
		switch e := e.(type) {
		case *exName:
		case *exNS:
			if !ns {
				panic(syntaxError(line, "can't assign to 'nsref'"))
			}
		case *exTuple:
			for _, x := range e.items {
				check(x)
			}
		default:
			panic(syntaxError(line, "can't assign to '%s'", strings.ToLower(strings.TrimPrefix(typeOf(e), "*jinja.ex"))))
		}
	}
	check(t)
	return t
}
