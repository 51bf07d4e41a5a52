package parse

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A wcall is a call as a test wants it written: arguments in the order of the JSON text.
type wcall struct {
	name string
	args []warg
}

type warg struct{ key, json string } // the value is compact JSON

func (a warg) str() (string, bool) {
	if !strings.HasPrefix(a.json, `"`) {
		return "", false
	}
	return unquote(a.json), true
}

// raw is the value as formats write it that name the type elsewhere: strings without quotes.
func (a warg) raw() string {
	if s, ok := a.str(); ok {
		return s
	}
	return a.json
}

func (c wcall) json() string { return c.join(`"%s": %s`, ", ", func(a warg) string { return a.json }) }

func (c wcall) join(form, sep string, value func(warg) string) string {
	var parts []string
	for _, a := range c.args {
		parts = append(parts, fmt.Sprintf(form, a.key, value(a)))
	}
	s := strings.Join(parts, sep)
	if sep == ", " && form[0] == '"' {
		return "{" + s + "}"
	}
	return s
}

func (c wcall) params(form string) string { return c.join(form, "", warg.raw) }

func (c wcall) object(key string) string {
	return fmt.Sprintf(`{"name": "%s", "%s": %s}`, c.name, key, c.json())
}

func each(calls []wcall, sep string, f func(wcall) string) string {
	var parts []string
	for _, c := range calls {
		parts = append(parts, f(c))
	}
	return strings.Join(parts, sep)
}

func objects(key string) func([]wcall) string {
	return func(calls []wcall) string {
		return "[" + each(calls, ", ", func(c wcall) string { return c.object(key) }) + "]"
	}
}

func around(before, after string, f func([]wcall) string) func([]wcall) string {
	return func(calls []wcall) string { return before + f(calls) + after }
}

// wires writes calls as models of each format do.
var wires = map[string]func([]wcall) string{
	"hermes": func(cs []wcall) string {
		return each(cs, "\n", func(c wcall) string { return "<tool_call>\n" + c.object("arguments") + "\n</tool_call>" })
	},
	"json": objects("parameters"),
	"llama3_json": func(cs []wcall) string {
		return "<|python_tag|>" + each(cs, "; ", func(c wcall) string { return c.object("parameters") })
	},
	"pythonic": func(cs []wcall) string { return "[" + pythons(cs, ", ") + "]" },
	"olmo3":    func(cs []wcall) string { return "<function_calls>" + pythons(cs, "\n") + "</function_calls>" },
	"mistral": func(cs []wcall) string {
		return each(cs, "", func(c wcall) string { return "[TOOL_CALLS]" + c.name + "[ARGS]" + c.json() })
	},
	"phi4":          around("functools", "", objects("arguments")),
	"nemotron_deci": around("<TOOLCALL>", "</TOOLCALL>", objects("arguments")),
	"jamba":         around("<tool_calls>", "</tool_calls>", objects("arguments")),
	"granite":       around("<|tool_call|>", "", objects("arguments")),
	"xlam":          objects("arguments"),
	"hunyuan_a13b":  around("<tool_calls>", "</tool_calls>", objects("arguments")),
	"internlm2": func(cs []wcall) string {
		return each(cs, "", func(c wcall) string {
			return "<|action_start|><|plugin|>\n" + c.object("parameters") + "<|action_end|>"
		})
	},
	"longcat": func(cs []wcall) string {
		return each(cs, "\n", func(c wcall) string {
			return "<longcat_tool_call>\n" + c.object("arguments") + "\n</longcat_tool_call>"
		})
	},
	"ernie45": func(cs []wcall) string {
		return each(cs, "\n", func(c wcall) string { return "<tool_call>\n" + c.object("arguments") + "\n</tool_call>" })
	},
	"apertus": func(cs []wcall) string {
		return "<|tools_prefix|>[" + each(cs, ", ", func(c wcall) string { return fmt.Sprintf(`{"%s": %s}`, c.name, c.json()) }) + "]<|tools_suffix|>"
	},
	"deepseek_v3": func(cs []wcall) string {
		return "<｜tool▁calls▁begin｜>" + each(cs, "\n", func(c wcall) string {
			return "<｜tool▁call▁begin｜>function<｜tool▁sep｜>" + c.name + "\n```json\n" + c.json() + "\n```<｜tool▁call▁end｜>"
		}) + "<｜tool▁calls▁end｜>"
	},
	"deepseek_v3_1": func(cs []wcall) string {
		return "<｜tool▁calls▁begin｜>" + each(cs, "", func(c wcall) string {
			return "<｜tool▁call▁begin｜>" + c.name + "<｜tool▁sep｜>" + c.json() + "<｜tool▁call▁end｜>"
		}) + "<｜tool▁calls▁end｜>"
	},
	"deepseek_v3_2": dsml("function_calls"),
	"deepseek_v4":   dsml("tool_calls"),
	"deepseek_v4_1": dsml("tool_calls"),
	"kimi_k2": func(cs []wcall) string {
		n := -1
		return "<|tool_calls_section_begin|>" + each(cs, "", func(c wcall) string {
			n++
			return fmt.Sprintf("<|tool_call_begin|>functions.%s:%d<|tool_call_argument_begin|>%s<|tool_call_end|>", c.name, n, c.json())
		}) + "<|tool_calls_section_end|>"
	},
	"kimi_k3": func(cs []wcall) string {
		n := 0
		return "<|open|>tools<|sep|>" + each(cs, "", func(c wcall) string {
			n++
			args := ""
			for _, a := range c.args {
				args += fmt.Sprintf(`<|open|>argument key="%s" type="%s"<|sep|>%s<|close|>argument<|sep|>`, a.key, kindOf(a.json), a.raw())
			}
			return fmt.Sprintf(`<|open|>call tool="%s" index="%d"<|sep|>%s<|close|>call<|sep|>`, c.name, n, args)
		}) + "<|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>"
	},
	"harmony": func(cs []wcall) string {
		return each(cs, "<|start|>assistant", func(c wcall) string {
			return "<|channel|>commentary to=functions." + c.name + " <|constrain|>json<|message|>" + c.json() + "<|call|>"
		})
	},
	"qwen3_coder": func(cs []wcall) string {
		return each(cs, "\n", func(c wcall) string {
			return "<tool_call>\n<function=" + c.name + ">\n" + c.params("<parameter=%s>\n%s\n</parameter>\n") + "</function>\n</tool_call>"
		})
	},
	"step3p5": func(cs []wcall) string {
		return each(cs, "\n", func(c wcall) string {
			return "<tool_call>\n<function=" + c.name + ">\n" + c.params("<parameter=%s>\n%s\n</parameter>\n") + "</function>\n</tool_call>"
		})
	},
	"seed_oss": func(cs []wcall) string {
		return each(cs, "\n", func(c wcall) string {
			return "<seed:tool_call>\n<function=" + c.name + ">\n" + c.params("<parameter=%s>%s</parameter>\n") + "</function>\n</seed:tool_call>"
		})
	},
	"glm45": func(cs []wcall) string {
		return each(cs, "\n", func(c wcall) string {
			return "<tool_call>" + c.name + "\n" + c.params("<arg_key>%s</arg_key>\n<arg_value>%s</arg_value>\n") + "</tool_call>"
		})
	},
	"glm47": func(cs []wcall) string {
		return each(cs, "", func(c wcall) string {
			return "<tool_call>" + c.name + c.params("<arg_key>%s</arg_key><arg_value>%s</arg_value>") + "</tool_call>"
		})
	},
	"minimax_m2": func(cs []wcall) string {
		return "<minimax:tool_call>\n" + each(cs, "\n", func(c wcall) string {
			return `<invoke name="` + c.name + "\">\n" + c.params("<parameter name=\"%s\">%s</parameter>\n") + "</invoke>"
		}) + "\n</minimax:tool_call>"
	},
	"minimax_m3": func(cs []wcall) string {
		const ns = "]<]minimax[>["
		return ns + "<tool_call>\n" + each(cs, "", func(c wcall) string {
			s := ns + `<invoke name="` + c.name + `">`
			for _, a := range c.args {
				s += ns + "<" + a.key + ">" + m3Value(ns, a.json) + ns + "</" + a.key + ">"
			}
			return s + ns + "</invoke>\n"
		}) + ns + "</tool_call>"
	},
	"muse_glimmer": func(cs []wcall) string {
		return "<|start|>assistant to=" + cs[0].name + "<|message|><atem:function_calls>\n" + each(cs, "\n", func(c wcall) string {
			return `<atem:invoke name="` + c.name + "\">\n" + c.params("<atem:parameter name=\"%s\">%s</atem:parameter>\n") + "</atem:invoke>"
		}) + "\n</atem:function_calls>"
	},
	"gemma4": func(cs []wcall) string {
		return each(cs, "", func(c wcall) string {
			return "<|tool_call>call:" + c.name + "{" + c.join("%s:%s", ",", func(a warg) string { return gemma(a.json, `<|"|>`) }) + "}<tool_call|>"
		})
	},
	"functiongemma": func(cs []wcall) string {
		return each(cs, "", func(c wcall) string {
			return "<start_function_call>call:" + c.name + "{" + c.join("%s:%s", ",", func(a warg) string { return gemma(a.json, "<escape>") }) + "}<end_function_call>"
		})
	},
	"inkling": func(cs []wcall) string {
		return each(cs, "", func(c wcall) string {
			return "<|message_model|><|content_invoke_tool_json|>" + c.object("args") + "<|end_message|>"
		})
	},
	"step3": func(cs []wcall) string {
		return "<｜tool_calls_begin｜>" + each(cs, "", func(c wcall) string {
			return `<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="` + c.name + `">` +
				c.params(`<steptml:parameter name="%s">%s</steptml:parameter>`) + "</steptml:invoke><｜tool_call_end｜>"
		}) + "<｜tool_calls_end｜>"
	},
}

func dsml(section string) func([]wcall) string {
	return func(cs []wcall) string {
		return "<｜DSML｜" + section + ">\n" + each(cs, "\n", func(c wcall) string {
			s := `<｜DSML｜invoke name="` + c.name + "\">\n"
			for _, a := range c.args {
				_, isString := a.str()
				s += fmt.Sprintf("<｜DSML｜parameter name=\"%s\" string=\"%t\">%s</｜DSML｜parameter>\n", a.key, isString, a.raw())
			}
			return s + "</｜DSML｜invoke>"
		}) + "\n</｜DSML｜" + section + ">"
	}
}

func pythons(cs []wcall, sep string) string {
	return each(cs, sep, func(c wcall) string {
		return c.name + "(" + c.join("%s=%s", ", ", func(a warg) string { return python(a.json) }) + ")"
	})
}

func unquote(text string) (s string) {
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(err)
	}
	return s
}

func kindOf(text string) string {
	switch text[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// walk writes compact JSON in another notation: object and array get the parts of theirs, scalar the JSON of anything else.
func walk(text string, object func(keys, values []string) string, array func([]string) string, scalar func(string) string) string {
	var again func() string
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	again = func() string {
		tok, err := d.Token()
		if err != nil {
			panic(err)
		}
		switch tok {
		case json.Delim('{'):
			var keys, values []string
			for d.More() {
				k, _ := d.Token()
				keys, values = append(keys, k.(string)), append(values, again())
			}
			_, _ = d.Token()
			return object(keys, values)
		case json.Delim('['):
			var values []string
			for d.More() {
				values = append(values, again())
			}
			_, _ = d.Token()
			return array(values)
		}
		b, _ := json.Marshal(tok)
		if s, ok := tok.(string); ok {
			b = []byte(quotedPlain(s))
		}
		return scalar(string(b))
	}
	return again()
}

// quotedPlain is JSON without escapes for HTML.
func quotedPlain(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}

func pairs(form, sep string, keys, values []string) string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = fmt.Sprintf(form, k, values[i])
	}
	return strings.Join(out, sep)
}

func python(text string) string {
	return walk(text, func(k, v []string) string { return "{" + pairs("'%s': %s", ", ", k, v) + "}" },
		func(v []string) string { return "[" + strings.Join(v, ", ") + "]" },
		func(s string) string {
			switch s {
			case "true":
				return "True"
			case "false":
				return "False"
			case "null":
				return "None"
			}
			if s[0] != '"' {
				return s
			}
			r := strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`, "\t", `\t`)
			return "'" + r.Replace(unquote(s)) + "'"
		})
}

func gemma(text, quote string) string {
	return walk(text, func(k, v []string) string { return "{" + pairs("%s:%s", ",", k, v) + "}" },
		func(v []string) string { return "[" + strings.Join(v, ",") + "]" },
		func(s string) string {
			if s[0] != '"' {
				return s
			}
			return quote + unquote(s) + quote
		})
}

func m3Value(ns, text string) string {
	return walk(text, func(k, v []string) string {
		s := ""
		for i := range k {
			s += ns + "<" + k[i] + ">" + v[i] + ns + "</" + k[i] + ">"
		}
		return s
	}, func(v []string) string {
		s := ""
		for _, e := range v {
			s += ns + "<item>" + e + ns + "</item>"
		}
		return s
	}, func(s string) string {
		if s[0] != '"' {
			return s
		}
		return unquote(s)
	})
}
