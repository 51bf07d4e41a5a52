package preprocess

import (
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/nodes/text/family"
)

func TestHistory(t *testing.T) {
	for _, c := range []struct {
		name     string
		rule     family.CallIDs
		in, want string
	}{
		{"as it came", family.AnyID, `[ {"role":"user", "content":"a"} ]`, `[ {"role":"user", "content":"a"} ]`},
		{"ids of any form", family.AnyID, `[ {"tool_calls":[{"id":"x"}]} ]`, `[ {"tool_calls":[{"id":"x"}]} ]`},
		{"reasoning", family.AnyID, `[{"b":1.50,"a":"\u0041","reasoning_content":"r"},{"reasoning":"s","x":null}]`,
			`[{"b":1.50,"a":"A","reasoning_content":"r","reasoning":"r"},{"reasoning":"s","x":null,"reasoning_content":"s"}]`},
		{"both names", family.AnyID, `[{"reasoning":"s","reasoning_content":"r"}]`, `[{"reasoning":"s","reasoning_content":"r"}]`},
		{"nine", family.NineID, `[{"tool_calls":[{"id":"abcdefgh1","function":{"name":"f","arguments":"{}"}}]},{"tool_call_id":"abcdefgh1"}]`,
			`[{"tool_calls":[{"id":"abcdefgh1","function":{"name":"f","arguments":"{}"}}]},{"tool_call_id":"abcdefgh1"}]`},
		{"numbers", family.NumberID, `[{"tool_calls":[{"id":"call_a","function":{"name":"f"}},{"id":"call_b","function":{"name":"g"}}]},{"tool_call_id":"call_b"},` +
			`{"tool_call_id":"call_a"},{"tool_calls":[{"id":"functions.f:9","function":{"name":"f"}}]},{"tool_call_id":"functions.f:9"}]`,
			`[{"tool_calls":[{"id":"functions.f:0","function":{"name":"f"}},{"id":"functions.g:1","function":{"name":"g"}}]},{"tool_call_id":"functions.g:1"},` +
				`{"tool_call_id":"functions.f:0"},{"tool_calls":[{"id":"functions.f:2","function":{"name":"f"}}]},{"tool_call_id":"functions.f:2"}]`},
		{"an id twice", family.NumberID, `[{"tool_calls":[{"id":"x","function":{"name":"f"}}]},{"tool_call_id":"x"},{"tool_calls":[{"id":"x","function":{"name":"f"}}]},{"tool_call_id":"x"}]`,
			`[{"tool_calls":[{"id":"functions.f:0","function":{"name":"f"}}]},{"tool_call_id":"functions.f:0"},{"tool_calls":[{"id":"functions.f:1","function":{"name":"f"}}]},{"tool_call_id":"functions.f:1"}]`},
		{"odd shapes", family.NumberID, `[{"tool_calls":5},{"tool_calls":[5]},{"tool_calls":[{"id":7}]},{"tool_call_id":null},3]`,
			`[{"tool_calls":5},{"tool_calls":[5]},{"tool_calls":[{"id":7}]},{"tool_call_id":null},3]`},
		{"no array", family.NineID, `{"tool_call_id":"x"}`, `{"tool_call_id":"x"}`},
	} {
		if got, err := history([]byte(c.in), c.rule); err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s\n%s", c.name, err, got, c.want)
		}
	}
	if got, err := history([]byte(`[{"tool_call_id":"x"`), family.NineID); err == nil {
		t.Errorf("half a text became %s", got)
	}
}

// Case B-011 (vllm-project/vllm#5649, #44596): templates of Mistral refuse ids that are not nine letters and digits, and clients send back
// what another server gave them.
func TestCaseB011(t *testing.T) {
	const id = "call_9f0e1d2c3b4a59687766"
	in := `[{"tool_calls":[{"id":"` + id + `","function":{"name":"f"}}]},{"tool_call_id":"` + id + `"},{"tool_call_id":"other"}]`
	got, err := history([]byte(in), family.NineID)
	if err != nil || !nine(short(id)) || short(id) == short("other") {
		t.Fatal(err, short(id))
	}
	if want := strings.ReplaceAll(strings.ReplaceAll(in, id, short(id)), "other", short("other")); string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func FuzzHistory(f *testing.F) {
	f.Add([]byte(`[{"tool_calls":[{"id":"x","function":{"name":"f"}}],"reasoning":"r"},{"tool_call_id":"x"}]`), uint8(2))
	f.Fuzz(func(t *testing.T, in []byte, rule uint8) {
		got, err := history(in, family.CallIDs(rule%3))
		if err == nil && len(got) > 3*len(in)+100*(1+strings.Count(string(in), "{")) {
			t.Errorf("%d bytes became %d", len(in), len(got))
		}
	})
}
