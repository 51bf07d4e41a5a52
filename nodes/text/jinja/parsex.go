package jinja

import (
	"fmt"
	"slices"
)

func typeOf(v any) string { return fmt.Sprintf("%T", v) }

// tuple parses an expression, or several with commas between them. cond allows an inline if; targets are names and literals only.
func (p *parser) tuple(cond bool, ends []string, targets bool) expr {
	return p.tupleIn(cond, ends, targets, false)
}

func (p *parser) tupleIn(cond bool, ends []string, targets, brackets bool) expr {
	var items []expr
	for {
		if len(items) > 0 {
			p.wantOp(",")
		}
		if t := p.now(); t.kind == tVarEnd || t.kind == tBlockEnd || p.isOp(")") || t.kind == tName && slices.Contains(ends, t.text) {
			break
		}
		if targets {
			items = append(items, p.primary(true))
		} else {
			items = append(items, p.expression(cond))
		}
		if !p.isOp(",") {
			if len(items) == 1 {
				return items[0]
			}
			break
		}
	}
	if len(items) == 0 && !brackets {
		p.fail("Expected an expression, got %s", quote(p.now().String()))
	}
	return &exTuple{items}
}

func (p *parser) expression(cond bool) expr {
	defer p.deeper()()
	if !cond {
		return p.or()
	}
	x := p.or()
	for p.skipName("if") {
		test := p.or()
		var no expr
		if p.skipName("else") {
			no = p.expression(true)
		}
		x = &exCond{x, test, no}
	}
	return x
}

// chain parses a row of operators of one precedence. Rows are bounded, since the tree is as deep as they are long.
func (p *parser) chain(ops []string, part func() expr) expr {
	x := part()
	for n := 0; ; n++ {
		t := p.now()
		if t.kind != tOp && t.kind != tName || !slices.Contains(ops, t.text) {
			return x
		}
		if n == maxChain {
			p.fail("more than %d operators in a row", maxChain)
		}
		op := p.next().text
		x = &exBinary{op, x, part()}
	}
}

var (
	opsOr  = []string{"or"}
	opsAnd = []string{"and"}
	opsAdd = []string{"+", "-"}
	opsMul = []string{"*", "/", "//", "%"}
	opsPow = []string{"**"}
	opsCmp = []string{"==", "!=", "<", "<=", ">", ">="}
)

func (p *parser) or() expr { return p.chain(opsOr, p.and) }

func (p *parser) and() expr { return p.chain(opsAnd, p.not) }

func (p *parser) not() expr {
	if p.skipName("not") {
		defer p.deeper()()
		return &exUnary{"not", p.not()}
	}
	return p.compare()
}

func (p *parser) compare() expr {
	first := p.sum()
	c := &exCompare{first: first}
	for {
		t := p.now()
		switch {
		case t.kind == tOp && slices.Contains(opsCmp, t.text):
			p.next()
			c.ops = append(c.ops, t.text)
		case p.skipName("in"):
			c.ops = append(c.ops, "in")
		case p.isName("not") && p.peek().kind == tName && p.peek().text == "in":
			p.at += 2
			c.ops = append(c.ops, "not in")
		case len(c.ops) == 0:
			return first
		default:
			return c
		}
		c.rest = append(c.rest, p.sum())
	}
}

func (p *parser) sum() expr { return p.chain(opsAdd, p.concat) }

func (p *parser) concat() expr {
	parts := []expr{p.product()}
	for p.skipOp("~") {
		parts = append(parts, p.product())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &exConcat{parts}
}

func (p *parser) product() expr { return p.chain(opsMul, p.power) }

func (p *parser) power() expr { return p.chain(opsPow, func() expr { return p.unary(true) }) }

func (p *parser) unary(filters bool) expr {
	var x expr
	if p.isOp("-") || p.isOp("+") {
		defer p.deeper()()
		op := p.next().text
		x = &exUnary{op, p.unary(false)}
	} else {
		x = p.primary(false)
	}
	x = p.postfix(x)
	if filters {
		for n := 0; ; n++ {
			if n == maxChain {
				p.fail("more than %d filters in a row", maxChain)
			}
			switch {
			case p.isOp("|"):
				x = p.filters(x)
			case p.isName("is"):
				x = p.test(x)
			case p.isOp("("):
				x = &exCall{x, p.args()}
			default:
				return x
			}
		}
	}
	return x
}

func (p *parser) primary(target bool) expr {
	t := p.now()
	switch t.kind {
	case tName:
		p.next()
		switch t.text {
		case "true", "True":
			return &exConst{true}
		case "false", "False":
			return &exConst{false}
		case "none", "None":
			return &exConst{nil}
		}
		if target && p.skipOp(".") {
			return &exNS{t.text, p.ident()}
		}
		return &exName{t.text}
	case tString:
		p.next()
		s := t.text
		for p.now().kind == tString {
			s += p.next().text
		}
		return &exConst{s}
	case tNumber:
		p.next()
		return &exConst{t.num}
	case tOp:
		defer p.deeper()()
		switch t.text {
		case "(":
			p.next()
			x := p.tupleIn(true, nil, false, true)
			p.wantOp(")")
			return x
		case "[":
			p.next()
			return &exList{p.items("]")}
		case "{":
			return p.dict()
		}
	}
	p.fail("unexpected %s", quote(t.String()))
	return nil
}

func (p *parser) items(end string) []expr {
	var items []expr
	for !p.isOp(end) {
		if len(items) > 0 {
			p.wantOp(",")
			if p.isOp(end) {
				break
			}
		}
		items = append(items, p.expression(true))
	}
	p.wantOp(end)
	return items
}

func (p *parser) dict() expr {
	p.wantOp("{")
	d := &exDict{}
	for !p.isOp("}") {
		if len(d.keys) > 0 {
			p.wantOp(",")
			if p.isOp("}") {
				break
			}
		}
		d.keys = append(d.keys, p.expression(true))
		p.wantOp(":")
		d.vals = append(d.vals, p.expression(true))
	}
	p.wantOp("}")
	return d
}

func (p *parser) postfix(x expr) expr {
	for n := 0; ; n++ {
		if n == maxChain {
			p.fail("more than %d subscripts in a row", maxChain)
		}
		switch {
		case p.skipOp("."):
			switch t := p.next(); t.kind {
			case tName:
				x = &exAttr{x, t.text}
			case tNumber:
				if _, ok := t.num.(int); !ok {
					p.fail("expected name or number")
				}
				x = &exItem{x, &exConst{t.num}}
			default:
				p.fail("expected name or number")
			}
		case p.skipOp("["):
			var args []expr
			for !p.isOp("]") {
				if len(args) > 0 {
					p.wantOp(",")
				}
				args = append(args, p.subscript())
			}
			p.next()
			if len(args) == 1 {
				x = &exItem{x, args[0]}
			} else {
				x = &exItem{x, &exTuple{args}}
			}
		case p.isOp("("):
			x = &exCall{x, p.args()}
		default:
			return x
		}
	}
}

func (p *parser) subscript() expr {
	s := &exSlice{}
	if !p.isOp(":") {
		x := p.expression(true)
		if !p.isOp(":") {
			return x
		}
		s.from = x
	}
	p.wantOp(":")
	if !p.isOp(":") && !p.isOp("]") && !p.isOp(",") {
		s.to = p.expression(true)
	}
	if p.skipOp(":") && !p.isOp("]") && !p.isOp(",") {
		s.by = p.expression(true)
	}
	return s
}

func (p *parser) args() arguments {
	var a arguments
	bad := func(is bool) {
		if is {
			p.fail("invalid syntax for function call expression")
		}
	}
	p.wantOp("(")
	for n := 0; !p.isOp(")"); n++ {
		if n > 0 {
			p.wantOp(",")
			if p.isOp(")") {
				break
			}
		}
		switch {
		case p.isOp("*"):
			bad(a.star != nil || a.starMap != nil)
			p.next()
			a.star = p.expression(true)
		case p.isOp("**"):
			bad(a.starMap != nil)
			p.next()
			a.starMap = p.expression(true)
		case p.now().kind == tName && p.peek().kind == tOp && p.peek().text == "=":
			bad(a.starMap != nil)
			name := p.next().text
			if slices.Contains(a.names, name) {
				p.fail("keyword argument repeated: %s", name)
			}
			p.next()
			a.names = append(a.names, name)
			a.vals = append(a.vals, p.expression(true))
		default:
			bad(a.star != nil || a.starMap != nil || len(a.names) > 0)
			a.pos = append(a.pos, p.expression(true))
		}
	}
	p.wantOp(")")
	return a
}

// filters parses "|name(args)|name…" behind x.
func (p *parser) filters(x expr) expr {
	for n := 0; p.skipOp("|"); n++ {
		if n == maxChain {
			p.fail("more than %d filters in a row", maxChain)
		}
		x = p.filters1(x)
	}
	return x
}

func (p *parser) filters1(x expr) expr {
	f := &exFilter{x: x, line: p.now().line}
	f.name = p.dotted()
	if p.isOp("(") {
		f.args = p.args()
	}
	return f
}

func (p *parser) dotted() string {
	name := p.ident()
	for p.skipOp(".") {
		name += "." + p.ident()
	}
	return name
}

func (p *parser) test(x expr) expr {
	line := p.next().line
	not := p.skipName("not")
	t := &exTest{x: x, line: line}
	t.name = p.dotted()
	switch now := p.now(); {
	case p.isOp("("):
		t.args = p.args()
	case now.kind == tName || now.kind == tString || now.kind == tNumber || p.isOp("[") || p.isOp("{"):
		if p.isName("else") || p.isName("or") || p.isName("and") {
			break
		}
		if p.isName("is") {
			p.fail("You cannot chain multiple tests with is")
		}
		t.args.pos = []expr{p.postfix(p.primary(false))}
	}
	if not {
		return &exUnary{"not", t}
	}
	return t
}
