package load

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/errors"
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
	d := diag.Diagnostic{Code: "bad-value", Path: strings.Join(g.path, "."), Msg: prefix(g.path, msg)}
	if len(places) > 0 {
		d.Pos = places[0]
	}
	if l.spans != nil && !d.Pos.IsValid() {
		d.Pos, d.Len = l.spans.value(g.path, "")
	}
	if s, ok := l.srcs[d.Pos.File]; ok && d.Len == 0 {
		d.Len = s.width(d.Pos)
	}
	switch {
	case strings.HasPrefix(format, "conflicting values") && len(args) >= 2:
		l.conflict(&d, g, fmt.Sprint(args[0]), fmt.Sprint(args[1]), places)
	case strings.HasPrefix(format, "undefined field"):
		d.Code = "unknown-reference"
	case strings.HasPrefix(msg, "imported and not used"):
		d.Code, d.Hint = "unused-import", "remove the import"
		d.Pos, d.Len = places[0], len(strings.TrimPrefix(msg, "imported and not used: "))
	}
	return d
}

// conflict describes two values for one field, with both places.
func (l *loader) conflict(d *diag.Diagnostic, g *group, x, y string, places []diag.Pos) {
	d.Code = "conflict"
	if l.spans == nil {
		l.spans = &spans{l: l}
	}
	for _, sp := range l.spans.at[key(g.path)] {
		if t, ok := l.given[sp.label.String()]; ok {
			d.Pos, d.Len = l.spans.value(g.path, "")
			d.Msg = prefix(g.path, fmt.Sprintf("-t %s does not fit what the spec says", t.arg))
			d.Hint = "a tag can fill or narrow a value or replace a default, such as `int | *2`, but not change a plain value"
			return
		}
	}
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
	switch {
	case px.IsValid() && py.IsValid():
		places = []diag.Pos{px, py}
	case py.IsValid():
		places, x, y = []diag.Pos{py}, y, x
	case px.IsValid():
		places = []diag.Pos{px}
	}
	if len(places) > 1 && after(places[1], places[0]) {
		places[0], places[1] = places[1], places[0]
		x, y = y, x
	}
	d.Msg = prefix(g.path, fmt.Sprintf("%s conflicts with %s", x, y))
	if len(places) > 0 {
		d.Pos = places[0]
		d.Len = l.srcs[d.Pos.File].width(d.Pos)
	}
	if len(places) > 1 {
		d.Related = []diag.Related{{Pos: places[1], Len: l.srcs[places[1].File].width(places[1]), Msg: y + " is set here"}}
		d.Hint = "keep one of them"
	} else if len(g.path) == 3 && g.path[2] == "kind" {
		d.Hint = "the definition that the node is made of sets its kind: leave one of the two out"
	}
}

// word returns the label or plain value at p.
func (l *loader) word(p diag.Pos) string {
	s := l.srcs[p.File]
	o := s.offset(p)
	if o < 0 {
		return ""
	}
	return string(s.data[o:min(o+s.width(p), len(s.data))])
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
