package load

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"

	"github.com/dynamograph/dynamo/graph/diag"
)

// merge makes one of the findings that an expression multiplied: same place, same mistake, other paths.
func (c *checker) merge(from int) {
	at := map[string]int{}
	out := c.list[:from:from]
	for _, d := range c.list[from:] {
		last := d.Path[strings.LastIndexByte(d.Path, '.')+1:]
		k := fmt.Sprint(d.Pos, d.Code, last, d.Hint)
		if i, ok := at[k]; ok && d.Pos.IsValid() && out[i].Path != d.Path {
			note := "also at " + place(strings.Split(d.Path, "."))
			if !slices.Contains(out[i].Notes, note) {
				out[i].Notes = append(slices.Clip(out[i].Notes), note)
			}
			continue
		}
		at[k] = len(out)
		out = append(out, d)
	}
	c.list = out
}

// scalar checks a plain value.
func (c *checker) scalar(path []string, sh *shape, s, v cue.Value) {
	if s.Unify(v).Err() == nil {
		if _, err := v.Int64(); err != nil && v.Kind() == cue.IntKind {
			pos, n := c.valueAt(path, v)
			c.list.Add(diag.Diagnostic{Code: "bad-value", Pos: pos, Len: n, Path: strings.Join(path, "."),
				Msg: fmt.Sprintf("%s: %s is out of range", place(path), show(v))})
			return
		}
		c.unexpanded(path, s, v)
		return
	}
	got := show(v)
	pos, n := c.valueAt(path, v)
	d := diag.Diagnostic{Code: "bad-value", Pos: pos, Len: n, Path: strings.Join(path, ".")}
	switch {
	case len(sh.enum) > 0:
		d.Msg = fmt.Sprintf("%s: %s is not one of %s", place(path), got, strings.Join(sh.enum, ", "))
		if str, err := v.String(); err == nil {
			d.Hint = diag.Suggest(str, sh.enum)
		}
	case sh.ref == "#Ref": // it may be the secret itself: a finding must not carry it on
		d.Code, d.Msg = "secret-in-spec", fmt.Sprintf("%s: it takes where a secret is, never the secret", place(path))
		d.Hint = `write "env:NAME" or "file:PATH"`
		d.Secret, _ = v.String()
	case sh.ref != "":
		d.Msg = fmt.Sprintf("%s: %s is not a %s", place(path), got, noun(sh.ref))
		if code := "bad-" + strings.ToLower(strings.TrimPrefix(sh.ref, "#")); code == "bad-name" || code == "bad-duration" || code == "bad-size" {
			d.Code = code
		}
		d.Hint = fixHint(sh.ref, v)
		if sh.doc != "" {
			d.Notes = []string{sh.doc}
		}
	default:
		d.Msg = fmt.Sprintf("%s: want %s, got %s", place(path), sh.want, got)
		if sh.want == typeName(v.IncompleteKind()) { // a pattern: the comment says it better
			d.Msg = fmt.Sprintf("%s: %s is not allowed here", place(path), got)
		}
		if sh.doc != "" {
			d.Notes = []string{sh.doc}
		}
	}
	d.Related = c.fromTag(path, pos)
	c.list.Add(d)
}

var variable = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)

// unexpanded reports a shell's variable in a text that cannot mean it: in an address, a path or a name. In free text, as a template, it may.
func (c *checker) unexpanded(path []string, s, v cue.Value) {
	str, err := v.String()
	name := variable.FindString(str)
	if err != nil || name == "" || s.Unify(cuecontext.New().Encode("")).Err() == nil {
		return
	}
	pos, n := c.valueAt(path, v)
	c.list.Add(diag.Diagnostic{Code: "bad-value", Pos: pos, Len: n, Path: strings.Join(path, "."),
		Msg:     fmt.Sprintf("%s: %q: nobody replaces %s, as a spec reads no environment", place(path), str, name),
		Hint:    "write the value, or leave it to --set " + strings.Join(path, ".") + "=…, or to a tag: `string @tag(name)`",
		Related: c.fromTag(path, pos)})
}

// truth is what people write for a truth value, in quotes or as YAML once read it, and what it is here.
var truth = map[string]string{
	"yes": "true", "on": "true", "y": "true", "true": "true", "1": "true", "no": "false", "off": "false", "n": "false", "false": "false", "0": "false",
}

// mismatch reports a value of another type.
func (c *checker) mismatch(path []string, sh *shape, v cue.Value) {
	pos, n := c.valueAt(path, v)
	got := typeName(v.IncompleteKind())
	if v.IsConcrete() && v.IncompleteKind()&(cue.StructKind|cue.ListKind) == 0 && v.IncompleteKind() != cue.NullKind {
		got += " " + show(v)
	}
	if len(path) == 0 {
		path = []string{c.path}
	}
	d := diag.Diagnostic{Code: "bad-type", Pos: pos, Len: n, Path: strings.Join(path, "."),
		Msg: fmt.Sprintf("%s: want %s, got %s", place(path), sh.want, got)}
	if len(sh.enum) > 1 {
		d.Msg = fmt.Sprintf("%s: want one of %s, got %s", place(path), strings.Join(sh.enum, ", "), got)
	}
	if str, err := v.String(); err == nil && sh.kind&cue.NumberKind != 0 {
		if _, err := strconv.ParseFloat(str, 64); err == nil {
			d.Hint = "write it without quotes: " + str
		}
	} else if b := truth[strings.ToLower(str)]; err == nil && b != "" && sh.kind == cue.BoolKind {
		d.Hint = "write " + b
	} else if v.IncompleteKind()&^cue.NumberKind == 0 && sh.kind == cue.StringKind && v.IsConcrete() {
		if d.Hint = fmt.Sprintf("write it in quotes: %q", show(v)); sh.ref == "#Duration" || sh.ref == "#Size" {
			d.Hint = "write it in quotes, with a unit: " + strings.Join(units(sh.ref, show(v)), " or ")
		} else if pos.File == setFile {
			d.Hint = fmt.Sprintf("write it in quotes, which a shell must see quoted, too: '%s=%q'", strings.Join(path, "."), show(v))
		}
	}
	if sh.doc != "" && len(d.Hint) == 0 {
		d.Notes = []string{sh.doc}
	}
	d.Related = c.fromTag(path, pos)
	c.list.Add(d)
}

// open reports a value that is only a type.
func (c *checker) open(path []string, v cue.Value) {
	if c.tainted(path) || len(path) == 0 && c.list.Failed() || c.list.Failed() && slices.ContainsFunc(c.spans.at[key(path)], func(sp span) bool { _, ok := sp.expr.(*ast.StructLit); return ok }) {
		return // what is wrong inside of a map was told
	}
	pos, n := c.valueAt(path, v)
	if ds := c.defaults(path); len(ds) > 1 {
		last := ds[len(ds)-1]
		c.list.Add(diag.Diagnostic{Code: "incomplete", Pos: last.pos, Len: c.widthAt(last.pos), Path: strings.Join(path, "."),
			Msg:     fmt.Sprintf("%s: two defaults, %s and %s, so that none counts", place(path), last.text, ds[0].text),
			Hint:    fmt.Sprintf("write it as a plain value: %s", last.text),
			Related: []diag.Related{{Pos: ds[0].pos, Len: c.widthAt(ds[0].pos), Msg: ds[0].text + " is a default here"}}})
		return
	}
	for _, e := range errors.Errors(v.Validate(cue.Concrete(true))) {
		if f, args := e.Msg(); strings.Contains(f, "undefined field") {
			t := c.reword(f, args, fmt.Sprintf(f, args...))
			if at := c.places(e); len(at) > 0 {
				pos, n = at[0], c.widthAt(at[0])
			}
			c.list.Add(diag.Diagnostic{Code: t.code, Pos: pos, Len: n, Path: strings.Join(path, "."), Msg: prefix(path, t.msg), Hint: t.hint})
			return
		}
	}
	d := diag.Diagnostic{Code: "incomplete", Pos: pos, Len: n, Path: strings.Join(path, "."),
		Msg: fmt.Sprintf("%s: no value yet", place(path)), Hint: "give it a value, or a default: `int | *2`"}
	if k := v.IncompleteKind(); k != cue.BottomKind && k != cue.TopKind {
		d.Msg += ", only " + typeName(k)
	}
	for _, sp := range c.spans.at[key(path)] {
		if sp.field == nil {
			continue
		}
		for _, a := range sp.field.Attrs {
			if k, body := a.Split(); k == "tag" {
				name, _, _ := strings.Cut(body, ",")
				d.Hint = fmt.Sprintf("pass -t %s=…, or give it a default: `int | *2`", name)
			}
		}
	}
	c.list.Add(d)
}

// dflt is a default that the author writes: *x.
type dflt struct {
	text string
	pos  diag.Pos
}

// defaults lists the different plain defaults that are written for a field, those of the lowest layer first.
func (c *checker) defaults(path []string) (out []dflt) {
	for _, sp := range c.spans.at[key(path)] {
		ast.Walk(sp.expr, func(n ast.Node) bool {
			if u, ok := n.(*ast.UnaryExpr); ok && u.Op == token.MUL {
				p := c.pos(u.X.Pos())
				if text := c.word(p); text != "" && !slices.ContainsFunc(out, func(d dflt) bool { return d.text == text }) {
					out = append(out, dflt{text, p})
				}
			}
			_, inner := n.(*ast.StructLit)
			return !inner
		}, nil)
	}
	slices.SortStableFunc(out, func(a, b dflt) int {
		switch {
		case c.after(a.pos, b.pos):
			return 1
		case c.after(b.pos, a.pos):
			return -1
		}
		return 0
	})
	return out
}

// unknown reports a field that the schema does not have.
func (c *checker) unknown(path []string, f field, sh *shape) {
	p := append(path[:len(path):len(path)], f.name)
	pos, n := c.labelAt(p, f.v)
	d := diag.Diagnostic{Code: "unknown-field", Pos: pos, Len: n, Path: strings.Join(p, "."), Hint: diag.Suggest(f.name, sh.names),
		Msg: prefix(path, fmt.Sprintf("unknown field %q", f.name)), Notes: []string{"fields: " + strings.Join(sh.names, ", ")}}
	if len(sh.names) == 0 {
		d.Notes = []string{"there are no fields here"}
	}
	if len(path) == 0 && d.Hint == "" {
		if s := c.srcs[pos.File]; s != nil && s.format == "yaml" {
			d.Notes = append(d.Notes, "an anchor of your own stands where it is first used")
		} else if s == nil || s.format == "cue" {
			d.Notes = append(d.Notes, "a helper of your own is a definition (#name) or hidden (_name)")
		}
	}
	c.list.Add(d)
}

// missing reports a field that must be set.
func (c *checker) missing(path []string, name string, f *member) {
	pos, n := c.labelAt(path, cue.Value{})
	p := append(path[:len(path):len(path)], name)
	d := diag.Diagnostic{Code: "missing-field", Pos: pos, Len: n, Path: strings.Join(p, "."), Msg: prefix(path, fmt.Sprintf("missing field %q", name))}
	if f.doc != "" {
		d.Notes = []string{f.doc}
	}
	c.list.Add(d)
}

// tainted reports whether what stands at path refers to a definition that does not exist, so that fields it lacks are no news.
func (c *checker) tainted(path []string) bool {
	for _, sp := range c.spans.at[key(path)] {
		bad := false
		ast.Walk(sp.expr, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && c.poison[id] {
				bad = true
			}
			_, inner := n.(*ast.StructLit)
			return !inner
		}, nil)
		if bad {
			return true
		}
	}
	return false
}

// fromTag says that a value came from the command line, by a tag: at the second place.
func (c *checker) fromTag(path []string, at diag.Pos) []diag.Related {
	if at.File != tagFile {
		return nil
	}
	for _, sp := range c.spans.at[key(path)] {
		if t, ok := c.given[sp.label.String()]; ok {
			return []diag.Related{{Pos: sp.label, Len: sp.width, Msg: fmt.Sprintf("tag %q sets this field", t.name)}}
		}
	}
	return nil
}
