package load

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"

	"github.com/dynamograph/dynamo/graph/diag"
)

// text is what to say instead of CUE.
type text struct{ code, msg, hint string }

// reword says in a spec author's words what CUE says in its own.
func (l *loader) reword(format string, args []any, msg string) text {
	arg := func(i int) string {
		if i < len(args) {
			return brief(fmt.Sprint(args[i]))
		}
		return "?"
	}
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(format, p) || strings.Contains(msg, p) })
	}
	switch {
	case has("cycle", "cyclic"):
		return text{"self-reference", "this refers to itself, so that it has no value", "write the value out at one place of the circle"}
	case has("field not allowed"):
		return text{"unknown-field", "a definition that this is made of does not allow the field", "add the field to the definition, or end the definition with `...`"}
	case has("undefined field"):
		name := strings.Trim(arg(0), `"`)
		return text{"unknown-reference", fmt.Sprintf("no field %q there", name), diag.Suggest(name, l.names())}
	case has("no field"), has("not found") && has("reference"):
		return text{"unknown-reference", fmt.Sprintf("no %q in this file", strings.Trim(arg(0), `"`)), ""}
	case has("required field missing", "field is required but not present"):
		return text{"missing-field", "a field that a definition wants is not set", "set it"}
	case has("illegal number", "invalid number", "converting number"):
		what := "this"
		if _, after, ok := strings.Cut(msg, "number start "); ok {
			what = brief(strings.ReplaceAll(after, "number & ", "")) // as CUE writes a number of YAML
		}
		return text{"bad-value", what + " is no number that a spec can hold", "write a number, as 3 or 0.5"}
	case has("division by zero"):
		return text{"bad-expression", "division by zero", ""}
	case has("invalid operands"):
		return text{"bad-expression", fmt.Sprintf("%s and %s cannot be joined by %s", arg(0), arg(1), arg(2)), ""}
	case has("invalid operation"), has("unsupported unary operator"), has("invalid operand") && has("requires") && !has("concrete"):
		return text{"bad-expression", "these values cannot be computed with", ""}
	case has("non-concrete", "incomplete", "requires concrete", "unresolved disjunction", "ambiguous default"):
		return text{"incomplete", "this cannot be computed: a part of it has no value yet", "give the part a value, or a default: `int | *2`"}
	case has("exponent", "overflow", "underflow", "failed arithmetic"):
		return text{"bad-expression", "the result is beyond all bounds", ""}
	case has("out of range", "invalid index", "invalid list index", "index must", "cannot slice", "invalid slice"):
		return text{"bad-expression", "there is no such item", "items count from 0"}
	case has("invalid regexp", "error parsing regexp"):
		_, why, _ := strings.Cut(msg, "error parsing regexp: ")
		return text{"bad-expression", strings.TrimSuffix("this is no regular expression: "+plainWords(why), ": "), ""}
	case has("cannot call"):
		return text{"bad-expression", arg(0) + " is no function", ""}
	case has("cannot use"):
		t := text{"bad-expression", arg(0) + " cannot stand here", ""}
		if len(args) > 2 {
			t.msg += ": want " + strings.NewReplacer("struct", "map", "|", " or ", "(", "", ")", "").Replace(arg(2))
		}
		return t
	case has("arguments in call", "not enough arguments", "too many arguments", "argument"):
		return text{"bad-expression", "a function is called with what it does not take", ""}
	case has("exceeds limit"):
		return text{"too-large", "an expression makes more than a spec may hold", "a spec is data: write it smaller"}
	case has("explicit error"):
		return text{"bad-expression", "an error is written here", ""}
	case has("empty list in call to or"):
		return text{"bad-expression", "or() has nothing to choose from", ""}
	case has("error in call"):
		what := arg(0)
		if i := strings.LastIndex(msg, ": "); i >= 0 && i+2 < len(msg) {
			what += ": " + plainWords(msg[i+2:])
		}
		return text{"bad-expression", what, ""}
	case has("unreferenced alias or let clause"):
		return text{"unused-name", fmt.Sprintf("%s is used nowhere", arg(0)), "remove it"}
	case has("redeclared as imported"):
		return text{"conflict", fmt.Sprintf("%s is both a field and an import", arg(0)), "give the import another name: import other \"path\""}
	case has("preference mark"):
		return text{"syntax", "the mark * for a default stands in a choice only: `int | *2`", ""}
	case has("incompatible list lengths"):
		return text{"conflict", fmt.Sprintf("lists of %s and of %s items", arg(0), arg(1)), "keep one of them"}
	case has("field set was already referenced"):
		return text{"self-reference", "a condition adds a field to what it asks about", "write the field out"}
	case has("superseded by list."):
		f := "list.Concat([a, b])"
		if has("list.Repeat") {
			f = "list.Repeat(a, 2)"
		}
		return text{"bad-expression", "lists are joined by functions", "import \"list\" and write " + f}
	}
	if p := plainWords(msg); p != "" {
		return text{"bad-expression", p, ""}
	}
	return text{"bad-expression", "this cannot be evaluated", ""}
}

// rawWords are what CUE says and no author should have to read.
var rawWords = []string{"conflicting values", "field not allowed", "incomplete value", "_|_", "empty disjunction", "non-concrete", "disjunction", "#Kinds", "conjunct",
	"structural cycle", "cycle error", "cannot find package", "reference \"", "mismatched types", "out of bound", "does not satisfy", "explicit error",
	"closed struct", "invalid operands", "undefined field", "unsupported", "preference mark", "instance", "bottom", "alias"}

// plainWords returns one line of a text of CUE's that a spec's author can read, or "".
func plainWords(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	for _, w := range rawWords {
		if strings.Contains(s, w) {
			return ""
		}
	}
	return brief(s)
}

// brief cuts a long text.
func brief(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 80 {
		return string(r[:77]) + "…"
	}
	return s
}

// choice describes a value that fits none of the values that a field may have: d is the finding, g all that CUE says of it.
func (l *loader) choice(d *diag.Diagnostic, g *group) {
	d.Code = "conflict"
	if a, b := l.plainValues(g.path); a != "" { // two plain values disagree beside it
		l.conflict(d, g, a, b, nil)
		return
	}
	count := map[string]int{}
	var order []string
	var places []diag.Pos
	for _, e := range g.errs {
		f, args := e.Msg()
		for _, p := range l.places(e) {
			if !slices.Contains(places, p) {
				places = append(places, p)
			}
		}
		if !strings.HasPrefix(f, "conflicting values") && !strings.HasPrefix(f, "invalid value") || len(args) < 2 {
			continue
		}
		for _, a := range args[:2] {
			s := fmt.Sprint(a)
			if count[s]++; count[s] == 1 {
				order = append(order, s)
			}
		}
	}
	// The value that does not fit is what all of CUE's complaints have in common.
	value, most := "", 0
	for _, s := range order {
		if count[s] > most || count[s] == most && l.wordLayer(places, s).over(l.wordLayer(places, value)) {
			value, most = s, count[s]
		}
	}
	var at diag.Pos
	for _, p := range places {
		if l.word(p) == value && (!at.IsValid() || l.after(p, at)) {
			at = p
		}
	}
	expr, ep, en := l.choiceExpr(g.path, at, order)
	if !at.IsValid() {
		at = d.Pos
	}
	d.Pos, d.Len = at, l.widthAt(at)
	switch {
	case value != "" && expr != "":
		d.Msg = prefix(g.path, fmt.Sprintf("%s conflicts with %s", brief(value), expr))
	case value != "" && len(order) > 2:
		var may []string
		for _, s := range order {
			if s == value {
				continue
			}
			may = append(may, brief(s))
			for _, p := range places {
				if l.word(p) == s && p != at {
					ep, en, expr = p, l.widthAt(p), brief(s)
				}
			}
		}
		d.Msg = prefix(g.path, fmt.Sprintf("%s is not one of %s", brief(value), strings.Join(may, ", ")))
	case value != "":
		d.Msg = prefix(g.path, fmt.Sprintf("%s is none of the values that it may have", brief(value)))
	default:
		d.Msg = prefix(g.path, "no value fits all that is said of it")
	}
	if ep.IsValid() && ep != at {
		d.Related = []diag.Related{{Pos: ep, Len: en, Msg: expr + " is set here"}}
		d.Hint = "use a value that fits, or widen the choice there"
	}
	if at.File == tagFile { // a tag without a type gives text
		if text, err := strconv.Unquote(value); err == nil {
			if _, err := strconv.Atoi(text); err == nil {
				d.Hint = "the tag gives text: write `type=int` into its @tag there"
			} else if text == "true" || text == "false" {
				d.Hint = "the tag gives text: write `type=bool` into its @tag there"
			}
		}
	}
}

// plainValues returns two different plain values that are written for a field, of the two highest layers that have one.
func (l *loader) plainValues(path []string) (a, b string) {
	type value struct {
		word string
		at   diag.Pos
	}
	var all []value
	add := func(x ast.Expr) {
		at := l.pos(x.Pos())
		if w := l.word(at); w != "" && plainLiteral(x) && !slices.ContainsFunc(all, func(v value) bool { return v.word == w }) {
			all = append(all, value{w, at})
		}
	}
	for _, sp := range l.spans.at[key(path)] {
		x := sp.expr
		if t, ok := x.(*ast.BinaryExpr); ok && t.Op == token.AND && !t.OpPos.IsValid() { // a tag was given
			add(t.Y)
			x = t.X
		}
		add(x)
	}
	slices.SortStableFunc(all, func(x, y value) int {
		if l.after(x.at, y.at) {
			return -1
		}
		return 1
	})
	if len(all) < 2 {
		return "", ""
	}
	return all[0].word, all[1].word
}

// plainLiteral reports whether x is a number, a text or the like.
func plainLiteral(x ast.Expr) bool {
	if u, ok := x.(*ast.UnaryExpr); ok && u.Op == token.SUB {
		x = u.X
	}
	_, ok := x.(*ast.BasicLit)
	return ok
}

// wordLayer is the layer of the first of places that holds the word.
func (l *loader) wordLayer(places []diag.Pos, word string) layer {
	for _, p := range places {
		if l.word(p) == word {
			return l.layerOf(p)
		}
	}
	return ""
}

// choiceExpr finds the choice `a | b` that is written for a field, elsewhere than at not, and not where it takes all
// of a type (`int | *2`) against which nothing is said in complaints.
func (l *loader) choiceExpr(path []string, not diag.Pos, complaints []string) (string, diag.Pos, int) {
	for _, sp := range l.spans.at[key(path)] {
		var found *ast.BinaryExpr
		ast.Walk(sp.expr, func(n ast.Node) bool {
			if b, ok := n.(*ast.BinaryExpr); ok && b.Op == token.OR && found == nil && !takesType(b, complaints) {
				found = b
			}
			_, inner := n.(*ast.StructLit)
			return !inner && found == nil
		}, nil)
		if found == nil {
			continue
		}
		p, q := l.pos(found.Pos()), l.pos(found.End())
		s, ok := l.srcs[p.File]
		if !ok || p == not {
			continue
		}
		n := s.width(p)
		if q.File == p.File && q.Line == p.Line && q.Col > p.Col {
			n = q.Col - p.Col
		}
		o := s.offset(p)
		return brief(string(s.data[o:min(o+n, len(s.data))])), p, n
	}
	return "", diag.Pos{}, 0
}

// takesType reports whether a branch of a choice is a type that is not among the complaints.
func takesType(x ast.Expr, complaints []string) bool {
	switch x := x.(type) {
	case *ast.BinaryExpr:
		return x.Op == token.OR && (takesType(x.X, complaints) || takesType(x.Y, complaints))
	case *ast.UnaryExpr:
		return takesType(x.X, complaints)
	case *ast.Ident:
		return slices.Contains([]string{"int", "number", "float", "string", "bool", "bytes", "_"}, x.Name) && !slices.Contains(complaints, x.Name)
	}
	return false
}

// anyOf reports whether one of the errors has a format that contains part.
func (g *group) anyOf(part string) bool {
	return slices.ContainsFunc(g.errs, func(e errors.Error) bool {
		f, _ := e.Msg()
		return strings.Contains(f, part)
	})
}
