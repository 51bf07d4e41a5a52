package frontend

import (
	"encoding/json/jsontext"

	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// anyObject is the schema of json_object.
const anyObject = `{"type":"object"}`

// constraint reads what the output is bound to: OpenAI's response_format, vLLM's structured_outputs, and its older guided_ fields. It
// returns the name of the field that said so; "" where none did.
func (f *fields) constraint(q *llm.ChatRequest) (field string) {
	take := func(name string, c *llm.Constraint) {
		switch {
		case c == nil || f.err != nil:
		case field != "":
			f.fail(bad(name, "%s and %s exclude each other", field, name))
		default:
			q.Constraint, field = c, name
		}
	}
	take("response_format", f.responseFormat())
	take("structured_outputs", f.structuredOutputs())
	for _, g := range []struct{ name, kind string }{
		{"guided_json", "json"}, {"guided_regex", "regex"}, {"guided_choice", "choice"}, {"guided_grammar", "grammar"},
	} {
		if v, ok := f.get(g.name); ok {
			c := &llm.Constraint{}
			f.bound(c, g.name, g.kind, v)
			take(g.name, c)
		}
	}
	return field
}

func (f *fields) responseFormat() (c *llm.Constraint) {
	const at = "response_format"
	v, ok := f.get(at)
	if !ok {
		return nil
	}
	f.within(at, v, func(in *fields) {
		switch t := in.str("type"); {
		case in.err != nil || t == "text":
		case t == "json_object":
			c = &llm.Constraint{JSONSchema: anyObject}
		case t == "json_schema":
			c = in.jsonSchema()
		case t == "structural_tag":
			c = &llm.Constraint{Tags: string(v)}
		case t == "":
			in.fail(bad("type", "type must be set"))
		default:
			in.fail(bad("type", "unknown type %q; use text, json_object, json_schema or structural_tag", clip(t)))
		}
	})
	return c
}

// jsonSchema reads the json_schema of a response_format. Whether it is strict or not, it holds.
func (f *fields) jsonSchema() (c *llm.Constraint) {
	v, ok := f.get("json_schema")
	if !ok {
		f.fail(bad("json_schema", "json_schema must be set"))
		return nil
	}
	f.within("json_schema", v, func(in *fields) {
		in.name("name")
		in.str("description")
		in.boolean("strict")
		s := in.object("schema")
		if s == nil {
			in.fail(bad("schema", "schema must be set"))
			return
		}
		c = &llm.Constraint{JSONSchema: string(s)}
	})
	return c
}

// structuredOutputs reads vLLM's field of that name.
func (f *fields) structuredOutputs() (c *llm.Constraint) {
	const at = "structured_outputs"
	v, ok := f.get(at)
	if !ok {
		return nil
	}
	f.within(at, v, func(in *fields) {
		for _, kind := range []string{"json", "regex", "choice", "grammar", "structural_tag", "json_object"} {
			v, ok := in.get(kind)
			if !ok || kind == "json_object" && v.Kind() == 'f' {
				continue
			}
			if c != nil {
				in.fail(bad(kind, "only one of json, regex, choice, grammar, structural_tag and json_object may be set"))
				return
			}
			c = &llm.Constraint{}
			in.bound(c, kind, kind, v)
		}
		in.strict(map[string]string{
			"whitespace_pattern": "not supported: there is one form of whitespace", "disable_any_whitespace": "not supported: there is one form of whitespace",
			"disable_fallback": "not supported: there is no other implementation to fall back to", "disable_additional_properties": "not supported: say it in the schema",
		})
		if c == nil {
			in.fail(bad("", "one of json, regex, choice, grammar, structural_tag and json_object must be set"))
		}
	})
	return c
}

// bound reads a value of one kind of constraint, the value of field name, into c.
func (f *fields) bound(c *llm.Constraint, name, kind string, v jsontext.Value) {
	s, isText := text(v)
	switch kind {
	case "json", "structural_tag":
		if isText { // JSON in a string does as well
			if v = jsontext.Value(s); !v.IsValid() {
				f.fail(bad(name, "%s: the string does not hold JSON", name))
				return
			}
		}
		if v.Kind() != '{' {
			f.fail(bad(name, "%s must be an object, not %s", name, what(v)))
			return
		}
		if kind == "json" {
			c.JSONSchema = string(v)
		} else {
			c.Tags = string(v)
		}
	case "regex", "grammar":
		if s == "" {
			f.fail(bad(name, "%s must be a string that is not empty", name))
			return
		}
		if kind == "regex" {
			c.Regex = s
		} else {
			c.Grammar = s
		}
	case "choice":
		list, ok := elements(v)
		for _, e := range list {
			s, isText := text(e)
			ok = ok && isText && s != ""
			c.Choice = append(c.Choice, s)
		}
		if !ok || len(list) == 0 {
			f.fail(bad(name, "%s must be an array of strings that are not empty", name))
		}
	case "json_object":
		if v.Kind() != 't' {
			f.fail(bad(name, "%s must be true or false, not %s", name, what(v)))
		}
		c.JSONSchema = anyObject
	}
}
