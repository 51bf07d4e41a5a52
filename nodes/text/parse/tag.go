package parse

import "encoding/json"

// tagging is what a structural tag is made of.
type tagging struct {
	functions []Function
	once      bool
}

type obj = map[string]any

// schema is what the arguments of a function must be.
func (f Function) schema() any {
	if len(f.Parameters) == 0 {
		return obj{"type": "object"}
	}
	return f.Parameters
}

func constant(s string) any { return obj{"type": "const_string", "value": s} }

func sequence(e ...any) any { return obj{"type": "sequence", "elements": e} }

func schemaOf(s any) any { return obj{"type": "json_schema", "json_schema": s} }

// each makes one tag a function, repeated with sep between them: one at least, and one at most where only one is wanted.
func (t *tagging) each(sep string, begin func(f Function) string, end string) obj {
	tags := make([]any, len(t.functions))
	for i, f := range t.functions {
		tags[i] = obj{"type": "tag", "begin": begin(f), "content": schemaOf(f.schema()), "end": end}
	}
	return obj{"type": "tags_with_separator", "tags": tags, "separator": sep, "at_least_one": true, "stop_after_first": t.once}
}

// Mode says what a structural tag asks for.
type Mode struct {
	OneCall bool // one call at most
}

// Tag is the structural tag (xgrammar's JSON) of an output that is calls of fs, one at least, in the form of a tool format. ok is false where
// a tag cannot say it.
func Tag(toolFormat string, fs []Function, m Mode) (tag string, ok bool) {
	f := tools()[toolFormat]
	if f == nil || f.tag == nil || len(fs) == 0 {
		return "", false
	}
	format, ok := f.tag(&tagging{functions: fs, once: m.OneCall})
	if !ok {
		return "", false
	}
	b, err := json.Marshal(obj{"type": "structural_tag", "format": format})
	return string(b), err == nil
}

// wrappedTag is an object with name and arguments between begin and end.
func wrappedTag(begin, end string) func(*tagging) (any, bool) {
	return func(t *tagging) (any, bool) {
		return t.each("\n", func(f Function) string { return begin + `{"name": ` + quoted(f.Name) + `, "arguments": ` }, "}"+end), true
	}
}

// arrayTag is a list of objects with name and arguments between begin and end.
func arrayTag(begin, end, arguments string) func(*tagging) (any, bool) {
	return func(t *tagging) (any, bool) {
		calls := t.each(", ", func(f Function) string { return `{"name": ` + quoted(f.Name) + `, "` + arguments + `": ` }, "}")
		return sequence(constant(begin+"["), calls, constant("]"+end)), true
	}
}

func pluginTag(t *tagging) (any, bool) {
	return t.each("", func(f Function) string {
		return "<|action_start|><|plugin|>\n" + `{"name": ` + quoted(f.Name) + `, "parameters": `
	}, "}<|action_end|>"), true
}

func llamaTag(t *tagging) (any, bool) {
	return t.each("; ", func(f Function) string { return `{"name": ` + quoted(f.Name) + `, "parameters": ` }, "}"), true
}

func mistralTag(t *tagging) (any, bool) {
	return t.each("", func(f Function) string { return "[TOOL_CALLS]" + f.Name + "[ARGS]" }, ""), true
}

func deepseekTag(t *tagging) (any, bool) {
	calls := t.each("", func(f Function) string { return "<｜tool▁call▁begin｜>" + f.Name + "<｜tool▁sep｜>" }, "<｜tool▁call▁end｜>")
	return sequence(constant("<｜tool▁calls▁begin｜>"), calls, constant("<｜tool▁calls▁end｜>")), true
}

func kimiTag(t *tagging) (any, bool) {
	calls := t.each("", func(f Function) string { return "<|tool_call_begin|>functions." + f.Name + ":" }, "<|tool_call_end|>")
	for _, tag := range calls["tags"].([]any) {
		tag := tag.(obj)
		tag["content"] = sequence(obj{"type": "regex", "pattern": "[0-9]{1,4}"}, constant("<|tool_call_argument_begin|>"), tag["content"])
	}
	return sequence(constant("<|tool_calls_section_begin|>"), calls, constant("<|tool_calls_section_end|>")), true
}

func deepseekV3Tag(t *tagging) (any, bool) {
	calls := t.each("\n", func(f Function) string {
		return "<｜tool▁call▁begin｜>function<｜tool▁sep｜>" + f.Name + "\n```json\n"
	}, "\n```<｜tool▁call▁end｜>")
	return sequence(constant("<｜tool▁calls▁begin｜>"), calls, constant("<｜tool▁calls▁end｜>")), true
}
