package load

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/specs/schema"
)

// checker holds the plain values of a spec against the schema.
type checker struct {
	*loader
	v      values
	shapes map[string]*shape
	nodes  []string // names, in order
}

// check reports every field that the schema does not have, lacks or refuses, and every edge that names no node.
func (l *loader) check(v values) {
	c := &checker{loader: l, v: v, shapes: map[string]*shape{}}
	if !c.isGraph() {
		return
	}
	defer c.merge(len(l.list))
	root := v.real.LookupPath(cue.MakePath(cue.Def("#Graph")))
	for _, n := range c.fields(v.spec.LookupPath(cue.MakePath(cue.Str("nodes")))) {
		c.nodes = append(c.nodes, n.name)
	}
	c.value("#Graph", nil, root, v.spec)
	c.edges()
	c.models()
}

// isGraph reports whether the file looks like a graph at all.
func (c *checker) isGraph() bool {
	var have []string
	for _, f := range c.fields(c.v.spec) {
		if slices.Contains([]string{"name", "nodes", "edges", "model", "models"}, f.name) {
			return true
		}
		have = append(have, f.name)
	}
	if c.list.Failed() {
		return false
	}
	d := diag.Diagnostic{Code: "no-graph", Pos: diag.Pos{File: c.path, Line: 1, Col: 1}, Msg: "no graph in this file",
		Hint: "write spec.#Graph & {name: …, nodes: …, edges: …} at the top level"}
	if len(have) > 0 {
		d.Pos, d.Len = c.spans.label(have[:1])
		d.Notes = []string{"the file has: " + strings.Join(have, ", ")}
	}
	c.list.Add(d)
	return false
}

// field is one field of a spec's value.
type field struct {
	name string
	v    cue.Value
}

// fields lists the regular fields of a struct in order, also where a part of it is in error.
func (c *checker) fields(v cue.Value) []field {
	it, err := v.Fields()
	if err != nil {
		return nil
	}
	var out []field
	for it.Next() {
		out = append(out, field{it.Selector().Unquoted(), it.Value()})
	}
	return out
}

// value checks one value. k names the schema, for the cache of shapes.
func (c *checker) value(k string, path []string, s, v cue.Value) {
	if v.IncompleteKind() == cue.BottomKind {
		if v.Validate() == nil { // not a contradiction: an expression that has no value yet
			c.open(path, v)
			return
		}
		if _, err := v.Fields(); err != nil {
			return // the evaluation has reported it
		}
		c.structure(k, path, s, v)
		return
	}
	sh := c.shape(k, s)
	if isNode(path) { // its schema has no type before its kind is known
		sh = &shape{kind: cue.StructKind, want: "map", doc: sh.doc}
	}
	if d, ok := v.Default(); ok {
		v = d
	}
	got := v.IncompleteKind()
	if len(sh.branches) > 0 && got&(got-1) == 0 { // one of several forms: take the one of this type
		var fit []int
		for i, b := range sh.branches {
			if b.IncompleteKind()&got != 0 {
				fit = append(fit, i)
			}
		}
		if len(fit) == 1 {
			k := fmt.Sprintf("%s|%d", k, fit[0])
			if b := c.shape(k, sh.branches[fit[0]]); b.doc == "" {
				b.doc = sh.doc
			}
			c.value(k, path, sh.branches[fit[0]], v)
			return
		}
	}
	switch {
	case got&sh.kind == 0:
		c.mismatch(path, sh, v)
	case got == cue.StructKind:
		c.structure(k, path, s, v)
	case got == cue.ListKind:
		c.items(k, path, s, v)
	case !v.IsConcrete():
		c.open(path, v)
	default:
		c.scalar(path, sh, s, v)
	}
}

func isNode(path []string) bool { return len(path) == 2 && path[0] == "nodes" }

// structure checks the fields of a struct.
func (c *checker) structure(k string, path []string, s, v cue.Value) {
	if isNode(path) {
		var ok bool
		if k, s, ok = c.kind(path, v); !ok {
			return
		}
	}
	sh := c.shape(k, s)
	before := len(c.list)
	have := map[string]bool{}
	for _, f := range c.fields(v) {
		have[f.name] = true
		p := append(path[:len(path):len(path)], f.name)
		switch fs, ok := sh.fields[f.name]; {
		case ok:
			c.value(k+"."+f.name, p, fs.v, f.v)
		case len(path) == 1 && path[0] == "edges":
			c.value(k+".*", p, c.v.real.LookupPath(cue.MakePath(cue.Def("#Edge"))), f.v) // the key is checked by edges
		case len(sh.patterns) > 0:
			c.pattern(k, p, sh.patterns, f)
		default:
			c.unknown(path, f, sh)
		}
	}
	for _, n := range sh.names {
		if f := sh.fields[n]; f.need && !have[n] && !c.tainted(path) && !c.meant(path, n, have, sh) {
			c.missing(path, n, f)
		}
	}
	if isNode(path) && !c.list[before:].Failed() {
		c.rest(path, s, v)
	}
}

// meant reports whether the missing field n is there under a misspelt name.
func (c *checker) meant(path []string, n string, have map[string]bool, sh *shape) bool {
	for h := range have {
		if _, ok := sh.fields[h]; !ok && diag.Nearest(h, sh.names) == n {
			return true
		}
	}
	return false
}

// rest lets CUE check a node in which nothing was found, for what the schema of a kind says beyond fields and values: validators and
// conditions.
func (c *checker) rest(path []string, s, v cue.Value) {
	if v.Validate() != nil {
		return // the author contradicts himself: reported
	}
	err := s.Unify(v).Validate(cue.Concrete(true), cue.Final())
	for _, e := range errors.Errors(err) {
		p := clean(e.Path())
		for len(p) > 0 && (strings.HasPrefix(p[0], "#") || len(p) >= len(path) && slices.Equal(p[:len(path)], path)) {
			p = p[1:]
		}
		p = append(path[:len(path):len(path)], p...)
		if c.tainted(p) {
			continue
		}
		f, args := e.Msg()
		what := fmt.Sprintf(f, args...)
		fv := v
		for _, x := range p[len(path):] {
			if i, err := strconv.Atoi(x); err == nil && fv.IncompleteKind() == cue.ListKind {
				fv = fv.LookupPath(cue.MakePath(cue.Index(i)))
			} else {
				fv = fv.LookupPath(cue.MakePath(cue.Str(x)))
			}
		}
		pos, n := c.valueAt(p, fv)
		d := diag.Diagnostic{Code: "bad-value", Pos: pos, Len: n, Path: strings.Join(p, ".")}
		if m := unsatisfied.FindStringSubmatch(what); m != nil {
			d.Msg = fmt.Sprintf("%s: want %s, got %s", place(p), m[2], m[1])
		} else if strings.Contains(f, "field is required") || strings.Contains(f, "incomplete value") {
			d.Code, d.Msg = "missing-field", prefix(path, fmt.Sprintf("missing field %q", strings.Join(p[len(path):], ".")))
		} else {
			d.Msg = fmt.Sprintf("%s: not allowed: %s", place(p), what)
		}
		if doc := doc(s.LookupPath(selectors(p[len(path):]))); doc != "" {
			d.Notes = []string{doc}
		}
		c.list.Add(d)
	}
}

var unsatisfied = regexp.MustCompile(`^invalid value (.*) \(does not satisfy (.*?)\)(?:: .*)?$`)

// selectors makes a path of optional fields.
func selectors(p []string) cue.Path {
	var out []cue.Selector
	for _, s := range p {
		out = append(out, cue.Str(s).Optional())
	}
	return cue.MakePath(out...)
}

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

// pattern checks a field of a map.
func (c *checker) pattern(k string, path []string, ps []pattern, f field) {
	for i, p := range ps {
		if p.label.Unify(c.v.real.Context().Encode(f.name)).Err() == nil {
			c.value(fmt.Sprintf("%s[%d]", k, i), path, p.v, f.v)
			return
		}
	}
	sh := c.shape(k+"[]", ps[0].label)
	pos, n := c.labelAt(path, f.v)
	d := diag.Diagnostic{Code: "bad-name", Pos: pos, Len: n, Path: strings.Join(path, "."),
		Msg: fmt.Sprintf("%s: %q is not a name", place(path[:len(path)-1]), f.name)}
	if sh.ref != "" && sh.doc != "" {
		d.Notes = []string{sh.doc}
	}
	if fixed := fixName(f.name); fixed != "" {
		d.Hint = fmt.Sprintf("write %q", fixed)
	}
	c.list.Add(d)
	c.value(k+"[0]", path, ps[0].v, f.v)
}

// kind finds the schema of a node by its kind.
func (c *checker) kind(path []string, v cue.Value) (string, cue.Value, bool) {
	kv := v.LookupPath(cue.MakePath(cue.Str("kind")))
	p := append(path[:len(path):len(path)], "kind")
	if !kv.Exists() {
		if c.tainted(path) {
			return "", cue.Value{}, false
		}
		pos, n := c.labelAt(path, v)
		c.list.Add(diag.Diagnostic{Code: "missing-field", Pos: pos, Len: n, Path: strings.Join(p, "."), Msg: place(path) + `: missing field "kind"`,
			Hint: c.kindHint(path[1]), Notes: []string{"kinds: " + strings.Join(c.schema.names, ", ")}})
		return "", cue.Value{}, false
	}
	if d, ok := kv.Default(); ok {
		kv = d
	}
	name, err := kv.String()
	if err != nil {
		if kv.IncompleteKind() != cue.BottomKind {
			c.mismatch(p, &shape{kind: cue.StringKind, want: "a kind"}, kv)
			d := &c.list[len(c.list)-1]
			d.Notes = append(d.Notes, "kinds: "+strings.Join(c.schema.names, ", "))
		}
		return "", cue.Value{}, false
	}
	if !slices.Contains(c.schema.names, name) {
		pos, n := c.valueAt(p, kv)
		c.list.Add(diag.Diagnostic{Code: "unknown-kind", Pos: pos, Len: n, Path: strings.Join(p, "."),
			Msg: fmt.Sprintf("%s: no kind %q", place(p), name), Hint: diag.Suggest(name, c.schema.names),
			Notes: []string{"kinds: " + strings.Join(c.schema.names, ", ")}})
		return "", cue.Value{}, false
	}
	def := schema.Definition(name)
	return def, c.v.real.LookupPath(cue.MakePath(cue.Def(def))), true
}

// kindHint says how to give a node its kind.
func (c *checker) kindHint(name string) string {
	k := diag.Nearest(name, c.schema.names)
	if slices.Contains(c.schema.names, name) {
		k = name
	}
	if k == "" && len(c.schema.names) > 0 {
		k = c.schema.names[0]
	}
	return fmt.Sprintf("write kind: %q, or %s: spec.%s", k, name, schema.Definition(k))
}

// items checks a list.
func (c *checker) items(k string, path []string, s, v cue.Value) {
	it, err := v.List()
	if err != nil {
		return
	}
	sh := c.shape(k, s)
	rest := s.LookupPath(cue.MakePath(cue.AnyIndex))
	n := 0
	for ; it.Next(); n++ {
		p := append(path[:len(path):len(path)], strconv.Itoa(n))
		if one := s.LookupPath(cue.MakePath(cue.Index(n))); one.Exists() {
			c.value(fmt.Sprintf("%s[%d]", k, n), p, one, it.Value())
		} else if rest.Exists() {
			c.value(k+"[]", p, rest, it.Value())
		}
	}
	if lo, hi, known := listSize(s); known && (n < lo || hi >= 0 && n > hi) {
		want, bound := fmt.Sprintf("at least %d", lo), lo
		switch {
		case n > hi && hi >= 0:
			want, bound = fmt.Sprintf("at most %d", hi), hi
		case lo == hi:
			want = strconv.Itoa(lo)
		}
		pos, w := c.valueAt(path, v)
		d := diag.Diagnostic{Code: "bad-value", Pos: pos, Len: w, Path: strings.Join(path, "."),
			Msg: fmt.Sprintf("%s: want %s, got %d", place(path), want+plural(" item", bound), n)}
		if sh.doc != "" {
			d.Notes = []string{sh.doc}
		}
		c.list.Add(d)
	}
}

func plural(what string, n int) string {
	if n == 1 {
		return what
	}
	return what + "s"
}

// listSize returns the bounds of a list's length; hi is -1 where it is open.
func listSize(s cue.Value) (lo, hi int, known bool) {
	for ; s.LookupPath(cue.MakePath(cue.Index(lo))).Exists(); lo++ {
		if lo > 1000 {
			return 0, -1, false
		}
	}
	if s.LookupPath(cue.MakePath(cue.AnyIndex)).Exists() {
		return lo, -1, true
	}
	return lo, lo, true
}

// scalar checks a plain value.
func (c *checker) scalar(path []string, sh *shape, s, v cue.Value) {
	if s.Unify(v).Err() == nil {
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
	d.Notes = append(d.Notes, c.fromTag(path)...)
	c.list.Add(d)
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
	}
	if sh.doc != "" && len(d.Hint) == 0 {
		d.Notes = []string{sh.doc}
	}
	d.Notes = append(d.Notes, c.fromTag(path)...)
	c.list.Add(d)
}

// open reports a value that is only a type.
func (c *checker) open(path []string, v cue.Value) {
	if c.tainted(path) {
		return
	}
	pos, n := c.valueAt(path, v)
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
		d.Notes = append(d.Notes, "a helper of your own is a definition (#name) or hidden (_name)")
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

// labelAt returns the place of a field's name, or what is nearest to it.
func (c *checker) labelAt(path []string, v cue.Value) (diag.Pos, int) {
	if p, n := c.ownLabel(path, v); p.IsValid() {
		return p, n
	}
	return c.above(path, v)
}

// ownLabel returns the place of a field's name where the author wrote it: from the syntax, or from the value where an expression made the
// field.
func (c *checker) ownLabel(path []string, v cue.Value) (diag.Pos, int) {
	if p, n := c.spans.label(path); p.IsValid() {
		return p, n
	}
	if f, ok := v.Source().(*ast.Field); ok {
		if p := c.pos(f.Label.Pos()); p.IsValid() {
			return p, c.srcs[p.File].width(p)
		}
	}
	return diag.Pos{}, 0
}

// valueAt returns the place of a field's value.
func (c *checker) valueAt(path []string, v cue.Value) (diag.Pos, int) {
	if p, n := c.spans.value(path, show(v)); p.IsValid() {
		return p, n
	}
	return c.above(path, v)
}

// above falls back to the value's own place, then to the nearest field above it, then to the graph.
func (c *checker) above(path []string, v cue.Value) (diag.Pos, int) {
	if p := c.pos(v.Pos()); p.IsValid() {
		return p, c.srcs[p.File].width(p)
	}
	for i := len(path) - 1; i > 0; i-- {
		if p, n := c.spans.label(path[:i]); p.IsValid() {
			return p, n
		}
	}
	return c.root()
}

// root is the place of the graph itself: where #Graph is written, or the start of the file.
func (c *checker) root() (diag.Pos, int) {
	p, n := diag.Pos{File: c.path, Line: 1, Col: 1}, 1
	for _, name := range slices.Backward(c.fileNames()) {
		ast.Walk(c.srcs[name].file, func(x ast.Node) bool {
			if sel, ok := x.(*ast.SelectorExpr); ok {
				if id, ok := sel.Sel.(*ast.Ident); ok && id.Name == "#Graph" {
					p = c.pos(sel.Pos())
					n = c.srcs[name].width(p)
				}
			}
			return true
		}, nil)
		p.File = name
	}
	return p, n
}

func (l *loader) fileNames() []string {
	var out []string
	for n := range l.srcs {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// tainted reports whether what stands at path refers to a definition that does not exist, so that fields it lacks are no news.
func (c *checker) tainted(path []string) bool {
	for _, sp := range c.spans.at[key(path)] {
		bad := false
		ast.Walk(sp.expr, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && c.poison[id] {
				bad = true
			}
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if name, _, err := ast.LabelName(sel.Sel); err == nil && strings.HasPrefix(name, "#") && c.schema.shape[name] == "" {
					bad = true
				}
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

// fromTag says that a value came from the command line.
func (c *checker) fromTag(path []string) []string {
	for _, sp := range c.spans.at[key(path)] {
		if t, ok := c.given[sp.label.String()]; ok {
			return []string{"the value comes from -t " + t.arg}
		}
	}
	return nil
}
