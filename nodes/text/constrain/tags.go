package constrain

import (
	"fmt"
	"slices"
	"strings"
)

// Tags reads a structural tag in the JSON of xgrammar: {"type": "structural_tag", "format": {…}} with the formats const_string, json_schema,
// regex, grammar, any_text, sequence, or, tag, triggered_tags and tags_with_separator; and the older {"structures": [{begin, schema, end}],
// "triggers": […]}. Their texts may be spelled by special tokens.
func Tags(g *Grammar, source []byte) (Node, error) {
	v, err := parseJSON(source)
	if err != nil {
		return nil, err
	}
	r := &tagReader{g: g}
	if s := v.get("structures"); s != nil {
		tags := make([]tag, 0, len(s.vals))
		for i, e := range s.vals {
			p := fmt.Sprintf("structures/%d", i)
			sch := e.get("schema")
			if sch == nil {
				return nil, at(p, "want a schema")
			}
			n, err := schema(g, sch)
			if err != nil {
				return nil, fmt.Errorf("%s/schema: %w", p, err)
			}
			tags = append(tags, tag{begin: e.get("begin").str(), ends: []string{e.get("end").str()}, content: n})
		}
		return triggered(tags, v.get("triggers").strs(), nil, false, false, "triggers")
	}
	f := v.get("format")
	if f == nil {
		return nil, fmt.Errorf(`want {"type": "structural_tag", "format": {…}}`)
	}
	return r.format(f, "format", nil)
}

type tagReader struct {
	g     *Grammar
	depth int
}

type tag struct {
	begin   string
	ends    []string
	content Node
	free    bool // content is text up to one of ends, which it has taken
}

func (v *jv) str() string {
	if v != nil && v.kind == '"' {
		return v.text
	}
	return ""
}

func (v *jv) strs() []string {
	if v == nil {
		return nil
	}
	if v.kind == '"' {
		return []string{v.text}
	}
	var out []string
	for _, e := range v.vals {
		out = append(out, e.str())
	}
	return out
}

func (v *jv) is(key string) bool { e := v.get(key); return e != nil && e.kind == 't' }

// format reads one format. ends are the texts that end a text without a form, which then takes them.
func (r *tagReader) format(v *jv, path string, ends []string) (Node, error) {
	if r.depth++; r.depth > maxJSONDepth {
		return nil, at(path, "nests deeper than %d", maxJSONDepth)
	}
	defer func() { r.depth-- }()
	kind := v.get("type").str()
	allowed := map[string][]string{
		"const_string": {"value"}, "json_schema": {"json_schema", "style"}, "regex": {"pattern"}, "grammar": {"grammar"}, "any_text": {"excludes"},
		"sequence": {"elements"}, "or": {"elements"}, "tag": {"begin", "content", "end"},
		"triggered_tags":      {"triggers", "tags", "at_least_one", "stop_after_first", "excludes"},
		"tags_with_separator": {"tags", "separator", "at_least_one", "stop_after_first"},
	}
	fields, ok := allowed[kind]
	if !ok {
		return nil, at(path, "unknown format %q", kind)
	}
	for _, k := range v.keys {
		if k != "type" && !slices.Contains(fields, k) {
			return nil, at(path, "the field %q of %q is not supported", k, kind)
		}
	}
	switch kind {
	case "const_string":
		return Mark(v.get("value").str()), nil
	case "json_schema":
		s := v.get("json_schema")
		if s == nil || v.get("style") != nil && v.get("style").str() != "json" {
			return nil, at(path, `want a json_schema, of style "json"`)
		}
		n, err := schema(r.g, s)
		if err != nil {
			return nil, fmt.Errorf("%s/json_schema: %w", path, err)
		}
		return n, nil
	case "regex":
		n, err := Regex(v.get("pattern").str())
		if err != nil {
			return nil, at(path, "%v", err)
		}
		return n, nil
	case "grammar":
		n, err := GBNF(r.g, v.get("grammar").str())
		if err != nil {
			return nil, at(path, "%v", err)
		}
		return n, nil
	case "any_text":
		return freeText(ends, v.get("excludes").strs()), nil
	case "sequence":
		return r.sequence(v.get("elements"), path)
	case "or":
		var a Alt
		for i, e := range elements(v.get("elements")) {
			n, err := r.format(e, fmt.Sprintf("%s/elements/%d", path, i), nil)
			if err != nil {
				return nil, err
			}
			a = append(a, n)
		}
		return a, nil
	case "tag":
		t, err := r.tag(v, path)
		return t.node(), err
	}
	var tags []tag
	for i, e := range elements(v.get("tags")) {
		t, err := r.tag(e, fmt.Sprintf("%s/tags/%d", path, i))
		if err != nil {
			return nil, err
		}
		tags = append(tags, t)
	}
	if len(tags) == 0 {
		return nil, at(path, "want tags")
	}
	if kind == "triggered_tags" {
		n, err := triggered(tags, v.get("triggers").strs(), v.get("excludes").strs(), v.is("at_least_one"), v.is("stop_after_first"), path)
		return n, err
	}
	var one Alt
	for _, t := range tags {
		one = append(one, t.node())
	}
	rule := r.g.Add("tag", one)
	var n Node = rule
	if !v.is("stop_after_first") {
		n = Seq{rule, Repeat{Seq{Mark(v.get("separator").str()), rule}, 0, -1}}
	}
	if !v.is("at_least_one") {
		n = Optional(n)
	}
	return n, nil
}

func elements(v *jv) []*jv {
	if v == nil || v.kind != '[' {
		return nil
	}
	return v.vals
}

// sequence reads elements; a text without a form goes up to the constant behind it.
func (r *tagReader) sequence(v *jv, path string) (Node, error) {
	var s Seq
	list := elements(v)
	for i := 0; i < len(list); i++ {
		e, p := list[i], fmt.Sprintf("%s/elements/%d", path, i)
		var ends []string
		if e.get("type").str() == "any_text" && i+1 < len(list) {
			i++
			if list[i].get("type").str() != "const_string" {
				return nil, at(p, "a text without a form must be followed by a const_string, or by nothing")
			}
			ends = list[i].get("value").strs()
		}
		n, err := r.format(e, p, ends)
		if err != nil {
			return nil, err
		}
		s = append(s, n)
	}
	return s, nil
}

// freeText is text up to the first of ends, and it; without ends it may end anywhere. It holds none of excludes.
func freeText(ends, excludes []string) Node {
	f := Free{MayEnd: len(ends) == 0}
	for _, e := range ends {
		f.Stops, f.Then = append(f.Stops, e), append(f.Then, nil)
	}
	for _, e := range excludes {
		if !slices.Contains(f.Stops, e) {
			f.Stops, f.Then = append(f.Stops, e), append(f.Then, Dead{})
		}
	}
	return f
}

func (r *tagReader) tag(v *jv, path string) (tag, error) {
	t := tag{begin: v.get("begin").str(), ends: v.get("end").strs()}
	c := v.get("content")
	if c == nil || v.get("begin") == nil {
		return t, at(path, "want begin, content and end")
	}
	if len(t.ends) == 0 {
		t.ends = []string{""}
	}
	var err error
	if c.get("type").str() == "any_text" && !slices.Contains(t.ends, "") {
		t.free = true
		t.content, err = r.format(c, path+"/content", t.ends)
		return t, err
	}
	t.content, err = r.format(c, path+"/content", nil)
	return t, err
}

// node is the whole tag.
func (t tag) node() Node { return Seq{Mark(t.begin), t.rest()} }

// rest is what follows begin.
func (t tag) rest() Node {
	if t.free {
		return t.content
	}
	var a Alt
	for _, e := range t.ends {
		a = append(a, Mark(e))
	}
	if len(a) == 1 {
		return Seq{t.content, a[0]}
	}
	return Seq{t.content, a}
}

// triggered is text in which each trigger begins one of the tags.
func triggered(tags []tag, triggers, excludes []string, least, once bool, path string) (Node, error) {
	if len(triggers) == 0 {
		return nil, at(path, "want triggers")
	}
	var all Alt
	then := make([]Alt, len(triggers))
	for i, t := range tags {
		k := slices.IndexFunc(triggers, func(s string) bool { return s != "" && strings.HasPrefix(t.begin, s) })
		if k < 0 {
			return nil, at(path, "no trigger begins the tag %d (%q)", i, t.begin)
		}
		then[k] = append(then[k], Seq{Mark(t.begin[len(triggers[k]):]), t.rest()})
		all = append(all, t.node())
	}
	f := Free{MayEnd: true}
	for i, s := range triggers {
		f.Stops, f.Then = append(f.Stops, s), append(f.Then, then[i])
	}
	for _, s := range excludes {
		f.Stops, f.Then = append(f.Stops, s), append(f.Then, Dead{})
	}
	last := freeText(nil, slices.Concat(triggers, excludes)) // behind the tags no trigger begins another
	tagThenText := f
	tagThenText.MayEnd = false
	switch {
	case once && least:
		return all, nil
	case once:
		return Alt{last, tagThenText}, nil
	case least:
		return Seq{all, Repeat{tagThenText, 0, -1}, last}, nil
	}
	return Seq{Repeat{tagThenText, 0, -1}, last}, nil
}
