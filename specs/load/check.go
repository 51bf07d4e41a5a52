package load

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"

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
	if !c.isGraph() || c.newer() {
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
		if slices.Contains(have, "apiVersion") && slices.Contains(have, "kind") {
			d.Hint = "it is an object of Kubernetes: `dynamo graph import` makes a spec of a DynamoGraphDeployment"
		}
	}
	c.list.Add(d)
	return false
}

// newer refuses a spec that is written in a later version of the language: what else it has may be right there.
func (c *checker) newer() bool {
	v := c.v.spec.LookupPath(cue.MakePath(cue.Str("schema")))
	if d, ok := v.Default(); ok {
		v = d
	}
	asks, err := v.String()
	if err != nil || !schema.Newer(asks) {
		return false
	}
	pos, n := c.valueAt([]string{"schema"}, v)
	c.list.Add(diag.Diagnostic{Code: "newer-schema", Pos: pos, Len: n, Path: "schema",
		Msg:  fmt.Sprintf("schema: %q, but this dynamo speaks the language up to %s; nothing else was checked", asks, schema.Version),
		Hint: "use a newer dynamo"})
	return true
}

// field is one field of a spec's value.
type field struct {
	name string
	v    cue.Value
}

// fields lists the regular fields of a struct in order, also where a part of it is in error.
func (c *checker) fields(v cue.Value) []field {
	if v.IncompleteKind()&^(cue.StructKind) != 0 { // a list has fields, too, but no names
		return nil
	}
	it, err := v.Fields()
	if err != nil {
		return nil
	}
	var out []field
	for it.Next() {
		if sel := it.Selector(); sel.LabelType() == cue.StringLabel { // a list in error has its items here
			out = append(out, field{sel.Unquoted(), it.Value()})
		}
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

// pattern checks a field of a map.
func (c *checker) pattern(k string, path []string, ps []pattern, f field) {
	name := cuecontext.New().Encode(f.name)
	for i, p := range ps {
		if p.label.Unify(name).Err() == nil {
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
