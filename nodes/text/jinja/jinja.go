package jinja

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"
)

// Options are of a template.
type Options struct {
	Known []string         // names of the variables that may hold functions of the caller; others that are called and never set are refused
	Now   func() time.Time // for strftime_now; nil: time.Now
}

// Template is a compiled template. It does not change and is safe for concurrent use.
type Template struct {
	names    []string // of the variables that it reads of the context
	known    []string
	now      func() time.Time
	warnings Errors
	slots    *fn
	begin    func(*state, *frame)
	body     runner
}

// Compile compiles a template. The error is Errors: all that was found, with lines.
func Compile(source string, o Options) (t *Template, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Error:
			t, err = nil, Errors{r}
		default:
			t, err = nil, Errors{{Type: TypeBug, Msg: fmt.Sprintf("%v\n%s", r, debug.Stack())}}
		}
	}()
	if len(source) > maxSource {
		return nil, Errors{syntaxError(1, "%d bytes; at most %d are taken", len(source), maxSource)}
	}
	if i := invalidAt(source); i >= 0 {
		return nil, Errors{syntaxError(1+strings.Count(source[:i], "\n"), "not valid UTF-8 at byte %d", i)}
	}
	p := &parser{tokens: lex(source)}
	body := p.body()
	if t = (&Template{known: o.Known, now: o.Now, slots: &fn{}}); t.now == nil {
		t.now = time.Now
	}
	c := &compiler{t: t, block: -1, mention: map[string]bool{}, found: p.found}
	c.scope = c.open(nil, t.slots)
	c.root = c.scope
	c.declare(c.scope, body, false)
	t.body = c.stmts(body)
	t.begin = c.scope.begin()
	if c.unknown(); len(c.found) > 0 {
		return nil, c.found
	}
	return t, nil
}

// Warnings are filters, tests and functions that nothing has and that stand in a branch: as in Jinja, the template fails where it gets there.
func (t *Template) Warnings() Errors { return t.warnings }

func invalidAt(s string) int {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// Input is what one render is given.
type Input struct {
	Vars   map[string]Value
	Limits Limits
	// Mark, if not 0, is a rune that functions, comparisons and lengths do not see; it stays behind the character that it stands behind.
	Mark rune
	// Hold is a second one, which trimming does not take for the end of a text.
	Hold rune
	// Text, if set, is applied to the strings that fromjson reads, without marks: it may put Mark into them.
	Text func(string) string
}

// Render renders. Errors are *Error, or ctx's.
func (t *Template) Render(ctx context.Context, in Input) (text string, err error) {
	st := states.Get().(*state)
	*st = state{ctx: ctx, now: t.now, text: in.Text, out: st.out[:0], vars: st.vars[:0], spare: st.spare}
	st.steps = in.Limits.Steps
	if st.steps == 0 {
		st.steps = 1e6
	}
	if st.memory = in.Limits.Memory; st.memory == 0 {
		st.memory = 256 << 20
	}
	if st.output = in.Limits.Output; st.output == 0 {
		st.output = 64 << 20
	}
	st.checked = st.steps
	if in.Mark != 0 {
		st.mark = string(in.Mark)
	}
	if in.Hold != 0 {
		st.hold = string(in.Hold)
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Error:
			e := *r
			if e.Line == 0 {
				e.Line = st.line
			}
			text, err = "", &e
			st.spare = nil
		case error:
			if ctx.Err() != nil {
				text, err = "", r
				break
			}
			text, err = "", &Error{Line: st.line, Type: TypeBug, Msg: fmt.Sprintf("%v\n%s", r, debug.Stack())}
		default:
			text, err = "", &Error{Line: st.line, Type: TypeBug, Msg: fmt.Sprintf("%v\n%s", r, debug.Stack())}
		}
		if cap(st.out) < 1<<20 {
			clear(st.vars)
			st.ctx, st.now, st.text = nil, nil, nil
			states.Put(st)
		}
	}()
	for _, name := range t.names {
		v, ok := in.Vars[name]
		if !ok {
			if g := globals[name]; g != nil {
				v, ok = g, true
			}
		}
		if !ok {
			v = missing
		}
		st.vars = append(st.vars, v)
	}
	f := newFrame(t.slots.slots, nil)
	t.begin(st, f)
	t.body(st, f)
	return string(st.out), nil
}
