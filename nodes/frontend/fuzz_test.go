package frontend

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// FuzzFields checks that no body makes the reader panic, and that what it takes is JSON.
func FuzzFields(f *testing.F) {
	f.Add([]byte(hello + "}"))
	f.Add([]byte(`{"prompt":[[1,2],[3]],"logit_bias":{"1":2},"stop":["a"],"n":1e0}`))
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"\u00e9\ud83d\ude44"}]}]}`))
	f.Add([]byte(`{"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":{"type":"function","function":{"name":"f"}}}`))
	f.Add([]byte(`{"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{}}},"structured_outputs":{"choice":["a"]}}`))
	f.Add([]byte(strings.Repeat("[", 100)))
	f.Fuzz(func(t *testing.T, body []byte) {
		in := newFields(body)
		ok := in.err == nil
		in.messages("tiny", true)
		in.stops()
		in.bias("logit_bias", 10)
		in.tokens("stop_token_ids", 10)
		in.number("temperature", 0, 2, 1)
		in.integer("n", 1, 128, 1)
		var q llm.ChatRequest
		in.constraint(&q)
		in.tools(&q)
		in.strict(unsupported)
		if ok && (!json.Valid(body) || !utf8.Valid(body)) {
			t.Errorf("taken, but not JSON: %q", body)
		}
	})
}

// FuzzAppendString checks that what we write is read back.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "a\"b\\c\n\r\t\x00\x7f", "é🙄\u2028", "a\xffb\xf0\x9f", "<script>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := appendString(nil, s)
		var got string
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		var want strings.Builder
		for _, r := range s { // one U+FFFD for each byte that is no rune
			want.WriteRune(r)
		}
		if got != want.String() {
			t.Errorf("%q became %q", s, got)
		}
	})
}
