package load

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/errors"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/specs/schema"
)

func isNode(path []string) bool { return len(path) == 2 && path[0] == "nodes" }

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
			t := c.reword(f, args, what)
			if d.Code, d.Msg, d.Hint = t.code, prefix(p, t.msg), t.hint; d.Code == "unknown-field" {
				c.closed(&d, p, c.places(e))
			}
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

// kind finds the schema of a node by its kind.
func (c *checker) kind(path []string, v cue.Value) (string, cue.Value, bool) {
	kv := v.LookupPath(cue.MakePath(cue.Str("kind")))
	p := append(path[:len(path):len(path)], "kind")
	if !kv.Exists() {
		if c.tainted(path) {
			return "", cue.Value{}, false
		}
		pos, n := c.labelAt(path, v)
		if l := c.layerOf(pos); l == layerSet || l == layerOverlay { // it sets fields of a node that nobody wrote
			var have []string
			for _, name := range c.nodes {
				if p, _ := c.spans.label([]string{"nodes", name}); name != path[1] && c.layerOf(p) == layerSpec {
					have = append(have, name)
				}
			}
			c.list.Add(diag.Diagnostic{Code: "unknown-node", Pos: pos, Len: n, Path: strings.Join(path, "."),
				Msg: fmt.Sprintf("%s: no node %q in the spec, and no kind for a new one", place(path), path[1]), Hint: diag.Suggest(path[1], have),
				Notes: []string{"nodes: " + strings.Join(have, ", ")}})
			return "", cue.Value{}, false
		}
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
