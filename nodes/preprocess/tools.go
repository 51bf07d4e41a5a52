package preprocess

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/text/parse"
)

// turn is how one answer is asked for and read.
type turn struct {
	tools json.RawMessage // that the template shows; nil: none
	parse parse.Options   // without formats all text is content
	keep  []uint32        // special tokens that are markup
	must  llm.ToolMode    // ToolRequired or ToolNamed where a call must come

	strict []parse.Function // where a call may come, and some must be by their schemas: all functions, with the schemas of those
}

// reads reports whether text is read as anything but content.
func (t *turn) reads() bool { return t.parse.Tools != "" || t.parse.Reasoning != "" }

func (t *turn) kept(id uint32) bool {
	_, ok := slices.BinarySearch(t.keep, id)
	return ok
}

// turn finds out how a chat's answer is to be read.
func (m *served) turn(r *llm.ChatRequest) (*turn, error) {
	t := &turn{}
	mode := r.ToolChoice.Mode
	functions, strict, err := functions(r.Tools)
	switch {
	case err != nil:
		return nil, err
	case len(functions) == 0 && (mode == llm.ToolRequired || mode == llm.ToolNamed):
		return nil, invalid("tool_choice", "tools.none", "tool_choice: there are no tools to choose from")
	case len(r.Messages) == 0:
		if len(functions) > 0 {
			return nil, invalid("tools", "tools.chat", "tools: only chats have them")
		}
		return t, nil
	}
	t.parse.Reasoning, t.keep = m.reasoning, m.keepThought
	if len(functions) == 0 || mode == llm.ToolNone {
		return t, nil
	}
	t.tools = r.Tools
	t.parse.Tools, t.parse.Functions, t.parse.OneCall, t.keep = m.tools, functions, r.OneCall, m.keepAll
	switch mode {
	case llm.ToolAuto:
		if m.tools == "" {
			return nil, invalid("tools", "tools.format", "tools: it is not known how the model %q writes tool calls: set models.%s.tools of the graph to one of %s; "+
				"or demand a call by tool_choice", r.Model, first(m.key, "NAME"), strings.Join(toolFormats(), ", "))
		}
		if !m.showsTools {
			return nil, invalid("tools", "tools.template", "tools: the chat template of the model %q does not show them to the model; demand a call by tool_choice, or set the field "+
				"template of the node preprocess", r.Model)
		}
		t.strict = strict
	case llm.ToolNamed:
		i := slices.IndexFunc(functions, func(f parse.Function) bool { return f.Name == r.ToolChoice.Name })
		if i < 0 {
			return nil, invalid("tool_choice", "tools.unknown", "tool_choice: %q is none of tools", r.ToolChoice.Name)
		}
		t.parse.Functions, t.parse.OneCall, t.must = functions[i:i+1], true, mode // that call, and no second
	default:
		t.must = mode
	}
	return t, nil
}

// functions reads OpenAI's tools. Where some are strict, strict has all of them, with the schemas of the strict ones alone.
func functions(tools json.RawMessage) (all, strict []parse.Function, err error) {
	if len(tools) == 0 {
		return nil, nil, nil
	}
	var list []struct {
		Function struct {
			Name       string
			Parameters json.RawMessage
			Strict     bool
		}
	}
	if err := json.Unmarshal(tools, &list); err != nil {
		return nil, nil, invalid("tools", "tools.invalid", "tools: %v", err)
	}
	any := false
	for _, t := range list {
		f := parse.Function{Name: t.Function.Name, Parameters: t.Function.Parameters}
		if f.Name == "" {
			return nil, nil, invalid("tools", "tools.name", "tools: a function has no name")
		}
		if string(f.Parameters) == "null" {
			f.Parameters = nil
		}
		all = append(all, f)
		if any = any || t.Function.Strict; !t.Function.Strict {
			f.Parameters = nil
		}
		strict = append(strict, f)
	}
	if !any {
		strict = nil
	}
	return all, strict, nil
}
