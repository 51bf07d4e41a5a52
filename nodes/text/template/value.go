package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/nodes/text/jinja"
)

// decoder turns JSON into values of the template engine.
type decoder struct {
	text func(string) string // applied to strings; may be nil
	mark string              // that text may put into them
}

func (d *decoder) decode(raw json.RawMessage) (jinja.Value, error) {
	return jinja.ParseJSON(raw, d.text)
}

// reserved are the variables that a client cannot set.
var reserved = []string{
	"messages", "tools", "add_generation_prompt", "continue_final_message",
	"raise_exception", "strftime_now", "range", "namespace", "dict", "cycler", "joiner", "lipsum",
}

// args adds the variables of a JSON object to vars.
func (d *decoder) args(raw json.RawMessage, vars map[string]jinja.Value) error {
	if len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null" {
		return nil
	}
	v, err := d.decode(raw)
	dict, ok := v.(*jinja.Dict)
	if err == nil && !ok {
		err = errors.New("must be an object")
	}
	if err != nil {
		return invalid("chat_template_kwargs", "template.args", "chat_template_kwargs: %v", err)
	}
	for i := range dict.Len() {
		key, v := dict.At(i)
		k, _ := key.(string)
		if slices.Contains(reserved, k) || strings.HasPrefix(k, "__") {
			return invalid("chat_template_kwargs", "template.args", "chat_template_kwargs: %q cannot be set here", k)
		}
		vars[k] = v
	}
	return nil
}

// messages decodes and checks the messages, and brings them to the forms that the template takes.
func (t *Template) messages(d *decoder, raw json.RawMessage) (*jinja.List, error) {
	v, err := d.decode(raw)
	list, ok := v.(*jinja.List)
	if err == nil && !ok {
		err = errors.New("must be an array")
	}
	if err != nil {
		return nil, invalid("messages", "template.messages", "messages: %v", err)
	}
	for i, m := range list.Items {
		dict, ok := m.(*jinja.Dict)
		if !ok {
			return nil, invalid("messages", "template.messages", "messages[%d]: must be an object", i)
		}
		role, _ := dict.Get("role")
		if _, ok := role.(string); !ok {
			return nil, invalid("messages", "template.messages", "messages[%d]: role must be a string", i)
		}
		if err := t.content(dict, i); err != nil {
			return nil, err
		}
		if !t.takes.argsText {
			d.parseArguments(dict)
		}
	}
	return list, nil
}

// content checks one message's content: a string, null, or a list of text parts.
func (t *Template) content(m *jinja.Dict, i int) error {
	c, _ := m.Get("content")
	var parts []jinja.Value
	switch c := c.(type) {
	case nil:
		return nil
	case string:
		if t.takes.partsOnly {
			part := jinja.NewDict(2)
			part.Set("type", "text")
			part.Set("text", c)
			m.Set("content", jinja.NewList(part))
		}
		return nil
	case *jinja.List:
		parts = c.Items
	default:
		return invalid("messages", "template.messages", "messages[%d].content: must be a string or a list of parts", i)
	}
	texts := make([]string, 0, len(parts))
	for k, p := range parts {
		if s, ok := p.(string); ok {
			texts = append(texts, s)
			continue
		}
		part, ok := p.(*jinja.Dict)
		if !ok {
			return invalid("messages", "template.messages", "messages[%d].content[%d]: must be an object", i, k)
		}
		if typ, _ := part.Get("type"); typ != nil && typ != "text" {
			if s, ok := typ.(string); ok {
				return invalid("messages", "template.parts", "messages[%d].content[%d]: a part of type %q is not supported: this model takes text", i, k, s)
			}
		}
		v, _ := part.Get("text")
		text, ok := v.(string)
		if !ok {
			return invalid("messages", "template.messages", "messages[%d].content[%d].text: must be a string", i, k)
		}
		texts = append(texts, text)
	}
	if !t.takes.parts {
		m.Set("content", strings.Join(texts, "\n"))
	}
	return nil
}

// parseArguments replaces the arguments of tool calls, which clients send as a string of JSON, by the object that templates expect. What
// is no object stays a string.
func (d *decoder) parseArguments(m *jinja.Dict) {
	v, _ := m.Get("tool_calls")
	calls, ok := v.(*jinja.List)
	if !ok {
		return
	}
	for _, c := range calls.Items {
		call, ok := c.(*jinja.Dict)
		if !ok {
			continue
		}
		f, _ := call.Get("function")
		function, ok := f.(*jinja.Dict)
		if !ok {
			continue
		}
		a, _ := function.Get("arguments")
		text, ok := a.(string)
		if !ok {
			continue
		}
		if d.mark != "" { // escapes hide text: each string is looked at by itself
			text = strings.ReplaceAll(text, d.mark, "")
		}
		if v, err := d.decode([]byte(text)); err == nil {
			if args, ok := v.(*jinja.Dict); ok {
				function.Set("arguments", args)
			}
		}
	}
}

// markLast puts mark behind the text of the last message.
func markLast(messages *jinja.List, mark rune) error {
	if len(messages.Items) == 0 {
		return invalid("continue_final_message", "template.continue", "continue_final_message: there is no message")
	}
	m := messages.Items[len(messages.Items)-1].(*jinja.Dict)
	switch c, _ := m.Get("content"); c := c.(type) {
	case string:
		m.Set("content", c+string(mark))
		return nil
	case *jinja.List:
		if len(c.Items) == 0 {
			break
		}
		if p, ok := c.Items[len(c.Items)-1].(*jinja.Dict); ok {
			if s, _ := p.Get("text"); s != nil {
				if s, ok := s.(string); ok {
					p.Set("text", s+string(mark))
					return nil
				}
			}
		}
	}
	return invalid("continue_final_message", "template.continue", "continue_final_message: the last message has no text")
}
