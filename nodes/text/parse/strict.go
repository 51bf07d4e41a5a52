package parse

import (
	"encoding/json"
	"strings"
)

// Strict is the structural tag of an output that is as the model likes, but for its calls: they are calls of fs. ok is false where a tag
// cannot say it.
func Strict(toolFormat string, fs []Function, m Mode) (tag string, ok bool) {
	f := tools()[toolFormat]
	if f == nil || f.tag == nil || len(fs) == 0 {
		return "", false
	}
	calls, ok := f.tag(&tagging{functions: fs, once: m.OneCall})
	if !ok {
		return "", false
	}
	free, ok := f.among(calls, m.OneCall)
	if !ok {
		return "", false
	}
	b, err := json.Marshal(obj{"type": "structural_tag", "format": free})
	return string(b), err == nil
}

// among puts calls into free text: a mark that begins calls is followed by calls.
func (f *toolFormat) among(calls any, once bool) (any, bool) {
	c, ok := calls.(obj)
	if !ok {
		return nil, false
	}
	var tags []any
	switch c["type"] {
	case "tags_with_separator":
		tags, _ = c["tags"].([]any)
	case "sequence":
		e, _ := c["elements"].([]any)
		if len(e) != 3 {
			return nil, false
		}
		begin, ok := e[0].(obj)["value"]
		end, ok2 := e[2].(obj)["value"]
		if !ok || !ok2 {
			return nil, false
		}
		tags = []any{obj{"type": "tag", "begin": begin, "content": e[1], "end": end}}
	}
	if len(tags) == 0 {
		return nil, false
	}
	begin, _ := tags[0].(obj)["begin"].(string)
	for _, mark := range f.begins {
		if strings.HasPrefix(begin, mark) {
			return obj{"type": "triggered_tags", "triggers": []string{mark}, "tags": tags, "stop_after_first": once}, true
		}
	}
	if f.first != "" && strings.IndexByte(f.first, begin[0]) >= 0 { // calls that begin the output, without a mark
		other := sequence(obj{"type": "regex", "pattern": `[^{\[<\s]`}, obj{"type": "any_text"})
		return obj{"type": "or", "elements": []any{calls, other}}, true
	}
	return nil, false
}
