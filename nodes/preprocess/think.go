package preprocess

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	"strings"

	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/text/family"
)

// switchOf finds how a template is told to think, where the model's family is not known: by the variables that it reads.
func switchOf(source string) family.Switch {
	s := family.Switch{Effort: reads(source, "reasoning_effort")}
	for _, arg := range []string{"enable_thinking", "thinking"} {
		if reads(source, arg) {
			s.Arg, s.On, s.Off = arg, "true", "false"
			break
		}
	}
	return s
}

// reads reports whether a template reads the variable: the name stands in a tag, whole, and neither behind a dot nor in quotes.
func reads(source, name string) bool {
	for rest := source; ; {
		i := strings.IndexAny(rest, "{")
		if i < 0 || i+1 == len(rest) {
			return false
		}
		closer := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[rest[i+1]]
		if closer == "" {
			rest = rest[i+1:]
			continue
		}
		rest = rest[i+2:]
		tag := rest
		if end := strings.Index(rest, closer); end >= 0 {
			tag, rest = rest[:end], rest[end+2:]
		} else {
			rest = ""
		}
		if closer != "#}" && tagReads(tag, name) {
			return true
		}
	}
}

func tagReads(tag, name string) bool {
	word := func(c byte) bool {
		return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	}
	var quote byte
	for i := 0; i < len(tag); i++ {
		c := tag[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case word(c):
			begin := i
			for i+1 < len(tag) && word(tag[i+1]) {
				i++
			}
			before := strings.TrimRight(tag[:begin], " \t\n")
			if tag[begin:i+1] == name && !strings.HasSuffix(before, ".") {
				return true
			}
		}
	}
	return false
}

// args are the template's variables: the client's, and those that make the model think as much as reasoning_effort says. What the client
// sets itself is not touched.
func (m *served) args(r *llm.ChatRequest) (json.RawMessage, error) {
	if r.Effort == "" {
		return r.TemplateArgs, nil
	}
	s, add := m.think, map[string]string{}
	off := r.Effort == "none"
	switch {
	case s.Arg == "" && !s.Effort && off && m.reasoning == "":
		return r.TemplateArgs, nil // it does not think anyway
	case s.Arg == "" && (off || !s.Effort):
		return nil, invalid("reasoning_effort", "reasoning_effort.unsupported", "reasoning_effort: nothing tells the model %q to think as much as %q; leave it out", r.Model, r.Effort)
	case off:
		add[s.Arg] = s.Off
	default:
		if s.Arg != "" {
			add[s.Arg] = s.On
		}
		if s.Effort {
			add["reasoning_effort"] = `"` + m.effort(r.Effort) + `"`
		}
	}
	var has map[string]json.RawMessage
	if len(r.TemplateArgs) > 0 {
		if err := json.Unmarshal(r.TemplateArgs, &has); err != nil {
			return r.TemplateArgs, nil //nolint:nilerr // the template's to refuse
		}
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for _, name := range []string{s.Arg, "reasoning_effort"} { // in an order that does not change: prompts are cached by their text
		v, ok := add[name]
		if _, own := has[name]; !ok || own {
			continue
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		q, err := jsontext.AppendQuote(nil, name)
		if err != nil {
			return nil, err
		}
		out.Write(q)
		out.WriteString(":" + v)
	}
	if len(has) == 0 {
		out.WriteByte('}')
		return out.Bytes(), nil
	}
	if out.Len() > 1 {
		out.WriteByte(',')
	}
	out.Write(bytes.TrimSpace(r.TemplateArgs)[1:])
	return out.Bytes(), nil
}

// effort is the family's word for an effort. gpt-oss knows three.
func (m *served) effort(effort string) string {
	if m.reasoning != "gpt_oss" {
		return effort
	}
	switch effort {
	case "minimal":
		return "low"
	case "xhigh", "max":
		return "high"
	}
	return effort
}
