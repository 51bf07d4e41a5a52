package parse

import (
	"encoding/json"
	"strings"
)

// m3Mark is what MiniMax M3 writes before each tag, so that values need no escapes.
const m3Mark = "]<]minimax[>["

var m3Marks = newMarks(list(m3Mark))

// m3Calls is m3Mark<tool_call> and then m3Mark<invoke name="name">…m3Mark</invoke> with a tag for each parameter, in which objects have tags
// for their keys and lists <item>, up to m3Mark</tool_call>.
func m3Calls(p *Parser, _ string) bool {
	for any := false; ; any = true {
		if p.space(); p.accept(m3Mark+"<invoke ") == "" {
			if any {
				p.rewind()
				p.closing(list(m3Mark + "</tool_call>"))
			}
			return any
		}
		head, ok := p.until(">")
		name := attribute(head, "name")
		if !ok || name == "" {
			if any {
				p.torn()
			}
			return any
		}
		p.begin(name, "")
		r := m3Reader{p: p}
		for _, f := range p.o.Functions {
			if f.Name == name && json.Unmarshal(f.Parameters, &r.root) != nil {
				r.root = schemaNode{}
			}
		}
		if !r.members("invoke", "", &r.root, 0) {
			return true
		}
		p.done()
		p.mark(0)
	}
}

// m3Reader reads the values of one call.
type m3Reader struct {
	p    *Parser
	root schemaNode
}

// tag takes the mark and the tag behind it, and what stands before them, which is no value: the tag's name, or that it closes end. Neither:
// what stands here is no tag, or the output ended.
func (r *m3Reader) tag(end string) (name string, closes bool) {
	if r.p.scan(m3Marks, func(string) {}) == "" {
		return "", false
	}
	return r.name(end)
}

func (r *m3Reader) name(end string) (name string, closes bool) {
	if r.p.accept("</"+end+">") != "" {
		return "", true
	}
	if r.p.accept("<") == "" {
		return "", false
	}
	name, ok := r.p.until(">")
	if !ok || strings.HasPrefix(name, "/") {
		return "", false
	}
	return name, false
}

// members gives an object: key, if set, whose tag was taken, and all up to the tag that closes end. It reports whether the object is whole.
func (r *m3Reader) members(end, key string, n *schemaNode, depth int) bool {
	for sep, closes := "{", false; ; sep = ", " {
		if key == "" {
			if key, closes = r.tag(end); closes {
				r.p.args(strings.TrimSuffix(sep, ", ") + "}")
				return true
			}
		}
		if key == "" {
			r.p.args(strings.TrimSuffix(sep, ", "))
			return false
		}
		r.p.args(sep + quoted(key) + ": ")
		if !r.value(key, r.under(n, key), depth+1) {
			return false
		}
		key = ""
	}
}

// items gives a list, of whose first item the tag was taken.
func (r *m3Reader) items(end string, n *schemaNode, depth int) bool {
	for sep := "["; ; sep = ", " {
		r.p.args(sep)
		if !r.value("item", r.under(n, ""), depth+1) {
			return false
		}
		switch name, closes := r.tag(end); {
		case closes:
			r.p.args("]")
			return true
		case name != "item":
			return false
		}
	}
}

// value gives the value of key, up to the tag that closes it.
func (r *m3Reader) value(key string, n *schemaNode, depth int) bool {
	if depth > maxDepth {
		return false
	}
	var s *shape
	if n != nil {
		if t := n.typesOf(&r.root, 0); len(t) > 0 {
			s = &shape{t}
		}
	}
	if s.text() {
		r.p.args(`"`)
		if r.p.scan(newMarks(list(m3Mark+"</"+key+">")), func(t string) { r.p.args(escaped(t)) }) == "" {
			return false
		}
		r.p.args(`"`)
		return true
	}
	var raw strings.Builder
	if r.p.scan(m3Marks, func(t string) {
		if raw.Len() <= maxHeld {
			raw.WriteString(t)
		}
	}) == "" || raw.Len() > maxHeld {
		return false
	}
	child, closes := r.name(key)
	switch {
	case closes && raw.Len() == 0 && s != nil && s.has("array"):
		r.p.args("[]")
	case closes && raw.Len() == 0 && s != nil && s.has("object"):
		r.p.args("{}")
	case closes:
		r.p.args(coerce(raw.String(), s, true))
	case child == "":
		return false
	case child == "item" && s.has("array"):
		return r.items(key, n, depth)
	default:
		return r.members(key, child, n, depth)
	}
	return true
}

// under is the schema of a key of an object, or of the items of a list where key is ""; nil: not known.
func (r *m3Reader) under(n *schemaNode, key string) *schemaNode {
	for range 16 {
		if n == nil {
			return nil
		}
		name, isRef := strings.CutPrefix(n.Ref, "#/$defs/")
		if !isRef {
			break
		}
		d, ok := r.root.Defs[name]
		if !ok {
			return nil
		}
		n = &d
	}
	if key != "" {
		if v, ok := n.Properties[key]; ok {
			return &v
		}
		return nil
	}
	var v schemaNode
	if len(n.Items) == 0 || json.Unmarshal(n.Items, &v) != nil {
		return nil
	}
	return &v
}
