package jinja

import "fmt"

// expr compiles an expression.
func (c *compiler) expr(e expr) evaluator {
	if c.height++; c.height > maxHeight {
		panic(syntaxError(c.line, "an expression more than %d deep", maxHeight))
	}
	defer func() { c.height-- }()
	switch e := e.(type) {
	case *exConst:
		v := e.v
		return func(*state, *frame) Value { return v }
	case *exName:
		c.mention[e.name] = true
		return c.name(e.name)
	case *exTuple:
		items := c.exprs(e.items)
		return func(st *state, f *frame) Value { return &tuple{items: st.evalAll(f, items)} }
	case *exList:
		items := c.exprs(e.items)
		return func(st *state, f *frame) Value { return &List{st.evalAll(f, items)} }
	case *exDict:
		keys, vals := c.exprs(e.keys), c.exprs(e.vals)
		return func(st *state, f *frame) Value {
			st.alloc(4 * valueSize * len(keys))
			d := NewDict(len(keys))
			for i, k := range keys {
				d.put(k(st, f), vals[i](st, f))
			}
			return d
		}
	case *exUnary:
		return c.unary(e)
	case *exBinary:
		return c.binary(e)
	case *exConcat:
		return c.concat(e)
	case *exCompare:
		return c.compare(e)
	case *exCond:
		return c.cond(e)
	case *exAttr:
		x, name := c.expr(e.x), e.name
		return func(st *state, f *frame) Value { return st.getattr(x(st, f), name) }
	case *exItem:
		return c.item(e)
	case *exSlice:
		from, to, by := c.optional(e.from), c.optional(e.to), c.optional(e.by)
		return func(st *state, f *frame) Value { return &slice{from(st, f), to(st, f), by(st, f)} }
	case *exCall:
		return c.invoke(e, nil)
	case *exFilter:
		return c.filter(e)
	case *exTest:
		return c.test(e)
	}
	panic(&Error{Type: TypeBug, Msg: fmt.Sprintf("expression %T", e)})
}

func (c *compiler) exprs(es []expr) []evaluator {
	out := make([]evaluator, len(es))
	for i, e := range es {
		out[i] = c.expr(e)
	}
	return out
}

func (c *compiler) optional(e expr) evaluator {
	if e == nil {
		return func(*state, *frame) Value { return nil }
	}
	return c.expr(e)
}

func (st *state) evalAll(f *frame, es []evaluator) []Value {
	st.alloc(valueSize * len(es))
	out := make([]Value, len(es))
	for i, e := range es {
		out[i] = e(st, f)
	}
	return out
}

func (c *compiler) name(name string) evaluator {
	var none Value = &undefined{obj: noObj, name: name}
	r, ok := c.scope.find(name)
	if !ok {
		i := c.contextVar(name)
		return func(st *state, _ *frame) Value {
			if v := st.vars[i]; v != missing {
				return v
			}
			return none
		}
	}
	slot := r.slot
	n := up(c.scope.fn, r)
	if n == 0 {
		return func(_ *state, f *frame) Value {
			if v := f.vars[slot]; v != missing {
				return v
			}
			return none
		}
	}
	return func(_ *state, f *frame) Value {
		for range n {
			f = f.parent
		}
		if v := f.vars[slot]; v != missing {
			return v
		}
		return none
	}
}

func (c *compiler) unary(e *exUnary) evaluator {
	x, op := c.expr(e.x), e.op
	if op == "not" {
		return func(st *state, f *frame) Value { return !truth(x(st, f)) }
	}
	return func(st *state, f *frame) Value { return negate(op, x(st, f)) }
}

// sum compiles a row of + so that strings are not joined one by one: it gives them in texts, appended to buf, where all are strings, else the
// value.
func (c *compiler) sum(e *exBinary) func(st *state, f *frame, buf []string) (texts []string, v Value) {
	rev := []expr{e.r}
	left := e.l
	for {
		b, ok := left.(*exBinary)
		if !ok || b.op != "+" {
			break
		}
		rev = append(rev, b.r)
		left = b.l
	}
	parts := []evaluator{c.expr(left)}
	for i := range rev {
		parts = append(parts, c.expr(rev[len(rev)-1-i]))
	}
	return func(st *state, f *frame, buf []string) ([]string, Value) {
		for i, p := range parts {
			v := p(st, f)
			if s, ok := v.(string); ok {
				buf = append(buf, s)
				continue
			}
			if i > 0 {
				v = st.binary("+", st.joinTexts(buf), v)
			}
			for _, p := range parts[i+1:] {
				v = st.binary("+", v, p(st, f))
			}
			return nil, v
		}
		return buf, nil
	}
}

func (st *state) joinTexts(texts []string) string {
	n := 0
	for _, t := range texts {
		n += len(t)
	}
	st.alloc(n)
	return join(texts, n)
}

func (c *compiler) binary(e *exBinary) evaluator {
	if e.op == "+" {
		sum := c.sum(e)
		return func(st *state, f *frame) Value {
			var buf [8]string
			texts, v := sum(st, f, buf[:0])
			if texts == nil {
				return v
			}
			return st.joinTexts(texts)
		}
	}
	l, r, op := c.expr(e.l), c.expr(e.r), e.op
	switch op {
	case "and":
		return func(st *state, f *frame) Value {
			if v := l(st, f); !truth(v) {
				return v
			}
			return r(st, f)
		}
	case "or":
		return func(st *state, f *frame) Value {
			if v := l(st, f); truth(v) {
				return v
			}
			return r(st, f)
		}
	}
	return func(st *state, f *frame) Value {
		a := l(st, f)
		return st.binary(op, a, r(st, f))
	}
}

func (c *compiler) concat(e *exConcat) evaluator {
	parts := c.exprs(e.parts)
	return func(st *state, f *frame) Value {
		texts := make([]string, len(parts))
		for i, p := range parts {
			texts[i] = str(st, p(st, f))
		}
		return st.joinTexts(texts)
	}
}

func join(texts []string, n int) string {
	b := make([]byte, 0, n)
	for _, t := range texts {
		b = append(b, t...)
	}
	return string(b)
}

func (c *compiler) compare(e *exCompare) evaluator {
	first, rest, ops := c.expr(e.first), c.exprs(e.rest), e.ops
	if len(ops) == 1 {
		op, second := ops[0], rest[0]
		return func(st *state, f *frame) Value {
			a := first(st, f)
			return st.compare(op, a, second(st, f))
		}
	}
	return func(st *state, f *frame) Value {
		a := first(st, f)
		for i, op := range ops {
			b := rest[i](st, f)
			if !st.compare(op, a, b) {
				return false
			}
			a = b
		}
		return true
	}
}

func (c *compiler) cond(e *exCond) evaluator {
	soft := c.soft
	c.soft = true
	defer func() { c.soft = soft }()
	test, yes := c.expr(e.test), c.expr(e.yes)
	var no evaluator
	if e.no != nil {
		no = c.expr(e.no)
	} else {
		var none Value = &undefined{hint: fmt.Sprintf("the inline if-expression on line %d evaluated to false and no else section was defined.", c.line)}
		no = func(*state, *frame) Value { return none }
	}
	return func(st *state, f *frame) Value {
		if truth(test(st, f)) {
			return yes(st, f)
		}
		return no(st, f)
	}
}

func (c *compiler) item(e *exItem) evaluator {
	x := c.expr(e.x)
	if s, ok := e.key.(*exSlice); ok {
		from, to, by := c.optional(s.from), c.optional(s.to), c.optional(s.by)
		return func(st *state, f *frame) Value {
			v := x(st, f)
			a := from(st, f)
			b := to(st, f)
			return st.sliced(v, a, b, by(st, f))
		}
	}
	key := c.expr(e.key)
	return func(st *state, f *frame) Value {
		v := x(st, f)
		return st.getitem(v, key(st, f))
	}
}

// arguments compiles the arguments of a call; first may be nil.
func (c *compiler) arguments(a arguments, block *macroDef) func(*state, *frame) args {
	pos, vals, names := c.exprs(a.pos), c.exprs(a.vals), a.names
	if len(names) == 0 && a.star == nil && a.starMap == nil && block == nil {
		return func(st *state, f *frame) args {
			if len(pos) == 0 {
				return args{}
			}
			return args{pos: st.evalAll(f, pos)}
		}
	}
	star, starMap := c.optional(a.star), c.optional(a.starMap)
	return func(st *state, f *frame) args {
		out := args{pos: st.evalAll(f, pos), names: names, vals: st.evalAll(f, vals)}
		if block != nil {
			out.names = append(names[:len(names):len(names)], "caller")
			out.vals = append(out.vals, &macro{block, f})
		}
		if a.star != nil {
			v := star(st, f)
			if !iterable(v) {
				typeError("Value after * must be an iterable, not %s", typeName(v))
			}
			more := st.list(v)
			st.alloc(valueSize * len(more))
			out.pos = append(out.pos, more...)
		}
		if a.starMap != nil {
			d, ok := starMap(st, f).(*Dict)
			if !ok {
				typeError("argument after ** must be a mapping")
			}
			st.alloc(2 * valueSize * len(d.keys))
			out.names = append([]string(nil), out.names...)
			for i, k := range d.keys {
				name, ok := text(k)
				if !ok {
					typeError("keywords must be strings")
				}
				for _, n := range out.names {
					if n == name {
						typeError("got multiple values for keyword argument '%s'", name)
					}
				}
				st.step(1)
				out.names = append(out.names, name)
				out.vals = append(out.vals, d.vals[i])
			}
		}
		return out
	}
}

// invoke compiles a call; block is the body of a call block, or nil.
func (c *compiler) invoke(e *exCall, block *macroDef) evaluator {
	if n, ok := e.fn.(*exName); ok {
		if _, set := c.scope.find(n.name); !set {
			c.called = append(c.called, calledName{n.name, c.line, c.soft})
		}
		callee := c.name(n.name)
		a := c.arguments(e.args, block)
		return func(st *state, f *frame) Value {
			v := callee(st, f)
			return st.call(v, a(st, f))
		}
	}
	if at, ok := e.fn.(*exAttr); ok {
		x, name := c.expr(at.x), at.name
		a := c.arguments(e.args, block)
		return func(st *state, f *frame) Value {
			v := x(st, f)
			if s, ok := v.(string); ok { // without a bound method
				if m := stringMethods[name]; m != nil {
					st.step(1)
					return m(st, s, a(st, f))
				}
			}
			fn := st.getattr(v, name)
			return st.call(fn, a(st, f))
		}
	}
	callee, a := c.expr(e.fn), c.arguments(e.args, block)
	return func(st *state, f *frame) Value {
		v := callee(st, f)
		return st.call(v, a(st, f))
	}
}

func (c *compiler) filter(e *exFilter) evaluator {
	flt := filters[e.name]
	if flt == nil {
		if why := refused[e.name]; why != "" {
			c.missing(e.line, c.soft, "The filter '%s' is not supported: %s.", e.name, why)
		} else {
			c.missing(e.line, c.soft, "No filter named '%s'.", e.name)
		}
		name := e.name
		flt = func(*state, Value, args) Value {
			fail("TemplateRuntimeError", "No filter named '%s' found.", name)
			return nil
		}
	}
	var x evaluator
	if e.x != nil {
		x = c.expr(e.x)
	} else {
		slot := c.block
		x = func(_ *state, f *frame) Value { return f.vars[slot] }
	}
	a := c.arguments(e.args, nil)
	return func(st *state, f *frame) Value {
		v := x(st, f)
		return flt(st, v, a(st, f))
	}
}

func (c *compiler) test(e *exTest) evaluator {
	t := tests[e.name]
	if t == nil {
		c.missing(e.line, c.soft, "No test named '%s'.", e.name)
		name := e.name
		t = func(*state, Value, args) bool {
			fail("TemplateRuntimeError", "No test named '%s' found.", name)
			return false
		}
	}
	x, a := c.expr(e.x), c.arguments(e.args, nil)
	switch e.name {
	case "defined":
		if len(e.args.pos) == 0 {
			return func(st *state, f *frame) Value { _, u := x(st, f).(*undefined); return !u }
		}
	case "none", "string", "mapping":
		if len(e.args.pos) == 0 {
			return func(st *state, f *frame) Value { return t(st, x(st, f), args{}) }
		}
	}
	return func(st *state, f *frame) Value {
		v := x(st, f)
		return t(st, v, a(st, f))
	}
}
