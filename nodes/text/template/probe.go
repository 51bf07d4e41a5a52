package template

import (
	"context"
	"strings"

	"github.com/dynamograph/dynamo/nodes/text/jinja"
)

// abilities is what a template takes, found out by trial: templates do not say.
type abilities struct {
	parts     bool // content may be a list of text parts
	partsOnly bool // content must be one
	argsText  bool // arguments of tool calls are shown verbatim where they are a string
}

func (t *Template) probe() abilities {
	const word = "zqprobe"
	render := func(messages string) string {
		v, err := (&decoder{}).decode([]byte(messages))
		if err != nil {
			return ""
		}
		s, err := t.run(context.Background(), jinja.Input{
			Vars:   map[string]jinja.Value{"messages": v, "tools": nil, "documents": nil, "add_generation_prompt": true},
			Limits: jinja.Limits{Steps: 10_000, Memory: 16 << 20, Output: 1 << 20},
		})
		if err != nil {
			return ""
		}
		return s
	}
	shows := func(s string) bool {
		return strings.Contains(s, word) && !strings.Contains(s, "'"+word+"'") && !strings.Contains(s, `"`+word+`"`)
	}
	var a abilities
	plain := shows(render(`[{"role":"user","content":"` + word + `"}]`))
	a.parts = shows(render(`[{"role":"user","content":[{"type":"text","text":"` + word + `"}]}]`))
	a.partsOnly = a.parts && !plain
	call := func(args string) string {
		return `[{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"id":"call00001","type":"function","function":{"name":"f","arguments":` +
			args + `}}]},{"role":"tool","tool_call_id":"call00001","name":"f","content":"c"}]`
	}
	a.argsText = strings.Contains(render(call(`"{\"`+word+`\": \"zv\"}"`)), `{"`+word+`": "zv"}`)
	return a
}
