package parse

import "strings"

// typed are the formats that write each parameter between tags of its own. They have no types: the tools' schemas give them.
func typed() map[string]*toolFormat {
	return map[string]*toolFormat{
		// <tool_call><function=name><parameter=key>value</parameter></function></tool_call>
		"qwen3_coder": {begins: list("<tool_call>", "<function="), stray: list("</tool_call>", "</function>", "</parameter>"), block: functions("<tool_call>", "</tool_call>")},
		"seed_oss":    {begins: list("<seed:tool_call>"), stray: list("</seed:tool_call>"), block: functions("<seed:tool_call>", "</seed:tool_call>")},
		// <tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>
		"glm45":   {begins: list("<tool_call>"), stray: list("</tool_call>"), block: keyed("", "</tool_call>"), markers: list("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")},
		"glm47":   {begins: list("<tool_call>"), stray: list("</tool_call>"), block: keyed("", "</tool_call>"), markers: list("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")},
		"longcat": {begins: list("<longcat_tool_call>"), stray: list("</longcat_tool_call>"), block: keyed("longcat_", "</longcat_tool_call>"), markers: list("<longcat_arg_key>", "</longcat_arg_key>", "<longcat_arg_value>", "</longcat_arg_value>")},
		// <invoke name="name"><parameter name="key">value</parameter></invoke> in a block
		"minimax_m2":    {begins: list("<minimax:tool_call>"), stray: list("</minimax:tool_call>"), block: invoke{end: "</minimax:tool_call>", trim: true}.block},
		"deepseek_v3_2": {begins: list("<｜DSML｜function_calls>"), stray: list("</｜DSML｜function_calls>"), block: invoke{prefix: "｜DSML｜", end: "</｜DSML｜function_calls>"}.block, markers: list("｜DSML｜")},
		"deepseek_v4":   {begins: list("<｜DSML｜tool_calls>"), stray: list("</｜DSML｜tool_calls>"), block: invoke{prefix: "｜DSML｜", end: "</｜DSML｜tool_calls>"}.block, markers: list("｜DSML｜")},
		"step3": {begins: list("<｜tool_calls_begin｜>", "<｜tool_call_begin｜>"), stray: list("<｜tool_calls_end｜>", "<｜tool_call_end｜>"), markers: list("<｜tool_sep｜>"),
			block: invoke{prefix: "steptml:", end: "<｜tool_calls_end｜>", trim: true, before: list("<｜tool_call_begin｜>function<｜tool_sep｜>", "function<｜tool_sep｜>"), after: "<｜tool_call_end｜>"}.block},
		// <|tool_call>call:name{key:<|"|>text<|"|>,n:1}<tool_call|>
		"gemma4":        {begins: list("<|tool_call>"), stray: list("<tool_call|>"), block: func(p *Parser, _ string) bool { return p.gemma(`<|"|>`, "<tool_call|>") }, markers: list(`<|"|>`)},
		"deepseek_v4_1": {begins: list("<｜DSML｜tool_calls>"), stray: list("</｜DSML｜tool_calls>"), block: invoke{prefix: "｜DSML｜", end: "</｜DSML｜tool_calls>"}.block, markers: list("｜DSML｜")},
		"step3p5":       {begins: list("<tool_call>", "<function="), stray: list("</tool_call>", "</function>", "</parameter>"), block: functions("<tool_call>", "</tool_call>")},
		"kimi_k3": {begins: list("<|open|>tools<|sep|>"), block: kimi3, markers: list("<|open|>", "<|close|>", "<|sep|>"),
			stray: list("<|close|>tools<|sep|>", "<|close|>message<|sep|>", "<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|end_of_msg|>")},
		"inkling":      {begins: list("<|content_invoke_tool_json|>"), block: wrapped("<|end_message|>"), stray: list("<|message_model|>", "<|content_text|>", "<|end_message|>")},
		"apertus":      {begins: list("<|tools_prefix|>"), block: apertus, stray: list("<|tools_suffix|>")},
		"minimax_m3":   {begins: list(m3Mark + "<tool_call>"), block: m3Calls, stray: list(m3Mark + "</tool_call>"), markers: list(m3Mark)},
		"muse_glimmer": {whole: (*Parser).muse, begins: list("<atem:function_calls>"), block: museBlock.block, markers: museMarks},
		"ernie45":      {begins: list("<tool_call>"), stray: list("</tool_call>"), block: wrapped("</tool_call>"), tag: wrappedTag("<tool_call>\n", "\n</tool_call>")},
	}
}

// until takes a short text up to end, which it takes, too.
func (p *Parser) until(end string) (string, bool) {
	var b strings.Builder
	w := p.scan(newMarks(list(end)), func(s string) {
		if b.Len() <= maxName {
			b.WriteString(s)
		}
	})
	return strings.Trim(b.String(), blanks), w != "" && b.Len() <= maxName
}

// members writes the arguments of the open call, one after the other.
type members struct {
	p     *Parser
	types map[string]*shape
	n     int
	loose bool
	trim  bool // a line end at each side of a value is no part of it
}

// value takes the value of key up to one of ends, which it returns; "" is the end of the output, within the value.
func (m *members) value(key string, s *shape, ends *marks) string {
	if m.n++; m.n > 1 {
		m.p.args(", ")
	}
	m.p.args(quoted(key) + ": ")
	var raw, gap strings.Builder
	first, stream := true, s.text() || s == nil && !m.loose
	if stream {
		m.p.args(`"`)
	}
	give := func(t string) {
		if m.trim && first {
			t = strings.TrimPrefix(t, "\n")
		}
		first = false
		if m.trim {
			t = gap.String() + t
			if gap.Reset(); strings.HasSuffix(t, "\n") {
				t = t[:len(t)-1]
				gap.WriteByte('\n')
			}
		}
		switch {
		case stream:
			m.p.args(escaped(t))
		case raw.Len()+len(t) > maxHeld: // too long to wait for its end: it is given as a string
			m.p.args(`"` + escaped(raw.String()+t))
			stream = true
		default:
			raw.WriteString(t)
		}
	}
	end := m.p.scan(ends, give)
	switch {
	case end == "":
	case stream:
		m.p.args(`"`)
	default:
		m.p.args(coerce(raw.String(), s, m.loose))
	}
	return end
}

// start begins a call.
func (p *Parser) start(name string, loose, trim bool) *members {
	p.begin(name, "")
	p.args("{")
	return &members{p: p, types: p.shapes(name), loose: loose, trim: trim}
}

// finish ends it.
func (m *members) finish() {
	m.p.args("}")
	m.p.done()
}

// functions is <function=name><parameter=key>value</parameter>…</function>, in a block or not. A value ends at the next tag, whatever is missing.
func functions(open, end string) func(*Parser, string) bool {
	const begin, param, done = "<function=", "<parameter=", "</function>"
	ends := newMarks(list("</parameter>", param, done, end))
	tags := newMarks(list(param, done, end, begin))
	return func(p *Parser, mark string) bool {
		for any := false; ; any = true {
			if mark != begin {
				if p.space(); p.accept(begin) == "" {
					if !any && p.byte() == '{' { // as its relatives do
						return p.list(false, end)
					}
					if !any {
						return false
					}
					p.rewind()
					p.closing(list(end))
					return true
				}
			}
			mark = open
			name, ok := p.until(">")
			if !ok || name == "" || strings.ContainsAny(name, "<\n{") {
				if any {
					p.reject()
				}
				return any
			}
			m := p.start(name, false, true)
			for w := ""; ; {
				if w == "" || w == "</parameter>" {
					w = p.scan(tags, func(string) {})
				}
				if w == "" && !p.cut || w == done || w == end || w == begin {
					m.finish()
					if w == begin {
						mark = begin
					}
					if w == end || w == "" {
						return true
					}
					break
				}
				if w == "" {
					return true
				}
				key, ok := p.until(">")
				if !ok {
					if !p.cut {
						m.finish()
					}
					return true
				}
				if w = m.value(key, m.types[key], ends); w == "" {
					return true
				}
			}
			p.mark(0)
		}
	}
}

// keyed is name and then <arg_key>key</arg_key><arg_value>value</arg_value>… up to end, with a prefix in the names of the tags.
func keyed(prefix, end string) func(*Parser, string) bool {
	key, keyEnd, val, valEnd := "<"+prefix+"arg_key>", "</"+prefix+"arg_key>", "<"+prefix+"arg_value>", "</"+prefix+"arg_value>"
	ends := newMarks(list(valEnd))
	return func(p *Parser, _ string) bool {
		if p.space(); p.byte() == '{' {
			return p.list(false, end)
		}
		name, ok := p.ident("<")
		if !ok || !plainName(name) {
			return false
		}
		if w := p.accept(key, end); w == "" && (!p.ended() || p.cut) { // what was cut may be longer
			return false
		} else if w != key {
			p.start(name, true, false).finish()
			return true
		}
		m := p.start(name, true, false)
		for {
			k, ok := p.until(keyEnd)
			if p.space(); !ok || p.accept(val) == "" {
				if w := p.scan(newMarks(list(end)), func(string) {}); w != "" || !p.cut {
					m.finish()
				}
				return true
			}
			if m.value(k, m.types[k], ends) == "" {
				return true
			}
			p.space()
			switch w := p.accept(key, end); {
			case w == key:
			case w == end || p.ended() && !p.cut:
				m.finish()
				return true
			case p.ended(): // cut
				return true
			default:
				p.scan(newMarks(list(end)), func(string) {})
				m.finish()
				return true
			}
		}
	}
}

// invoke is <invoke name="name"><parameter name="key">value</parameter>…</invoke>…, with a prefix in the names of the tags. An attribute string
// says whether the value is text or JSON.
type invoke struct {
	prefix, end string
	trim        bool
	before      []string // what stands before each, and after
	after       string
}

func (v invoke) block(p *Parser, _ string) bool {
	open, done := "<"+v.prefix+"invoke", "</"+v.prefix+"invoke>"
	param, paramEnd := "<"+v.prefix+"parameter", "</"+v.prefix+"parameter>"
	tags, ends := newMarks(list(param, done, v.end)), newMarks(list(paramEnd))
	for any := false; ; any = true {
		p.space()
		if len(v.before) > 0 && p.accept(v.before...) != "" {
			p.space()
		}
		if p.accept(open) == "" {
			if any {
				p.rewind()
				p.closing(list(v.end))
			}
			return any
		}
		head, ok := p.until(">")
		name := attribute(head, "name")
		if !ok || name == "" {
			if any {
				p.reject()
			}
			return any
		}
		m := p.start(name, true, v.trim)
		for {
			w := p.scan(tags, func(string) {})
			if w == param {
				head, ok := p.until(">")
				if !ok {
					if !p.cut {
						m.finish()
					}
					return true
				}
				key := attribute(head, "name")
				s := m.types[key]
				switch attribute(head, "string") {
				case "true":
					s = &shape{[]string{"string"}}
				case "false":
					s = nil
				}
				if m.value(key, s, ends) == "" {
					return true
				}
				continue
			}
			if w != "" || !p.cut {
				m.finish()
			}
			if w != done {
				return true
			}
			break
		}
		p.mark(0)
		if v.after != "" {
			p.space()
			if p.accept(v.after) != "" {
				p.mark(0)
			}
		}
	}
}

// attribute is the value of name="…" in a tag; models leave the quotation marks out at times.
func attribute(head, name string) string {
	for rest := head; ; {
		i := strings.Index(rest, name+"=")
		if i < 0 {
			return ""
		}
		v := rest[i+len(name)+1:]
		if i > 0 && !strings.ContainsRune(blanks, rune(rest[i-1])) {
			rest = v
			continue
		}
		if v != "" && (v[0] == '"' || v[0] == '\'') {
			if end := strings.IndexByte(v[1:], v[0]); end >= 0 {
				return v[1 : 1+end]
			}
			return v[1:]
		}
		if end := strings.IndexAny(v, blanks); end >= 0 {
			v = v[:end]
		}
		return v
	}
}
