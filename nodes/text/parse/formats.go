package parse

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// tools are the formats of tool calls by name.
var tools = sync.OnceValue(func() map[string]*toolFormat {
	m := map[string]*toolFormat{
		// <tool_call>{"name": …, "arguments": {…}}</tool_call>
		"hermes": {begins: list("<tool_call>"), stray: list("</tool_call>"), block: wrapped("</tool_call>"), tag: wrappedTag("<tool_call>\n", "\n</tool_call>")},
		// [{"name": …, "parameters": {…}}]: what a constraint made the model write.
		"json": {first: "[{", bare: func(p *Parser) bool { return p.list(false) }, block: nothing},
		"llama3_json": {begins: list("<|python_tag|>"), first: "[{", block: func(p *Parser, _ string) bool { return p.lines(false) },
			bare: func(p *Parser) bool { return p.lines(true) }, tag: llamaTag},
		"mistral":       {begins: list("[TOOL_CALLS]"), stray: list("[/TOOL_CALLS]"), block: mistral, id: func(int, string) string { return token(9) }, textID: nineLetters, markers: list("[ARGS]", "[CALL_ID]", "[/TOOL_CALLS]"), tag: mistralTag},
		"phi4":          {begins: list("functools", "<|tool_call|>"), stray: list("<|/tool_call|>"), block: functools},
		"nemotron_deci": {begins: list("<TOOLCALL>"), stray: list("</TOOLCALL>"), block: wrapped("</TOOLCALL>"), tag: arrayTag("<TOOLCALL>", "</TOOLCALL>", "arguments")},
		"jamba":         {begins: list("<tool_calls>"), stray: list("</tool_calls>"), block: wrapped("</tool_calls>"), tag: arrayTag("<tool_calls>", "</tool_calls>", "arguments")},
		"granite":       {begins: list("<|tool_call|>", "<tool_call>"), block: wrapped("<|end_of_text|>", "</tool_call>"), stray: list("</tool_call>"), tag: arrayTag("<|tool_call|>", "", "arguments")},
		"internlm2":     {begins: list("<|action_start|><|plugin|>", "<|action_start|> <|plugin|>"), stray: list("<|action_end|>"), block: wrapped("<|action_end|>"), tag: pluginTag},
		"hunyuan_a13b":  {begins: list("<tool_calls>"), stray: list("</tool_calls>"), block: wrapped("</tool_calls>"), tag: arrayTag("<tool_calls>", "</tool_calls>", "arguments")},
		// [{"name": …, "arguments": …}] alone, or in a block of whatever model it was trained from.
		"xlam": {begins: list("```json", "```", "[TOOL_CALLS]", "<tool_call>"), stray: list("</tool_call>"), first: "[{", block: func(p *Parser, _ string) bool { return p.xlam() },
			bare: (*Parser).xlam, tag: arrayTag("", "", "arguments")},
		"deepseek_v3":   {begins: list("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"), special: true, stray: list("<｜tool▁calls▁end｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"), block: deepseek, tag: deepseekV3Tag},
		"deepseek_v3_1": {begins: list("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"), special: true, stray: list("<｜tool▁calls▁end｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"), block: deepseek, tag: deepseekTag},
		"kimi_k2": {begins: list("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>", "<|tool_call_begin|>"), special: true,
			stray: append(list("<|tool_call_argument_begin|>", "<|tool_call_end|>"), kimiEnds...), block: kimi, id: func(n int, name string) string { return "functions." + name + ":" + strconv.Itoa(n) }, textID: func(string) bool { return true }, tag: kimiTag},
		"pythonic":      {begins: list("<|python_start|>", "<|tool_call_start|>"), stray: list("<|python_end|>", "<|tool_call_end|>"), first: "[{", block: func(p *Parser, _ string) bool { return p.python() }, bare: (*Parser).python},
		"olmo3":         {begins: list("<function_calls>"), stray: list("</function_calls>"), block: func(p *Parser, _ string) bool { return p.statements("</function_calls>") }},
		"functiongemma": {begins: list("<start_function_call>"), stray: list("<end_function_call>", "<start_function_response>"), block: functionGemma, markers: list("<escape>")},
		"harmony":       {whole: (*Parser).harmony, block: nothing, markers: harmonyMarks},
	}
	maps.Copy(m, typed())
	return m
})

func list(s ...string) []string { return s }

func nothing(*Parser, string) bool { return false }

// ToolFormats are the names of the formats of tool calls, sorted.
func ToolFormats() []string { return slices.Sorted(maps.Keys(tools())) }

// ReasoningFormats are the names of the formats of reasoning, sorted.
func ReasoningFormats() []string { return slices.Sorted(maps.Keys(reasons())) }

// Markers are texts that the formats look for. Where they are special tokens of a vocabulary, a detokenizer must keep their text.
func Markers(toolFormat, reasoning string) []string {
	var out []string
	if t := tools()[toolFormat]; t != nil {
		out = slices.Concat(out, t.begins, t.stray, t.markers)
	}
	if r := reasons()[reasoning]; r != nil {
		out = slices.Concat(out, r.open, r.close, r.stray)
		out = append(out, r.marks...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// wrapped is JSON, an object or a list of them, up to one of ends.
func wrapped(ends ...string) func(*Parser, string) bool {
	return func(p *Parser, _ string) bool {
		for any := false; ; any = true {
			if !p.list(false, ends...) {
				if any {
					p.reject()
				}
				return any
			}
			p.mark(0)
			p.space()
			if c := p.byte(); c == ',' || c == ';' {
				p.at++
				p.space()
			}
			if p.byte() != '{' { // some models write several objects
				p.rewind()
				p.closing(ends)
				return true
			}
		}
	}
}

// lines is objects with semicolons or blanks between them.
func (p *Parser) lines(strict bool) bool {
	for any := false; ; any = true {
		if !any {
			p.space()
		}
		if p.byte() == '[' && !any {
			return p.list(strict)
		}
		call, broken := p.callObject(strict || any)
		if broken {
			p.broken(nil)
			return true
		}
		if !call {
			if any {
				p.reject()
			}
			return any
		}
		p.mark(0)
		p.space()
		more := p.byte() == ';'
		if more {
			p.at++
			p.space()
		}
		if p.byte() != '{' {
			if !more {
				p.rewind()
				p.closing(nil)
			}
			return true
		}
		p.mark(0)
	}
}

// mistral is [TOOL_CALLS][{…}, …] up to version 7, then [TOOL_CALLS]name[CALL_ID]id[ARGS]{…}, also without [ARGS].
func mistral(p *Parser, _ string) bool {
	p.space()
	switch p.byte() {
	case '[', '{':
		if p.accept("[ARGS]", "[CALL_ID]", "[TOOL_CALLS]") != "" {
			return false
		}
		if !p.list(false, "[/TOOL_CALLS]") {
			return false
		}
		p.closing(list("[/TOOL_CALLS]"))
		return true
	}
	name, ok := p.ident("[")
	if !ok {
		return false
	}
	id := ""
	if p.accept("[CALL_ID]") != "" {
		if id, ok = p.ident("["); !ok {
			return false
		}
	}
	if p.accept("[ARGS]") == "" && p.byte() != '{' {
		return false
	}
	p.space()
	p.begin(name, id)
	if !p.empty() && !p.arguments() {
		if p.rest("[TOOL_CALLS]") != "" {
			return mistral(p, "")
		}
		return true
	}
	p.done()
	return true
}

// nineLetters is what the templates of Mistral's models want of an id.
func nineLetters(id string) bool {
	return len(id) == 9 && strings.Trim(id, alphabet) == ""
}

// empty gives the open call {} where the output ended before its arguments.
func (p *Parser) empty() bool {
	if !p.ended() || p.cut {
		return false
	}
	p.args("{}")
	return true
}

// ident takes a name: what stands before a byte that cannot be part of one, or an opening brace. Blanks around it are not part of it.
func (p *Parser) ident(ends string) (string, bool) {
	p.space()
	n := 0
	for p.peek(n + 1) {
		c := p.buf[p.at+n]
		if c == '{' || c == '"' || c < ' ' || c == ' ' && n == 0 || strings.IndexByte(ends, c) >= 0 {
			break
		}
		if n++; n > maxName {
			return "", false
		}
	}
	s := strings.TrimRight(p.buf[p.at:p.at+n], blanks)
	p.at += n
	p.space()
	return s, s != ""
}

func (p *Parser) xlam() bool {
	if !p.list(true) {
		return false
	}
	p.closing(list("```", "</tool_call>"))
	return true
}

func functools(p *Parser, _ string) bool {
	p.space()
	if p.byte() != '[' {
		return false
	}
	if !p.list(false) {
		return false
	}
	p.closing(list("<|/tool_call|>"))
	return true
}

// deepseek is <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>name<｜tool▁sep｜>{…}<｜tool▁call▁end｜>…, in V3 with "function" for the name, which then
// stands behind the separator, before a fenced block.
func deepseek(p *Parser, begin string) bool {
	const call, sep, end, ends = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"
	for any := false; ; any = true {
		if begin != call {
			p.space()
			if p.accept(call) == "" {
				if p.accept(ends) != "" {
					return true
				}
				return any
			}
		}
		begin = ""
		name, ok := p.ident("<")
		if !ok || p.accept(sep) == "" {
			if any {
				p.reject()
			}
			return any
		}
		fenced := false
		if name == "function" {
			rest, ok := p.ident("<")
			if ok {
				name, fenced = rest, p.accept("```json") != ""
			}
		}
		p.space()
		p.begin(name, "")
		switch {
		case p.accept(end) != "":
			p.args("{}")
			p.done()
		case !p.empty() && !p.arguments():
			p.rest(end, ends)
		default:
			p.done()
			p.space()
			if fenced {
				p.accept("```")
				p.space()
			}
			p.accept(end)
		}
		p.mark(0)
		p.space()
		if p.byte() != '<' {
			p.rewind()
			return true
		}
	}
}

var kimiEnds = list("<|tool_calls_section_end|>", "<|tool_call_section_end|>")

// kimi is <|tool_calls_section_begin|><|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>….
func kimi(p *Parser, begin string) bool {
	const call, sep, end = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
	for any := false; ; any = true {
		if begin != call {
			p.space()
			if p.accept(call) == "" {
				if p.accept(kimiEnds...) != "" {
					return true
				}
				return any
			}
		}
		begin = ""
		id, ok := p.ident("<")
		name := strings.TrimPrefix(id, "functions.")
		if i := strings.LastIndexByte(name, ':'); i >= 0 {
			name = name[:i]
		} else if !strings.HasPrefix(id, "functions.") && !p.known(id) {
			ok = false
		}
		if !ok || name == "" || p.accept(sep) == "" {
			if any {
				p.reject()
			}
			return any
		}
		p.space()
		if strings.HasPrefix(id, "functions.") && strings.Contains(id, ":") {
			p.begin(name, id)
		} else {
			p.begin(name, "")
		}
		switch {
		case p.accept(end) != "":
			p.args("{}")
			p.done()
		case !p.empty() && !p.arguments():
			p.rest(end)
		default:
			p.done()
			p.space()
			p.accept(end)
		}
		p.mark(0)
		p.space()
		if p.byte() != '<' {
			p.rewind()
			return true
		}
	}
}

// known reports whether the request has a function of the name.
func (p *Parser) known(name string) bool {
	return slices.ContainsFunc(p.o.Functions, func(f Function) bool { return f.Name == name })
}

// quoted is s as JSON.
func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
