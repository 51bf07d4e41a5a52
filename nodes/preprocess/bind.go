package preprocess

import (
	"encoding/json"
	"strings"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/text/parse"
)

// anyFormat is how calls are written by a model of which it is not known how it writes them.
const anyFormat = "json"

// A format is a part of a structural tag, in xgrammar's JSON.
type format = map[string]any

// constraint is what the engine has to hold the output to: a call that must come, in the form that the model was trained on or else as JSON,
// or the form that the client asked for. Thoughts stay free. It may change how t reads the answer.
func (m *served) constraint(r *llm.ChatRequest, t *turn) (*llm.Constraint, error) {
	c := r.Constraint
	if t.must != llm.ToolAuto {
		if c != nil {
			return nil, invalid("tool_choice", "tools.constraint", "tool_choice demands a call, which leaves no room for an answer of another form")
		}
		if t.parse.Tools == "harmony" {
			return &llm.Constraint{Tags: harmonyCall(t.parse.Functions)}, nil
		}
		tag, ok := parse.Tag(t.parse.Tools, t.parse.Functions, parse.Mode{OneCall: t.parse.OneCall})
		if !ok {
			t.parse.Tools, t.keep = anyFormat, m.keepThought
			tag = anyCalls(t.parse.Functions, t.parse.OneCall)
		}
		c = &llm.Constraint{Tags: tag}
	} else if c != nil && t.parse.Tools != "" {
		tag, ok := parse.Tag(t.parse.Tools, t.parse.Functions, parse.Mode{OneCall: t.parse.OneCall})
		if !ok {
			return nil, &flow.Error{Class: flow.NotImplemented, Reason: "tools.constraint", Param: "tools",
				Msg: "tools: a model that writes " + m.tools + " cannot be held to calls or an answer of some form; send tools or the form"}
		}
		calls, err := formatOf(&llm.Constraint{Tags: tag})
		if err != nil {
			return nil, err
		}
		form, err := formatOf(c)
		if err != nil {
			return nil, err
		}
		c = &llm.Constraint{Tags: structural(either(calls, form))}
	} else if t.strict != nil {
		tag, ok := parse.Strict(t.parse.Tools, t.strict, parse.Mode{OneCall: t.parse.OneCall})
		if !ok {
			return nil, &flow.Error{Class: flow.NotImplemented, Reason: "tools.strict", Param: "tools",
				Msg: "tools: a model that writes " + m.tools + " cannot be held to a schema where it may call or not; leave strict out, or demand a call by tool_choice"}
		}
		return &llm.Constraint{Tags: tag}, nil // thoughts are free in it
	}
	if c == nil || t.parse.Reasoning == "" || c.After != "" {
		return c, nil
	}
	return behind(c, t.parse)
}

// behind lets thoughts come before what c allows.
func behind(c *llm.Constraint, o parse.Options) (*llm.Constraint, error) {
	open, close := parse.ReasoningMarks(o.Reasoning)
	if close == "" {
		return c, nil
	}
	p, err := parse.New(o)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	switch out := *c; {
	case open == "" || p.InReasoning():
		out.After = close
		return &out, nil
	case strings.HasSuffix(strings.TrimSpace(o.Tail), close): // the prompt says that it does not think
		return c, nil
	}
	f, err := formatOf(c)
	if err != nil {
		return nil, err
	}
	thought := format{"type": "tag", "begin": open, "content": format{"type": "any_text"}, "end": close}
	return &llm.Constraint{Tags: structural(either(format{"type": "sequence", "elements": []any{thought, f}}, f))}, nil
}

// harmonyCall is one call on its channel, behind thoughts on theirs. The token that ends it, <|call|>, is one that ends the turn.
func harmonyCall(functions []parse.Function) string {
	tags := make([]any, len(functions))
	for i, f := range functions {
		tags[i] = format{"type": "tag", "begin": "<|channel|>commentary to=functions." + f.Name + " <|constrain|>json<|message|>", "content": arguments(f), "end": ""}
	}
	call := format{"type": "tags_with_separator", "tags": tags, "separator": "", "at_least_one": true, "stop_after_first": true}
	thought := format{"type": "tag", "begin": "<|channel|>analysis<|message|>", "content": format{"type": "any_text"}, "end": "<|end|>"}
	return structural(either(format{"type": "sequence", "elements": []any{thought, constant("<|start|>assistant"), call}}, call))
}

// arguments are what a function takes.
func arguments(f parse.Function) format {
	schema := f.Parameters
	if schema == nil {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	return format{"type": "json_schema", "json_schema": schema}
}

// anyCalls is a JSON array of calls.
func anyCalls(functions []parse.Function, one bool) string {
	tags := make([]any, len(functions))
	for i, f := range functions {
		name, _ := json.Marshal(f.Name) // a string always can
		tags[i] = format{
			"type": "tag", "begin": `{"name": ` + string(name) + `, "parameters": `, "content": arguments(f), "end": "}",
		}
	}
	calls := format{"type": "tags_with_separator", "tags": tags, "separator": ", ", "at_least_one": true, "stop_after_first": one}
	return structural(format{"type": "sequence", "elements": []any{constant("["), calls, constant("]")}})
}

func constant(s string) format { return format{"type": "const_string", "value": s} }

func either(formats ...any) format { return format{"type": "or", "elements": formats} }

func structural(f any) string {
	b, err := json.Marshal(format{"type": "structural_tag", "format": f})
	if err != nil { // the schemas in it are a client's JSON, that was read before
		return "{}"
	}
	return string(b)
}

// formatOf is what a constraint allows, as a part of a structural tag.
func formatOf(c *llm.Constraint) (any, error) {
	switch {
	case c.JSONSchema != "":
		return format{"type": "json_schema", "json_schema": json.RawMessage(c.JSONSchema)}, nil
	case c.Regex != "":
		return format{"type": "regex", "pattern": c.Regex}, nil
	case c.Grammar != "":
		return format{"type": "grammar", "grammar": c.Grammar}, nil
	case len(c.Choice) > 0:
		all := make([]any, len(c.Choice))
		for i, s := range c.Choice {
			all[i] = constant(s)
		}
		return either(all...), nil
	}
	var t struct {
		Format json.RawMessage `json:"format"`
	}
	if err := json.Unmarshal([]byte(c.Tags), &t); err != nil || len(t.Format) == 0 {
		return nil, invalid("constraint.tags", "constraint.tags", "the structural tag has no format")
	}
	return t.Format, nil
}
