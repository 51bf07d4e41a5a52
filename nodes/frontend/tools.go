package frontend

import (
	"encoding/json"
	"encoding/json/jsontext"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// Limits of tools, as OpenAI's.
const (
	maxTools    = 1536
	maxToolName = 64
)

// within reads an object inside of the body. What is wrong in it becomes an error of f that names the whole path.
func (f *fields) within(at string, v jsontext.Value, read func(in *fields)) {
	if f.err != nil {
		return
	}
	if v.Kind() != '{' {
		f.fail(bad(at, "%s must be an object, not %s", at, what(v)))
		return
	}
	in := newFields(v)
	if in.err == nil {
		read(in)
	}
	if e := in.err; e != nil {
		e.Msg = at + ": " + e.Msg
		if e.Param = at + "." + e.Param; e.Param == at+"." {
			e.Param = at
		}
		f.fail(e)
	}
}

// name reads a name of OpenAI's rules.
func (f *fields) name(field string) string {
	s := f.str(field)
	switch {
	case f.err != nil:
	case s == "":
		f.fail(bad(field, "%s must be set", field))
	case !plainName(s):
		f.fail(bad(field, "%s: %q is not 1 to %d of the characters a-z, A-Z, 0-9, _ and -", field, clip(s), maxToolName))
	}
	return s
}

func plainName(s string) bool {
	return s != "" && len(s) <= maxToolName && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-'
	})
}

// tools reads tools, tool_choice and parallel_tool_calls.
func (f *fields) tools(q *llm.ChatRequest) {
	list, _ := f.list("tools")
	if len(list) > maxTools {
		f.fail(bad("tools", "tools holds %d; at most %d are taken", len(list), maxTools))
		return
	}
	names := make([]string, 0, len(list))
	first := make(map[string]int, len(list))
	for i, v := range list {
		at := fmt.Sprintf("tools[%d]", i)
		name := ""
		f.within(at, v, func(in *fields) { name = in.tool() })
		if f.err != nil {
			return
		}
		if k, twice := first[name]; twice {
			f.fail(bad(at+".function.name", "%s.function.name: %q is the name of tools[%d], too", at, name, k))
			return
		}
		first[name] = i
		names = append(names, name)
	}
	if len(list) > 0 {
		q.Tools = f.raw["tools"]
	}
	q.OneCall = !f.boolean("parallel_tool_calls") && f.has("parallel_tool_calls")
	f.toolChoice(q, list, names)
}

// tool reads one of tools and returns its name.
func (f *fields) tool() string {
	switch t := f.str("type"); {
	case f.err != nil:
		return ""
	case t == "":
		f.fail(bad("type", "type must be set"))
		return ""
	case t != "function":
		f.fail(bad("type", "type: only \"function\" is taken, not %q", clip(t)))
		return ""
	}
	v, ok := f.get("function")
	if !ok {
		f.fail(bad("function", "function must be set"))
		return ""
	}
	name := ""
	f.within("function", v, func(in *fields) {
		name = in.name("name")
		in.str("description")
		in.boolean("strict")
		if p := in.object("parameters"); p != nil && in.err == nil {
			in.within("parameters", p, func(s *fields) {
				if t := s.raw["type"]; t != nil && string(t) != `"object"` {
					s.fail(bad("type", "type must be \"object\", not %s", clip(string(t))))
				}
			})
		}
	})
	return name
}

// toolChoice reads tool_choice. Without tools it may only say what is so anyway.
func (f *fields) toolChoice(q *llm.ChatRequest, list []jsontext.Value, names []string) {
	v, ok := f.get("tool_choice")
	if !ok || f.err != nil {
		return
	}
	mode := ""
	if s, ok := text(v); ok {
		mode = s
	} else if v.Kind() != '{' {
		f.fail(bad("tool_choice", "tool_choice must be a string or an object, not %s", what(v)))
		return
	}
	if v.Kind() == '{' {
		f.within("tool_choice", v, func(in *fields) {
			switch t := in.str("type"); {
			case in.err != nil:
			case t == "function":
				mode, q.ToolChoice.Name = "function", in.named(names)
			case t == "allowed_tools":
				mode, list = in.allowed(list, names)
			default:
				in.fail(bad("type", "type: use \"function\" or \"allowed_tools\", not %q", clip(t)))
			}
		})
		if e := f.err; e != nil {
			e.Param = "tool_choice"
			return
		}
		if len(list) < len(names) {
			q.Tools = array(list)
		}
	}
	switch mode {
	case "auto":
		q.ToolChoice.Mode = llm.ToolAuto
	case "none":
		q.ToolChoice.Mode = llm.ToolNone
	case "required":
		q.ToolChoice.Mode = llm.ToolRequired
	case "function":
		q.ToolChoice.Mode = llm.ToolNamed
	default:
		f.fail(bad("tool_choice", "tool_choice: %q is none of \"none\", \"auto\" and \"required\"", clip(mode)))
		return
	}
	if len(list) == 0 && (mode == "required" || mode == "function") {
		f.fail(bad("tool_choice", "tool_choice: there are no tools to choose from; send tools"))
	}
}

// named reads the function that tool_choice names.
func (f *fields) named(names []string) (name string) {
	v, ok := f.get("function")
	if !ok {
		f.fail(bad("", "function must be set"))
		return ""
	}
	f.within("function", v, func(in *fields) {
		if name = in.str("name"); in.err == nil && !slices.Contains(names, name) {
			in.fail(bad("name", "name: %q is none of tools", clip(name)))
		}
	})
	return name
}

// allowed reads allowed_tools: the model sees those only.
func (f *fields) allowed(list []jsontext.Value, names []string) (mode string, out []jsontext.Value) {
	v, ok := f.get("allowed_tools")
	if !ok {
		f.fail(bad("", "allowed_tools must be set"))
		return "", nil
	}
	f.within("allowed_tools", v, func(in *fields) {
		if mode = in.str("mode"); mode != "auto" && mode != "required" {
			in.fail(bad("mode", "mode must be \"auto\" or \"required\""))
		}
		of, _ := in.list("tools")
		if len(of) == 0 {
			in.fail(bad("tools", "tools must hold at least one"))
		}
		keep := map[string]bool{}
		for i, v := range of {
			in.within(fmt.Sprintf("tools[%d]", i), v, func(t *fields) { keep[t.named(names)] = true })
		}
		for i, n := range names {
			if keep[n] {
				out = append(out, list[i])
			}
		}
	})
	return mode, out
}

// array joins elements to a JSON array; nil for none.
func array(list []jsontext.Value) json.RawMessage {
	if len(list) == 0 {
		return nil
	}
	b := []byte{'['}
	for i, v := range list {
		b = append(comma(b, i), v...)
	}
	return append(b, ']')
}

// efforts are how much a model may be asked to think. "max" is DeepSeek's.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

func (f *fields) effort() string {
	s := f.str("reasoning_effort")
	if s != "" && !slices.Contains(efforts, s) {
		f.fail(bad("reasoning_effort", "reasoning_effort: %q is none of %s", clip(s), strings.Join(efforts, ", ")))
	}
	return s
}

// calls checks what an assistant's message says of its calls. The arguments stay as they are: what is no JSON in them is the template's.
func (f *fields) calls() {
	list, _ := f.list("tool_calls")
	for i, v := range list {
		f.within(fmt.Sprintf("tool_calls[%d]", i), v, func(c *fields) {
			c.str("id")
			if t := c.str("type"); t != "" && t != "function" {
				c.fail(bad("type", "type: only \"function\" is taken, not %q", clip(t)))
			}
			fn, ok := c.get("function")
			if !ok {
				c.fail(bad("function", "function must be set"))
				return
			}
			c.within("function", fn, func(in *fields) {
				if in.str("name") == "" {
					in.fail(bad("name", "name must be set"))
				}
				if a, ok := in.get("arguments"); ok && a.Kind() != '"' && a.Kind() != '{' {
					in.fail(bad("arguments", "arguments must be a string that holds JSON, not %s", what(a)))
				}
			})
		})
	}
}

// conflict refuses what cannot both hold: a call that must come, and output of another form.
func (f *fields) conflict(q *llm.ChatRequest, field string) {
	if m := q.ToolChoice.Mode; field != "" && (m == llm.ToolRequired || m == llm.ToolNamed) {
		f.fail(&flow.Error{
			Class: flow.InvalidRequest, Reason: "request.invalid", Param: field,
			Msg: field + ": a tool_choice that demands a call leaves no room for an answer of this form; send one of them",
		})
	}
}
