package frontend

import (
	"encoding/json/jsontext"
	"fmt"
	"slices"

	"github.com/dynamograph/dynamo/graph/flow"
)

// roles are who may speak; "developer" is a newer name of "system".
var roleNames = []string{"system", "developer", "user", "assistant", "tool"}

// reasoningNames are what clients call the reasoning of an earlier answer: DeepSeek's name, and that of newer servers.
var reasoningNames = []string{"reasoning_content", "reasoning"}

// messages checks a chat's messages. Their order is not checked: templates do that. Content is a string or an array of text parts.
func (f *fields) messages(model string, resume bool) {
	if f.err != nil {
		return
	}
	if !f.has("messages") {
		f.asked = append(f.asked, "messages")
		f.fail(bad("messages", "messages must be set"))
		return
	}
	list, ok := f.list("messages")
	if !ok {
		return
	}
	if len(list) == 0 {
		f.fail(bad("messages", "messages must hold at least one message"))
		return
	}
	for i, v := range list {
		at := fmt.Sprintf("messages[%d]", i)
		if v.Kind() != '{' {
			f.fail(bad(at, "%s must be an object, not %s", at, what(v)))
			return
		}
		m := newFields(v)
		m.message(at, model)
		if m.err != nil {
			f.fail(m.err)
			return
		}
	}
	if role, _ := text(newFields(list[len(list)-1]).raw["role"]); resume && role != "assistant" {
		f.fail(bad("continue_final_message", "continue_final_message needs a last message of role \"assistant\", not %q", clip(role)))
	}
}

func (f *fields) message(at, model string) {
	role := f.str("role")
	switch {
	case f.err != nil:
		f.err = bad(at+".role", "%s: %s", at, f.err.Msg)
		return
	case role == "":
		f.err = bad(at+".role", "%s.role must be set", at)
		return
	case !slices.Contains(roleNames, role):
		f.err = bad(at+".role", "%s.role: %q is not a role; use one of system, developer, user, assistant, tool", at, clip(role))
		return
	case role == "tool" && f.str("tool_call_id") == "":
		f.err = bad(at+".tool_call_id", "%s: a message of role \"tool\" needs tool_call_id", at)
		return
	}
	said := false // something beside content
	if role == "assistant" {
		if f.calls(); f.err != nil {
			f.err.Param, f.err.Msg = at+"."+f.err.Param, at+": "+f.err.Msg
			return
		}
		list, _ := elements(f.raw["tool_calls"])
		said = len(list) > 0 || f.has("function_call")
		for _, name := range reasoningNames {
			if said = f.str(name) != "" || said; f.err != nil {
				f.err = bad(at+"."+name, "%s: %s", at, f.err.Msg)
				return
			}
		}
	}
	v, ok := f.get("content")
	if !ok {
		if !said {
			f.err = bad(at+".content", "%s: a message of role %q needs content", at, role)
		}
		return
	}
	if v.Kind() == '"' {
		return
	}
	parts, ok := elements(v)
	if !ok {
		f.err = bad(at+".content", "%s.content must be a string or an array of parts, not %s", at, what(v))
		return
	}
	if len(parts) == 0 {
		f.err = bad(at+".content", "%s.content holds no parts", at)
		return
	}
	for k, p := range parts {
		if f.err = part(fmt.Sprintf("%s.content[%d]", at, k), model, p); f.err != nil {
			return
		}
	}
}

func part(at, model string, v jsontext.Value) *flow.Error {
	if v.Kind() != '{' {
		return bad(at, "%s must be an object, not %s", at, what(v))
	}
	p := newFields(v)
	switch t := p.str("type"); t {
	case "text":
		if s, ok := p.raw["text"]; !ok || s.Kind() != '"' {
			return bad(at+".text", "%s: a text part needs text, a string", at)
		}
		return nil
	case "image_url", "input_audio", "video_url", "file", "input_image":
		return bad(at+".type", "%s: the model %q takes text only, not %q", at, clip(model), t)
	case "":
		return bad(at+".type", "%s.type must be set", at)
	default:
		return bad(at+".type", "%s: unknown type %q; use \"text\"", at, clip(t))
	}
}
