package load

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/dynamograph/dynamo/graph/diag"
)

// group is what CUE says about one path.
type group struct {
	path []string
	errs []errors.Error
}

// cueErrors turns the errors of building and evaluating a spec into findings, one a path.
func (l *loader) cueErrors(err error) {
	var groups []*group
	byPath := map[string]*group{}
	for _, e := range errors.Errors(err) {
		p := clean(e.Path())
		k := key(p)
		if len(p) == 0 {
			k = fmt.Sprint("\x00", e.Position(), e.Error())
		}
		g := byPath[k]
		if g == nil {
			g = &group{path: p}
			byPath[k] = g
			groups = append(groups, g)
		}
		g.errs = append(g.errs, e)
	}
	for _, g := range groups {
		l.list.Add(l.cueError(g))
	}
}

// clean unquotes labels.
func clean(p []string) []string {
	out := make([]string, 0, len(p))
	for _, s := range p {
		if u, err := strconv.Unquote(s); err == nil {
			s = u
		}
		if s == "let[]" {
			continue
		}
		out = append(out, s)
	}
	return out
}

// cueError makes one finding of what CUE says about one path.
func (l *loader) cueError(g *group) diag.Diagnostic {
	e := g.errs[0]
	format, args := e.Msg()
	msg := fmt.Sprintf(format, args...)
	if c := errors.Unwrap(e); c != nil && strings.TrimSpace(msg) != "" {
		msg += ": " + strings.TrimPrefix(c.Error(), strings.Join(e.Path(), ".")+": ")
	}
	places := l.places(e)
	if l.spans == nil {
		l.spans = &spans{l: l}
	}
	t := l.reword(format, args, msg)
	d := diag.Diagnostic{Code: t.code, Path: strings.Join(g.path, "."), Msg: prefix(g.path, t.msg), Hint: t.hint}
	if len(places) > 0 {
		d.Pos = places[0]
	}
	if !d.Pos.IsValid() {
		d.Pos, d.Len = l.spans.value(g.path, "")
	}
	if !d.Pos.IsValid() {
		d.Pos = diag.Pos{File: l.path, Line: 1, Col: 1}
	}
	if d.Len == 0 {
		d.Len = l.widthAt(d.Pos)
	}
	switch {
	case g.bound() != nil: // the branches of a choice beside it are only where the value was left open
		e := g.bound()
		_, args := e.Msg()
		l.conflict(&d, g, fmt.Sprint(args[0]), fmt.Sprint(args[1]), l.places(e))
	case g.anyOf("errors in empty disjunction"), g.anyOf("empty disjunction"):
		l.choice(&d, g)
	case (strings.HasPrefix(format, "conflicting values") || strings.HasPrefix(format, "incompatible") && strings.Contains(format, "bounds") ||
		strings.HasPrefix(format, "invalid value")) && len(args) >= 2:
		l.conflict(&d, g, fmt.Sprint(args[0]), fmt.Sprint(args[1]), places)
	case strings.HasPrefix(msg, "imported and not used"):
		d.Code, d.Hint = "unused-import", "remove the import"
		name := strings.TrimPrefix(msg, "imported and not used: ")
		d.Msg, d.Len = "imported and not used: "+brief(name), len(name)
	case d.Code == "unknown-field" && len(g.path) > 0:
		l.closed(&d, g.path, places)
	case d.Code == "unknown-reference" && d.Hint == "" && strings.HasPrefix(format, "reference"):
		d.Hint = diag.Suggest(strings.Trim(fmt.Sprint(args[0]), `"`), l.names())
	}
	return d
}

// bound returns the error that says that a value is beyond a bound, where that is all that stands against the value beside the defaults of
// choices; else nil.
func (g *group) bound() errors.Error {
	var out errors.Error
	for _, e := range g.errs {
		if f, args := e.Msg(); strings.HasPrefix(f, "invalid value") && len(args) >= 2 {
			if out != nil && out.Error() != e.Error() {
				return nil
			}
			out = e
		}
	}
	return out
}

// closed describes a field that a definition of the author's own does not allow.
func (l *loader) closed(d *diag.Diagnostic, path []string, places []diag.Pos) {
	d.Msg = prefix(path[:len(path)-1], fmt.Sprintf("a definition that this is made of does not allow the field %q", path[len(path)-1]))
	for k := len(path); k > 0; k-- { // the field may come from a definition: then what is made of it
		if p, n := l.spans.label(path[:k]); p.IsValid() {
			d.Pos, d.Len = p, n
			break
		}
	}
	for _, p := range places {
		if w := l.word(p); strings.HasPrefix(w, "#") && p != d.Pos {
			d.Related = []diag.Related{{Pos: p, Len: l.widthAt(p), Msg: w + " is closed"}}
			return
		}
	}
	for _, sp := range l.spans.at[key(path[:len(path)-1])] {
		ast.Walk(sp.expr, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.SelectorExpr, *ast.StructLit:
				return false
			case *ast.Ident:
				if strings.HasPrefix(x.Name, "#") {
					d.Related = append(d.Related, diag.Related{Pos: l.pos(x.Pos()), Len: len(x.Name), Msg: x.Name + " is closed"})
				}
			}
			return true
		}, nil)
	}
}

// conflict describes two values for one field, with both places.
func (l *loader) conflict(d *diag.Diagnostic, g *group, x, y string, places []diag.Pos) {
	d.Code = "conflict"
	// Keep the places where these values are written; CUE also names the structs around them.
	var px, py diag.Pos
	for _, p := range places {
		switch word := l.word(p); {
		case word == x && !px.IsValid():
			px = p
		case word == y && !py.IsValid():
			py = p
		}
	}
	if !px.IsValid() {
		px, _ = l.spans.literal(g.path, x)
	}
	if !py.IsValid() {
		py, _ = l.spans.literal(g.path, y)
	}
	switch {
	case px.IsValid() && py.IsValid():
		places = []diag.Pos{px, py}
	case py.IsValid():
		places, x, y = []diag.Pos{py}, y, x
	case px.IsValid():
		places = []diag.Pos{px}
	}
	if len(places) > 1 && l.after(places[1], places[0]) {
		places[0], places[1] = places[1], places[0]
		x, y = y, x
	}
	x, y = brief(x), brief(y)
	d.Msg = prefix(g.path, fmt.Sprintf("%s conflicts with %s", x, y))
	if len(places) > 0 {
		d.Pos, d.Len = places[0], l.widthAt(places[0])
	}
	switch {
	case len(places) > 1:
		d.Related = []diag.Related{{Pos: places[1], Len: l.widthAt(places[1]), Msg: y + " is set here"}}
		d.Hint = "keep one of them"
		if strings.ContainsAny(y[:min(1, len(y))], "<>!=") {
			d.Hint = "use a value that fits, or change the bound"
		} else if under := l.layerOf(places[1]); l.layerOf(places[0]).over(under) && under != layerTag {
			d.Hint = "to leave the value open, write " + open(y) + " there"
			if l.layerOf(places[0]) == layerSpec {
				break
			}
			d.Notes = []string{"overlays, tags and --set fill what is open, narrow it or replace a default, but never change a plain value"}
		}
	case len(g.path) == 3 && g.path[2] == "kind":
		d.Hint = "the definition that the node is made of sets its kind: leave one of the two out"
	}
}

// open writes a plain value as a default that others may replace.
func open(x string) string {
	typ := "number"
	switch {
	case x == "true" || x == "false":
		typ = "bool"
	case strings.HasPrefix(x, `"`):
		typ = "string"
	case strings.Trim(x, "-0123456789") == "":
		typ = "int"
	case x == "" || x[0] == '{' || x[0] == '[' || x[0] != '-' && (x[0] < '0' || x[0] > '9'):
		return "a default (`int | *2`)"
	}
	return fmt.Sprintf("`%s | *%s`", typ, x)
}

// layerOf returns the layer of a place.
func (l *loader) layerOf(p diag.Pos) layer {
	if s, ok := l.srcs[p.File]; ok {
		return s.layer
	}
	return ""
}

func (l *loader) widthAt(p diag.Pos) int {
	if s, ok := l.srcs[p.File]; ok {
		return s.width(p)
	}
	return 0
}

// word returns the plain value or name at p, as CUE prints it.
func (l *loader) word(p diag.Pos) string {
	if l.words == nil {
		l.words = map[diag.Pos]string{}
		for _, s := range l.parsed() {
			ast.Walk(s.file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BasicLit:
					l.words[l.pos(n.Pos())] = n.Value
					if x, err := literal.Unquote(n.Value); n.Kind == token.STRING && err == nil {
						l.words[l.pos(n.Pos())] = literal.String.Quote(x)
					}
				case *ast.UnaryExpr:
					if b, ok := n.X.(*ast.BasicLit); ok && n.Op == token.SUB {
						l.words[l.pos(n.Pos())] = "-" + b.Value
					} else if ok && n.Op != token.MUL {
						l.words[l.pos(n.Pos())] = n.Op.String() + b.Value
					}
				case *ast.Ident:
					if _, ok := l.words[l.pos(n.Pos())]; !ok {
						l.words[l.pos(n.Pos())] = n.Name
					}
				}
				return true
			}, nil)
		}
	}
	return l.words[p]
}

// after orders places: those of a higher layer, then those further down, come later.
func (l *loader) after(a, b diag.Pos) bool {
	if x, y := l.layerOf(a), l.layerOf(b); x != y {
		return x.over(y)
	}
	return after(a, b)
}

func after(a, b diag.Pos) bool {
	if a.File != b.File {
		return a.File > b.File
	}
	return a.Line > b.Line || a.Line == b.Line && a.Col > b.Col
}

// places lists the author's places that an error names, in its order.
func (l *loader) places(e errors.Error) []diag.Pos {
	var out []diag.Pos
	for _, p := range append([]token.Pos{e.Position()}, e.InputPositions()...) {
		if q := l.pos(p); q.IsValid() && !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	return out
}

// prefix puts where before what.
func prefix(path []string, msg string) string {
	if len(path) == 0 {
		return msg
	}
	return place(path) + ": " + msg
}
