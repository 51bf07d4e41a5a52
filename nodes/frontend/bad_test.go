package frontend

import (
	"strings"
	"testing"
)

// TestBadInput is the table of what is refused, each before any engine sees it.
func TestBadInput(t *testing.T) {
	s := serve(t, words("no"))
	chat := func(more string) string { return hello + "," + more + "}" }
	compl := func(more string) string { return `{"model":"tiny",` + more + "}" }
	message := func(m string) string { return `{"model":"tiny","messages":[` + m + `]}` }
	for _, c := range []struct {
		name, path, body, param, want string
		status                        int // 0: 400
	}{
		{"empty", pathChat, "  ", "", "the body is empty", 0},
		{"array", pathChat, "[]", "", "must be a JSON object", 0},
		{"cut", pathChat, "{", "", "ends too early", 0},
		{"cut in a string", pathChat, `{"model":"ti`, "", "ends too early", 0},
		{"trailing garbage", pathChat, hello + "} x", "", "goes on after its JSON object", 0},
		{"two objects", pathChat, hello + "}{}", "", "goes on after its JSON object", 0},
		{"not UTF-8", pathChat, "{\"model\":\"tiny\",\"messages\":[{\"role\":\"user\",\"content\":\"a\xff\"}]}", "", "invalid UTF-8", 0},
		{"half a surrogate", pathChat, `{"model":"tiny","messages":[{"role":"user","content":"\ud83d"}]}`, "", "not valid JSON", 0},
		{"duplicate", pathChat, chat(`"model":"tiny"`), "model", "twice", 0},
		{"duplicate inside", pathChat, message(`{"role":"user","content":"a","content":"b"}`), "messages.0.content", "twice", 0},
		{"deep", pathChat, chat(`"metadata":` + strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70)), "", "nested deeper", 0},
		{"unknown field", pathChat, chat(`"temprature":1`), "temprature", `did you mean "temperature"?`, 0},
		{"unknown field without likeness", pathChat, chat(`"zzzzzz":1`), "zzzzzz", `unknown field "zzzzzz"`, 0},
		{"no model", pathChat, `{"messages":[]}`, "model", "must be set", 0},
		{"model null", pathChat, `{"model":null,"messages":[]}`, "model", "must be set", 0},
		{"model number", pathChat, `{"model":5,"messages":[]}`, "model", "must be a string", 0},
		{"model unknown", pathChat, `{"model":"tyni","messages":[]}`, "model", `did you mean "tiny"?`, 404},
		{"model of other case", pathChat, `{"model":"TINY","messages":[]}`, "model", "does not exist", 404},
		{"model with a blank", pathChat, `{"model":"tiny ","messages":[]}`, "model", "does not exist", 404},
		{"max_tokens 0", pathChat, chat(`"max_tokens":0`), "max_tokens", "between 1 and", 0},
		{"max_tokens -5", pathChat, chat(`"max_tokens":-5`), "max_tokens", "between 1 and", 0},
		{"max_completion_tokens 0", pathChat, chat(`"max_completion_tokens":0`), "max_completion_tokens", "between 1 and", 0},
		{"max_tokens huge exponent", pathChat, chat(`"max_tokens":1e400`), "max_tokens", "whole number", 0},
		{"max_tokens 20 digits", pathChat, chat(`"max_tokens":99999999999999999999`), "max_tokens", "whole number", 0},
		{"max_tokens string", pathChat, chat(`"max_tokens":"100"`), "max_tokens", "whole number, not a string", 0},
		{"max_tokens half", pathChat, chat(`"max_tokens":1.5`), "max_tokens", "whole number", 0},
		{"two limits", pathChat, chat(`"max_tokens":5,"max_completion_tokens":9`), "max_tokens", "differ", 0},
		{"min above max", pathChat, chat(`"max_tokens":5,"min_tokens":6`), "min_tokens", "above max_tokens", 0},
		{"temperature 2.1", pathChat, chat(`"temperature":2.1`), "temperature", "between 0 and 2", 0},
		{"temperature -0.1", pathChat, chat(`"temperature":-0.1`), "temperature", "between 0 and 2", 0},
		{"temperature bool", pathChat, chat(`"temperature":true`), "temperature", "must be a number, not true", 0},
		{"top_p 1.5", pathChat, chat(`"top_p":1.5`), "top_p", "between 0 and 1", 0},
		{"top_k 1.5", pathChat, chat(`"top_k":1.5`), "top_k", "whole number", 0},
		{"top_k -2", pathChat, chat(`"top_k":-2`), "top_k", "at least -1|between -1", 0},
		{"min_p 1.5", pathChat, chat(`"min_p":1.5`), "min_p", "between 0 and 1", 0},
		{"frequency_penalty 2.1", pathChat, chat(`"frequency_penalty":2.1`), "frequency_penalty", "between -2 and 2", 0},
		{"presence_penalty string", pathChat, chat(`"presence_penalty":"1"`), "presence_penalty", "must be a number, not a string", 0},
		{"repetition_penalty 0", pathChat, chat(`"repetition_penalty":0`), "repetition_penalty", "above 0", 0},
		{"logit_bias range", pathChat, chat(`"logit_bias":{"5":101}`), "logit_bias", "between -100 and 100", 0},
		{"logit_bias key", pathChat, chat(`"logit_bias":{"x":1}`), "logit_bias", `"x" is not a token id`, 0},
		{"logit_bias beyond", pathChat, chat(`"logit_bias":{"1000":1}`), "logit_bias", "is not a token id", 0},
		{"logit_bias array", pathChat, chat(`"logit_bias":[]`), "logit_bias", "must be an object, not an array", 0},
		{"seed", pathChat, chat(`"seed":1.5`), "seed", "whole number", 0},
		{"stop empty", pathChat, chat(`"stop":""`), "stop", "not be empty", 0},
		{"stop mixed", pathChat, chat(`"stop":["a",1]`), "stop", "not the number 1", 0},
		{"stop 33", pathChat, chat(`"stop":["a"` + strings.Repeat(`,"b"`, 32) + `]`), "stop", "at most 32", 0},
		{"stop_token_ids", pathChat, chat(`"stop_token_ids":["a"]`), "stop_token_ids", "not a token id", 0},
		{"bad_words", pathChat, chat(`"bad_words":[""]`), "bad_words", "not supported", 0},
		{"n 0", pathChat, chat(`"n":0`), "n", "between 1 and 128", 0},
		{"n 129", pathChat, chat(`"n":129`), "n", "between 1 and 128", 0},
		{"top_logprobs alone", pathChat, chat(`"top_logprobs":3`), "top_logprobs", "only allowed with logprobs", 0},
		{"top_logprobs 21", pathChat, chat(`"logprobs":true,"top_logprobs":21`), "top_logprobs", "between 0 and 20", 0},
		{"logprobs number in chat", pathChat, chat(`"logprobs":3`), "logprobs", "true or false", 0},
		{"stream string", pathChat, chat(`"stream":"yes"`), "stream", "true or false", 0},
		{"stream_options alone", pathChat, chat(`"stream_options":{"include_usage":true}`), "stream_options", "only allowed with stream", 0},
		{"stream_options typo", pathChat, chat(`"stream":true,"stream_options":{"include_usages":true}`), "stream_options", `did you mean "include_usage"?`, 0},
		{"response_format xml", pathChat, chat(`"response_format":{"type":"xml"}`), "response_format.type", `unknown type "xml"`, 0},
		{"response_format string", pathChat, chat(`"response_format":"json"`), "response_format", "must be an object, not a string", 0},
		{"schema string", pathChat, chat(`"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":"s"}}`), "response_format.json_schema.schema", "must be an object", 0},
		{"schema null", pathChat, chat(`"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":null}}`), "response_format.json_schema.schema", "must be set", 0},
		{"schema name", pathChat, chat(`"response_format":{"type":"json_schema","json_schema":{"name":"a b","schema":{}}}`), "response_format.json_schema.name", `"a b" is not 1 to 64`, 0},
		{"two forms", pathChat, chat(`"response_format":{"type":"json_object"},"guided_regex":"a"`), "guided_regex", "response_format and guided_regex exclude each other", 0},
		{"two in one", pathChat, chat(`"structured_outputs":{"regex":"a","choice":["a"]}`), "structured_outputs.choice", "only one of", 0},
		{"none in one", pathChat, chat(`"structured_outputs":{"json_object":false}`), "structured_outputs", "must be set", 0},
		{"structured_outputs unknown", pathChat, chat(`"structured_outputs":{"jsn":{}}`), "structured_outputs.jsn", `did you mean "json"?`, 0},
		{"structured_outputs whitespace", pathChat, chat(`"structured_outputs":{"regex":"a","whitespace_pattern":" "}`), "structured_outputs.whitespace_pattern", "not supported", 0},
		{"guided_json text", pathChat, chat(`"guided_json":"{"`), "guided_json", "does not hold JSON", 0},
		{"guided_json array", pathChat, chat(`"guided_json":[1]`), "guided_json", "must be an object, not an array", 0},
		{"guided_choice empty", pathChat, chat(`"guided_choice":[]`), "guided_choice", "array of strings", 0},
		{"guided_choice empty string", pathChat, chat(`"guided_choice":["a",""]`), "guided_choice", "array of strings", 0},
		{"guided_regex", pathCompletions, compl(`"prompt":"a","guided_regex":5`), "guided_regex", "must be a string", 0},
		{"guided_whitespace_pattern", pathChat, chat(`"guided_json":{},"guided_whitespace_pattern":"x"`), "guided_whitespace_pattern", "one form", 0},
		{"functions", pathChat, chat(`"functions":[]`), "functions", "tools", 0},
		{"function_call", pathChat, chat(`"function_call":"auto"`), "function_call", "tool_choice", 0},
		{"tools object", pathChat, chat(`"tools":{}`), "tools", "must be an array", 0},
		{"tool string", pathChat, chat(`"tools":["f"]`), "tools[0]", "must be an object", 0},
		{"tool without type", pathChat, chat(`"tools":[{"function":{"name":"f"}}]`), "tools[0].type", "must be set", 0},
		{"tool of other type", pathChat, chat(`"tools":[{"type":"custom","custom":{"name":"f"}}]`), "tools[0].type", `only "function" is taken, not "custom"`, 0},
		{"tool without function", pathChat, chat(`"tools":[{"type":"function"}]`), "tools[0].function", "must be set", 0},
		{"tool without name", pathChat, chat(`"tools":[{"type":"function","function":{}}]`), "tools[0].function.name", "must be set", 0},
		{"tool parameters", pathChat, chat(`"tools":[{"type":"function","function":{"name":"f","parameters":[]}}]`), "tools[0].function.parameters", "must be an object", 0},
		{"tool parameters type", pathChat, chat(`"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"array"}}}]`), "tools[0].function.parameters.type", `must be "object", not "array"`, 0},
		{"tool strict", pathChat, chat(`"tools":[{"type":"function","function":{"name":"f","strict":1}}]`), "tools[0].function.strict", "true or false", 0},
		{"too many tools", pathChat, chat(`"tools":[` + strings.Repeat("1,", 1536) + `1]`), "tools", "at most 1536", 0},
		{"tool_choice", pathChat, chat(someTools + `,"tool_choice":"any"`), "tool_choice", `"any" is none of`, 0},
		{"tool_choice number", pathChat, chat(someTools + `,"tool_choice":1`), "tool_choice", "a string or an object", 0},
		{"tool_choice type", pathChat, chat(someTools + `,"tool_choice":{"type":"custom"}`), "tool_choice", "allowed_tools", 0},
		{"tool_choice alone", pathChat, chat(`"tool_choice":"required"`), "tool_choice", "no tools to choose from", 0},
		{"tool_choice without function", pathChat, chat(someTools + `,"tool_choice":{"type":"function","name":"f"}`), "tool_choice", "function must be set", 0},
		{"allowed unknown", pathChat, chat(someTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"z"}}]}}`), "tool_choice", `"z" is none of tools`, 0},
		{"allowed mode", pathChat, chat(someTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"some","tools":[{"type":"function","function":{"name":"f"}}]}}`), "tool_choice", `"auto" or "required"`, 0},
		{"allowed none", pathChat, chat(someTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`), "tool_choice", "at least one", 0},
		{"a call and a form", pathChat, chat(someTools + `,"tool_choice":"required","response_format":{"type":"json_object"}`), "response_format", "no room", 0},
		{"reasoning_effort", pathChat, chat(`"reasoning_effort":"hard"`), "reasoning_effort", `"hard" is none of none, minimal`, 0},
		{"call without function", pathChat, message(`{"role":"assistant","tool_calls":[{"id":"a","type":"function"}]}`), "messages[0].tool_calls[0].function", "must be set", 0},
		{"call without name", pathChat, message(`{"role":"assistant","tool_calls":[{"id":"a","function":{"arguments":"{}"}}]}`), "messages[0].tool_calls[0].function.name", "must be set", 0},
		{"call arguments", pathChat, message(`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":5}}]}`), "messages[0].tool_calls[0].function.arguments", "a string that holds JSON", 0},
		{"calls null content", pathChat, message(`{"role":"assistant","content":null,"tool_calls":[]}`), "messages[0].content", "needs content", 0},
		{"reasoning number", pathChat, message(`{"role":"assistant","content":"a","reasoning_content":5}`), "messages[0].reasoning_content", "must be a string", 0},
		{"store", pathChat, chat(`"store":true`), "store", "not kept", 0},
		{"service_tier", pathChat, chat(`"service_tier":"flex"`), "service_tier", "one tier", 0},
		{"nvext", pathChat, chat(`"nvext":{}`), "nvext", "other servers", 0},
		{"continue without assistant", pathChat, chat(`"continue_final_message":true`), "continue_final_message", "needs a last message", 0},
		{"continue and generate", pathChat, chat(`"continue_final_message":true,"add_generation_prompt":true`), "continue_final_message", "exclude each other", 0},
		{"stream keeps plain errors", pathChat, chat(`"stream":true,"max_tokens":0`), "max_tokens", "between 1 and", 0},

		{"no messages", pathChat, `{"model":"tiny"}`, "messages", "must be set", 0},
		{"messages empty", pathChat, message(""), "messages", "at least one", 0},
		{"messages object", pathChat, `{"model":"tiny","messages":{}}`, "messages", "must be an array", 0},
		{"message string", pathChat, message(`"hi"`), "messages[0]", "must be an object", 0},
		{"no role", pathChat, message(`{"content":"a"}`), "messages[0].role", "must be set", 0},
		{"alien", pathChat, message(`{"role":"alien","content":"a"}`), "messages[0].role", `"alien" is not a role`, 0},
		{"second message", pathChat, message(`{"role":"user","content":"a"},{"role":"function","content":"a"}`), "messages[1].role", "is not a role", 0},
		{"user null", pathChat, message(`{"role":"user","content":null}`), "messages[0].content", "needs content", 0},
		{"assistant null", pathChat, message(`{"role":"assistant","content":null}`), "messages[0].content", "needs content", 0},
		{"tool without id", pathChat, message(`{"role":"tool","content":"a"}`), "messages[0].tool_call_id", "needs tool_call_id", 0},
		{"content number", pathChat, message(`{"role":"user","content":5}`), "messages[0].content", "string or an array of parts, not the number 5", 0},
		{"content object", pathChat, message(`{"role":"user","content":{"a":1}}`), "messages[0].content", "not an object", 0},
		{"content no parts", pathChat, message(`{"role":"user","content":[]}`), "messages[0].content", "no parts", 0},
		{"part without text", pathChat, message(`{"role":"user","content":[{"type":"text"}]}`), "messages[0].content[0].text", "needs text", 0},
		{"image", pathChat, message(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}`), "messages[0].content[0].type", `"tiny" takes text only`, 0},
		{"part of unknown type", pathChat, message(`{"role":"user","content":[{"type":"input_text","text":"a"}]}`), "messages[0].content[0].type", `unknown type "input_text"`, 0},

		{"no prompt", pathCompletions, compl(`"n":1`), "prompt", "must be set", 0},
		{"prompt null", pathCompletions, compl(`"prompt":null`), "prompt", "must be set", 0},
		{"prompt empty", pathCompletions, compl(`"prompt":""`), "prompt", "not be empty", 0},
		{"prompt no parts", pathCompletions, compl(`"prompt":[]`), "prompt", "not be empty", 0},
		{"prompt mixed", pathCompletions, compl(`"prompt":[1,"a"]`), "prompt", "not a token id|a string at index 1", 0},
		{"prompt mixed lists", pathCompletions, compl(`"prompt":["a",[1]]`), "prompt", "not both", 0},
		{"prompt empty list in list", pathCompletions, compl(`"prompt":[[]]`), "prompt", "prompt 0 is empty", 0},
		{"prompt negative", pathCompletions, compl(`"prompt":[-1]`), "prompt", "not a token id", 0},
		{"prompt float", pathCompletions, compl(`"prompt":[1.5]`), "prompt", "not a token id", 0},
		{"prompt beyond", pathCompletions, compl(`"prompt":[1000]`), "prompt", "not a token id", 0},
		{"prompt far beyond", pathCompletions, compl(`"prompt":[5279552648203111001]`), "prompt", "not a token id", 0},
		{"prompt bool", pathCompletions, compl(`"prompt":[true]`), "prompt", "strings or token ids, not true", 0},
		{"many choices", pathCompletions, compl(`"prompt":["a","b"],"n":65`), "n", "more than 128 choices", 0},
		{"suffix", pathCompletions, compl(`"prompt":"a","suffix":"x"`), "suffix", "not supported", 0},
		{"best_of 2 n 3", pathCompletions, compl(`"prompt":"a","best_of":2,"n":3`), "best_of", "must equal n (3)", 0},
		{"logprobs 6", pathCompletions, compl(`"prompt":"a","logprobs":6`), "logprobs", "between 0 and 5", 0},
		{"logprobs bool", pathCompletions, compl(`"prompt":"a","logprobs":true`), "logprobs", "whole number, not true", 0},
		{"messages in completions", pathCompletions, compl(`"prompt":"a","messages":[]`), "messages", "unknown field", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, header, body := s.get("POST", c.path, c.body)
			e := decodeError(t, body)
			want := c.status
			if want == 0 {
				want = 400
			}
			if status != want || e.Error.Type != "invalid_request_error" || str(e.Error.Param) != c.param {
				t.Errorf("status %d, type %q, param %q; want %d, param %q: %s", status, e.Error.Type, str(e.Error.Param), want, c.param, body)
			}
			found := false
			for _, w := range strings.Split(c.want, "|") {
				found = found || strings.Contains(e.Error.Message, w)
			}
			if !found || strings.Contains(e.Error.Message, "jsontext") || strings.Contains(e.Error.Message, "Go ") {
				t.Errorf("message %q, want %q in it", e.Error.Message, c.want)
			}
			if ct := header.Get("Content-Type"); ct != "application/json" {
				t.Errorf("content type %q", ct)
			}
		})
	}
	if n := len(s.e.requests()); n != 0 {
		t.Errorf("%d requests reached the engine", n)
	}
}

func TestRoutes(t *testing.T) {
	s := serve(t, words("yes"), func(f *Frontend) { f.c.Body = 1000 })
	big := hello + `,"user":"` + strings.Repeat("x", 1000) + `"}`
	for _, c := range []struct {
		name, method, path, body string
		header                   []string
		status                   int
		code, want               string
	}{
		{"wrong content type", "POST", pathChat, hello + "}", []string{"Content-Type", "text/plain"}, 415, "unsupported_media_type", "application/json"},
		{"gzip", "POST", pathChat, hello + "}", []string{"Content-Encoding", "gzip"}, 415, "unsupported_content_encoding", "gzip"},
		{"too large", "POST", pathChat, big, nil, 413, "request.too_large", "longer than 1000 bytes"},
		{"GET on POST", "GET", pathChat, "", nil, 405, "method_not_allowed", "takes POST"},
		{"DELETE on GET", "DELETE", pathModels, "", nil, 405, "method_not_allowed", "takes GET"},
		{"unknown path", "POST", "/v1/chat/completion", "{}", nil, 404, "unknown_url", `did you mean "/v1/chat/completions"?`},
		{"embeddings", "POST", "/v1/embeddings", "{}", nil, 404, "unknown_url", "unknown path"},
		{"unknown model", "GET", pathModels + "/nope", "", nil, 404, "model_not_found", "does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, _, body := s.get(c.method, c.path, c.body, c.header...)
			e := decodeError(t, body)
			if status != c.status || str(e.Error.Code) != c.code || !strings.Contains(e.Error.Message, c.want) {
				t.Errorf("status %d: %s", status, body)
			}
		})
	}
	for _, c := range []struct {
		name, method, path, body, want string
		header                         []string
	}{
		{"content type with charset", "POST", pathChat, hello + "}", `"content":"yes"`, []string{"Content-Type", "application/json; charset=utf-8"}},
		{"trailing slash", "POST", pathChat + "/", hello + "}", `"content":"yes"`, nil},
		{"double slash", "POST", "/" + pathChat, hello + "}", `"content":"yes"`, nil},
		{"models", "GET", pathModels, "", `{"object":"list","data":[{"id":"org/tiny","object":"model",`, nil},
		{"model with a slash", "GET", pathModels + "/org/tiny", "", `"id":"org/tiny"`, nil},
		{"model with an escaped slash", "GET", pathModels + "/org%2Ftiny", "", `"max_model_len":64`, nil},
		{"ready", "GET", "/ready", "", `"ready"`, nil},
		{"health", "GET", "/health", "", `"ready"`, nil},
		{"live", "GET", "/live", "", `"live"`, nil},
		{"metrics", "GET", "/metrics", "", `dynamo_http_requests_total|/v1/chat/completions|200 `, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if status, _, body := s.get(c.method, c.path, c.body, c.header...); status != 200 || !strings.Contains(body, c.want) {
				t.Errorf("status %d: %s", status, body)
			}
		})
	}
	if status, header, body := s.get("HEAD", pathModels, ""); status != 200 || body != "" || header.Get("Content-Type") != "application/json" {
		t.Errorf("HEAD: %d %v", status, header)
	}
	if status, header, _ := s.get("OPTIONS", pathChat, ""); status != 204 || header.Get("Allow") != "POST, OPTIONS" {
		t.Errorf("OPTIONS: %d %v", status, header)
	}
}
