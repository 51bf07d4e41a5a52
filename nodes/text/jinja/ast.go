package jinja

// Expressions. Their depth is bounded by the parser.
type (
	expr interface{}

	exConst struct{ v Value }
	exName  struct{ name string }
	exNS    struct{ name, attr string } // only a target of set
	exTuple struct{ items []expr }
	exList  struct{ items []expr }
	exDict  struct{ keys, vals []expr }
	exUnary struct {
		op string // "not", "-", "+"
		x  expr
	}
	exBinary struct {
		op   string // "+" …, "and", "or"
		l, r expr
	}
	exConcat  struct{ parts []expr }
	exCompare struct {
		first expr
		ops   []string // "==" …, "in", "not in"
		rest  []expr
	}
	exCond struct{ yes, test, no expr } // no may be nil
	exAttr struct {
		x    expr
		name string
	}
	exItem  struct{ x, key expr }
	exSlice struct{ from, to, by expr } // each may be nil
	exCall  struct {
		fn   expr
		args arguments
	}
	exFilter struct {
		x    expr // nil: the text of a filter block or of a set block
		name string
		args arguments
		line int
	}
	exTest struct {
		x    expr
		name string
		args arguments
		line int
	}

	arguments struct {
		pos           []expr
		names         []string // of keywords
		vals          []expr
		star, starMap expr // may be nil
	}
)

// Statements.
type (
	stmt interface{}

	stData   struct{ text string }
	stOutput struct {
		x    expr
		line int
	}
	stFor struct {
		target, iter, test expr // test may be nil
		body, other        []stmt
		recursive          bool
		line               int
	}
	stIf struct {
		tests  []expr
		bodies [][]stmt // one a test, and one more for else, where there is one
		line   int
	}
	stSet struct {
		target, x expr
		line      int
	}
	stSetBlock struct {
		target, filter expr // filter may be nil
		body           []stmt
		line           int
	}
	stMacro struct {
		name     string // "" is a block of call or generation
		params   []string
		defaults []expr // of the last parameters
		body     []stmt
		line     int
	}
	stCall struct {
		call  *exCall // nil: generation
		block *stMacro
		line  int
	}
	stFilter struct {
		filter expr
		body   []stmt
		line   int
	}
	stWith struct {
		targets, values []expr
		body            []stmt
		line            int
	}
	stBlock struct {
		name string
		body []stmt
	}
	stBreak    struct{ line int }
	stContinue struct{ line int }
)

// exprs visits the direct parts of an expression.
func exprs(e expr, visit func(expr)) {
	some := func(es ...expr) {
		for _, x := range es {
			if x != nil {
				visit(x)
			}
		}
	}
	args := func(a *arguments) {
		some(a.pos...)
		some(a.vals...)
		some(a.star, a.starMap)
	}
	switch e := e.(type) {
	case *exTuple:
		some(e.items...)
	case *exList:
		some(e.items...)
	case *exDict:
		for i := range e.keys {
			some(e.keys[i], e.vals[i])
		}
	case *exUnary:
		some(e.x)
	case *exBinary:
		some(e.l, e.r)
	case *exConcat:
		some(e.parts...)
	case *exCompare:
		some(e.first)
		some(e.rest...)
	case *exCond:
		some(e.test, e.yes, e.no)
	case *exAttr:
		some(e.x)
	case *exItem:
		some(e.x, e.key)
	case *exSlice:
		some(e.from, e.to, e.by)
	case *exCall:
		some(e.fn)
		args(&e.args)
	case *exFilter:
		some(e.x)
		args(&e.args)
	case *exTest:
		some(e.x)
		args(&e.args)
	}
}

// walk visits e and all that is in it.
func walk(e expr, visit func(expr)) {
	if e == nil {
		return
	}
	visit(e)
	exprs(e, func(x expr) { walk(x, visit) })
}

// parts gives the expressions and bodies of a statement in the order of the source. Targets are given as such.
func parts(s stmt, load, store func(expr), body func([]stmt)) {
	opt := func(e expr) {
		if e != nil {
			load(e)
		}
	}
	macro := func(m *stMacro) {
		for _, p := range m.params {
			store(&exName{p})
		}
		for _, d := range m.defaults {
			load(d)
		}
		body(m.body)
	}
	switch s := s.(type) {
	case *stOutput:
		load(s.x)
	case *stFor:
		store(s.target)
		load(s.iter)
		body(s.body)
		body(s.other)
		opt(s.test)
	case *stIf:
		for i, b := range s.bodies {
			if i < len(s.tests) {
				load(s.tests[i])
			}
			body(b)
		}
	case *stSet:
		load(s.x)
		store(s.target)
	case *stSetBlock:
		store(s.target)
		opt(s.filter)
		body(s.body)
	case *stMacro:
		macro(s)
	case *stCall:
		if s.call != nil {
			load(s.call)
		}
		macro(s.block)
	case *stFilter:
		body(s.body)
		load(s.filter)
	case *stWith:
		for _, t := range s.targets {
			store(t)
		}
		for _, v := range s.values {
			load(v)
		}
		body(s.body)
	case *stBlock:
		body(s.body)
	}
}
