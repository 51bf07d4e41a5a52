package jinja

import (
	"fmt"
	"slices"
	"strings"
)

type (
	evaluator func(*state, *frame) Value
	runner    func(*state, *frame) ctrl
)

// compiler turns the tree into functions.
type compiler struct {
	t       *Template
	scope   *scope
	root    *scope
	height  int
	line    int
	block   int             // slot that holds the text for the filters of a filter block, or -1
	soft    bool            // in a branch of an if, not in a block inside of it: what is unknown there is an error where it is reached
	mention map[string]bool // names that are read otherwise than by a call
	called  []calledName
	found   Errors
}

// calledName is a variable of the context that is called.
type calledName struct {
	name string
	line int
	soft bool
}

// contextVar is the index of a variable of the context.
func (c *compiler) contextVar(name string) int {
	if i := slices.Index(c.t.names, name); i >= 0 {
		return i
	}
	c.t.names = append(c.t.names, name)
	return len(c.t.names) - 1
}

// missing tells of a name that nothing has: an error, or a warning where it may never be reached.
func (c *compiler) missing(line int, soft bool, format string, args ...any) {
	if soft {
		c.t.warnings = append(c.t.warnings, &Error{Line: line, Type: "TemplateRuntimeError", Msg: fmt.Sprintf(format, args...)})
		return
	}
	c.fail(line, format, args...)
}

func (c *compiler) fail(line int, format string, args ...any) {
	c.found = append(c.found, &Error{Line: line, Type: "TemplateAssertionError", Msg: fmt.Sprintf(format, args...)})
}

// begin sets the slots of a scope.
func (s *scope) begin() func(*state, *frame) {
	starts := s.starts
	if len(starts) == 0 {
		return func(*state, *frame) {}
	}
	return func(st *state, f *frame) {
		for _, x := range starts {
			switch {
			case x.outer >= 0:
				o := f
				for range x.up {
					o = o.parent
				}
				f.vars[x.slot] = o.vars[x.outer]
			case x.context >= 0:
				f.vars[x.slot] = st.vars[x.context]
			default:
				f.vars[x.slot] = missing
			}
		}
	}
}

// inner compiles f in a new scope of the same function.
func (c *compiler) inner(f func(s *scope)) {
	outer, soft := c.scope, c.soft
	c.scope, c.soft = c.open(outer, outer.fn), false
	f(c.scope)
	c.scope, c.soft = outer, soft
}

func (c *compiler) stmts(body []stmt) runner {
	var out []runner
	for _, s := range body {
		out = append(out, c.stmt(s))
	}
	switch len(out) {
	case 0:
		return func(*state, *frame) ctrl { return 0 }
	case 1:
		return out[0]
	}
	return func(st *state, f *frame) ctrl {
		for _, r := range out {
			if c := r(st, f); c != 0 {
				return c
			}
		}
		return 0
	}
}

func (c *compiler) stmt(s stmt) runner {
	switch s := s.(type) {
	case *stData:
		text := s.text
		return func(st *state, _ *frame) ctrl { st.write(text); return 0 }
	case *stOutput:
		return c.output(s)
	case *stIf:
		return c.ifElse(s)
	case *stFor:
		return c.forLoop(s)
	case *stSet:
		c.line = s.line
		x, set, line := c.expr(s.x), c.target(s.target), s.line
		check := c.namespaces(s.target)
		return func(st *state, f *frame) ctrl {
			st.line = line
			check(st, f)
			set(st, f, x(st, f))
			return 0
		}
	case *stSetBlock:
		c.line = s.line
		set := c.target(s.target)
		run := c.captured(s.body, s.filter, s.line)
		return func(st *state, f *frame) ctrl {
			v, ctl := run(st, f)
			if ctl == 0 {
				set(st, f, v)
			}
			return ctl
		}
	case *stFilter:
		run := c.captured(s.body, s.filter, s.line)
		return func(st *state, f *frame) ctrl {
			v, ctl := run(st, f)
			if ctl == 0 {
				st.write(str(st, v))
			}
			return ctl
		}
	case *stMacro:
		def, set := c.macro(s), c.target(&exName{s.name})
		return func(st *state, f *frame) ctrl { set(st, f, &macro{def, f}); return 0 }
	case *stCall:
		return c.callBlock(s)
	case *stWith:
		return c.with(s)
	case *stBlock:
		return c.blockTag(s)
	case *stBreak:
		return func(*state, *frame) ctrl { return ctrlBreak }
	case *stContinue:
		return func(*state, *frame) ctrl { return ctrlContinue }
	}
	panic(&Error{Type: TypeBug, Msg: fmt.Sprintf("statement %T", s)})
}

func (c *compiler) output(s *stOutput) runner {
	c.line = s.line
	if b, ok := s.x.(*exBinary); ok && b.op == "+" {
		sum, line := c.sum(b), s.line
		return func(st *state, f *frame) ctrl {
			st.line = line
			var buf [8]string
			texts, v := sum(st, f, buf[:0])
			if texts == nil {
				st.write(str(st, v))
			}
			for _, t := range texts {
				st.write(t)
			}
			return 0
		}
	}
	x, line := c.expr(s.x), s.line
	return func(st *state, f *frame) ctrl {
		st.line = line
		switch v := x(st, f).(type) {
		case string:
			st.write(v)
		case *undefined: // prints as nothing
		default:
			st.write(str(st, v))
		}
		return 0
	}
}

func (c *compiler) ifElse(s *stIf) runner {
	c.line = s.line
	soft := c.soft
	c.soft = true
	defer func() { c.soft = soft }()
	var tests []evaluator
	var bodies []runner
	for _, t := range s.tests {
		tests = append(tests, c.expr(t))
	}
	for _, b := range s.bodies {
		bodies = append(bodies, c.stmts(b))
	}
	line := s.line
	return func(st *state, f *frame) ctrl {
		st.line = line
		for i, t := range tests {
			if truth(t(st, f)) {
				return bodies[i](st, f)
			}
		}
		if len(bodies) > len(tests) {
			return bodies[len(tests)](st, f)
		}
		return 0
	}
}

func (c *compiler) forLoop(s *stFor) runner {
	c.line = s.line
	items := c.expr(s.iter)
	b := &loopBody{loopSlot: -1, begin: func(*state, *frame) {}}
	soft := c.soft
	c.soft = false
	defer func() { c.soft = soft }()
	outer, f := c.scope, c.scope.fn
	if s.recursive {
		f = &fn{parent: c.scope.fn}
	}
	names := func(e expr, s *scope) {
		walk(e, func(x expr) {
			if n, ok := x.(*exName); ok {
				s.param(n.name)
			}
		})
	}
	if s.test != nil {
		c.scope = c.open(outer, f)
		names(s.target, c.scope)
		b.testSet, b.test, b.testBegin = c.target(s.target), c.expr(s.test), c.scope.begin()
	}
	c.noLoop(s)
	c.scope = c.open(outer, f)
	if s.recursive || uses(s.body, "loop")["loop"] {
		b.loopSlot = c.scope.param("loop")
	}
	names(s.target, c.scope)
	c.declare(c.scope, s.body, false)
	b.assign, b.body = c.target(s.target), c.stmts(s.body)
	b.begin = c.scope.begin()
	if s.other != nil {
		c.scope = c.open(outer, f)
		c.declare(c.scope, s.other, false)
		body := c.stmts(s.other)
		begin := c.scope.begin()
		b.other = func(st *state, f *frame) ctrl { begin(st, f); return body(st, f) }
	}
	c.scope = outer
	line := s.line
	if !s.recursive {
		return func(st *state, f *frame) ctrl {
			st.line = line
			return b.run(st, f, f, items(st, f), 0)
		}
	}
	b.slots = f.slots
	return func(st *state, f *frame) ctrl {
		st.line = line
		st.write(st.recursive(b, f, items(st, f), 0))
		return 0
	}
}

// noLoop refuses a for that sets loop.
func (c *compiler) noLoop(s *stFor) {
	var all func([]stmt)
	store := func(e expr) {
		walk(e, func(x expr) {
			if n, ok := x.(*exName); ok && n.name == "loop" {
				c.fail(s.line, "Can't assign to special loop variable in for-loop target")
			}
		})
	}
	all = func(body []stmt) {
		for _, x := range body {
			if _, ok := x.(*stFor); !ok { // an inner one tells of its own
				parts(x, func(expr) {}, store, all)
			}
		}
	}
	store(s.target)
	all(s.body)
	all(s.other)
}

// captured compiles a block that gives its text, through filters where there are some.
func (c *compiler) captured(body []stmt, filter expr, line int) func(*state, *frame) (Value, ctrl) {
	var run runner
	var begin func(*state, *frame)
	var through evaluator
	slot := -1
	c.inner(func(s *scope) {
		c.declare(s, body, false)
		run = c.stmts(body)
		if filter != nil {
			slot = s.fn.slots
			s.fn.slots++
			outer := c.block
			c.block, c.line = slot, line
			through = c.expr(filter)
			c.block = outer
		}
		begin = s.begin()
	})
	return func(st *state, f *frame) (Value, ctrl) {
		var ctl ctrl
		begin(st, f)
		var v Value = st.capture(func() { ctl = run(st, f) })
		if through != nil && ctl == 0 {
			st.line = line
			f.vars[slot] = v
			v = through(st, f)
		}
		return v, ctl
	}
}

func (c *compiler) with(s *stWith) runner {
	c.line = s.line
	var values []evaluator
	var targets []func(*state, *frame, Value)
	for _, v := range s.values {
		values = append(values, c.expr(v))
	}
	var body runner
	var begin func(*state, *frame)
	c.inner(func(sc *scope) {
		for _, t := range s.targets {
			walk(t, func(x expr) {
				if n, ok := x.(*exName); ok {
					sc.param(n.name)
				}
			})
			targets = append(targets, c.target(t))
		}
		c.declare(sc, s.body, false)
		body, begin = c.stmts(s.body), sc.begin()
	})
	line := s.line
	return func(st *state, f *frame) ctrl {
		st.line = line
		begin(st, f)
		for i, v := range values {
			targets[i](st, f, v(st, f))
		}
		return body(st, f)
	}
}

// function compiles body as a function inside of parent.
func (c *compiler) function(parent *scope, enter func(s *scope)) *fn {
	outer, block, soft := c.scope, c.block, c.soft
	f := &fn{parent: parent.fn}
	c.scope, c.block, c.soft = c.open(parent, f), -1, false
	enter(c.scope)
	c.scope, c.block, c.soft = outer, block, soft
	return f
}

func (c *compiler) macro(s *stMacro) *macroDef {
	c.line = s.line
	d := &macroDef{name: s.name, params: s.params, caller: -1, kwargs: -1, varargs: -1}
	d.explicit = slices.Contains(s.params, "caller")
	special := uses(s.body, "caller", "kwargs", "varargs")
	d.fn = c.function(c.scope, func(sc *scope) {
		for _, p := range s.params {
			d.slots = append(d.slots, sc.param(p))
		}
		if special["caller"] {
			if i := slices.Index(s.params, "caller"); i < 0 {
				d.caller = sc.param("caller")
			} else if i < len(s.params)-len(s.defaults) {
				c.fail(s.line, `When defining macros or call blocks the special "caller" argument must be omitted or be given a default.`)
			}
		}
		if special["kwargs"] && !slices.Contains(s.params, "kwargs") {
			d.kwargs = sc.param("kwargs")
		}
		if special["varargs"] && !slices.Contains(s.params, "varargs") {
			d.varargs = sc.param("varargs")
		}
		c.declare(sc, s.body, false)
		for _, x := range s.defaults {
			d.defaults = append(d.defaults, c.expr(x))
		}
		d.body = c.stmts(s.body)
		d.begin = sc.begin()
	})
	return d
}

func (c *compiler) callBlock(s *stCall) runner {
	def := c.macro(s.block)
	line := s.line
	if s.call == nil { // generation: the block shows itself
		return func(st *state, f *frame) ctrl {
			st.line = line
			st.write(st.callMacro(&macro{def, f}, args{}).(string))
			return 0
		}
	}
	c.line = s.line
	call := c.invoke(s.call, def)
	return func(st *state, f *frame) ctrl {
		st.line = line
		st.write(str(st, call(st, f)))
		return 0
	}
}

// blockTag compiles a block: it sees the variables of the template's outermost scope.
func (c *compiler) blockTag(s *stBlock) runner {
	var body runner
	var begin func(*state, *frame)
	f := c.function(c.root, func(sc *scope) {
		c.declare(sc, s.body, false)
		body, begin = c.stmts(s.body), sc.begin()
	})
	return func(st *state, at *frame) ctrl {
		for at.parent != nil {
			at = at.parent
		}
		st.step(1)
		own := newFrame(f.slots, at)
		begin(st, own)
		return body(st, own)
	}
}

// target compiles an assignment.
func (c *compiler) target(e expr) func(*state, *frame, Value) {
	switch e := e.(type) {
	case *exName:
		r, _ := c.scope.find(e.name)
		slot := r.slot
		return func(_ *state, f *frame, v Value) { f.vars[slot] = v }
	case *exNS:
		x, name := c.expr(&exName{e.name}), e.attr
		return func(st *state, f *frame, v Value) {
			ns, ok := x(st, f).(*namespace)
			if !ok { // the same assignment replaced it
				typeError("'%s' object does not support item assignment", typeName(x(st, f)))
			}
			st.alloc(4 * valueSize)
			ns.d.put(name, v)
		}
	case *exTuple:
		var each []func(*state, *frame, Value)
		for _, x := range e.items {
			each = append(each, c.target(x))
		}
		return func(st *state, f *frame, v Value) {
			for i, x := range st.unpack(v, len(each)) {
				each[i](st, f, x)
			}
		}
	}
	panic(&Error{Type: TypeBug, Msg: fmt.Sprintf("target %T", e)})
}

// namespaces checks what attributes are assigned to.
func (c *compiler) namespaces(e expr) func(*state, *frame) {
	var all []evaluator
	walk(e, func(x expr) {
		if n, ok := x.(*exNS); ok {
			all = append(all, c.expr(&exName{n.name}))
		}
	})
	return func(st *state, f *frame) {
		for _, x := range all {
			if _, ok := x(st, f).(*namespace); !ok {
				fail("TemplateRuntimeError", "cannot assign attribute on non-namespace object")
			}
		}
	}
}

// unknown tells of functions that neither the template nor its caller can have: they are called, never set and never asked for.
func (c *compiler) unknown() {
	for _, f := range c.called {
		if !c.mention[f.name] && globals[f.name] == nil && !slices.Contains(c.t.known, f.name) {
			c.missing(f.line, f.soft, "No function named '%s'.", f.name)
		}
	}
	c.found, c.t.warnings = c.found.sorted(), c.t.warnings.sorted()
}

func (e Errors) sorted() Errors {
	slices.SortFunc(e, func(a, b *Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.Msg, b.Msg)
	})
	return slices.CompactFunc(e, func(a, b *Error) bool { return *a == *b })
}
