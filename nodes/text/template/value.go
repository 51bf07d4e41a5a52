package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ardanlabs/jinja"
)

const maxJSONDepth = 100

// decoder turns JSON into values of the template engine; objects keep the order of their keys.
type decoder struct {
	text func(string) string // applied to strings but those under a key "role"; may be nil
}

func (d *decoder) decode(raw json.RawMessage) (jinja.Value, error) {
	j := json.NewDecoder(bytes.NewReader(raw))
	j.UseNumber()
	v, err := d.value(j, 0, "")
	if err != nil {
		return v, err
	}
	if _, err := j.Token(); !errors.Is(err, io.EOF) {
		return v, errors.New("more than one JSON value")
	}
	return v, nil
}

func (d *decoder) value(j *json.Decoder, depth int, key string) (jinja.Value, error) {
	if depth > maxJSONDepth {
		return jinja.Undefined(), fmt.Errorf("nested more than %d deep", maxJSONDepth)
	}
	tok, err := j.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return jinja.Undefined(), fmt.Errorf("not valid JSON: %w", err)
	}
	switch t := tok.(type) {
	case json.Delim:
		if t == '[' {
			var items []jinja.Value
			for j.More() {
				v, err := d.value(j, depth+1, key)
				if err != nil {
					return v, err
				}
				items = append(items, v)
			}
			_, err := j.Token()
			return jinja.NewList(items), err
		}
		out := jinja.NewDict()
		for j.More() {
			k, err := j.Token()
			if err != nil {
				return out, fmt.Errorf("not valid JSON: %w", err)
			}
			name, _ := k.(string)
			v, err := d.value(j, depth+1, name)
			if err != nil {
				return v, err
			}
			out.AsDict().Set(name, v)
		}
		_, err := j.Token()
		return out, err
	case string:
		if d.text != nil && key != "role" {
			t = d.text(t)
		}
		return jinja.NewString(t), nil
	default:
		return jinja.FromGoValue(t), nil // nil, bool, json.Number
	}
}

// args adds the variables of a JSON object to vars.
func (d *decoder) args(raw json.RawMessage, vars map[string]jinja.Value) error {
	if len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null" {
		return nil
	}
	v, err := d.decode(raw)
	if err == nil && !v.IsDict() {
		err = errors.New("must be an object")
	}
	if err != nil {
		return invalid("chat_template_kwargs", "template.args", "chat_template_kwargs: %v", err)
	}
	for _, k := range v.AsDict().Keys {
		switch {
		case k == "messages" || k == "tools" || k == "add_generation_prompt" || k == "continue_final_message" || strings.HasPrefix(k, "__"),
			k == "raise_exception" || k == "strftime_now" || k == "range" || k == "namespace":
			return invalid("chat_template_kwargs", "template.args", "chat_template_kwargs: %q cannot be set here", k)
		}
		vars[k], _ = v.AsDict().Get(k)
	}
	return nil
}

// messages decodes and checks the messages, and brings them to the forms that the template takes.
func (t *Template) messages(d *decoder, raw json.RawMessage) (jinja.Value, error) {
	list, err := d.decode(raw)
	if err == nil && !list.IsList() {
		err = errors.New("must be an array")
	}
	if err != nil {
		return list, invalid("messages", "template.messages", "messages: %v", err)
	}
	for i, m := range list.AsList().Items {
		if !m.IsDict() {
			return list, invalid("messages", "template.messages", "messages[%d]: must be an object", i)
		}
		if r, ok := m.AsDict().Get("role"); !ok || !r.IsString() {
			return list, invalid("messages", "template.messages", "messages[%d]: role must be a string", i)
		}
		if err := t.content(m.AsDict(), i); err != nil {
			return list, err
		}
		if !t.takes.argsText {
			parseArguments(m.AsDict())
		}
	}
	return list, nil
}

// content checks one message's content: a string, null, or a list of text parts.
func (t *Template) content(m *jinja.Dict, i int) error {
	c, ok := m.Get("content")
	switch {
	case !ok || c.IsNone():
		return nil
	case c.IsString():
		if t.takes.partsOnly {
			part := jinja.NewDict()
			part.AsDict().Set("type", jinja.NewString("text"))
			part.AsDict().Set("text", c)
			m.Set("content", jinja.NewList([]jinja.Value{part}))
		}
		return nil
	case !c.IsList():
		return invalid("messages", "template.messages", "messages[%d].content: must be a string or a list of parts", i)
	}
	texts := make([]string, 0, c.AsList().Len())
	for k, p := range c.AsList().Items {
		if p.IsString() {
			texts = append(texts, p.AsString())
			continue
		}
		if !p.IsDict() {
			return invalid("messages", "template.messages", "messages[%d].content[%d]: must be an object", i, k)
		}
		typ, _ := p.AsDict().Get("type")
		text, ok := p.AsDict().Get("text")
		if typ.IsString() && typ.AsString() != "text" {
			return invalid("messages", "template.parts", "messages[%d].content[%d]: a part of type %q is not supported: this model takes text", i, k, typ.AsString())
		}
		if !ok || !text.IsString() {
			return invalid("messages", "template.messages", "messages[%d].content[%d].text: must be a string", i, k)
		}
		texts = append(texts, text.AsString())
	}
	if !t.takes.parts {
		m.Set("content", jinja.NewString(strings.Join(texts, "\n")))
	}
	return nil
}

// parseArguments replaces the arguments of tool calls, which clients send as a string of JSON, by the object that templates expect. The
// decoder's text function was applied to the string as a whole.
func parseArguments(m *jinja.Dict) {
	calls, ok := m.Get("tool_calls")
	if !ok || !calls.IsList() {
		return
	}
	for _, c := range calls.AsList().Items {
		if !c.IsDict() {
			continue
		}
		f, ok := c.AsDict().Get("function")
		if !ok || !f.IsDict() {
			continue
		}
		a, ok := f.AsDict().Get("arguments")
		if !ok || !a.IsString() {
			continue
		}
		if v, err := (&decoder{}).decode(json.RawMessage(a.AsString())); err == nil && v.IsDict() {
			f.AsDict().Set("arguments", v)
		}
	}
}

// markLast puts mark behind the text of the last message.
func markLast(messages jinja.Value, mark rune) error {
	items := messages.AsList().Items
	if len(items) == 0 {
		return invalid("continue_final_message", "template.continue", "continue_final_message: there is no message")
	}
	m := items[len(items)-1].AsDict()
	c, _ := m.Get("content")
	if c.IsString() {
		m.Set("content", jinja.NewString(c.AsString()+string(mark)))
		return nil
	}
	if c.IsList() && c.AsList().Len() > 0 {
		p := c.AsList().Items[c.AsList().Len()-1]
		if p.IsDict() {
			if s, ok := p.AsDict().Get("text"); ok && s.IsString() {
				p.AsDict().Set("text", jinja.NewString(s.AsString()+string(mark)))
				return nil
			}
		}
	}
	return invalid("continue_final_message", "template.continue", "continue_final_message: the last message has no text")
}
