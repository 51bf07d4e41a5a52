package constrain

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// words is a vocabulary: all bytes, and texts that cross whatever borders there are. The last tokens are special, and the very last ends.
type words []string

func (w words) Size() int                { return len(w) }
func (w words) Piece(id uint32) string   { return w[id] }
func (w words) IsSpecial(id uint32) bool { return strings.HasPrefix(w[id], "<|") }
func (w words) end() uint32              { return uint32(len(w) - 1) }

var vocabulary = func() words {
	var w words
	for b := range 256 {
		w = append(w, string([]byte{byte(b)}))
	}
	w = append(w, `{"`, `": `, `", "`, `"}`, `"}]`, `{}`, `[]`, `]}`, `},{"`, "true", "false", "null", "tr", "12", "123", "0.5", "-1", "ab", "abc", "name", `"name"`, `name":`,
		"é", "日本", "\xe6\x97", "\xa5\x9c", "🙂", " a", ` "`, "\n", "  ", `\n`, `\u00`, `\\`, "</", "think>", "</think>", "<", "00", "2024", "-0")
	return append(w, "<|call|>", "<|x|>", "<|end|>")
}()

var tokens = NewTokens(vocabulary, []uint32{vocabulary.end()})

func compile(t testing.TB, s Spec) *Program {
	t.Helper()
	p, err := Compile(context.Background(), s, tokens)
	if err != nil {
		t.Fatalf("%+v: %v", s, err)
	}
	return p
}

// takes reports whether a program takes text as a whole, byte by byte.
func takes(p *Program, text string) bool {
	m := p.New()
	for i := range len(text) {
		if !m.Accept(uint32(text[i])) {
			return false
		}
	}
	return m.MayEnd()
}

func has(mask []uint64, id uint32) bool { return mask[id>>6]&(1<<(id&63)) != 0 }

// walk takes random allowed tokens until the output ends, and holds each mask to what Accept says of every token.
func walk(t *testing.T, p *Program, r *rand.Rand, most int, exact bool) (string, bool) {
	t.Helper()
	m := p.New()
	var out strings.Builder
	for n := range most {
		mask, err := m.Mask()
		if err != nil {
			t.Fatal(err)
		}
		var allowed []uint32
		for id := range uint32(len(vocabulary)) {
			ok := has(mask, id)
			if exact && ok != m.Clone().Accept(id) {
				t.Fatalf("behind %q: the mask says %v of %q", out.String(), ok, vocabulary[id])
			}
			if ok {
				allowed = append(allowed, id)
			}
		}
		if len(allowed) == 0 {
			t.Fatalf("behind %q: nothing may follow", out.String())
		}
		id := allowed[r.IntN(len(allowed))]
		if m.MayEnd() && n > most/2 {
			id = vocabulary.end()
		}
		if id == vocabulary.end() {
			return out.String(), true
		}
		m.Accept(id)
		out.WriteString(vocabulary[id])
	}
	return out.String(), false
}

func TestRegexIsGo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range []string{`[a-c]{2,4}`, `^(ab|a.)*$`, `é+日?`, `[^a]b`, `(?i)abc`, `\d{3}-\d{2,}`, `a*?b+`, `(x|y|)z`, `(ab?){3,40}c{20,}`, `[ab]{17,}`, `(a|ab|b){0,30}`, `\x{1F600}-?`, `[[:alpha:]]\s`} {
		p := compile(t, Spec{Regex: s})
		re := regexp.MustCompile(`^(?:` + s + `)$`)
		for range 2000 {
			var b strings.Builder
			for range r.IntN(7) * (1 + r.IntN(8)) {
				b.WriteString([]string{"a", "b", "c", "ab", "é", "日", "z", "x", "A", "1", "-", "12", " ", "😀"}[r.IntN(14)])
			}
			if got, want := takes(p, b.String()), re.MatchString(b.String()); got != want {
				t.Fatalf("%s: %q: %v, Go says %v", s, b.String(), got, want)
			}
		}
		for range 20 {
			if text, ended := walk(t, p, r, 40, true); ended && !re.MatchString(text) {
				t.Errorf("%s: wrote %q", s, text)
			}
		}
	}
}

var schemas = []struct {
	schema  string
	yes, no string // one a line
}{
	{`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"]}`, "{\"a\":1}\n{\"a\": -20, \"b\": \"x\\n\\u00e9\"}\n{ \"a\":0 }", "{}\n{\"b\":\"x\"}\n{\"a\":01}\n{\"a\":1,}\n{\"a\":1,\"c\":2}\n{\"a\":\"1\"}"},
	{`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"null"},"c":{"type":"boolean"}}}`, "{}\n{\"b\":null}\n{\"a\":1,\"c\":true}\n{\"c\":false}", "{,}\n{\"c\":true,\"a\":1}\n{\"a\":1 \"b\":null}"},
	{`{"type":"object"}`, "{}\n{\"x\":[1,{\"y\":null}],\"z\":1.5e-3}", "[]\n{\"x\"}\n{x:1}"},
	{`{"type":"object","properties":{"ab":{"const":1}},"additionalProperties":{"type":"string"}}`, "{\"ab\":1,\"a\":\"\"}\n{\"abc\":\"x\"}\n{\"b\":\"\",\"c\":\"\"}", "{\"a\":1}\n{\"x\":\"\",\"ab\":\"\"}\n{\"ab\":\"\"}"},
	{`{"type":"array","items":{"type":"integer","minimum":-3,"maximum":120},"minItems":2,"maxItems":3}`, "[1,2]\n[-3, 120,0]", "[1]\n[1,2,3,4]\n[121,1]\n[-4,1]\n[1,2,]"},
	{`{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]}`, "[]\n[\"a\"]\n[\"a\",1]", "[1]\n[\"a\",1,2]"},
	{`{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"boolean"},"minItems":2}`, "[\"a\",true]\n[\"a\",true,false]", "[\"a\"]\n[true]"},
	{`{"type":"number","minimum":-1,"exclusiveMaximum":2}`, "-1\n-1.0\n-0.5\n0\n1.99\n1", "2\n2.0\n-1.1\n-2\n01"},
	{`{"type":"integer","multipleOf":7}`, "0\n7\n-14\n700", "1\n8\n-15"},
	{`{"enum":["a",1,{"b":[true,null]}]}`, "\"a\"\n1\n{\"b\": [true, null]}", "\"b\"\n2"},
	{`{"type":["string","null"],"maxLength":3}`, "null\n\"abc\"\n\"日本é\"\n\"\\n\"", "\"abcd\"\n1"},
	{`{"type":"string","pattern":"^[a-z]+\"?$"}`, "\"ab\"\n\"ab\\\"\"", "\"\"\n\"A\"\n\"ab\"\""},
	{`{"type":"string","pattern":"b"}`, "\"abc\"\n\"b\"", "\"ac\""},
	{`{"type":"string","format":"date"}`, "\"2024-02-28\"", "\"2024-02-30\"\n\"2024-13-01\""},
	{`{"type":"string","format":"date-time"}`, "\"2024-01-31T23:59:59.5Z\"\n\"2024-01-31T23:59:59+01:00\"", "\"2024-01-31\""},
	{`{"anyOf":[{"type":"integer"},{"type":"null"}]}`, "1\nnull", "\"1\""},
	{`{"oneOf":[{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},{"type":"object","properties":{"k":{"const":"b"},"n":{"type":"integer"}},"required":["k","n"]}]}`, "{\"k\":\"a\"}\n{\"k\":\"b\",\"n\":1}", "{\"k\":\"b\"}\n{\"k\":\"a\",\"n\":1}"},
	{`{"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}`, "{\"a\":1,\"b\":\"\"}", "{\"a\":1}\n{\"b\":\"\"}"},
	{`{"$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["v","next"]}},"$ref":"#/$defs/n"}`, "{\"v\":1,\"next\":{\"v\":2,\"next\":null}}", "{\"v\":1}\n{\"v\":1,\"next\":{}}"},
	{`{"type":"object","patternProperties":{"^x_[a-z]+$":{"type":"integer"}},"additionalProperties":false}`, "{}\n{\"x_a\":1}", "{\"y\":1}\n{\"x_\":1}"},
	{`{"type":"object","additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":2}`, "{\"a\":1}\n{\"a\":1,\"b\":2}", "{}\n{\"a\":1,\"b\":2,\"c\":3}"},
	{`{"type":"string"}`, "\"\\ud83d\\ude00\"\n\"\u007f\"", "\"\\ud83d\"\n\"\\x\"\n\"a\tb\""},
	{`{"type":"string","minLength":30,"maxLength":60}`, "\"" + strings.Repeat("é", 30) + "\"\n\"" + strings.Repeat("\\n", 60) + "\"", "\"" + strings.Repeat("a", 29) + "\"\n\"" + strings.Repeat("a", 61) + "\""},
	{`{"type":"array","items":{"type":"array","items":{"const":1},"minItems":20,"maxItems":40},"maxItems":50}`, "[[" + strings.Repeat("1,", 19) + "1]]\n[[" + strings.Repeat("1,", 39) + "1],[" + strings.Repeat("1,", 20) + "1]]", "[[" + strings.Repeat("1,", 18) + "1]]\n[[" + strings.Repeat("1,", 40) + "1]]"},
	{`{"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":[]}}}`, "{}\n{\"a\":1}", "{\"b\":1}\n{\"a\":1,"},
	{`{"type":"string","format":"uri"}`, "\"https://example.com/a/b?x=1#y\"", "\"example\"\n\"javascript:x\""},
	{`{"type":"string","pattern":"^(foo|bar)-[0-9]+$"}`, "\"foo-1\"\n\"bar-22\"", "\"foo-\"\n\"baz-1\"\n\"xfoo-1\""},
	{`{"type":"string","pattern":"^[a|b]\\|c$"}`, "\"a|c\"\n\"||c\"", "\"ac\""},
	{`{"type":"string","pattern":"^a\\\\$"}`, "\"a\\\\\"", "\"a\\\\x\"\n\"a\""},
	{`{"type":"string","pattern":"a\\$"}`, "\"xa$y\"", "\"a\""},
	{`{"type":"string","pattern":"^\\S[^\\s]\\s.$"}`, "\"ab c\"", "\"\u00a0b c\"\n\"a\u3000 c\"\n\"ab\u00a0c\"\n\"ab \\r\"\n\"ab \u2028\""},
	{`{"type":"string","pattern":"^\\u00e9[\\S]\\/$"}`, "\"éx/\"", "\"é\u00a0/\"\n\"ex/\""},
	{`{"type":"string","pattern":"^[a-z]+$","minLength":1}`, "\"a\"", "\"\""},
	{`{"type":"number","exclusiveMaximum":1,"exclusiveMinimum":-1}`, "0.9\n-0.99999\n0", "0.99999999999999999\n1\n-0.99999999999999999"},
	{`{"oneOf":[{"const":1.5},{"enum":[2,"1.5"]},{"type":"null"}]}`, "1.5\n2\n\"1.5\"\nnull", "1\n3"},
	{`{"allOf":[{"enum":[1,2.0,{"a":1,"b":[1.0]}]},{"enum":[{"b":[1],"a":1.0},2,3]}]}`, "2.0\n{\"a\":1,\"b\":[1.0]}", "1\n3"},
	{`{"$ref":"#/$defs/a","nullable":true,"$defs":{"a":{"type":"integer"}}}`, "1", "null"},
	{`{"allOf":[{"type":"string","nullable":true},{"minLength":1}]}`, "\"a\"", "null\n\"\""},
	{`{"allOf":[{"type":"string","nullable":true},{"type":"string"}]}`, "\"\"", "null"},
	{`true`, "1\n[[[]]]\n\"\"", "\n{"},
}

func TestSchemas(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, c := range schemas {
		p := compile(t, Spec{JSONSchema: c.schema})
		for _, s := range strings.Split(c.yes, "\n") {
			if !takes(p, s) {
				t.Errorf("%s: %s is refused", c.schema, s)
			}
		}
		for _, s := range strings.Split(c.no, "\n") {
			if takes(p, s) {
				t.Errorf("%s: %s is taken", c.schema, s)
			}
		}
		for i := range 30 {
			if text, ended := walk(t, p, r, 60, i < 3); ended && !json.Valid([]byte(text)) {
				t.Errorf("%s: wrote %q", c.schema, text)
			}
		}
	}
}

// OpenAPI's nullable is of the schema that it stands in, and of no other. The library jsonschema does not know it.
func TestNullable(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"string","nullable":true}`:                                                    true,
		`{"enum":["a"],"nullable":true}`:                                                       true,
		`{"allOf":[{"type":"string","nullable":true},{"title":"x"}]}`:                          true,
		`{"allOf":[{"type":"string","nullable":true},{"type":"string"}]}`:                      false,
		`{"$ref":"#/$defs/a","nullable":true,"$defs":{"a":{"type":"string"}}}`:                 false,
		`{"$ref":"#/$defs/a","nullable":true,"$defs":{"a":{"type":"string","nullable":true}}}`: true,
	} {
		if p := compile(t, Spec{JSONSchema: schema}); takes(p, "null") != want || !takes(p, `"a"`) {
			t.Errorf("%s: null is taken: %v", schema, !want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		s    Spec
		want string
	}{
		{Spec{JSONSchema: `{"type":"object","properties":{"a":{"not":{}}}}`}, `#/properties/a: the keyword "not" (an object) is not supported`},
		{Spec{JSONSchema: `{"type":"strin"}`}, `#/type: want one of`},
		{Spec{JSONSchema: `{"$ref":"http://x"}`}, `#/$ref: only references into the same schema`},
		{Spec{JSONSchema: `{"oneOf":[{"type":"integer"},{"type":"number"}]}`}, `#/oneOf: the schemas 0 and 1 may both hold`},
		{Spec{JSONSchema: `{"$ref":"#"}`}, `begins with itself`},
		{Spec{JSONSchema: `{"$ref":"#","type":"object"}`}, `circle`},
		{Spec{JSONSchema: `{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a","minLength":1},{"$ref":"#/$defs/a","minLength":2},{"type":"string"}]}},"$ref":"#/$defs/a"}`}, `nests deeper`},
		{Spec{JSONSchema: `{"type":"array","uniqueItems":true}`}, `#/uniqueItems`},
		{Spec{JSONSchema: `{`}, `not JSON at byte 1`},
		{Spec{JSONSchema: `false`}, `nothing satisfies it`},
		// What would be let through if it were not looked at.
		{Spec{JSONSchema: `{"properties":{"A":{}},"propertyNames":{"pattern":"^[a-z]$"}}`}, `#/propertyNames: is not supported beside properties`},
		{Spec{JSONSchema: `{"type":"object","required":["A"],"propertyNames":false}`}, `#/propertyNames: is not supported beside`},
		{Spec{JSONSchema: `{"type":"string","pattern":"^[a-z]*$","minLength":1}`}, `minLength and maxLength are not supported beside pattern`},
		{Spec{JSONSchema: `{"type":"object","required":"a"}`}, `#/required: want an array of names`},
		{Spec{JSONSchema: `{"type":"object","required":[1]}`}, `#/required: want an array of names`},
		{Spec{JSONSchema: `{"type":"array","prefixItems":{}}`}, `#/prefixItems: want an array`},
		{Spec{JSONSchema: `{"type":[]}`}, `#/type: names no type`},
		{Spec{JSONSchema: `{"patternProperties":[1]}`}, `#/patternProperties: want an object`},
		{Spec{JSONSchema: `{"type":"string","format":5}`}, `#/format: want a string`},
		{Spec{JSONSchema: `{"type":"string","type":"integer"}`}, `the key "type" stands twice`},
		{Spec{JSONSchema: `{"type":"object","additionalProperties":{},"minProperties":2}`}, `#/minProperties: above 1`},
		{Spec{JSONSchema: `{"oneOf":[{"const":1},{"const":1.0}]}`}, `#/oneOf: the schemas 0 and 1 may both hold`},
		{Spec{JSONSchema: `{"oneOf":[{"enum":["a"],"nullable":true},{"enum":["b"],"nullable":true}]}`}, `#/oneOf: the schemas 0 and 1 may both hold`},
		{Spec{JSONSchema: `{"$defs":{"a":{"$id":"x","$defs":{"b":{"type":"integer"}},"$ref":"#/$defs/b"},"b":{"type":"string"}},"$ref":"#/$defs/a"}`}, `an $id of their own`},
		{Spec{JSONSchema: `{"type":"string","pattern":"^a|b$"}`}, `alternatives that are anchored by themselves`},
		{Spec{JSONSchema: `{"type":"string","pattern":"^[[:alpha:]]$"}`}, `holds [: is not supported`},
		{Spec{JSONSchema: `{"type":"string","pattern":"^[]a]$"}`}, `an empty class`},
		{Spec{JSONSchema: `{"type":"string","pattern":"\\Aa"}`}, `\A is not supported`},
		{Spec{JSONSchema: `{"type":"string","pattern":"(?i)a"}`}, `(?i is not supported`},
		{Spec{JSONSchema: `{"type":"string","pattern":"a(?=b)"}`}, `(?= is not supported`},
		{Spec{Regex: `a\b`}, `only the set of texts counts`},
		{Spec{Regex: `(`}, `missing closing`},
		{Spec{Grammar: "root ::= x\n"}, `rule "x" is used but not defined`},
		{Spec{Grammar: "root ::= \"a\n"}, `line 1, column 12`},
		{Spec{Grammar: "root ::= root \"a\" | \"b\""}, `begins with itself`},
		{Spec{Grammar: `root ::= "a"{1,99999999}`}, `more than 65536 copies`},
		{Spec{Tags: `{"format":{"type":"x"}}`}, `unknown format "x"`},
		{Spec{}, `0 constraints are set`},
		{Spec{Regex: "a", Grammar: "b"}, `2 constraints are set`},
	} {
		_, err := Compile(context.Background(), c.s, tokens)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.s, err, c.want)
		}
	}
}

func TestGBNF(t *testing.T) {
	p := compile(t, Spec{Grammar: `
# sums
root  ::= term (" "? "+" " "? term)* end?
term  ::= [0-9]+ | "(" root ")"
end   ::=
    "!" |
    "\x3F"{2}
`})
	for s, want := range map[string]bool{"1": true, "1+2": true, "(1 + (2))+3!": true, "1??": true, "1?": false, "(1": false, "": false, "1++2": false} {
		if takes(p, s) != want {
			t.Errorf("%q: want %v", s, want)
		}
	}
}

func TestChoiceAndAfter(t *testing.T) {
	p := compile(t, Spec{Choice: []string{"yes", "no", "not"}, After: "</think>"})
	for s, want := range map[string]bool{
		"</think>yes": true, "a < b </thin</think>not": true, "</think>maybe": false, "yes": false, "</think></think>no": false, "x</think>nothing": false,
	} {
		if takes(p, s) != want {
			t.Errorf("%q: want %v", s, want)
		}
	}
	m := p.New()
	if mask, _ := m.Mask(); has(mask, vocabulary.end()) || !has(mask, uint32(slices.Index(vocabulary, "<|x|>"))) {
		t.Error("thoughts may not end the output, and hold what they like")
	}
}

func TestTags(t *testing.T) {
	call := uint32(slices.Index(vocabulary, "<|call|>"))
	p := compile(t, Spec{Tags: `{"type":"structural_tag","format":{"type":"tags_with_separator","tags":[
		{"type":"tag","begin":"<|call|>f{","content":{"type":"json_schema","json_schema":{"type":"integer"}},"end":"}"}],"separator":";","at_least_one":true,"stop_after_first":false}}`})
	if !takes(p, "<|call|>f{1};<|call|>f{-2}") || takes(p, "") || takes(p, "<|call|>f{1}x") {
		t.Error("calls")
	}
	m := p.New()
	if mask, _ := m.Mask(); !has(mask, call) || has(mask, uint32(slices.Index(vocabulary, "<|x|>"))) || !m.Accept(call) || !m.Accept('f') {
		t.Error("a special token spells the begin of a tag")
	}
	q := compile(t, Spec{Tags: `{"type":"structural_tag","format":{"type":"triggered_tags","triggers":["<f"],"tags":[
		{"type":"tag","begin":"<f=a>","content":{"type":"json_schema","json_schema":{"type":"integer"}},"end":"</f>"},
		{"type":"tag","begin":"<f=b>","content":{"type":"any_text"},"end":"</f>"}]}}`})
	for s, want := range map[string]bool{"": true, "text < f": true, "a<f=a>1</f> b <f=b>x<y</f>": true, "<f=a>x</f>": false, "<f=c>": false, "<f=a>1": false} {
		if takes(q, s) != want {
			t.Errorf("%q: want %v", s, want)
		}
	}
	s := compile(t, Spec{Tags: `{"type":"structural_tag","format":{"type":"sequence","elements":[{"type":"const_string","value":"A"},{"type":"any_text"},{"type":"const_string","value":"B"},{"type":"or","elements":[{"type":"regex","pattern":"c+"},{"type":"const_string","value":"d"}]}]}}`})
	for text, want := range map[string]bool{"AxBcc": true, "ABd": true, "ABB": false, "A": false} {
		if takes(s, text) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, c := range schemas {
		f.Add(0, c.schema)
	}
	f.Add(1, `(a|b)*c{2,3}`)
	f.Add(2, "root ::= \"a\" root | [b-c]+")
	f.Add(3, `{"type":"structural_tag","format":{"type":"any_text","excludes":["x"]}}`)
	f.Fuzz(func(t *testing.T, kind int, source string) {
		if len(source) > 2000 {
			return
		}
		s := Spec{}
		*[]*string{&s.JSONSchema, &s.Regex, &s.Grammar, &s.Tags}[uint(kind)%4] = source
		p, err := Compile(context.Background(), s, tokens)
		if err != nil {
			return
		}
		m := p.New()
		r := rand.New(rand.NewPCG(1, 1))
		for range 10 {
			mask, err := m.Mask()
			if err != nil {
				return
			}
			id := uint32(r.IntN(len(vocabulary)))
			for range len(vocabulary) {
				if has(mask, id) {
					break
				}
				id = (id + 1) % uint32(len(vocabulary))
			}
			if has(mask, id) && id != vocabulary.end() && !m.Accept(id) {
				t.Fatalf("%q: %q is in the mask and not accepted", source, vocabulary[id])
			}
		}
	})
}

// What grows with a schema's depth or width grows with it, and no faster.
func TestLarge(t *testing.T) {
	deep := strings.Repeat(`{"type":"array","items":`, 60) + "true" + strings.Repeat("}", 60)
	if p := compile(t, Spec{JSONSchema: deep}); !takes(p, strings.Repeat("[", 60)+strings.Repeat("]", 60)) || !takes(p, strings.Repeat("[", 60)+"{}"+strings.Repeat("]", 60)) {
		t.Error("nested arrays")
	}
	deep = strings.Repeat(`{"type":"object","additionalProperties":`, 60) + "true" + strings.Repeat("}", 60)
	if p := compile(t, Spec{JSONSchema: deep}); !takes(p, strings.Repeat(`{"a":`, 59)+"{}"+strings.Repeat("}", 59)) {
		t.Error("nested objects")
	}
	var many, props []string
	for i := range 20_000 {
		many = append(many, strings.Repeat("v", i%5)+string(rune('a'+i%26))+strings.Repeat("0", i%17)+string(rune('A'+i%21)))
	}
	if p := compile(t, Spec{Choice: many}); !takes(p, many[4711]) || takes(p, "v") {
		t.Error("choices")
	}
	for i := range 800 {
		props = append(props, `"p`+strings.Repeat("x", i%7)+string(rune('a'+i/26%26))+string(rune('a'+i%26))+`":{"type":"integer"}`)
	}
	if p := compile(t, Spec{JSONSchema: `{"type":"object","properties":{` + strings.Join(props, ",") + `}}`}); !takes(p, "{}") || !takes(p, `{"paa": 1}`) {
		t.Error("properties")
	}
}
