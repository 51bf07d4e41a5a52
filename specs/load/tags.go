package load

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/dynamograph/dynamo/graph/diag"
)

// tag is one @tag(name,type=int,short=a|b) of a spec.
type tag struct {
	name, typ string
	short     []string
	field     *ast.Field
	pos       diag.Pos
}

// tagUse is a tag that a load was given a value for.
type tagUse struct{ arg, name string }

// tags unifies the values that the user gave into the fields whose @tag names them, as `cue -t` does. at is the file of the arguments.
func (l *loader) tags(srcs []*source, at *source, args []string) {
	all := l.findTags(srcs)
	l.given = map[string]tagUse{}
	seen := map[string]string{}
	tf := token.NewFile(at.name, -1, len(at.data)+1)
	tf.SetLinesForContent(at.data)
	next := 0
	for _, arg := range args {
		start := next
		next += len(arg) + 1
		k, v, ok := strings.Cut(arg, "=")
		off := start + len(k) + 1 // of the value
		bad := func(code, hint, format string, a ...any) {
			d := diag.Diagnostic{Code: code, Pos: at.pos(start), Len: max(1, len(arg)), Msg: fmt.Sprintf(format, a...), Hint: hint}
			if len(all) > 0 {
				d.Notes = []string{"tags of this spec: " + strings.Join(tagNames(all), ", ")}
			}
			l.list.Add(d)
		}
		var use []*tag
		switch {
		case ok && k != "":
			use = slices.DeleteFunc(slices.Clone(all), func(t *tag) bool { return t.name != k })
		case !ok && k != "": // the short form stands for one of the listed values
			v, off = k, start
			use = slices.DeleteFunc(slices.Clone(all), func(t *tag) bool { return !slices.Contains(t.short, k) })
			if len(use) == 0 {
				bad("bad-tag", "", "want -t key=value, got %q", arg)
				continue
			}
		default:
			bad("bad-tag", "", "want -t key=value, got %q", arg)
			continue
		}
		if len(use) == 0 {
			hint := diag.Suggest(k, tagNames(all))
			if len(all) == 0 {
				hint = "this spec declares no tag: write @tag(" + k + ") behind a field of a CUE spec"
			}
			bad("unknown-tag", hint, "no tag %q", k)
			continue
		}
		if old, ok := seen[use[0].name]; ok && old != v {
			bad("bad-tag", "give each tag once", "tag %q is given as %q before", use[0].name, old)
			continue
		}
		seen[use[0].name] = v
		for _, t := range use {
			x, err := tagValue(t, v, tf.Pos(off, token.NoRelPos))
			if err != "" {
				bad("bad-tag", "", "tag %q: %s", t.name, err)
				d := &l.list[len(l.list)-1]
				d.Related = []diag.Related{{Pos: t.pos, Len: len(t.name) + len("@tag("), Msg: fmt.Sprintf("tag %q is declared here", t.name)}}
				break
			}
			if b, ok := t.field.Value.(*ast.BinaryExpr); ok && b.Op == token.AND && !b.OpPos.IsValid() {
				continue // given twice, the same
			}
			t.field.Value = &ast.BinaryExpr{X: t.field.Value, Op: token.AND, Y: x} // no OpPos: see above
			l.given[l.pos(t.field.Label.Pos()).String()] = tagUse{arg: arg, name: t.name}
		}
	}
}

// findTags lists the tags of all files in order. A malformed one is a finding.
func (l *loader) findTags(srcs []*source) []*tag {
	var out []*tag
	for _, s := range srcs {
		ast.Walk(s.file, func(n ast.Node) bool {
			f, ok := n.(*ast.Field)
			if !ok {
				return true
			}
			for _, a := range f.Attrs {
				key, body := a.Split()
				if key != "tag" {
					continue
				}
				t := &tag{field: f, pos: l.pos(a.Pos()), typ: "string"}
				for i, part := range strings.Split(body, ",") {
					part = strings.TrimSpace(part)
					name, val, opt := strings.Cut(part, "=")
					val = strings.Trim(val, `"`)
					switch {
					case i == 0 && !opt:
						t.name = strings.Trim(part, `"`)
					case name == "type" && slices.Contains([]string{"string", "int", "bool", "number"}, val):
						t.typ = val
					case name == "short" && val != "":
						t.short = strings.Split(val, "|")
					default:
						l.list.Add(diag.Diagnostic{Code: "bad-tag", Pos: t.pos, Len: len(a.Text), Msg: fmt.Sprintf("@tag: %q is not known", part),
							Hint: "write @tag(name), @tag(name,type=int|bool|number|string) or @tag(name,short=a|b)"})
					}
				}
				if t.name == "" {
					l.list.Add(diag.Diagnostic{Code: "bad-tag", Pos: t.pos, Len: len(a.Text), Msg: "@tag: it has no name", Hint: "write @tag(name)"})
					continue
				}
				out = append(out, t)
			}
			return true
		}, nil)
	}
	return out
}

func tagNames(ts []*tag) []string {
	var out []string
	for _, t := range ts {
		out = append(out, t.name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// tagValue makes a literal of v, which stands at pos; the second result says what is wrong.
func tagValue(t *tag, v string, pos token.Pos) (ast.Expr, string) {
	switch t.typ {
	case "bool":
		b, err := strconv.ParseBool(v)
		if err != nil {
			return nil, fmt.Sprintf("want true or false, got %q", v)
		}
		x := ast.NewBool(b)
		x.ValuePos = pos
		return x, ""
	case "int", "number":
		s, neg := strings.CutPrefix(v, "-")
		var n literal.NumInfo
		if err := literal.ParseNum(s, &n); err != nil || t.typ == "int" && !n.IsInt() {
			return nil, fmt.Sprintf("want %s, got %q", article(t.typ), v)
		}
		kind := token.INT
		if !n.IsInt() {
			kind = token.FLOAT
		}
		if neg {
			return &ast.UnaryExpr{Op: token.SUB, OpPos: pos, X: &ast.BasicLit{Kind: kind, Value: s, ValuePos: pos.Add(1)}}, ""
		}
		return &ast.BasicLit{Kind: kind, Value: s, ValuePos: pos}, ""
	}
	return &ast.BasicLit{Kind: token.STRING, Value: literal.String.Quote(v), ValuePos: pos}, ""
}

// article puts a type into a sentence.
func article(typ string) string {
	if typ == "int" {
		return "an int"
	}
	return "a " + typ
}
