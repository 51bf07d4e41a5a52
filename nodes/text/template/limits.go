package template

import (
	"context"
	"fmt"
	"strings"

	"github.com/ardanlabs/jinja"

	"github.com/dynamograph/dynamo/graph/flow"
)

// meter counts what a render does. The library has no hooks, so instrument writes calls of the meter into the template's source.
type meter struct {
	ctx   context.Context
	steps int // left
	depth int // macros entered
}

// Names of the calls that instrument writes. A template that uses them itself only spends its own steps.
const (
	fnStep  = "__dynamo_step"  // at the start of a loop's turn; its argument is loop.depth
	fnEnter = "__dynamo_enter" // at the start of a macro
	fnLeave = "__dynamo_leave" // at its end
)

const maxRange = 1 << 16 // items of one range()

func (m *meter) define(vars map[string]jinja.Value) {
	none := jinja.NewBool(false)
	vars[fnStep] = jinja.NewCallable(fnStep, func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
		if len(args) > 0 && args[0].IsInt() && args[0].AsInt() > maxDepth {
			return none, tooDeep()
		}
		return none, m.step(1)
	})
	vars[fnEnter] = jinja.NewCallable(fnEnter, func([]jinja.Value, map[string]jinja.Value) (jinja.Value, error) {
		if m.depth++; m.depth > maxDepth {
			return none, tooDeep()
		}
		return none, m.step(1)
	})
	vars[fnLeave] = jinja.NewCallable(fnLeave, func([]jinja.Value, map[string]jinja.Value) (jinja.Value, error) {
		m.depth--
		return none, nil
	})
	vars["range"] = jinja.NewCallable("range", func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
		var n [3]int64
		for i, a := range args {
			if i > 2 || !a.IsInt() {
				return jinja.Undefined(), fmt.Errorf("range: want one to three integers")
			}
			n[i] = a.AsInt()
		}
		from, to, by := n[0], n[1], n[2]
		switch len(args) {
		case 0:
			return jinja.Undefined(), fmt.Errorf("range: want one to three integers")
		case 1:
			from, to, by = 0, n[0], 1
		case 2:
			by = 1
		}
		if by == 0 {
			return jinja.Undefined(), fmt.Errorf("range: the step must not be zero")
		}
		var items []jinja.Value
		for i := from; by > 0 && i < to || by < 0 && i > to; i += by {
			if len(items) == maxRange {
				return jinja.Undefined(), invalid("messages", "template.limit", "the model's chat template makes a range of more than %d", maxRange)
			}
			items = append(items, jinja.NewInt(i))
			if by > 0 && i > to-by || by < 0 && i < to-by { // the next would overflow or be the end
				break
			}
		}
		return jinja.NewList(items), m.step(len(items) / 64)
	})
}

func (m *meter) step(n int) error {
	if m.steps -= n + 1; m.steps < 0 {
		return invalid("messages", "template.limit", "the model's chat template does not come to an end on these messages")
	}
	if m.steps&0xFF == 0 {
		if err := m.ctx.Err(); err != nil {
			return flow.AsError(err)
		}
	}
	return nil
}

func tooDeep() error {
	return invalid("messages", "template.limit", "the model's chat template calls itself more than %d deep", maxDepth)
}

// instrument writes calls of the meter into source: an `if` that is never true, next to a tag that stood there anyway, so that no white
// space changes. Every tag gets a plus sign on the sides that are not the outer ones: without it the library trims the next text even where
// other tags stand between. What it cannot read it leaves alone: the parser will say what is wrong.
func instrument(source string) (string, error) {
	var b strings.Builder
	rest := source
	raw := false
	for {
		i := strings.Index(rest, "{")
		if i < 0 || i+2 > len(rest)-2 {
			break
		}
		if c := rest[i+1]; c != '%' && c != '{' && c != '#' || raw && c != '%' {
			b.WriteString(rest[:i+1])
			rest = rest[i+1:]
			continue
		}
		n, nested := tagLen(rest[i:])
		if n > maxTag && rest[i+1] != '#' || nested > maxNested {
			return "", fmt.Errorf("a tag of %d bytes with brackets %d deep; at most %d bytes and %d deep are taken", n, nested, maxTag, maxNested)
		}
		if n == 0 {
			break
		}
		tag := rest[i : i+n]
		word := ""
		if tag[1] == '%' {
			word = firstWord(tag[2 : n-2])
		}
		if raw && word != "endraw" {
			b.WriteString(rest[:i+1])
			rest = rest[i+1:]
			continue
		}
		b.WriteString(rest[:i])
		rest = rest[i+n:]
		switch word {
		case "raw":
			raw = true
		case "endraw":
			raw = false
		case "for":
			tag = after(tag, fnStep+"(loop.depth)")
		case "macro":
			tag = after(tag, fnEnter+"()")
		case "endmacro":
			tag = before(tag, fnLeave+"()")
		}
		b.WriteString(tag)
	}
	b.WriteString(rest)
	return b.String(), nil
}

// after puts a call behind a statement tag; the tag's mark for the white space behind it moves to the end.
func after(tag, call string) string {
	body, mark := tag[:len(tag)-2], ""
	if c := body[len(body)-1]; (c == '-' || c == '+') && len(body) > 2 {
		body, mark = body[:len(body)-1], string(c)
	}
	return body + "+%}{%+ if " + call + " +%}{%+ endif " + mark + "%}"
}

// before puts a call in front of a statement tag; the tag's mark for the white space before it moves to the front.
func before(tag, call string) string {
	body, mark := tag[2:], ""
	if c := body[0]; c == '-' || c == '+' {
		body, mark = body[1:], string(c)
	}
	return "{%" + mark + " if " + call + " +%}{%+ endif +%}{%+" + body
}

func firstWord(s string) string {
	s = strings.TrimSpace(strings.TrimLeft(s, "-+"))
	end := strings.IndexFunc(s, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') })
	if end < 0 {
		return s
	}
	return s[:end]
}

// tagLen is the length of the tag at the start of s, delimiters included; 0 where it is not closed. Closers inside of quotes or brackets
// do not count. nested is how deep its brackets are.
func tagLen(s string) (n, nested int) {
	closer := map[byte]string{'%': "%}", '{': "}}", '#': "#}"}[s[1]]
	if s[1] == '#' {
		if i := strings.Index(s[2:], closer); i >= 0 {
			return i + 4, 0
		}
		return 0, 0
	}
	depth := 0
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'' || c == '"':
			for i++; i < len(s) && s[i] != c; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case depth == 0 && strings.HasPrefix(s[i:], closer):
			return i + 2, nested
		case c == '(' || c == '[' || c == '{':
			depth++
			nested = max(nested, depth)
		case c == ')' || c == ']' || c == '}':
			depth--
		}
	}
	return 0, nested
}
