package load

import (
	"fmt"
	"strings"
	"time"

	"cuelang.org/go/cue"
)

// shape is what the checker knows of one place in the schema.
type shape struct {
	kind     cue.Kind
	want     string             // in words: "int >= 0"
	ref      string             // the definition that it is, where it is just one: "#Duration"
	doc      string             // one line
	enum     []string           // the texts that it may be
	branches []cue.Value        // its forms, where they are of different types
	fields   map[string]*member // of a struct
	names    []string           // of fields, in order
	patterns []pattern          // of a map
}

// member is one field of a struct.
type member struct {
	v    cue.Value
	need bool
	doc  string
}

// pattern is the form of a map's fields.
type pattern struct{ label, v cue.Value }

// shape returns what is known of s, once for each k.
func (c *checker) shape(k string, s cue.Value) *shape {
	if sh, ok := c.shapes[k]; ok {
		return sh
	}
	sh := &shape{kind: s.IncompleteKind(), fields: map[string]*member{}}
	c.shapes[k] = sh
	sh.doc = doc(s)
	if _, p := s.ReferencePath(); len(p.Selectors()) == 1 && p.Selectors()[0].IsDefinition() {
		sh.ref = p.String()
		if d := doc(cue.Dereference(s)); d != "" {
			sh.doc = d
		}
		if rest, ok := strings.CutPrefix(sh.doc, sh.ref+" is"); ok {
			sh.doc = "a " + noun(sh.ref) + " is" + rest
		}
	}
	sh.want = describe(s, 0)
	if op, vs := cue.Dereference(s).Expr(); op == cue.OrOp {
		for _, b := range vs {
			if str, err := b.String(); err == nil {
				sh.enum = append(sh.enum, str)
			} else {
				sh.enum = nil
				sh.branches = vs
				break
			}
		}
	}
	if sh.kind&cue.StructKind != 0 {
		it, err := s.Fields(cue.Optional(true), cue.Patterns(true))
		for err == nil && it.Next() {
			sel := it.Selector()
			if sel.ConstraintType() == cue.PatternConstraint {
				sh.patterns = append(sh.patterns, pattern{sel.Pattern(), it.Value()})
				continue
			}
			n := sel.Unquoted()
			sh.fields[n] = &member{v: it.Value(), doc: doc(it.Value()),
				need: sel.ConstraintType() == cue.RequiredConstraint || sel.ConstraintType()&cue.OptionalConstraint == 0 && !it.Value().IsConcrete()}
			sh.names = append(sh.names, n)
		}
	}
	return sh
}

// doc returns the comment of a field or definition as one line.
func doc(v cue.Value) string {
	for _, g := range v.Doc() {
		if t := strings.Join(strings.Fields(g.Text()), " "); t != "" && !strings.HasPrefix(t, "Package ") {
			return t
		}
	}
	return ""
}

// describe says in words what a schema takes.
func describe(s cue.Value, depth int) string {
	if depth > 4 {
		return typeName(s.IncompleteKind())
	}
	op, vs := cue.Dereference(s).Expr()
	switch op {
	case cue.OrOp:
		var out []string
		for _, v := range vs {
			out = append(out, describe(v, depth+1))
		}
		return strings.Join(out, " or ")
	case cue.AndOp:
		return strings.TrimSpace(typeName(s.IncompleteKind()) + " " + strings.Join(bounds(vs, depth+1), " and "))
	case cue.GreaterThanOp, cue.GreaterThanEqualOp, cue.LessThanOp, cue.LessThanEqualOp, cue.NotEqualOp:
		if len(vs) == 1 {
			return fmt.Sprintf("%v %v", op, vs[0])
		}
	}
	if s.IncompleteKind() == cue.ListKind {
		if e := s.LookupPath(cue.MakePath(cue.AnyIndex)); e.Exists() {
			return "list of " + describe(e, depth+1)
		}
	}
	if str, err := s.String(); err == nil && s.IsConcrete() {
		return fmt.Sprintf("%q", str)
	}
	return typeName(s.IncompleteKind())
}

// bounds says in words what is between the "&" of a schema: `int & >=0 & <=9` has them at two depths.
func bounds(vs []cue.Value, depth int) []string {
	var out []string
	for _, v := range vs {
		switch op, parts := v.Expr(); op {
		case cue.AndOp:
			out = append(out, bounds(parts, depth+1)...)
		case cue.GreaterThanOp, cue.GreaterThanEqualOp, cue.LessThanOp, cue.LessThanEqualOp, cue.NotEqualOp:
			out = append(out, describe(v, depth))
		}
	}
	return out
}

// typeName names CUE's types as a spec's author would.
func typeName(k cue.Kind) string {
	if k&cue.NumberKind == cue.NumberKind {
		k = k&^cue.NumberKind | cue.FloatKind
	}
	names := []struct {
		kind cue.Kind
		name string
	}{{cue.NullKind, "null"}, {cue.BoolKind, "bool"}, {cue.IntKind, "int"}, {cue.FloatKind, "number"}, {cue.StringKind, "string"},
		{cue.BytesKind, "bytes"}, {cue.StructKind, "map"}, {cue.ListKind, "list"}}
	var out []string
	for _, n := range names {
		if k&n.kind != 0 {
			out = append(out, n.name)
		}
	}
	if len(out) == len(names)-1 || len(out) == 0 {
		return "any value"
	}
	return strings.Join(out, " or ")
}

// show prints a plain value as a spec writes it, cut where it is long.
func show(v cue.Value) string {
	if v.IncompleteKind()&(cue.StructKind|cue.ListKind) != 0 || !v.IsConcrete() {
		return typeName(v.IncompleteKind())
	}
	if s, err := v.String(); err == nil {
		if r := []rune(s); len(r) > 60 {
			return fmt.Sprintf("%q", string(r[:57])+"…")
		}
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprint(v)
}

// noun names what a definition stands for.
func noun(ref string) string {
	switch ref {
	case "#SHA256":
		return "SHA-256 digest"
	default:
		return strings.ToLower(strings.TrimPrefix(ref, "#"))
	}
}

// units returns a bare number with the units that may be meant, in quotes.
func units(ref, number string) []string {
	if ref == "#Duration" {
		return []string{fmt.Sprintf("%q", number+"ms"), fmt.Sprintf("%q", number+"s")}
	}
	return []string{fmt.Sprintf("%q", number+"Mi"), fmt.Sprintf("%q", number+"Gi")}
}

// fixHint proposes the text that was likely meant.
func fixHint(ref string, v cue.Value) string {
	s, err := v.String()
	if err != nil {
		return ""
	}
	digits := s != "" && strings.Trim(s, "0123456789") == ""
	switch ref {
	case "#Duration":
		if digits {
			return "did you mean " + strings.Join(units(ref, s), " or ") + "?"
		}
		t := strings.NewReplacer(" ", "", "milliseconds", "ms", "millis", "ms", "msec", "ms", "seconds", "s", "second", "s", "sec", "s", "minutes", "m", "minute", "m",
			"min", "m", "hours", "h", "hour", "h").Replace(strings.ToLower(s))
		if _, err := time.ParseDuration(t); err == nil && t != s {
			return fmt.Sprintf("did you mean %q?", t)
		}
	case "#Size":
		if digits {
			return "did you mean " + strings.Join(units(ref, s), " or ") + "?"
		}
		num := strings.TrimRight(strings.ReplaceAll(s, " ", ""), "BbIi")
		if num != "" && strings.Trim(num[:len(num)-1], "0123456789") == "" && len(num) > 1 {
			if u := strings.ToUpper(num[len(num)-1:]); strings.Contains("KMGT", u) {
				return fmt.Sprintf("did you mean %q?", num[:len(num)-1]+u+"i")
			}
		}
	case "#Name":
		if f := fixName(s); f != "" {
			return fmt.Sprintf("write %q", f)
		}
	case "#Source":
		if strings.HasPrefix(s, "/") || strings.HasPrefix(s, ".") {
			return fmt.Sprintf("did you mean %q?", "file:"+s)
		}
	case "#SHA256":
		if t := strings.TrimPrefix(strings.ToLower(s), "sha256:"); len(t) == 64 && t != s {
			return "write the 64 digits alone, in lower case"
		}
		return fmt.Sprintf("it has %d characters", len(s))
	}
	return ""
}

// fixName makes a DNS label of s, or "" where nothing would be left or changed.
func fixName(s string) string {
	out := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r == '_' || r == ' ' || r == '.':
			return '-'
		}
		return -1
	}, s)
	out = strings.TrimLeft(out, "-0123456789")
	if len(out) > 63 {
		out = out[:63]
	}
	if out = strings.TrimRight(out, "-"); out == s {
		return ""
	}
	return out
}
